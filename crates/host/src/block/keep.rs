//! Opens a device without destroying its contents ([`keep`]), and checks that a file to be written is unused.
//!
//! The caller writes only to its own on-device format, so no serial is needed. As with a [`super::Claim`], the device
//! must be unused, and nobody else can use it while it is open.

use super::claim::{Wait, hold};
use super::disk::Disk;
use super::guard::Guard;
use super::usage;
use crate::error::{HostError, Operation};
use crate::objection::Objection;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Time limit for programs such as udev, which examine a device after it is closed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens a device for direct I/O, exclusively unless `read_only` is set. The guard holds the lower levels of the
/// device.
///
/// # Errors
/// [`HostError::NotOpened`] with the users of the device; [`HostError`] if it cannot be examined or opened.
pub fn keep(disk: &Disk, read_only: bool) -> Result<(File, Guard), HostError> {
    if read_only {
        let opened =
            OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(&disk.node);
        let file = opened.map_err(HostError::io(Operation::Open, &disk.node))?;
        return Ok((file, Guard::default()));
    }
    let in_use = |disk: &Disk, guard: Option<&Guard>| {
        Ok(usage::objections(disk, guard).into_iter().filter(|it| !it.is_data()).collect())
    };
    match hold(disk, PATIENCE, in_use) {
        Ok((_, file, guard)) => Ok((direct(file, disk)?, guard)),
        Err(HostError::Refused { path, objections }) => Err(HostError::NotOpened { path, objections }),
        Err(error) => Err(error),
    }
}

/// Rejects an open file that another program uses.
///
/// # Errors
/// [`HostError::NotOpened`] with its users.
pub fn check_file(file: &File, path: &Path) -> Result<(), HostError> {
    let mut wait = Wait::new(PATIENCE);
    loop {
        let objections = usage::of_file(file, path);
        if objections.is_empty() {
            return Ok(());
        }
        if !objections.iter().all(Objection::is_passing) || !wait.again() {
            return Err(HostError::NotOpened { path: path.to_owned(), objections });
        }
    }
}

/// Rejects an open file that backs a loop device.
///
/// # Errors
/// [`HostError::NotOpened`] with the loop devices above it.
pub(crate) fn check_loops(file: &File, path: &Path) -> Result<(), HostError> {
    let objections = usage::loops_over(file, path);
    if objections.is_empty() {
        Ok(())
    } else {
        Err(HostError::NotOpened { path: path.to_owned(), objections })
    }
}

/// Switches an open device to direct I/O.
pub(super) fn direct(file: File, disk: &Disk) -> Result<File, HostError> {
    let flags = rustix::fs::fcntl_getfl(&file).map_err(HostError::io(Operation::Open, &disk.node))?;
    rustix::fs::fcntl_setfl(&file, flags | OFlags::DIRECT)
        .map_err(HostError::io(Operation::Open, &disk.node))?;
    Ok(file)
}
