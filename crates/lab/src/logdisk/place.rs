//! The file that a log disk lies in: made, opened, locked against others.
//!
//! Leaves out block devices.

use super::FileMedium;
use lowtide_core::Bytes;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file, held.
#[derive(Debug)]
pub struct Place {
    /// Where it is.
    pub path: PathBuf,
    file: File,
    /// It is read and written past the page cache.
    direct: bool,
}

/// Why a file cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The system says no.
    #[error("{path}: {source}")]
    File {
        /// Where.
        path: PathBuf,
        /// How.
        source: io::Error,
    },
    /// Somebody else has it.
    #[error("{0} is in use: another lowtide serves or checks it")]
    Held(PathBuf),
    /// It is neither a file nor anything else a log disk lies in.
    #[error("{path} is {found}; a log disk lies in a file")]
    Kind {
        /// Where.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// It holds something.
    #[error("{0} is there already and not empty")]
    Full(PathBuf),
    /// There is no such file, and no size to make it with.
    #[error("there is no file {0}")]
    None(PathBuf),
}

impl Place {
    /// The file of a log disk that is there, alone for this process; shared with others that only read where `read_only`.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn open(path: &Path, read_only: bool) -> Result<Place, PlaceError> {
        regular(path)?;
        let place = Place::opened(path, OpenOptions::new().read(true).write(!read_only))?;
        place.lock(if read_only {
            FlockOperation::NonBlockingLockShared
        } else {
            FlockOperation::NonBlockingLockExclusive
        })?;
        Ok(place)
    }

    /// A file to make a log disk in: a new one of `size`, or one that is there and has no size or nothing but zeroes at its beginning;
    /// with `over`, whatever is there.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn make(path: &Path, size: Option<Bytes>, over: bool) -> Result<Place, PlaceError> {
        let there = path.try_exists().map_err(|source| failed(path, source))?;
        if there {
            regular(path)?;
        } else if size.is_none() {
            return Err(PlaceError::None(path.to_owned()));
        }
        let place =
            Place::opened(path, OpenOptions::new().read(true).write(true).create(!there).truncate(false))?;
        place.lock(FlockOperation::NonBlockingLockExclusive)?;
        if there && !over && !place.is_empty()? {
            return Err(PlaceError::Full(path.to_owned()));
        }
        if let Some(size) = size {
            place.file.set_len(size.get()).map_err(|source| failed(path, source))?;
        }
        Ok(place)
    }

    /// Opens a file past the page cache, or through it where the filesystem has no other way.
    fn opened(path: &Path, options: &mut OpenOptions) -> Result<Place, PlaceError> {
        let direct = options.clone().custom_flags(OFlags::DIRECT.bits() as i32).open(path);
        let (file, direct) = match direct {
            Ok(file) => (file, true),
            Err(_) => (options.open(path).map_err(|source| failed(path, source))?, false),
        };
        Ok(Place { path: path.to_owned(), file, direct })
    }

    /// As a medium.
    ///
    /// # Errors
    /// [`PlaceError::File`].
    pub fn medium(self) -> Result<FileMedium, PlaceError> {
        FileMedium::new(self.file, self.direct).map_err(|source| failed(&self.path, source))
    }

    fn lock(&self, how: FlockOperation) -> Result<(), PlaceError> {
        flock(&self.file, how).map_err(|_| PlaceError::Held(self.path.clone()))
    }

    /// Whether its first mebibyte is zeroes.
    fn is_empty(&self) -> Result<bool, PlaceError> {
        let mut bytes = Vec::new();
        // Through the page cache: it may have any length.
        let file = File::open(&self.path).map_err(|source| failed(&self.path, source))?;
        file.take(1 << 20).read_to_end(&mut bytes).map_err(|source| failed(&self.path, source))?;
        Ok(bytes.iter().all(|&byte| byte == 0))
    }
}

/// What tells a new log disk from all others.
///
/// # Errors
/// Where the system gives no random bytes.
pub fn identity() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}

fn failed(path: &Path, source: io::Error) -> PlaceError {
    PlaceError::File { path: path.to_owned(), source }
}

fn regular(path: &Path) -> Result<(), PlaceError> {
    use std::os::unix::fs::FileTypeExt;
    let kind = std::fs::metadata(path).map_err(|source| failed(path, source))?.file_type();
    let found = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_block_device() => "a block device",
        _ => "no regular file",
    };
    Err(PlaceError::Kind { path: path.to_owned(), found })
}
