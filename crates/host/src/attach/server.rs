//! The process that serves an attached drive: [`Server`].
//!
//! It has a session of its own, and lasts until its filesystem is unmounted. It does nothing before
//! whoever started it has written down that it runs: otherwise nobody could find it after a kill. `unsafe` stands here
//! because libc has `prctl` only so. Not here: the drive, commands to it, and what
//! the way to it takes (see [`super::transport`]).
#![allow(unsafe_code)]

use super::drive_file::DriveFile;
use super::place::Place;
use crate::error::{HostError, Operation};
use crate::live::Port;
use fuser::{Config, MountOption, Session};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is written to the server's standard input.
pub(super) const GO: &[u8] = b"go\n";

/// <linux/prctl.h>
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// A server that may begin.
#[derive(Debug)]
pub struct Server {
    pub(super) place: Place,
}

impl Server {
    /// Makes this process, which [`super::attach`] started, the server of the drive called `name`. Call it first, with one
    /// thread running. `None` where whoever started it is gone.
    ///
    /// # Errors
    /// [`HostError::Invalid`] where `name` is none; [`HostError::Io`] where the process cannot be set up.
    pub fn begin(name: &str) -> Result<Option<Server>, HostError> {
        let place = Place::new(name)?;
        // One that leads its session already needs no other.
        let _ = rustix::process::setsid();
        let mut word = Vec::new();
        let read = std::io::stdin().take(GO.len() as u64).read_to_end(&mut word);
        read.map_err(HostError::io(Operation::Read, Path::new("standard input")))?;
        if word != GO {
            return Ok(None);
        }
        // Memory that is needed to write dirty memory back must not wait for that: threads started later have it from
        // this one. Without the right to it the drive works, until memory is short.
        // SAFETY: the call takes numbers only.
        unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
        Ok(Some(Server { place }))
    }

    /// Where the socket for commands to the drive belongs.
    pub fn control(&self) -> PathBuf {
        self.place.control()
    }

    /// Serves a drive, until its filesystem is unmounted.
    ///
    /// # Errors
    /// [`HostError::Io`] where the filesystem cannot be mounted, or the kernel ends it otherwise.
    pub fn serve(&self, port: Arc<dyn Port>) -> Result<(), HostError> {
        // Files of the drive may have been named from where the user is; from now on no folder is kept in use.
        let root = Path::new("/");
        rustix::process::chdir(root).map_err(HostError::io(Operation::Open, root))?;
        let session = self.mount(port, &self.place.source())?;
        session.run().map_err(HostError::io(Operation::Read, &self.place.mount_point()))
    }

    /// Mounts a drive as a file.
    pub(super) fn mount(&self, port: Arc<dyn Port>, source: &str) -> Result<Session<DriveFile>, HostError> {
        let at = self.place.mount_point();
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
