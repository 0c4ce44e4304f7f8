//! The file that keeps a drive's map, wear and history between servers ([`StateFile`]).
//!
//! A server writes the file when it shuts down cleanly. While it runs, a marker file exists next to the state file. A
//! killed server leaves the marker behind. The next server then knows that the state is older than the contents.
//!
//! The format of the file is in `lowtide_device::state`.

use lowtide_core::{BlockDevice, Seed, StateError, VirtualTime};
use lowtide_device::state::{self, Restored};
use lowtide_device::{AnyDevice, DeviceSpec};
use lowtide_files::output::{self, CommandFiles, Output, Role};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

pub(super) const STATE: Role = Role::new("the state", "--state FILE");

/// The state file of a drive. The file may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFile {
    path: PathBuf,
}

impl StateFile {
    /// The state file at `path`.
    pub fn at(path: PathBuf) -> StateFile {
        StateFile { path }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Restores the drive; `None` if there is no file.
    ///
    /// # Errors
    /// [`StateError`] if the state belongs to another device or is damaged.
    pub fn restore(&self, spec: &DeviceSpec) -> Result<Option<Restored>, StateError> {
        match File::open(&self.path) {
            Ok(file) => state::restore(&mut BufReader::with_capacity(1 << 20, file), spec).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a server has the state open, or ended without a clean shutdown.
    pub fn is_open(&self) -> bool {
        self.with_ending("open").exists()
    }

    /// Marks the state as open.
    ///
    /// # Errors
    /// Another server has the state open, or the directory is not writable. Without this check, an unwritable
    /// directory would be noticed only at the end.
    pub fn begin(&self) -> io::Result<OpenMarker> {
        let path = self.with_ending("open");
        let existing = path.symlink_metadata().ok();
        // A marker is an empty file. Closing the drive removes it, so no other file may be here.
        if existing.as_ref().is_some_and(|found| !found.is_file() || found.len() != 0) {
            return Err(io::Error::other(format!(
                "{} exists and is not the marker of a server",
                path.display()
            )));
        }
        output::in_place(STATE, &path, &CommandFiles::default()).map_err(io::Error::from)?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(io::Error::other("another server has the state open")),
            // Some filesystems have no locks.
            _ => Ok(OpenMarker { path, clean: existing.is_none(), served: false, _file: file }),
        }
    }

    /// Writes the state atomically.
    ///
    /// # Errors
    /// [`StateError`] if it cannot be written; the file is then unchanged.
    pub fn save(
        &self,
        spec: &DeviceSpec,
        seed: Seed,
        now: VirtualTime,
        device: &AnyDevice,
    ) -> Result<(), StateError> {
        let mut failed = None;
        let written = Output::file(STATE, &self.path, &CommandFiles::default()).and_then(|output| {
            output.write_with(|out| {
                let saved = state::save(out, spec, seed, now, device as &dyn BlockDevice);
                saved.map_err(|error| {
                    let other = io::Error::other(error.to_string());
                    failed = Some(error);
                    other
                })
            })
        });
        match failed {
            Some(error) => Err(error),
            None => written.map_err(|error| io::Error::from(error).into()),
        }
    }

    fn with_ending(&self, ending: &str) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    }
}

/// The marker file of an open state. Dropping it removes the file, unless the contents may be newer than the saved
/// state.
#[derive(Debug)]
pub struct OpenMarker {
    path: PathBuf,
    clean: bool,
    served: bool,
    /// Open and locked.
    _file: File,
}

impl OpenMarker {
    /// Whether the previous server shut down cleanly.
    pub fn is_clean(&self) -> bool {
        self.clean
    }

    /// Notes that the drive is in use, so its contents may now be newer than the state file.
    pub fn served(&mut self) {
        self.served = true;
    }

    /// Notes that the state was saved.
    pub fn state_saved(&mut self) {
        (self.served, self.clean) = (false, true);
    }
}

impl Drop for OpenMarker {
    fn drop(&mut self) {
        if !self.served && self.clean {
            // A marker that cannot be removed only causes a warning.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
