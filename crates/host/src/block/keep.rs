//! Holding a device for what lies on it already ([`keep`]), where nothing is to be destroyed.
//!
//! Whoever has it writes only where it has found what is its own; no serial is typed for that. Otherwise it is as with a
//! [`super::Claim`]: nobody else may use the device, and nobody else can while it is open. Leaves out what lies there.

use super::claim::hold;
use super::disk::Disk;
use super::objection::Objection;
use super::usage;
use crate::error::{HostError, Operation};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// How long a device that was just closed may be looked at by others (udev does) before that counts.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens a device past the page cache: alone in the whole system, or, with `read_only`, beside others.
///
/// # Errors
/// [`HostError::NotOpened`] with what uses it; [`HostError`] where it cannot be examined or opened.
pub fn keep(disk: &Disk, read_only: bool) -> Result<File, HostError> {
    if read_only {
        let opened =
            OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(&disk.node);
        return opened.map_err(HostError::io(Operation::Open, &disk.node));
    }
    let begin = Instant::now();
    let in_use = |disk: &Disk| Ok(usage::objections(disk).into_iter().filter(|it| !it.is_data()).collect());
    let passing = |objection: &Objection| matches!(objection, Objection::Open { .. } | Objection::Busy);
    loop {
        match hold(disk, in_use) {
            Ok((_, file)) => return direct(file, disk),
            Err(HostError::Refused { objections, .. })
                if objections.iter().all(passing) && begin.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(HostError::Refused { path, objections }) => {
                return Err(HostError::NotOpened { path, objections });
            }
            Err(error) => return Err(error),
        }
    }
}

/// Has an open device read and written past the page cache from now on.
pub(super) fn direct(file: File, disk: &Disk) -> Result<File, HostError> {
    let flags = rustix::fs::fcntl_getfl(&file).map_err(HostError::io(Operation::Open, &disk.node))?;
    rustix::fs::fcntl_setfl(&file, flags | OFlags::DIRECT)
        .map_err(HostError::io(Operation::Open, &disk.node))?;
    Ok(file)
}
