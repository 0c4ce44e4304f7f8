//! [`Paths`]: the name of an attached drive, and the paths of its files.
//!
//! ```text
//!   /run/lowtide/attached/NAME.journal    the steps that have to be undone
//!   /run/lowtide/attached/NAME/disk       the drive as a file, served by FUSE
//!   /run/lowtide/attached/NAME.control    the socket for commands while the drive is served
//!   /run/lowtide/attached/NAME.log        the output of the server
//!   /run/lowtide/attached/NAME.state      the initial state of the drive, later its final state
//!   /run/lowtide/attached/NAME.mounted    the default mount point of its filesystem
//! ```

use super::loop_device::{self, LoopDevice};
use crate::error::{HostError, Operation};
use crate::run_folder;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum length of a name in bytes, limited by the length of a socket's path.
const MAX_NAME: usize = 64;
const JOURNAL: &str = "journal";
const STATE: &str = "state";
/// Temporary files of a state that is being written or in use.
const TEMPORARY_STATES: [&str; 2] = ["state.part", "state.open"];

/// The paths of one attached drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Paths {
    name: String,
}

impl Paths {
    /// Checks the name of a drive.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if it is not a valid name.
    pub(super) fn new(name: &str) -> Result<Paths, HostError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('-') && name.chars().all(plain) {
            return Ok(Paths { name: name.to_owned() });
        }
        Err(HostError::invalid(
            "the name of the attached drive",
            format_args!("`{name}`"),
            format!("letters, digits, - and _ are accepted, {MAX_NAME} at most"),
        ))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The mount point of the FUSE filesystem.
    pub(super) fn mount_point(&self) -> PathBuf {
        folder().join(&self.name)
    }

    /// The source that mountinfo shows for the FUSE filesystem.
    pub(super) fn source(&self) -> String {
        format!("lowtide:{}", self.name)
    }

    /// The drive as a file.
    pub(super) fn file(&self) -> PathBuf {
        self.mount_point().join(super::drive_file::NAME)
    }

    /// The loop devices over that file.
    pub(super) fn loop_devices(&self) -> Vec<LoopDevice> {
        let path = self.file();
        loop_device::over(|file| file == path)
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.with(JOURNAL)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.with("log")
    }

    pub(super) fn control(&self) -> PathBuf {
        self.with("control")
    }

    pub(super) fn state(&self) -> PathBuf {
        self.with(STATE)
    }

    /// The default mount point of the filesystem on the drive.
    pub(super) fn mounted(&self) -> PathBuf {
        self.with("mounted")
    }

    fn with(&self, ending: &str) -> PathBuf {
        folder().join(format!("{}.{ending}", self.name))
    }

    /// Creates the folders that all drives share.
    pub(super) fn make_folder() -> Result<(), HostError> {
        run_folder::make(Path::new(run_folder::PATH))?;
        run_folder::make(&folder())
    }

    /// Removes all files except the journal. Missing files are ignored.
    pub(super) fn clear(&self) -> Result<(), HostError> {
        let temporary = TEMPORARY_STATES.map(|ending| self.with(ending));
        for path in [self.control(), self.log(), self.state()].into_iter().chain(temporary) {
            ignore_missing(fs::remove_file(&path)).map_err(HostError::io(Operation::Remove, &path))?;
        }
        let at = self.mount_point();
        ignore_missing(fs::remove_dir(&at)).map_err(HostError::io(Operation::Remove, &at))
    }

    /// Removes the shared folders if they are empty.
    pub(super) fn remove_folder() {
        let _ = fs::remove_dir(folder()).and_then(|()| fs::remove_dir(run_folder::PATH));
    }

    /// The paths of all drives that have a journal, by name.
    pub(super) fn all() -> Vec<Paths> {
        let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| {
            let name = entry.file_name().to_str()?.strip_suffix(JOURNAL)?.strip_suffix('.')?.to_owned();
            Paths::new(&name).ok()
        });
        let mut all: Vec<Paths> = names.collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

fn folder() -> PathBuf {
    Path::new(run_folder::PATH).join("attached")
}

fn ignore_missing(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_names_are_rejected() {
        for name in ["", "a.b", "../x", "a/b", "-x", "a b", &"x".repeat(65)] {
            let error = Paths::new(name).unwrap_err().to_string();
            assert!(error.contains("letters, digits"), "{error}");
        }
        let paths = Paths::new("intel-320_b").expect("a name");
        assert_eq!(paths.file(), Path::new("/run/lowtide/attached/intel-320_b/disk"));
    }
}
