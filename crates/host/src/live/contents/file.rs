//! Contents in a sparse file ([`SparseFile`]).
//!
//! The file is a raw image: byte 0 of the file is byte 0 of the drive.

use super::Run;
use crate::block;
use crate::error::HostError;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags, SeekFrom, fallocate, flock, seek};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The reason why a file cannot hold the contents of a drive.
#[derive(Debug, thiserror::Error)]
pub enum SparseFileError {
    /// The file cannot be opened or created.
    #[error("cannot open `{}`: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path is not a regular file.
    #[error("`{}` is not a regular file: data is kept in memory or in a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file has the wrong size.
    #[error(
        "`{}` has {found} bytes, but the drive has {wanted}: name the file of such a drive, an empty file, or a new one",
        path.display()
    )]
    Size {
        /// The file.
        path: PathBuf,
        /// Bytes of the file.
        found: u64,
        /// Bytes of the drive.
        wanted: u64,
    },
    /// Another server has locked the file.
    #[error("`{}` is in use: another drive is served from it", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Another user has the file open, such as a loop device or a virtual machine.
    #[error(transparent)]
    Used(Box<HostError>),
}

/// A sparse file, locked while it is open.
#[derive(Debug)]
pub struct SparseFile {
    file: File,
    length: u64,
}

impl SparseFile {
    /// Opens the file at `path`, which must have `length` bytes, be empty, or not exist. If `path` is a directory,
    /// creates an unnamed temporary file in it.
    ///
    /// # Errors
    /// [`SparseFileError`]; the file is unchanged.
    pub fn open(path: &Path, length: u64, read_only: bool) -> Result<SparseFile, SparseFileError> {
        let named = || path.to_owned();
        let failed = |source| SparseFileError::Open { path: named(), source };
        // Checked before opening: opening a pipe blocks, and opening a device may have effects.
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() && !read_only => return SparseFile::unnamed(path, length),
            Ok(found) if !found.is_file() => return Err(SparseFileError::NotAFile { path: named() }),
            Ok(found) if found.len() != length && (found.len() != 0 || read_only) => {
                return Err(SparseFileError::Size { path: named(), found: found.len(), wanted: length });
            }
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).write(!read_only).create(!read_only);
        let file = options.open(path).map_err(failed)?;
        let how = if read_only {
            FlockOperation::NonBlockingLockShared
        } else {
            FlockOperation::NonBlockingLockExclusive
        };
        match flock(&file, how) {
            Err(error) if error == rustix::io::Errno::WOULDBLOCK => {
                return Err(SparseFileError::InUse { path: named() });
            }
            // Some filesystems have no locks.
            _ => {}
        }
        if !read_only {
            block::check_file(&file, path).map_err(|error| SparseFileError::Used(Box::new(error)))?;
        }
        let found = file.metadata().map_err(failed)?.len();
        if found == 0 && length > 0 {
            file.set_len(length).map_err(failed)?;
        } else if found != length {
            return Err(SparseFileError::Size { path: named(), found, wanted: length });
        }
        Ok(SparseFile { file, length })
    }

    fn unnamed(folder: &Path, length: u64) -> Result<SparseFile, SparseFileError> {
        let flags = OFlags::TMPFILE.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        let file = options.clone().custom_flags(flags).open(folder).or_else(|error| {
            if error.kind() != io::ErrorKind::Unsupported {
                return Err(error);
            }
            // Some filesystems have no O_TMPFILE.
            let path = folder.join(format!(".lowtide-{}", std::process::id()));
            let file = options.create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        });
        let made = file.and_then(|file| file.set_len(length).map(|()| SparseFile { file, length }));
        made.map_err(|source| SparseFileError::Open { path: folder.to_owned(), source })
    }

    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    pub(super) fn clear(&self, offset: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, hole, offset, length) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::OPNOTSUPP) => self.write_zeroes(offset, length),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes zeroes to a range, for filesystems that cannot punch holes.
    fn write_zeroes(&self, offset: u64, length: u64) -> io::Result<()> {
        let zeroes = vec![0; length.min(1 << 20) as usize];
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let part = (end - at).min(zeroes.len() as u64);
            self.file.write_all_at(&zeroes[..part as usize], at)?;
            at += part;
        }
        Ok(())
    }

    pub(super) fn run(&self, offset: u64, length: u64) -> io::Result<Run> {
        let whole = Run { length, allocated: true };
        let data = match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => return Ok(Run { length, allocated: false }),
            Err(rustix::io::Errno::INVAL) => return Ok(whole),
            Err(error) => return Err(error.into()),
        };
        if data > offset {
            return Ok(Run { length: (data - offset).min(length), allocated: false });
        }
        let hole = seek(&self.file, SeekFrom::Hole(offset))?.min(self.length);
        Ok(Run { length: hole.saturating_sub(offset).clamp(1, length), allocated: true })
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
