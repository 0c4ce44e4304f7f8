//! [`Guard`]: holds what lies below a device while the device is held.
//!
//! Opening a loop device exclusively does not protect its file. So the guard locks the file with both
//! flock(2) and fcntl(2), the locks that servers of virtual machines and databases take before they use a
//! file, and opens a device below exclusively, so that nobody mounts it. Not here: programs that ask for no
//! lock.

use super::chain::{Chain, Level};
use super::kernel::lock_records;
use super::loops::{FileId, Resource, open};
use crate::objection::Objection;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What lies below a device, held for as long as this lives.
#[derive(Debug, Default)]
pub struct Guard {
    /// Files that are locked, and devices that are open exclusively.
    _held: Vec<File>,
}

impl Guard {
    /// Holds what lies below the first level of a chain. What cannot be opened here (it was removed, or is in
    /// another mount namespace) is not held: nobody else reaches it by that name, either.
    pub(super) fn take(chain: &Chain) -> Result<Guard, Vec<Objection>> {
        let mut held = Vec::new();
        let mut against = Vec::new();
        for level in chain.levels.iter().skip(1) {
            let found = match level {
                Level::Device(device) => exclusive(&device.disk.node, device.disk.number),
                Level::File(file) if file.is_served => continue,
                Level::File(file) => locked(&file.path, file.original.id),
            };
            match found {
                Ok(file) => held.extend(file),
                Err(what) => {
                    against.push(Objection::Below { level: level.name(), what: Box::new(what) });
                }
            }
        }
        if against.is_empty() { Ok(Guard { _held: held }) } else { Err(against) }
    }
}

/// Opens a device exclusively, to read. The kernel allows one exclusive user, and mounts, swap and devices
/// above are such users.
pub(super) fn exclusive(node: &Path, number: super::disk::Number) -> Result<Option<File>, Objection> {
    let unknown = |error: std::io::Error| Objection::Unknown {
        what: format!("{} cannot be opened: {error}", node.display()),
    };
    // Checks that this is the device's node, before anything is held.
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
    let taken = || Objection::Locked { by: vec!["another program".to_owned()] };
    // Without waiting: a holder of a lease on it would have to give it back first.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC).bits() as i32;
    let open = |write| OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
    let (file, writes) = match open(true) {
        Ok(file) => (Ok(file), true),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::WOULDBLOCK) => return Err(taken()),
        Err(_) => (open(false), false),
    };
    let Ok(file) = file else { return Ok(None) };
    // A filesystem without locks fails with another error; nobody can hold a lock there.
    if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(taken());
    }
    if writes {
        let refused = lock_records(&file).err().and_then(|error| Errno::from_io_error(&error));
        if matches!(refused, Some(Errno::ACCESS | Errno::AGAIN)) {
            return Err(taken());
        }
    }
    Ok(Some(file))
}
