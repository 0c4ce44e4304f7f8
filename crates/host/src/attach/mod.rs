//! Attaches a live drive as a block device of the kernel, with a filesystem on it if requested.
//!
//! ```text
//!   program ─► ext4 | XFS | … ─► /dev/loop0 ─► /run/lowtide/attached/NAME/disk ─► FUSE ─► Port ─► model
//!                                 direct I/O    one file, nothing cached         server, a process of its own
//! ```
//!
//! [`attach`] starts the server ([`Server`]) and sets up a loop device over its file. Each step is journalled before
//! it is taken. [`detach`] works in any state and has a time limit. A power cut invalidates all open handles,
//! including that of the loop device; [`reattach`] opens the file again.
//!
//! A loop device has no forced unit access: the kernel turns such a write into a write and a flush. Writes with
//! `O_DSYNC` to the file itself keep it.
//!
//! The drive is in [`crate::live`].
//!
//! # Not handled
//! Other kinds of block devices: the kernel's NBD client, and ublk.

mod attachment;
mod detach;
mod drive_file;
mod holders;
mod journal;
mod loop_device;
mod paths;
mod process;
mod server;
mod transport;
mod watch;

pub use attachment::{
    AttachRequest, Attachment, History, State, attach, control_of, detach, detach_orphans, detach_with, list,
    mount_of, name_of, reattach, state_of,
};
pub use detach::Detached;
pub use server::Server;

use crate::error::HostError;
use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

/// The kind of block device, for reports.
pub const METHOD: &str = "FUSE and a loop device";

/// Checks that this user can attach drives on this machine.
///
/// # Errors
/// [`HostError::NoBlockDevice`] if not.
fn check_support() -> Result<(), HostError> {
    for path in ["/dev/fuse", "/dev/loop-control"].map(Path::new) {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        opened.map_err(|source| HostError::NoBlockDevice { path: path.to_owned(), source })?;
    }
    // Other users may use FUSE, but may not mount filesystems of devices.
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (path, source) = ("/run/lowtide".into(), rustix::io::Errno::PERM.into());
    Err(HostError::NoBlockDevice { path, source })
}

/// The treatment of mounts and devices that are in use when a drive is detached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Report them and leave them attached.
    No,
    /// Detach them lazily: dirty data is written back, and later requests fail.
    Lazily,
}

impl Force {
    /// Time limit for a drive that completes no request.
    fn patience(self) -> Duration {
        match self {
            Force::No => Duration::from_secs(30),
            Force::Lazily => Duration::from_secs(3),
        }
    }
}

fn not_attached(wanted: &str) -> HostError {
    let attached_names = paths::Paths::all().iter().map(|paths| paths.name().to_owned()).collect();
    HostError::NotAttached { wanted: wanted.to_owned(), attached_names }
}
