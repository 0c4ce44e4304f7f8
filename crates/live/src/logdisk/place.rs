//! What a log disk lies in, a file or a block device: made, opened, held against others.
//!
//! A file is locked; a block device is locked and, where it may be written, open exclusively, so that nobody mounts it or
//! builds on it meanwhile. What lies on a device is destroyed only where its serial was typed
//! ([`lowtide_host::block::Claim`]). Not here: what is in it.

use super::FileMedium;
use lowtide_core::Bytes;
use lowtide_files::output::{self, CommandFiles, OutputError, Role};
use lowtide_host::HostError;
use lowtide_host::block::{self, Claim, Consent, Disk, Guard};
use lowtide_logdisk::Options;
use lowtide_logdisk::format::geometry::GeometryError;
use lowtide_logdisk::format::{BLOCK, Geometry, Superblock};
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is made in a file.
const LOG_DISK: Role = Role::new("the log disk", "");

/// A file or a block device, held.
#[derive(Debug)]
pub struct Place {
    /// Where it is.
    pub path: PathBuf,
    file: File,
    /// It is read and written past the page cache.
    direct: bool,
    /// What a device lies on is held, too.
    guard: Guard,
}

/// What may be lost of what is there when a log disk is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Overwrite<'a> {
    /// What a file holds.
    pub file: bool,
    /// What is on the block device with this serial.
    pub serial: Option<&'a str>,
    /// A partition table, a filesystem, a log disk on it, too.
    pub signature: bool,
}

/// Why a file or a block device cannot be had.
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
    #[error("{path} is {found}; a log disk lies in a file or on a block device")]
    Kind {
        /// Where.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// It holds something.
    #[error("{0} is there already and not empty")]
    Full(PathBuf),
    /// It holds a log disk.
    #[error("{0} holds a log disk already")]
    LogDisk(PathBuf),
    /// There is no such file, and no size to make it with.
    #[error("there is no file {0}")]
    None(PathBuf),
    /// A size was given for what has one.
    #[error("{0} is a block device, which has the size it has")]
    Size(PathBuf),
    /// A serial was typed for what has none.
    #[error("{0} is a file, which has no serial")]
    NoSerial(PathBuf),
    /// Something else would be lost.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// It is a block device that cannot be had.
    #[error(transparent)]
    Device(#[from] HostError),
    /// There can be no log disk of these sizes on it.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

impl Place {
    /// The place of a log disk that is there, alone for this process; shared with others that only read where `read_only`.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn open(path: &Path, read_only: bool) -> Result<Place, PlaceError> {
        let how = if read_only {
            FlockOperation::NonBlockingLockShared
        } else {
            FlockOperation::NonBlockingLockExclusive
        };
        let place = if is_device(path)? {
            // Who is known by its lock is told as what it is, before the kernel tells who has the device open.
            let plain = OpenOptions::new().read(true).open(path).map_err(|source| failed(path, source))?;
            lock(&plain, path, how)?;
            drop(plain);
            let (file, guard) = block::keep(&Disk::find(path)?, read_only)?;
            Place { path: path.to_owned(), file, direct: true, guard }
        } else {
            Place::opened(path, OpenOptions::new().read(true).write(!read_only))?
        };
        lock(&place.file, path, how)?;
        Ok(place)
    }

    /// A place to make a log disk in. A file: a new one of `size`, or one that is there and has no size or nothing but zeroes at
    /// its beginning. A block device that nothing uses, and whose serial was typed. What else is there is lost where `over`
    /// says so.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn make(
        path: &Path,
        size: Option<Bytes>,
        options: Options,
        over: Overwrite<'_>,
    ) -> Result<Place, PlaceError> {
        let there = path.try_exists().map_err(|source| failed(path, source))?;
        if there && is_device(path)? {
            return match size {
                None => Place::make_on_device(path, options, over),
                Some(_) => Err(PlaceError::Size(path.to_owned())),
            };
        }
        output::in_place(LOG_DISK, path, &CommandFiles::default())?;
        if over.serial.is_some() {
            return Err(PlaceError::NoSerial(path.to_owned()));
        }
        if !there && size.is_none() {
            return Err(PlaceError::None(path.to_owned()));
        }
        let place =
            Place::opened(path, OpenOptions::new().read(true).write(true).create(!there).truncate(false))?;
        lock(&place.file, path, FlockOperation::NonBlockingLockExclusive)?;
        if there && !over.file && !place.is_empty()? {
            return Err(PlaceError::Full(path.to_owned()));
        }
        if there {
            block::check_file(&place.file, path)?;
        }
        if let Some(size) = size {
            place.file.set_len(size.get()).map_err(|source| failed(path, source))?;
        }
        Ok(place)
    }

    fn make_on_device(path: &Path, options: Options, over: Overwrite<'_>) -> Result<Place, PlaceError> {
        let disk = Disk::find(path)?;
        let (serial, planned) = (over.serial.map(str::to_owned), disk.identity.clone());
        let consent = Consent { serial, force_signature: over.signature, planned };
        // Nothing is known of what lies on a device in use, and nothing need be.
        let carries_something = !block::examine(&disk)?.is_empty();
        let mut claim = Claim::take(&disk, consent)?;
        if !over.signature && superblock(path).is_some() {
            return Err(PlaceError::LogDisk(path.to_owned()));
        }
        // Before anything is changed.
        Geometry::new(disk.identity.size.get(), options.segment, options.reserve)?;
        if carries_something {
            claim = claim.wipe()?;
        }
        let (file, guard) = claim.into_file()?;
        lock(&file, path, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Place { path: path.to_owned(), file, direct: true, guard })
    }

    /// Opens a file past the page cache, or through it where the filesystem has no other way.
    fn opened(path: &Path, options: &mut OpenOptions) -> Result<Place, PlaceError> {
        let direct = options.clone().custom_flags(OFlags::DIRECT.bits() as i32).open(path);
        let (file, direct) = match direct {
            Ok(file) => (file, true),
            Err(_) => (options.open(path).map_err(|source| failed(path, source))?, false),
        };
        Ok(Place { path: path.to_owned(), file, direct, guard: Guard::default() })
    }

    /// How large a file is.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub(super) fn length(&self) -> Result<u64, PlaceError> {
        if is_device(&self.path)? {
            return Err(PlaceError::Size(self.path.clone()));
        }
        Ok(self.file.metadata().map_err(|source| failed(&self.path, source))?.len())
    }

    /// Makes a file so large.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub(super) fn enlarge(&self, size: u64) -> Result<(), PlaceError> {
        self.file.set_len(size).map_err(|source| failed(&self.path, source))
    }

    /// As a medium.
    ///
    /// # Errors
    /// [`PlaceError::File`].
    pub fn medium(self) -> Result<FileMedium, PlaceError> {
        let medium = FileMedium::new(self.file, self.direct).map_err(|source| failed(&self.path, source))?;
        Ok(medium.guarded(self.guard))
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

/// The superblock of a log disk, in the first of its two places or the second, if there is one.
fn superblock(path: &Path) -> Option<Superblock> {
    let mut blocks = vec![0; 2 * BLOCK];
    File::open(path).and_then(|mut file| file.read_exact(&mut blocks)).ok()?;
    blocks.chunks(BLOCK).find_map(|block| Superblock::read(block, u64::MAX).ok())
}

fn lock(file: &File, path: &Path, how: FlockOperation) -> Result<(), PlaceError> {
    flock(file, how).map_err(|_| PlaceError::Held(path.to_owned()))
}

pub(super) fn failed(path: &Path, source: io::Error) -> PlaceError {
    PlaceError::File { path: path.to_owned(), source }
}

/// Whether it is a block device; else it is a file.
fn is_device(path: &Path) -> Result<bool, PlaceError> {
    let kind = std::fs::metadata(path).map_err(|source| failed(path, source))?.file_type();
    let found = match kind {
        kind if kind.is_file() => return Ok(false),
        kind if kind.is_block_device() => return Ok(true),
        kind if kind.is_dir() => "a directory",
        _ => "no regular file",
    };
    Err(PlaceError::Kind { path: path.to_owned(), found })
}
