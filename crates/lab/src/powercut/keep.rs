//! Files of databases that were found corrupt, kept for whoever wants to know why.
//!
//! Before a database is opened after a power cut its files are copied, since recovery changes them; the copy stays where the
//! database turns out to be corrupt:
//!
//! ```text
//!   DIR/sqlite-full-xfs-volatile-cut-57/data/…    as the power cut left them
//!                                       why.txt   what was found
//! ```
//!
//! Leaves out the drive as a whole, and databases in virtual time: the same seed gives them again.

use super::{Row, Setting};
use lowtide_oltp::{OltpError, snapshot};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Where files are kept.
#[derive(Debug)]
pub(super) struct Keeper<'a> {
    directory: &'a Path,
    interrupt: &'a AtomicBool,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(directory: &'a Path, interrupt: &'a AtomicBool) -> Keeper<'a> {
        Keeper { directory, interrupt }
    }

    /// The files of a database that is not open, in case they are wanted.
    ///
    /// # Errors
    /// [`OltpError`] where they cannot be copied.
    pub(super) fn copy(&self, row: &Row, data: &Path) -> Result<(), OltpError> {
        let folder = self.folder(row);
        if folder.exists() {
            let why =
                format!("{} is there already, of an earlier run: name another --keep", folder.display());
            return Err(OltpError::Invalid(why));
        }
        snapshot::copy(data, &folder.join("data"), self.interrupt, &|_| {}).map(drop)
    }

    /// They are wanted: this is what was found.
    ///
    /// # Errors
    /// [`OltpError`] where that cannot be written.
    pub(super) fn keep(&self, row: &Row, why: &str) -> Result<(), OltpError> {
        let path = self.folder(row).join("why.txt");
        // Where not even the filesystem could be mounted there are no files.
        let written =
            fs::create_dir_all(self.folder(row)).and_then(|()| fs::write(&path, format!("{why}\n")));
        written.map_err(|source| OltpError::Io { path, source })
    }

    /// They are not.
    pub(super) fn forget(&self, row: &Row) {
        let _ = fs::remove_dir_all(self.folder(row));
    }

    /// Of the database as the row's last cut left it.
    fn folder(&self, row: &Row) -> PathBuf {
        let Setting { engine, durability, filesystem, barrier, cache, .. } = row.setting;
        let barrier = if barrier { "" } else { "-no-barrier" };
        let name = format!("{engine}-{durability}-{}{barrier}-{cache}-cut-{}", filesystem.name(), row.cuts);
        self.directory.join(name)
    }
}
