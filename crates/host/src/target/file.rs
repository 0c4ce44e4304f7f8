//! [`TestFile`]: one file that lowtide made, open, locked and checked.
//!
//! All checks use the open descriptor, so that the file cannot be exchanged between the check and the write.

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

/// A file that lowtide made, locked for this process.
#[derive(Debug)]
pub(super) struct TestFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// Whether the file is kept for later runs. Other files are removed by the run that uses them.
    pub(super) kept: bool,
    /// Whether the file has the wanted size and every byte was written.
    pub(super) full: bool,
}

impl TestFile {
    /// Opens and locks an existing file at `path`; `None` if there is none. `size` is the wanted size. Changes
    /// nothing.
    ///
    /// # Errors
    /// [`HostError::NotOurs`], [`HostError::NotOpened`], [`HostError::InUse`], [`HostError::BlockDevice`] or
    /// [`HostError::WrongKind`] if the file cannot be used; [`HostError::Io`] if it cannot be examined.
    pub(super) fn find(path: &Path, size: Bytes) -> Result<Option<TestFile>, HostError> {
        let refuse_others = |metadata: &std::fs::Metadata| {
            refuse_all_but_files(path, metadata.file_type(), "a file, or a name that is free,")
        };
        match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => refuse_others(&metadata.map_err(HostError::io(Operation::Inspect, path))?)?,
        }
        // Non-blocking, because the file may have been exchanged for a pipe or a device.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(HostError::io(Operation::Open, path))?;
        let metadata = file.metadata().map_err(HostError::io(Operation::Inspect, path))?;
        refuse_others(&metadata)?;
        let marker = Marker::read(&file, path)?.ok_or_else(|| HostError::NotOurs(path.to_owned()))?;
        lock(&file, path)?;
        check_loops(&file, path)?;
        let full = marker.full && marker.size == size && metadata.len() == size.get();
        Ok(Some(TestFile { file, path: path.to_owned(), kept: marker.kept, full }))
    }

    /// Creates, locks and marks an empty file at `path`.
    ///
    /// # Errors
    /// [`HostError::Io`] if a system call fails, or a file exists by now.
    pub(super) fn create(path: &Path) -> Result<TestFile, HostError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(HostError::io(Operation::Create, path))?;
        let made = TestFile { file, path: path.to_owned(), kept: false, full: false };
        lock(&made.file, path)
            .and_then(|()| Marker::write(&made.file, path, Bytes::ZERO, false, false))
            .inspect_err(|_| drop(made.remove()))?;
        Ok(made)
    }

    /// Marks the file as not yet full, empties it, and reserves `size` bytes for it.
    pub(super) fn reserve(&mut self, size: Bytes) -> Result<(), HostError> {
        let path = &self.path;
        self.full = false;
        Marker::write(&self.file, path, size, false, self.kept)?;
        // Releases old blocks first, so that the file is laid out on the device like a new one.
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

    /// Marks a full file of `size` as kept.
    pub(super) fn keep(&mut self, size: Bytes) -> Result<(), HostError> {
        if !self.kept {
            Marker::write(&self.file, &self.path, size, true, true)?;
            self.kept = true;
        }
        Ok(())
    }

    /// Bytes that the filesystem has allocated to the file.
    pub(super) fn allocated(&self) -> Bytes {
        Bytes::new(self.file.metadata().map_or(0, |metadata| metadata.blocks() * 512))
    }

    /// Removes the file, unless its name belongs to another file by now.
    pub(super) fn remove(&self) -> Result<(), HostError> {
        let identity = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
        let own = self.file.metadata().map_err(HostError::io(Operation::Inspect, &self.path))?;
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) if identity(&found) == identity(&own) => {
                Marker::remove_sidecar(&self.path);
                std::fs::remove_file(&self.path).map_err(HostError::io(Operation::Remove, &self.path))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        // Unlocked explicitly: while a child process is being started, its copy of the descriptor would keep the
        // lock.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

fn lock(file: &File, path: &Path) -> Result<(), HostError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(HostError::InUse(path.to_owned())),
        // The filesystem does not support locks.
        Err(Errno::OPNOTSUPP | Errno::NOLCK) => Ok(()),
        Err(error) => Err(HostError::io(Operation::Open, path)(error)),
    }
}

/// Rejects everything except a regular file.
pub(super) fn refuse_all_but_files(
    path: &Path,
    kind: FileType,
    wanted: &'static str,
) -> Result<(), HostError> {
    let found = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_block_device() => return Err(HostError::BlockDevice(path.to_owned())),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_char_device() => "a character device",
        kind if kind.is_fifo() => "a pipe",
        _ => "a socket",
    };
    Err(HostError::WrongKind { path: path.to_owned(), found, wanted })
}

/// Rejects everything except a directory.
pub(super) fn refuse_all_but_directories(path: &Path) -> Result<(), HostError> {
    let kind = std::fs::metadata(path).map_err(HostError::io(Operation::Inspect, path))?.file_type();
    if kind.is_dir() {
        return Ok(());
    }
    let wanted = "a directory";
    refuse_all_but_files(path, kind, wanted)?;
    Err(HostError::WrongKind { path: path.to_owned(), found: "a file", wanted })
}
