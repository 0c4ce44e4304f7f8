//! The I/O scheduler and the queue of a disk, in sysfs. The tunables of schedulers are not changed.

use super::disk::{Disk, line};
use crate::error::{HostError, Operation};
use std::path::{Path, PathBuf};

fn file(disk: &str) -> PathBuf {
    Path::new("/sys/block").join(disk).join("queue/scheduler")
}

/// The available schedulers of a disk and the current one; empty if the disk has no choice.
pub(crate) fn choices(disk: &str) -> (Vec<String>, Option<String>) {
    let text = line(&file(disk)).unwrap_or_default();
    let plain = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let chosen = text.split_whitespace().find(|word| word.starts_with('[')).map(plain);
    (text.split_whitespace().map(plain).collect(), chosen)
}

impl Disk {
    /// Rejects a scheduler that the disk does not have.
    ///
    /// # Errors
    /// [`HostError::Invalid`] with the available schedulers.
    pub fn check_scheduler(&self, wanted: &str) -> Result<(), HostError> {
        let (choices, _) = choices(&self.whole_name());
        if choices.iter().any(|name| name == wanted) {
            return Ok(());
        }
        let accepted = match &choices[..] {
            [] => format!("{} has no choice of schedulers", self.path.display()),
            choices => format!("{} has {}", self.path.display(), choices.join(", ")),
        };
        Err(HostError::invalid("the I/O scheduler", format_args!("`{wanted}`"), accepted))
    }

    /// Sets the scheduler of an attached drive, and its queue depth: further requests wait in the scheduler.
    /// Detaching the drive restores both. Do not use it for other devices, because nothing restores them.
    ///
    /// # Errors
    /// As [`Disk::check_scheduler`]; [`HostError::Io`] if the kernel rejects a value.
    pub fn queue(&self, scheduler: &str, depth: u32) -> Result<(), HostError> {
        // With a scheduler, `nr_requests` is the depth of the scheduler's queue, not that of the device.
        set(self, "none")?;
        write(&file(&self.whole_name()).with_file_name("nr_requests"), &depth.to_string())?;
        set(self, scheduler)
    }

    /// Sets whether the kernel treats an attached drive as a spinning disk. The kernel and databases treat such disks
    /// differently from flash. Detaching the drive restores the setting.
    ///
    /// # Errors
    /// [`HostError::Io`] if the kernel rejects the value.
    pub fn set_rotational(&self, rotational: bool) -> Result<(), HostError> {
        write(&file(&self.whole_name()).with_file_name("rotational"), if rotational { "1" } else { "0" })
    }
}

/// Sets the scheduler of a disk.
///
/// # Errors
/// [`HostError::Invalid`] if the disk does not have it; [`HostError::Io`] if the kernel rejects it.
pub(super) fn set(disk: &Disk, name: &str) -> Result<(), HostError> {
    disk.check_scheduler(name)?;
    write(&file(&disk.whole_name()), name)
}

fn write(file: &Path, value: &str) -> Result<(), HostError> {
    std::fs::write(file, value).map_err(HostError::io(Operation::Write, file))
}
