//! Replaces a file as a whole: a new file in the same folder takes its name once every byte of it is on the
//! device.
//!
//! Permissions and, if the system allows it, owner and group are those of the old file; if the group cannot
//! be kept, it gets only the permissions of others. Not here: access control lists and extended attributes.
//! Other names of the old file (hard links) keep its contents.

use super::destination::Destination;
use rustix::fs::{Gid, Uid, fchown};
use rustix::io::Errno;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::NamedTempFile;

/// Bytes that are buffered before they are written.
const BUFFER: usize = 1 << 20;

/// Writes the content to a new file in the folder of its destination, with the permissions of the file there, and
/// syncs it. Dropping it removes the file.
pub(super) fn write_part(
    place: &Destination,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    // A file under a new name gets the usual mode, less the umask. A replacement is private until it has the
    // permissions of the file it replaces, which may be private.
    let mode = if place.found.is_some() { 0o600 } else { 0o666 };
    let mut new = tempfile::Builder::new();
    new.prefix(".lowtide-").suffix(".part").permissions(Permissions::from_mode(mode));
    let mut part = new.tempfile_in(&place.folder)?;
    buffered(part.as_file_mut(), content)?;
    take_over(part.as_file(), place)?;
    part.as_file().sync_all()?;
    Ok(part)
}

/// Renames a synced file to its destination, and so replaces the file there. A failure changes nothing.
///
/// Nothing before the rename takes long, so that the check of the destination still holds.
pub(super) fn take_name(part: NamedTempFile, place: &Destination) -> io::Result<()> {
    // They may have changed while the part was written.
    take_over(part.as_file(), place)?;
    part.persist(&place.path).map_err(|error| error.error)?;
    sync(&place.folder)
}

/// Writes into what is open.
pub(super) fn buffered(
    file: &mut File,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER, file);
    content(&mut out)?;
    out.flush()
}

/// Gives a file the owner and the permissions of the file at a destination, as far as the system allows.
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

/// Makes the names in a folder durable.
fn sync(folder: &Path) -> io::Result<()> {
    match rustix::fs::fsync(File::open(folder)?) {
        // A filesystem whose folders need no sync.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
