//! [`Guard`]: holds the lower levels of a device while the device is held.
//!
//! Opening a loop device exclusively does not protect its backing file. Therefore the guard locks the file
//! with both flock(2) and fcntl(2), which virtual machines and database servers use too, and opens lower
//! devices exclusively, so that nobody can mount them.
//!
//! # Not handled
//! Programs that write to the file without taking a lock.

use super::chain::{Chain, Level};
use super::kernel::lock_records;
use super::loops::{FileId, Resource, open};
use crate::objection::Objection;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The lower levels of a device, held until the guard is dropped.
#[derive(Debug, Default)]
pub struct Guard {
    /// Locked files and exclusively opened devices.
    _held: Vec<File>,
}

impl Guard {
    /// Holds all levels of a chain below the first. A file that cannot be opened (because it was removed or is in
    /// another mount namespace) is skipped: nobody else can open it by that name either.
    pub(super) fn take(chain: &Chain) -> Result<Guard, Vec<Objection>> {
        let mut held = Vec::new();
        let mut objections = Vec::new();
        for level in chain.levels.iter().skip(1) {
            let opened = match level {
                Level::Device(device) => exclusive(&device.disk.node, device.disk.number),
                Level::File(file) if file.is_served => continue,
                Level::File(file) => locked(&file.path, file.original.id),
            };
            match opened {
                Ok(file) => held.extend(file),
                Err(what) => objections.push(Objection::Below { level: level.name(), what: Box::new(what) }),
            }
        }
        if objections.is_empty() { Ok(Guard { _held: held }) } else { Err(objections) }
    }
}

/// Opens a device exclusively for reading. The kernel allows one exclusive user; a mount, swap or device above counts
/// as one.
pub(super) fn exclusive(node: &Path, number: super::disk::Number) -> Result<Option<File>, Objection> {
    let unknown =
        |error: std::io::Error| Objection::Unknown(format!("{} cannot be opened: {error}", node.display()));
    // First checks that the node belongs to the device.
    open(node, number).map_err(unknown)?;
    let flags = (OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC).bits() as i32;
    match OpenOptions::new().read(true).custom_flags(flags).open(node) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) => Err(Objection::Busy),
        Err(error) => Err(unknown(error)),
        Ok(file) => Ok(Some(file)),
    }
}

/// Opens a file, if it is the expected one, and locks it.
fn locked(path: &Path, id: FileId) -> Result<Option<File>, Objection> {
    if Resource::at(path) != Some(Resource::File(id)) {
        return Ok(None);
    }
    let locked = || Objection::Locked(vec!["another program".to_owned()]);
    // Non-blocking, because the open would otherwise wait for the holder of a lease.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC).bits() as i32;
    let open = |write| OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
    let (file, writes) = match open(true) {
        Ok(file) => (Ok(file), true),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::WOULDBLOCK) => return Err(locked()),
        Err(_) => (open(false), false),
    };
    let Ok(file) = file else { return Ok(None) };
    // A filesystem that does not support locks fails with another error.
    if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(locked());
    }
    if writes {
        let refused = lock_records(&file).err().and_then(|error| Errno::from_io_error(&error));
        if matches!(refused, Some(Errno::ACCESS | Errno::AGAIN)) {
            return Err(locked());
        }
    }
    Ok(Some(file))
}
