//! [`Place`]: what an attached drive is called, and where its files are.
//!
//! ```text
//!   /run/lowtide/attached/NAME.journal    what was done, and has to be undone
//!   /run/lowtide/attached/NAME/disk       the drive as a file, served by FUSE
//!   /run/lowtide/attached/NAME.control    the socket that takes commands while it is served
//!   /run/lowtide/attached/NAME.log        what the server said
//!   /run/lowtide/attached/NAME.state      the history it began with, or ended with, where it is handed over
//!   /run/lowtide/attached/NAME.mounted    its filesystem, where it is mounted here
//! ```
//!
//! Not here: what is in them.

use crate::error::{HostError, Operation};
use crate::run_folder;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of the longest name: a socket's path has room for a few more.
const LONGEST: usize = 64;
const JOURNAL: &str = "journal";
const STATE: &str = "state";
/// What may be beside a state: it was being written, or in use.
const BESIDE_STATE: [&str; 2] = ["state.part", "state.open"];

/// The places of one attached drive, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    name: String,
}

impl Place {
    /// # Errors
    /// [`HostError::Invalid`] where that is no name.
    pub(super) fn new(name: &str) -> Result<Place, HostError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !name.is_empty() && name.len() <= LONGEST && !name.starts_with('-') && name.chars().all(plain) {
            return Ok(Place { name: name.to_owned() });
        }
        Err(HostError::Invalid {
            what: "the name of the attached drive",
            value: format!("`{name}`"),
            accepted: format!("letters, digits, - and _ are accepted, {LONGEST} at most"),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where the file is mounted.
    pub(super) fn mount_point(&self) -> PathBuf {
        folder().join(&self.name)
    }

    /// What is mounted there, as the kernel lists it.
    pub(super) fn source(&self) -> String {
        format!("lowtide:{}", self.name)
    }

    /// The drive as a file.
    pub(super) fn file(&self) -> PathBuf {
        self.mount_point().join(super::drive_file::NAME)
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

    /// Where its filesystem is mounted, where nobody names another place.
    pub(super) fn mounted(&self) -> PathBuf {
        self.with("mounted")
    }

    fn with(&self, ending: &str) -> PathBuf {
        folder().join(format!("{}.{ending}", self.name))
    }

    /// Makes the folders above.
    pub(super) fn make_folder() -> Result<(), HostError> {
        run_folder::make(Path::new(run_folder::PATH))?;
        run_folder::make(&folder())
    }

    /// Removes all but the journal; what is not there is no failure.
    pub(super) fn clear(&self) -> Result<(), HostError> {
        let beside = BESIDE_STATE.map(|ending| self.with(ending));
        for path in [self.control(), self.log(), self.state()].into_iter().chain(beside) {
            gone(fs::remove_file(&path)).map_err(HostError::io(Operation::Remove, &path))?;
        }
        let at = self.mount_point();
        gone(fs::remove_dir(&at)).map_err(HostError::io(Operation::Remove, &at))
    }

    /// Removes the folders above, where nothing else is in them.
    pub(super) fn leave_folder() {
        let _ = fs::remove_dir(folder()).and_then(|()| fs::remove_dir(run_folder::PATH));
    }

    /// All that have a journal, by name.
    pub(super) fn all() -> Vec<Place> {
        let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| {
            let name = entry.file_name().to_str()?.strip_suffix(JOURNAL)?.strip_suffix('.')?.to_owned();
            Place::new(&name).ok()
        });
        let mut all: Vec<Place> = names.collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

fn folder() -> PathBuf {
    Path::new(run_folder::PATH).join("attached")
}

fn gone(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["", "a.b", "../x", "a/b", "-x", "a b", &"x".repeat(65)] {
            let error = Place::new(name).unwrap_err().to_string();
            assert!(error.contains("letters, digits"), "{error}");
        }
        let place = Place::new("intel-320_b").expect("a name");
        assert_eq!(place.file(), Path::new("/run/lowtide/attached/intel-320_b/disk"));
    }
}
