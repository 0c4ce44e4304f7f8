//! The files of the test data, opened for an engine ([`OpenFiles`]): with `O_DIRECT` if the filesystem supports it.
//!
//! Files are opened read-only for a workload that only reads, so that a bug cannot write. [`crate::target`] creates
//! the files.

use super::buffer::Buffers;
use crate::error::{HostError, Operation};
use crate::target::TestData;
use lowtide_core::{Bytes, Seed};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// The files of a [`TestData`], in its order.
#[derive(Debug)]
pub(super) struct OpenFiles {
    pub(super) files: Vec<File>,
    /// Whether the files are opened with `O_DIRECT`.
    pub(super) direct: bool,
}

impl OpenFiles {
    /// Opens the files of `data` for requests of `block` bytes.
    ///
    /// # Errors
    /// [`HostError::Io`] if a file cannot be opened or examined. [`HostError::Invalid`] if a file is smaller than the
    /// data, or takes direct requests only in larger blocks.
    pub(super) fn open(data: &TestData, block: Bytes, write: bool) -> Result<OpenFiles, HostError> {
        let mut direct = true;
        for path in data.files() {
            direct &= takes_direct(path, block)?;
        }
        let files =
            data.files().iter().map(|path| open(path, write, direct)).collect::<Result<Vec<_>, _>>()?;
        for (path, file) in data.files().iter().zip(&files) {
            let metadata = file.metadata().map_err(HostError::io(Operation::Inspect, path))?;
            if write && metadata.file_type().is_block_device() && !data.is_claimed() {
                return Err(HostError::BlockDevice(path.clone()));
            }
            let size = size_of(file).map_err(HostError::io(Operation::Inspect, path))?;
            if size < data.size_each().get() {
                return Err(HostError::Invalid {
                    what: "the size of a file under test",
                    value: format!("{} ({})", Bytes::new(size), path.display()),
                    accepted: format!("at least {} are needed", data.size_each()),
                });
            }
        }
        Ok(OpenFiles { files, direct })
    }
}

/// The length of a file or block device. The metadata of a block device has no length.
fn size_of(file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    if metadata.file_type().is_block_device() { (&*file).seek(SeekFrom::End(0)) } else { Ok(metadata.len()) }
}

fn open(path: &Path, write: bool, direct: bool) -> Result<File, HostError> {
    let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
    OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(flags.bits() as i32)
        .open(path)
        .map_err(HostError::io(Operation::Open, path))
}

/// Returns whether `path` takes direct requests: it opens with `O_DIRECT`, is not in memory (since Linux 6.6, tmpfs
/// accepts `O_DIRECT`), and answers one read.
fn takes_direct(path: &Path, block: Bytes) -> Result<bool, HostError> {
    let file = match open(path, false, true) {
        Err(HostError::Io { source, .. }) if source.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            return Ok(false);
        }
        opened => opened?,
    };
    // For a device, fstatfs(2) reports the filesystem of its node.
    let metadata = file.metadata().map_err(HostError::io(Operation::Inspect, path))?;
    let filesystem = rustix::fs::fstatfs(&file).map_err(HostError::io(Operation::Inspect, path))?;
    if !metadata.file_type().is_block_device() && memory_filesystem(filesystem.f_type) {
        return Ok(false);
    }
    let refuses = |length: usize| -> Result<bool, HostError> {
        let mut buffers = Buffers::new(1, length, true, false, Seed::new(0))
            .map_err(HostError::io(Operation::SetUp, path))?;
        match file.read_at(buffers.read_piece(0), 0) {
            Ok(_) => Ok(false),
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(HostError::io_at(Operation::Read, path, 0)(error)),
        }
    };
    let block = block.get() as usize;
    if !refuses(block)? {
        return Ok(true);
    }
    for larger in [4096, 16384, 65536] {
        if !block.is_multiple_of(larger) && !refuses(larger)? {
            return Err(HostError::Invalid {
                what: "the block size of the workload",
                value: Bytes::new(block as u64).to_string(),
                accepted: format!(
                    "{} takes direct requests in multiples of {} only",
                    path.display(),
                    Bytes::new(larger as u64)
                ),
            });
        }
    }
    Ok(false)
}

/// Returns whether a filesystem of this type (statfs(2)) is in memory.
pub(crate) fn memory_filesystem(kind: rustix::fs::FsWord) -> bool {
    const TMPFS: rustix::fs::FsWord = 0x0102_1994;
    const RAMFS: rustix::fs::FsWord = 0x8584_58f6;
    [TMPFS, RAMFS].contains(&kind)
}
