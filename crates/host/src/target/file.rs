//! [`TestFile`]: one file that lowtide made, opened, locked and checked.
//!
//! All checks are made on the open descriptor, so that nothing can be put in the file's place between the
//! check and the write. Not here: filling; see [`super::fill`].

use super::marker::Marker;
use crate::block::check_loops;
use crate::error::{HostError, Operation};
use lowtide_core::Bytes;
use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;
use std::fs::{File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is at a path where lowtide would put a file.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// A file of ours.
    Ours(TestFile),
}

/// A file that lowtide made, locked for this process.
#[derive(Debug)]
pub(super) struct TestFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// Whether it is to stay for later runs. Others are removed by the run that has them: it made them, or one did
    /// that was killed before it could remove them.
    pub(super) kept: bool,
    /// Whether it already has the wanted size and was written in full.
    pub(super) full: bool,
}

impl TestFile {
    /// Looks at `path`, where a file of `size` is wanted, and locks it if it is ours. Changes nothing.
    ///
    /// # Errors
    /// [`HostError::NotOurs`], [`HostError::NotOpened`], [`HostError::InUse`], [`HostError::BlockDevice`] and [`HostError::WrongKind`] say what
    /// is in the way; [`HostError::Io`] that it could not be examined.
    pub(super) fn find(path: &Path, size: Bytes) -> Result<Found, HostError> {
        match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            metadata => {
                let kind = metadata.map_err(HostError::io(Operation::Inspect, path))?.file_type();
                refuse_all_but_files(path, kind, "a file, or a name that is free,")?;
            }
        }
        // Non-blocking, in case that something worse than a file has come into its place since.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(HostError::io(Operation::Open, path))?;
        let metadata = file.metadata().map_err(HostError::io(Operation::Inspect, path))?;
        refuse_all_but_files(path, metadata.file_type(), "a file, or a name that is free,")?;
        let marker =
            Marker::read(&file, path)?.ok_or_else(|| HostError::NotOurs { path: path.to_owned() })?;
        lock(&file, path)?;
        check_loops(&file, path)?;
        let full = marker.full && marker.size == size && metadata.len() == size.get();
        Ok(Found::Ours(TestFile { file, path: path.to_owned(), kept: marker.kept, full }))
    }

    /// Makes an empty file at `path`, where there is nothing, marks and locks it.
    ///
    /// # Errors
    /// [`HostError::Io`] where the kernel refuses, also when something has come to be there since.
    pub(super) fn create(path: &Path) -> Result<TestFile, HostError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(HostError::io(Operation::Create, path))?;
        let made = TestFile { file, path: path.to_owned(), kept: false, full: false };
        let marked =
            lock(&made.file, path).and_then(|()| Marker::write(&made.file, path, Bytes::ZERO, false, false));
        match marked {
            Ok(()) => Ok(made),
            Err(error) => {
                let _ = made.remove();
                Err(error)
            }
        }
    }

    /// Gives the file `size` bytes of reserved, empty space, and marks it as not yet full.
    pub(super) fn reserve(&mut self, size: Bytes) -> Result<(), HostError> {
        let path = &self.path;
        self.full = false;
        Marker::write(&self.file, path, size, false, self.kept)?;
        // Old blocks go first, so that the layout on the device is that of a fresh file.
        self.file.set_len(0).map_err(HostError::io(Operation::Allocate, path))?;
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, size.get()) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.file.set_len(size.get()).map_err(HostError::io(Operation::Allocate, path))
            }
            Err(error) => Err(HostError::io(Operation::Allocate, path)(error)),
        }
    }

    /// Makes the file durable and marks it as full.
    pub(super) fn complete(&mut self, size: Bytes) -> Result<(), HostError> {
        self.file.sync_all().map_err(HostError::io(Operation::Sync, &self.path))?;
        Marker::write(&self.file, &self.path, size, true, self.kept)?;
        self.full = true;
        Ok(())
    }

    /// Marks a full file of `size` as one that stays.
    pub(super) fn keep(&mut self, size: Bytes) -> Result<(), HostError> {
        if !self.kept {
            Marker::write(&self.file, &self.path, size, true, true)?;
            self.kept = true;
        }
        Ok(())
    }

    /// Bytes of the filesystem that the file takes now.
    pub(super) fn taken(&self) -> Bytes {
        Bytes::new(self.file.metadata().map_or(0, |metadata| metadata.blocks() * 512))
    }

    /// Removes the file, unless another has taken its name since.
    pub(super) fn remove(&self) -> Result<(), HostError> {
        let identity = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
        let mine = self.file.metadata().map_err(HostError::io(Operation::Inspect, &self.path))?;
        match std::fs::symlink_metadata(&self.path) {
            Ok(there) if identity(&there) == identity(&mine) => {
                Marker::remove_sidecar(&self.path);
                std::fs::remove_file(&self.path).map_err(HostError::io(Operation::Remove, &self.path))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        // Closing is not enough while a process that is just being started still holds a copy of the descriptor.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

fn lock(file: &File, path: &Path) -> Result<(), HostError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(HostError::InUse { path: path.to_owned() }),
        // A filesystem without locks; nothing else is lost.
        Err(Errno::OPNOTSUPP | Errno::NOLCK) => Ok(()),
        Err(error) => Err(HostError::io(Operation::Open, path)(error)),
    }
}

/// Refuses everything but a regular file.
pub(super) fn refuse_all_but_files(
    path: &Path,
    kind: FileType,
    wanted: &'static str,
) -> Result<(), HostError> {
    let found = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_block_device() => return Err(HostError::BlockDevice { path: path.to_owned() }),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_char_device() => "a character device",
        kind if kind.is_fifo() => "a pipe",
        _ => "a socket",
    };
    Err(HostError::WrongKind { path: path.to_owned(), found, wanted })
}

/// Refuses everything but a directory.
pub(super) fn refuse_all_but_directories(path: &Path) -> Result<(), HostError> {
    let kind = std::fs::metadata(path).map_err(HostError::io(Operation::Inspect, path))?.file_type();
    if kind.is_dir() {
        return Ok(());
    }
    let wanted = "a directory";
    refuse_all_but_files(path, kind, wanted)?;
    Err(HostError::WrongKind { path: path.to_owned(), found: "a file", wanted })
}
