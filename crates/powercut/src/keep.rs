//! Files of databases that were found corrupt, kept for whoever wants to know why.
//!
//! Before a database is opened after a power cut its files are copied, since recovery changes them; the copy stays where the
//! database turns out to be corrupt:
//!
//! ```text
//!   DIR/sqlite-full-xfs-volatile-cut-57/data/…         as the power cut left them
//!                                       why.txt        what was found, and what is known of it
//!                                       requests.log   what happened to the drive since the cut before
//! ```
//!
//! Not here: the drive as a whole, and databases in virtual time; the same seed gives them again.

use super::{KEPT, Row, Setting, filesystem_name};
use lowtide_files::output::{CommandFiles, OutputFolder};
use lowtide_oltp::{OltpError, snapshot};
use std::fs::{self, File};
use std::io;
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

    /// They are wanted: this is what was found, and the log of the drive.
    ///
    /// # Errors
    /// [`OltpError`] where that cannot be written.
    pub(super) fn keep(&self, row: &Row, why: &str, log: &Path) -> Result<(), OltpError> {
        // Where not even the filesystem could be mounted there are no files.
        let folder = OutputFolder::new(KEPT, &self.folder(row), &CommandFiles::default());
        let written = folder.and_then(|folder| {
            folder.make()?;
            folder.file("why.txt")?.write(format!("{why}\n").as_bytes())?;
            let copy = |to: &mut dyn io::Write| io::copy(&mut File::open(log)?, to).map(drop);
            folder.file("requests.log")?.write_with(copy)
        });
        written.map_err(|error| OltpError::Io { path: self.folder(row), source: error.into() })
    }

    /// Where the files of the row's last cut are.
    pub(super) fn data(&self, row: &Row) -> PathBuf {
        self.folder(row).join("data")
    }

    /// They are not.
    pub(super) fn forget(&self, row: &Row) {
        let _ = fs::remove_dir_all(self.folder(row));
    }

    /// Of the database as the row's last cut left it.
    fn folder(&self, row: &Row) -> PathBuf {
        let Setting { engine, durability, filesystem, barrier, cache, .. } = row.setting;
        let barrier = if barrier { "" } else { "-no-barrier" };
        let name = format!(
            "{engine}-{durability}-{}{barrier}-{cache}-cut-{}",
            filesystem_name(filesystem),
            row.cuts
        );
        self.directory.join(name)
    }
}
