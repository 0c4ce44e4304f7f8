//! A drive's map, wear and history in a file, from one server to the next ([`Kept`]).
//!
//! The file is written when a server ends in order. While one runs, a file beside it says so: a server that was killed
//! leaves it behind, and the next one knows that the history is older than the contents. Not here: the bytes of the file
//! (`lowtide_device::state`) and the contents of the drive.

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

/// What is written.
pub(super) const STATE: Role = Role::new("the state", "--state FILE");

/// A file that holds the state of a drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    path: PathBuf,
}

impl Kept {
    /// The state in a file, or to be there.
    pub fn at(path: PathBuf) -> Kept {
        Kept { path }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The drive that the file holds; `None` where there is no file.
    ///
    /// # Errors
    /// [`StateError`] where it is of another device, or damaged.
    pub fn restore(&self, spec: &DeviceSpec) -> Result<Option<Restored>, StateError> {
        match File::open(&self.path) {
            Ok(file) => state::restore(&mut BufReader::with_capacity(1 << 20, file), spec).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a server has it open, or had and did not end in order.
    pub fn is_open(&self) -> bool {
        self.beside("open").exists()
    }

    /// A drive is opened that goes on with this state, and writes it when it is closed.
    ///
    /// # Errors
    /// Where another server has it open, or nothing can be written there: better now than at the end.
    pub fn begin(&self) -> io::Result<Mark> {
        let path = self.beside("open");
        let found = path.symlink_metadata().ok();
        // It goes when the drive is closed, so it must be ours.
        if found.as_ref().is_some_and(|found| !found.is_file() || found.len() != 0) {
            return Err(io::Error::other(format!("{} is there, and no mark of a server", path.display())));
        }
        let found = found.is_some();
        output::in_place(STATE, &path, &CommandFiles::default()).map_err(io::Error::from)?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(io::Error::other("another server has it open")),
            // A filesystem without locks: the user's own care.
            _ => Ok(Mark { path, in_order: !found, served: false, _file: file }),
        }
    }

    /// A server ends: writes the state, whole or not at all.
    ///
    /// # Errors
    /// [`StateError`] where it cannot be written; the file is as it was.
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
                    let told = io::Error::other(error.to_string());
                    failed = Some(error);
                    told
                })
            })
        });
        match failed {
            Some(error) => Err(error),
            None => written.map_err(|error| io::Error::from(error).into()),
        }
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    }
}

/// Says, beside a state's file, that a server has a drive open that goes on with it.
#[derive(Debug)]
pub struct Mark {
    path: PathBuf,
    in_order: bool,
    served: bool,
    /// Locked.
    _file: File,
}

impl Mark {
    /// Whether the server before this one ended in order.
    pub fn in_order(&self) -> bool {
        self.in_order
    }

    /// The drive has been asked something: the state in the file is no longer that of its contents.
    pub fn served(&mut self) {
        self.served = true;
    }

    /// The state was written.
    pub fn kept(&mut self) {
        (self.served, self.in_order) = (false, true);
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if !self.served && self.in_order {
            // One that stays warns the next server, which is all it can do.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
