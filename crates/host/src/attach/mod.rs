//! A drive that is served live, as a block device of the kernel: with filesystems on it, and databases on those.
//!
//! ```text
//!   program ─► ext4 | XFS | … ─► /dev/loop0 ─► /run/lowtide/attached/NAME/disk ─► FUSE ─► Port ─► model
//!                                 direct I/O    one file, nothing cached         server, a process of its own
//! ```
//!
//! [`attach`] starts the server ([`Server`]) and puts a loop device over its file, which is written down before it is done.
//! [`detach`] takes everything apart again, whatever happened meanwhile, and does not hang. After a power cut the handles
//! of the old life are dead, the loop device's among them: [`again`] opens the file anew.
//!
//! A loop device has no forced unit access: the kernel turns it into a write and a flush. Writes with `O_DSYNC` to the file
//! itself arrive with it.
//!
//! Not here: the drive (see [`crate::live`]), and other ways to a block device; NBD of the kernel and ublk would be further
//! [`Way`]s.

mod attachment;
mod detach;
mod drive_file;
mod holders;
mod journal;
mod loop_device;
mod place;
mod process;
mod server;
mod transport;
mod watch;

pub use attachment::{
    Attachment, History, State, Wish, again, attach, clean, control_of, detach, detach_with, list, mount_of,
    name_of, state_of,
};
pub use detach::Detached;
pub use server::Server;

use crate::error::HostError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

/// How a drive becomes a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A file of a FUSE filesystem, with a loop device over it.
    FuseAndLoop,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::FuseAndLoop => "FUSE and a loop device",
        })
    }
}

impl Way {
    /// # Errors
    /// [`HostError::NoBlockDevice`] where this machine, or this user, does not have it.
    fn check(self) -> Result<(), HostError> {
        match self {
            Way::FuseAndLoop => {
                for path in ["/dev/fuse", "/dev/loop-control"].map(Path::new) {
                    let opened = OpenOptions::new().read(true).write(true).open(path);
                    opened.map_err(|source| HostError::NoBlockDevice { path: path.to_owned(), source })?;
                }
                // Others may use FUSE, but not mount what is on a device.
                if rustix::process::geteuid().is_root() {
                    return Ok(());
                }
                let (path, source) = ("/run/lowtide".into(), rustix::io::Errno::PERM.into());
                Err(HostError::NoBlockDevice { path, source })
            }
        }
    }
}

/// What is done about things in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// They are told, and stay.
    No,
    /// They are taken away from those that use them: what is written is saved, what comes fails.
    Lazily,
}

impl Force {
    /// How long a drive may complete nothing while it is waited for.
    fn patience(self) -> Duration {
        match self {
            Force::No => Duration::from_secs(30),
            Force::Lazily => Duration::from_secs(3),
        }
    }
}

fn not_attached(what: &str) -> HostError {
    let attached_names = place::Place::all().iter().map(|place| place.name().to_owned()).collect();
    HostError::NotAttached { what: what.to_owned(), attached_names }
}
