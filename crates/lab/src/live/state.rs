//! A drive's map, wear and history in a file, from one server to the next ([`Kept`]).
//!
//! The file is written when a server ends in order. While one runs, a file beside it says so: a server that was killed
//! leaves it behind, and the next one knows that the history is older than the contents. Leaves out the bytes of the file
//! (`lowtide_device::state`) and the contents of the drive.

use lowtide_core::{BlockDevice, Seed, StateError, VirtualTime};
use lowtide_device::state::{self, Restored};
use lowtide_device::{AnyDevice, DeviceSpec};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

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

    /// A server begins. Whether the one before it ended in order.
    ///
    /// # Errors
    /// Where nothing can be written there; better now than at the end.
    pub fn begin(&self) -> io::Result<bool> {
        let mark = self.beside("open");
        match File::create_new(&mark) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
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
        let part = self.beside("part");
        let written = (|| {
            let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
            state::save(&mut out, spec, seed, now, device as &dyn BlockDevice)?;
            out.flush()?;
            out.get_ref().sync_all()?;
            std::fs::rename(&part, &self.path)?;
            Ok(())
        })();
        if written.is_err() {
            let _ = std::fs::remove_file(&part);
        } else {
            let _ = std::fs::remove_file(self.beside("open"));
        }
        written
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    }
}
