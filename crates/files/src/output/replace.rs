//! Replaces a file atomically: a new file in the same folder is written and synced, and then renamed.
//!
//! The new file gets the permissions of the old one and, if the system allows it, its owner and group. If the group
//! cannot be kept, the group gets only the permissions that others have.
//!
//! Other hard links of the old file keep the old contents.
//!
//! # Not handled
//! Access control lists and extended attributes.

use super::destination::Destination;
use rustix::fs::{Gid, Uid, fchown};
use rustix::io::Errno;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::NamedTempFile;

/// Size of the write buffer, in bytes.
const BUFFER: usize = 1 << 20;

/// Writes and syncs a temporary file in the destination's folder, with the permissions of the old file. Dropping the
/// result removes the file.
pub(super) fn write_part(
    place: &Destination,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    // A new file gets the usual mode, less the umask. A replacement starts private, because the old file may be
    // private.
    let mode = if place.found.is_some() { 0o600 } else { 0o666 };
    let mut new = tempfile::Builder::new();
    new.prefix(".lowtide-").suffix(".part").permissions(Permissions::from_mode(mode));
    let mut part = new.tempfile_in(&place.folder)?;
    buffered(part.as_file_mut(), content)?;
    take_over(part.as_file(), place)?;
    part.as_file().sync_all()?;
    Ok(part)
}

/// Renames a synced file to its destination. A failure leaves the old file unchanged.
///
/// The steps before the rename are fast, so the destination is unlikely to change after its check.
pub(super) fn take_name(part: NamedTempFile, place: &Destination) -> io::Result<()> {
    // Owner and permissions may have changed during the write.
    take_over(part.as_file(), place)?;
    part.persist(&place.path).map_err(|error| error.error)?;
    sync(&place.folder)
}

/// Writes the content through a buffer.
pub(super) fn buffered(
    file: &mut File,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER, file);
    content(&mut out)?;
    out.flush()
}

/// Copies owner and permissions from the old file at the destination, as far as the system allows.
fn take_over(file: &File, place: &Destination) -> io::Result<()> {
    let Some(old) = &place.found else { return Ok(()) };
    let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
    let _ = fchown(file, Some(owner), Some(group)).or_else(|_| fchown(file, None, Some(group)));
    let mut mode = old.mode() & 0o777;
    if file.metadata()?.gid() != old.gid() {
        mode = mode & 0o707 | (mode & 0o007) << 3;
    }
    file.set_permissions(Permissions::from_mode(mode))
}

/// Syncs a folder, so that a rename in it is durable.
fn sync(folder: &Path) -> io::Result<()> {
    match rustix::fs::fsync(File::open(folder)?) {
        // Some filesystems do not support syncing folders.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
