//! The file or block device that holds a log disk ([`Backing`]): created, opened, and locked.
//!
//! Files and block devices are locked. A block device that is opened for writing is also opened exclusively, so that
//! nobody can mount it or build another device on it. The contents of a device are destroyed only if the user typed
//! its serial ([`lowtide_host::block::Claim`]). The format is in `lowtide_logdisk`.

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

const LOG_DISK: Role = Role::new("the log disk", "");

/// A locked file or block device.
#[derive(Debug)]
pub struct Backing {
    /// Path of the file or block device.
    pub path: PathBuf,
    file: File,
    /// Whether it was opened with `O_DIRECT`.
    direct: bool,
    /// Holds the lower levels of a block device.
    guard: Guard,
}

/// Permission to destroy existing contents when a log disk is created.
#[derive(Debug, Clone, Copy, Default)]
pub struct Overwrite<'a> {
    /// Permits overwriting a file that is not empty.
    pub file: bool,
    /// Permits overwriting the block device with this serial.
    pub serial: Option<&'a str>,
    /// Also permits overwriting a signature (partition table, filesystem, log disk) on that device.
    pub signature: bool,
}

/// The reason why a file or block device cannot hold a log disk.
#[derive(Debug, thiserror::Error)]
pub enum BackingError {
    /// A system call failed.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process has it locked.
    #[error("{0} is in use: another lowtide serves or checks it")]
    Held(PathBuf),
    /// It is neither a file nor a block device.
    #[error("{path} is {found}; a log disk lies in a file or on a block device")]
    Kind {
        /// The path.
        path: PathBuf,
        /// The kind of file at the path.
        found: &'static str,
    },
    /// It is not empty.
    #[error("{0} exists and is not empty")]
    Full(PathBuf),
    /// It holds a log disk already.
    #[error("{0} holds a log disk already")]
    LogDisk(PathBuf),
    /// The file does not exist, and no size was given for a new one.
    #[error("there is no file {0}")]
    None(PathBuf),
    /// A size was given for a block device.
    #[error("{0} is a block device, whose size cannot be chosen")]
    Size(PathBuf),
    /// A serial was typed for a file.
    #[error("{0} is a file, which has no serial")]
    NoSerial(PathBuf),
    /// Another file of the command would be overwritten.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The block device cannot be opened or claimed.
    #[error(transparent)]
    Device(#[from] HostError),
    /// No log disk has these sizes.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

impl BackingError {
    pub(super) fn file(path: &Path) -> impl Fn(io::Error) -> BackingError {
        let path = path.to_owned();
        move |source| BackingError::File { path: path.clone(), source }
    }
}

impl Backing {
    /// Opens the file or block device of a log disk and locks it: shared with other readers if `read_only`, else
    /// exclusively.
    pub fn open(path: &Path, read_only: bool) -> Result<Backing, BackingError> {
        let how = if read_only {
            FlockOperation::NonBlockingLockShared
        } else {
            FlockOperation::NonBlockingLockExclusive
        };
        let backing = if is_device(path)? {
            // If another lowtide holds the lock, `Held` is a better error than the kernel's "busy" below.
            let plain = OpenOptions::new().read(true).open(path).map_err(BackingError::file(path))?;
            lock(&plain, path, how)?;
            drop(plain);
            let (file, guard) = block::keep(&Disk::find(path)?, read_only)?;
            Backing { path: path.to_owned(), file, direct: true, guard }
        } else {
            Backing::opened(path, OpenOptions::new().read(true).write(!read_only))?
        };
        lock(&backing.file, path, how)?;
        Ok(backing)
    }

    /// Prepares a file or block device for a new log disk. A file is made with `size`; an existing file must have no
    /// bytes, or only zeroes in its first mebibyte. A block device must be unused, and its serial typed. `over`
    /// permits the loss of other contents.
    pub fn make(
        path: &Path,
        size: Option<Bytes>,
        options: Options,
        over: Overwrite<'_>,
    ) -> Result<Backing, BackingError> {
        let exists = path.try_exists().map_err(BackingError::file(path))?;
        if exists && is_device(path)? {
            return match size {
                None => Backing::make_on_device(path, options, over),
                Some(_) => Err(BackingError::Size(path.to_owned())),
            };
        }
        output::in_place(LOG_DISK, path, &CommandFiles::default())?;
        if over.serial.is_some() {
            return Err(BackingError::NoSerial(path.to_owned()));
        }
        if !exists && size.is_none() {
            return Err(BackingError::None(path.to_owned()));
        }
        let mut options = OpenOptions::new();
        let backing = Backing::opened(path, options.read(true).write(true).create(!exists).truncate(false))?;
        lock(&backing.file, path, FlockOperation::NonBlockingLockExclusive)?;
        if exists && !over.file && !backing.is_empty()? {
            return Err(BackingError::Full(path.to_owned()));
        }
        if exists {
            block::check_file(&backing.file, path)?;
        }
        if let Some(size) = size {
            backing.grow(size.get())?;
        }
        Ok(backing)
    }

    fn make_on_device(path: &Path, options: Options, over: Overwrite<'_>) -> Result<Backing, BackingError> {
        let disk = Disk::find(path)?;
        let (serial, planned) = (over.serial.map(str::to_owned), disk.identity.clone());
        let consent = Consent { serial, force_signature: over.signature, planned };
        // A device in use is refused by `Claim::take`, so its contents do not matter.
        let carries_something = !block::examine(&disk)?.is_empty();
        let mut claim = Claim::take(&disk, consent)?;
        if !over.signature && superblock(path).is_some() {
            return Err(BackingError::LogDisk(path.to_owned()));
        }
        // Fails before the device is changed.
        Geometry::new(disk.identity.size.get(), options.segment, options.reserve)?;
        if carries_something {
            claim = claim.wipe()?;
        }
        let (file, guard) = claim.into_file()?;
        lock(&file, path, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Backing { path: path.to_owned(), file, direct: true, guard })
    }

    /// Opens a file with `O_DIRECT`, or without it if the filesystem refuses.
    fn opened(path: &Path, options: &mut OpenOptions) -> Result<Backing, BackingError> {
        let direct = options.clone().custom_flags(OFlags::DIRECT.bits() as i32).open(path);
        let (file, direct) = match direct {
            Ok(file) => (file, true),
            Err(_) => (options.open(path).map_err(BackingError::file(path))?, false),
        };
        Ok(Backing { path: path.to_owned(), file, direct, guard: Guard::default() })
    }

    /// The length of a file, in bytes.
    ///
    /// # Errors
    /// [`BackingError::Size`] for a block device.
    pub(super) fn length(&self) -> Result<u64, BackingError> {
        if is_device(&self.path)? {
            return Err(BackingError::Size(self.path.clone()));
        }
        Ok(self.file.metadata().map_err(BackingError::file(&self.path))?.len())
    }

    /// Sets the length of a file, in bytes.
    ///
    /// # Errors
    /// [`BackingError::File`] if the filesystem rejects the length.
    pub(super) fn grow(&self, size: u64) -> Result<(), BackingError> {
        self.file.set_len(size).map_err(BackingError::file(&self.path))
    }

    /// Converts into a medium.
    ///
    /// # Errors
    /// [`BackingError::File`] if the size of the file cannot be determined.
    pub fn medium(self) -> Result<FileMedium, BackingError> {
        let medium = FileMedium::new(self.file, self.direct).map_err(BackingError::file(&self.path))?;
        Ok(medium.guarded(self.guard))
    }

    /// Whether the first mebibyte contains only zeroes.
    fn is_empty(&self) -> Result<bool, BackingError> {
        let mut bytes = Vec::new();
        // Without O_DIRECT, because the file may have any length.
        let file = File::open(&self.path).map_err(BackingError::file(&self.path))?;
        file.take(1 << 20).read_to_end(&mut bytes).map_err(BackingError::file(&self.path))?;
        Ok(bytes.iter().all(|&byte| byte == 0))
    }
}

/// A random identity for a new log disk.
///
/// # Errors
/// `/dev/urandom` cannot be read.
pub fn identity() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}

/// The superblock of a log disk, from the first of its two copies that is valid.
fn superblock(path: &Path) -> Option<Superblock> {
    let mut blocks = vec![0; 2 * BLOCK];
    File::open(path).and_then(|mut file| file.read_exact(&mut blocks)).ok()?;
    blocks.chunks(BLOCK).find_map(|block| Superblock::read(block, u64::MAX).ok())
}

fn lock(file: &File, path: &Path, how: FlockOperation) -> Result<(), BackingError> {
    flock(file, how).map_err(|_| BackingError::Held(path.to_owned()))
}

/// Returns true for a block device and false for a file.
fn is_device(path: &Path) -> Result<bool, BackingError> {
    let kind = std::fs::metadata(path).map_err(BackingError::file(path))?.file_type();
    let found = match kind {
        kind if kind.is_file() => return Ok(false),
        kind if kind.is_block_device() => return Ok(true),
        kind if kind.is_dir() => "a directory",
        _ => "a special file",
    };
    Err(BackingError::Kind { path: path.to_owned(), found })
}
