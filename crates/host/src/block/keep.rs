//! Holding a device for what lies on it already ([`keep`]), where nothing is to be destroyed; and files that are written to, which
//! others may not use, either.
//!
//! Whoever has it writes only where it has found what is its own; no serial is typed for that. Otherwise it is as with a
//! [`super::Claim`]: nobody else may use the device, and nobody else can while it is open. Not here: what lies there.

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

/// How long a device that was just closed may be looked at by others (udev does) before that counts.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens a device past the page cache: alone in the whole system, or, with `read_only`, beside others. What it lies on is held
/// for as long as the guard lives.
///
/// # Errors
/// [`HostError::NotOpened`] with what uses it; [`HostError`] where it cannot be examined or opened.
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

/// Refuses to write to an open file that is used by somebody else.
///
/// # Errors
/// [`HostError::NotOpened`] with what uses it.
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

/// Refuses to write to an open file that is that of a loop device.
///
/// # Errors
/// [`HostError::NotOpened`] with the loop devices.
pub(crate) fn check_loops(file: &File, path: &Path) -> Result<(), HostError> {
    let objections = usage::loops_over(file, path);
    if objections.is_empty() {
        Ok(())
    } else {
        Err(HostError::NotOpened { path: path.to_owned(), objections })
    }
}

/// Has an open device read and written past the page cache from now on.
pub(super) fn direct(file: File, disk: &Disk) -> Result<File, HostError> {
    let flags = rustix::fs::fcntl_getfl(&file).map_err(HostError::io(Operation::Open, &disk.node))?;
    rustix::fs::fcntl_setfl(&file, flags | OFlags::DIRECT)
        .map_err(HostError::io(Operation::Open, &disk.node))?;
    Ok(file)
}
