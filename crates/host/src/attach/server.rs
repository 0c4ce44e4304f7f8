//! The process that serves an attached drive: [`Server`].
//!
//! The server has a session of its own, and runs until its filesystem is unmounted. It starts only after its parent
//! has recorded it in the journal: nobody could find an unrecorded server after its parent was killed. `unsafe`
//! because of `prctl`.
#![allow(unsafe_code)]

use super::drive_file::DriveFile;
use super::paths::Paths;
use crate::error::{HostError, Operation};
use crate::live::Port;
use fuser::{Config, MountOption, Session};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The message on standard input that starts the server.
pub(super) const GO: &[u8] = b"go\n";

/// <linux/prctl.h>
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// A server that is recorded and may start to serve.
#[derive(Debug)]
pub struct Server {
    pub(super) paths: Paths,
}

impl Server {
    /// Turns this process, which [`super::attach`] started, into the server of the drive called `name`. Call this
    /// first, while the process has one thread. `None` if the parent has ended.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if `name` is not a valid name; [`HostError::Io`] if standard input cannot be
    /// read.
    pub fn begin(name: &str) -> Result<Option<Server>, HostError> {
        let paths = Paths::new(name)?;
        // Fails only if the process already leads a session.
        let _ = rustix::process::setsid();
        let mut word = Vec::new();
        let read = std::io::stdin().take(GO.len() as u64).read_to_end(&mut word);
        read.map_err(HostError::io(Operation::Read, Path::new("standard input")))?;
        if word != GO {
            return Ok(None);
        }
        // An I/O flusher's allocations do not wait for dirty pages to be written back, which could wait for
        // this server. Later threads inherit the setting. Without the permission for it, the drive works
        // until memory is short. SAFETY: all arguments are numbers.
        unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
        Ok(Some(Server { paths }))
    }

    /// Path of the control socket of the drive.
    pub fn control(&self) -> PathBuf {
        self.paths.control()
    }

    /// Serves a drive until its filesystem is unmounted.
    ///
    /// # Errors
    /// [`HostError::Io`] if the filesystem cannot be mounted, or the FUSE session fails.
    pub fn serve(&self, port: Arc<dyn Port>) -> Result<(), HostError> {
        // Files that the drive names relative to the working directory are open by now. The server must not keep that
        // directory in use.
        let root = Path::new("/");
        rustix::process::chdir(root).map_err(HostError::io(Operation::Open, root))?;
        let session = self.mount(port, &self.paths.source())?;
        session.run().map_err(HostError::io(Operation::Read, &self.paths.mount_point()))
    }

    /// Mounts the FUSE filesystem with the drive as its file.
    pub(super) fn mount(&self, port: Arc<dyn Port>, source: &str) -> Result<Session<DriveFile>, HostError> {
        let at = self.paths.mount_point();
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(source.to_owned()),
            MountOption::DefaultPermissions,
            MountOption::NoExec,
            MountOption::NoAtime,
        ];
        Session::new(DriveFile::new(port), &at, &config).map_err(HostError::io(Operation::Mount, &at))
    }
}
