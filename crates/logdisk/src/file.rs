//! A file, or whatever else can be read and written at a place, as a medium.
//!
//! Leaves out who else may use it: locks, and what a block device holds, are its caller's to look at.

use crate::medium::Medium;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// A file.
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    bytes: u64,
}

impl FileMedium {
    /// A file that is open for reading and writing, as large as it is now.
    ///
    /// # Errors
    /// Where its size cannot be had.
    pub fn new(mut file: File) -> io::Result<FileMedium> {
        // The length of a block device is where its end is.
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(FileMedium { file, bytes })
    }
}

impl Medium for FileMedium {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }
    fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
