//! Copies of the directories of a stopped database, so that one load serves many measurements.
//!
//! If the filesystem can share blocks between files (Btrfs, XFS), a copy shares them; otherwise the kernel copies the
//! data and keeps holes as holes. Owners and modes are kept, because servers refuse directories of other users.
//!
//! # Not handled
//! Running databases, file times and extended attributes.

use crate::OltpError;
use crate::server::io_error;
use rustix::fs::{SeekFrom, copy_file_range, ioctl_ficlone, seek, syncfs};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that are copied between checks of the interrupt.
const CHUNK: u64 = 8 << 20;

/// The totals of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// Number of files, without directories and links.
    pub files: u64,
    /// Number of files that share their blocks with the original.
    pub shared: u64,
    /// Total length of the files.
    pub bytes: u64,
}

/// Copies the contents of directory `from` into directory `to`, which must be empty or not exist yet. Calls
/// `progress` with the share of bytes copied, 0 to 1. On return everything is durable on the device. Sockets and
/// pipes are not copied.
///
/// # Errors
/// [`OltpError`] if `to` is not empty, an entry cannot be read or written, or `interrupt` is set. A failed copy is
/// removed from `to`; files that were in `to` before are kept.
pub fn copy(
    from: &Path,
    to: &Path,
    interrupt: &AtomicBool,
    progress: &dyn Fn(f64),
) -> Result<Copied, OltpError> {
    fs::create_dir_all(to).map_err(|source| io_error(to, source))?;
    if !names(to)?.is_empty() {
        return Err(OltpError::Invalid(format!("{} is not empty, so nothing is copied to it", to.display())));
    }
    let mut entries = Vec::new();
    list(from, Path::new(""), &mut entries)?;
    let total = entries.iter().filter(|(_, it)| it.is_file()).map(|(_, it)| it.len()).sum();
    let mut copying = Copying { interrupt, progress, total, done: 0, copied: Copied::default() };
    let outcome = copying.all(from, to, &entries);
    if outcome.is_err() {
        for name in names(to).unwrap_or_default() {
            let path = to.join(name);
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
    outcome.map(|()| copying.copied)
}

fn names(directory: &Path) -> Result<Vec<std::ffi::OsString>, OltpError> {
    let entries = fs::read_dir(directory).map_err(|source| io_error(directory, source))?;
    let mut names: Vec<_> = entries
        .map(|entry| entry.map(|entry| entry.file_name()).map_err(|source| io_error(directory, source)))
        .collect::<Result<_, _>>()?;
    names.sort();
    Ok(names)
}

/// Collects every entry below `root` under its relative path, directories before their contents.
fn list(root: &Path, below: &Path, entries: &mut Vec<(PathBuf, Metadata)>) -> Result<(), OltpError> {
    for name in names(&root.join(below))? {
        let path = below.join(name);
        let whole = root.join(&path);
        let metadata = fs::symlink_metadata(&whole).map_err(|source| io_error(&whole, source))?;
        let directory = metadata.is_dir();
        entries.push((path.clone(), metadata));
        if directory {
            list(root, &path, entries)?;
        }
    }
    Ok(())
}

struct Copying<'a> {
    interrupt: &'a AtomicBool,
    progress: &'a dyn Fn(f64),
    total: u64,
    done: u64,
    copied: Copied,
}

impl Copying<'_> {
    fn all(&mut self, from: &Path, to: &Path, entries: &[(PathBuf, Metadata)]) -> Result<(), OltpError> {
        for (path, metadata) in entries {
            let (old, new) = (from.join(path), to.join(path));
            if metadata.is_dir() {
                DirBuilder::new().mode(0o700).create(&new).map_err(|source| io_error(&new, source))?;
            } else if metadata.is_file() {
                self.file(&old, &new, metadata)?;
            } else if metadata.is_symlink() {
                let target = fs::read_link(&old).map_err(|source| io_error(&old, source))?;
                symlink(target, &new).map_err(|source| io_error(&new, source))?;
            } else {
                continue;
            }
            self.go_on(0)?;
        }
        let top = fs::metadata(from).map_err(|source| io_error(from, source))?;
        keep(to, &top)?;
        // Directories last, because a directory may have a mode that does not let us create entries.
        for (path, metadata) in entries.iter().rev() {
            let new = to.join(path);
            if fs::symlink_metadata(&new).is_ok() {
                keep(&new, metadata)?;
            }
        }
        let directory = File::open(to).map_err(|source| io_error(to, source))?;
        syncfs(&directory).map_err(|error| io_error(to, error.into()))
    }
    /// Reports progress and checks the interrupt.
    fn go_on(&mut self, bytes: u64) -> Result<(), OltpError> {
        self.done += bytes;
        (self.progress)(self.done as f64 / self.total.max(self.done).max(1) as f64);
        match self.interrupt.load(Ordering::Relaxed) {
            true => Err(OltpError::Interrupted),
            false => Ok(()),
        }
    }
    fn file(&mut self, old: &Path, new: &Path, metadata: &Metadata) -> Result<(), OltpError> {
        let source = File::open(old).map_err(|source| io_error(old, source))?;
        let target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new);
        let target = target.map_err(|source| io_error(new, source))?;
        self.copied.files += 1;
        self.copied.bytes += metadata.len();
        if metadata.len() > 0 && ioctl_ficlone(&target, &source).is_ok() {
            self.copied.shared += 1;
            return self.go_on(metadata.len());
        }
        let broken = |error: std::io::Error| io_error(new, error);
        target.set_len(metadata.len()).map_err(broken)?;
        let mut at = 0;
        while at < metadata.len() {
            let data = match seek(&source, SeekFrom::Data(at)) {
                Ok(data) => data,
                // Only a hole is left.
                Err(Errno::NXIO) => break,
                // The filesystem does not report holes.
                Err(_) => at,
            };
            let hole = seek(&source, SeekFrom::Hole(data)).unwrap_or(metadata.len()).min(metadata.len());
            self.go_on(data - at)?;
            at = data;
            while at < hole {
                let length = (hole - at).min(CHUNK);
                let copied = range(&source, &target, at, length).map_err(broken)?;
                if copied == 0 {
                    let short = std::io::Error::other("it became shorter while it was copied");
                    return Err(io_error(old, short));
                }
                at += copied;
                self.go_on(copied)?;
            }
        }
        Ok(())
    }
}

/// Copies at most `length` bytes at the same offset of both files; returns the number copied.
fn range(mut source: &File, mut target: &File, at: u64, length: u64) -> std::io::Result<u64> {
    let (mut from, mut to) = (at, at);
    match copy_file_range(source, Some(&mut from), target, Some(&mut to), length as usize) {
        Ok(copied) if copied > 0 => return Ok(copied as u64),
        // The kernel cannot copy between these filesystems.
        Ok(_) | Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    source.seek(std::io::SeekFrom::Start(at))?;
    target.seek(std::io::SeekFrom::Start(at))?;
    let mut bytes = vec![0; length.min(1 << 20) as usize];
    let read = source.read(&mut bytes)?;
    target.write_all(&bytes[..read])?;
    Ok(read as u64)
}

/// Gives a copy the owner and the mode of its original.
fn keep(path: &Path, original: &Metadata) -> Result<(), OltpError> {
    let now = fs::symlink_metadata(path).map_err(|source| io_error(path, source))?;
    if (now.uid(), now.gid()) != (original.uid(), original.gid()) {
        lchown(path, Some(original.uid()), Some(original.gid())).map_err(|source| io_error(path, source))?;
    }
    if original.is_symlink() {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(original.mode() & 0o7777))
        .map_err(|source| io_error(path, source))
}
