//! The I/O scheduler of a disk, in sysfs.
//!
//! Not here: its tunables.

use super::disk::{Disk, line};
use crate::error::{HostError, Operation};
use std::path::{Path, PathBuf};

fn file(disk: &str) -> PathBuf {
    Path::new("/sys/block").join(disk).join("queue/scheduler")
}

/// The schedulers a disk may have, and the one it has; none where it lets nobody choose.
pub(crate) fn choices(disk: &str) -> (Vec<String>, Option<String>) {
    let text = line(&file(disk)).unwrap_or_default();
    let plain = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let chosen = text.split_whitespace().find(|word| word.starts_with('[')).map(plain);
    (text.split_whitespace().map(plain).collect(), chosen)
}

impl Disk {
    /// Refuses a scheduler that the disk does not have.
    ///
    /// # Errors
    /// [`HostError::Invalid`] with those that it has.
    pub fn check_scheduler(&self, wanted: &str) -> Result<(), HostError> {
        let (choices, _) = choices(&self.whole_name());
        if choices.iter().any(|name| name == wanted) {
            return Ok(());
        }
        let accepted = match &choices[..] {
            [] => format!("{} lets nobody choose one", self.path.display()),
            choices => format!("{} has {}", self.path.display(), choices.join(", ")),
        };
        Err(HostError::Invalid { what: "the I/O scheduler", value: format!("`{wanted}`"), accepted })
    }
}

impl Disk {
    /// Gives the device of an attached drive a scheduler, and lets so many requests reach it at a time: the others wait where
    /// the scheduler sees them. Detaching it undoes that; of other devices nobody does.
    ///
    /// # Errors
    /// As [`Disk::check_scheduler`]; [`HostError::Io`] where the kernel does not take it.
    pub fn queue(&self, scheduler: &str, depth: u32) -> Result<(), HostError> {
        let depth_file = file(&self.whole_name()).with_file_name("nr_requests");
        // With a scheduler, this number is of what waits in it.
        set(self, "none")?;
        std::fs::write(&depth_file, depth.to_string())
            .map_err(HostError::io(Operation::Write, &depth_file))?;
        set(self, scheduler)
    }

    /// Says of the device of an attached drive whether it turns: the kernel and databases treat a disk otherwise than flash.
    /// Detaching it undoes that.
    ///
    /// # Errors
    /// [`HostError::Io`] where the kernel does not take it.
    pub fn set_rotational(&self, turns: bool) -> Result<(), HostError> {
        let file = file(&self.whole_name()).with_file_name("rotational");
        std::fs::write(&file, if turns { "1" } else { "0" }).map_err(HostError::io(Operation::Write, &file))
    }
}

/// Gives a disk a scheduler that it has.
///
/// # Errors
/// [`HostError::Invalid`] where it does not have it; [`HostError::Io`] where the kernel does not take it.
pub(super) fn set(disk: &Disk, name: &str) -> Result<(), HostError> {
    disk.check_scheduler(name)?;
    let file = file(&disk.whole_name());
    std::fs::write(&file, name).map_err(HostError::io(Operation::Write, &file))
}
