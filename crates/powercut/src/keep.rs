//! Copies of the files of corrupt databases, for diagnosis.
//!
//! The files of a database are copied after a power cut, before recovery changes them. The copy is kept only if the
//! database is corrupt:
//!
//! ```text
//!   DIR/sqlite-full-xfs-volatile-cut-57/data/…         the files after the power cut
//!                                       why.txt        the damage and the evidence
//!                                       requests.log   the requests of the drive since the previous cut
//! ```
//!
//! # Not handled
//! The contents of the drive are not kept. Databases in virtual time are not kept either, because the same seed
//! reproduces them.

use super::{KEPT, Row, Setting, filesystem_name};
use lowtide_files::output::{CommandFiles, OutputFolder};
use lowtide_oltp::{OltpError, snapshot};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The directory for kept files.
#[derive(Debug)]
pub(super) struct Keeper<'a> {
    directory: &'a Path,
    interrupt: &'a AtomicBool,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(directory: &'a Path, interrupt: &'a AtomicBool) -> Keeper<'a> {
        Keeper { directory, interrupt }
    }

    /// Copies the files of a closed database.
    ///
    /// # Errors
    /// [`OltpError`] if a file cannot be copied, or if an earlier run kept files for the same cut.
    pub(super) fn copy(&self, row: &Row, data: &Path) -> Result<(), OltpError> {
        let folder = self.folder(row);
        if folder.exists() {
            let message = format!("{} exists already: name another --keep", folder.display());
            return Err(OltpError::Invalid(message));
        }
        snapshot::copy(data, &folder.join("data"), self.interrupt, &|_| {}).map(drop)
    }

    /// Keeps the copy. Adds the evidence `why` and the drive's log.
    ///
    /// # Errors
    /// [`OltpError`] if a file cannot be written.
    pub(super) fn keep(&self, row: &Row, why: &str, log: &Path) -> Result<(), OltpError> {
        // No copy exists if the filesystem could not be mounted.
        let folder = OutputFolder::new(KEPT, &self.folder(row), &CommandFiles::default());
        let written = folder.and_then(|folder| {
            folder.make()?;
            folder.file("why.txt")?.write(format!("{why}\n").as_bytes())?;
            let copy = |to: &mut dyn io::Write| io::copy(&mut File::open(log)?, to).map(drop);
            folder.file("requests.log")?.write_with(copy)
        });
        written.map_err(|error| OltpError::Io { path: self.folder(row), source: error.into() })
    }

    /// The directory of the copy made after the row's last cut.
    pub(super) fn data(&self, row: &Row) -> PathBuf {
        self.folder(row).join("data")
    }

    /// Removes the copy.
    pub(super) fn forget(&self, row: &Row) {
        let _ = fs::remove_dir_all(self.folder(row));
    }

    fn folder(&self, row: &Row) -> PathBuf {
        let Setting { engine, durability, filesystem, barrier, cache, .. } = row.setting;
        let barrier = if barrier { "" } else { "-no-barrier" };
        let (filesystem, cuts) = (filesystem_name(filesystem), row.cuts);
        self.directory.join(format!("{engine}-{durability}-{filesystem}{barrier}-{cache}-cut-{cuts}"))
    }
}
