//! [`Journal`]: the record of an attached drive, which detaching needs.
//!
//! The journal has a line of JSON for each change, written before the change; the last complete line is valid.
//! Detaching looks up what is attached, so a recorded step that was never taken, or is already undone, is harmless.
//! The process that attaches or detaches the drive holds the lock; the server does not use the journal.

use super::loop_device::Queue;
use super::paths::Paths;
use super::process::Process;
use crate::error::{HostError, Operation};
use crate::run_folder;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of attempts to create the folder while other processes remove it.
const ATTEMPTS: usize = 100;

/// Time limit for the lock. A program that another thread starts holds a copy of the descriptor from its fork to its
/// exec, even after the journal was closed here.
const PATIENCE: Duration = Duration::from_secs(1);

/// The facts about an attached drive that cannot be looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Record {
    /// The device, as the user named it.
    pub(super) device: String,
    pub(super) server: Option<Process>,
    /// The number of the loop device.
    pub(super) loop_device: Option<u32>,
    /// The queue settings of the loop device before it was attached.
    #[serde(default)]
    pub(super) queue: Option<Queue>,
    /// Bytes of the logical block, unless the block of the drive is larger.
    pub(super) block: u32,
    pub(super) mount: Option<MountPoint>,
    /// The process that the drive was attached for. After it has ended, any process may detach the drive.
    #[serde(default)]
    pub(super) owner: Option<Process>,
}

/// The mount point of the drive's filesystem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct MountPoint {
    pub(super) at: PathBuf,
    /// Options for `mount -o`; may be empty.
    pub(super) options: String,
    /// Whether the folder was created for this mount.
    pub(super) made: bool,
}

/// A locked journal.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    pub(super) record: Record,
}

impl Journal {
    /// Creates a journal.
    ///
    /// # Errors
    /// [`HostError::AlreadyAttached`] if the drive has a journal; [`HostError::Io`] if it cannot be written.
    pub(super) fn create(paths: &Paths, record: Record) -> Result<Journal, HostError> {
        let path = paths.journal();
        let mut attempts = 0..ATTEMPTS;
        let file = loop {
            match Paths::make_folder().and_then(|()| run_folder::open_locked(&path, true, PATIENCE)) {
                // A process that detached the last drive has just removed the folder.
                Err(HostError::Io { source, .. })
                    if source.kind() == ErrorKind::NotFound && attempts.next().is_some() => {}
                locked => break locked?,
            }
        };
        if read(paths).is_some() {
            return Err(HostError::AlreadyAttached(paths.name().to_owned()));
        }
        run_folder::append(&file, &path, &record)?;
        Ok(Journal { file, path, record })
    }

    /// Opens the journal of an attached drive.
    ///
    /// # Errors
    /// [`HostError::NotAttached`] if there is none; [`HostError::InUse`] while another process attaches or detaches
    /// the drive.
    pub(super) fn open(paths: &Paths) -> Result<Journal, HostError> {
        let path = paths.journal();
        let not_attached = || super::not_attached(paths.name());
        let file = run_folder::open_locked(&path, false, PATIENCE).map_err(|error| match error {
            HostError::Io { source, .. } if source.kind() == ErrorKind::NotFound => not_attached(),
            error => error,
        })?;
        let Some(record) = read(paths) else {
            // Its creator was killed before the first record, and so before the first change.
            let _ = fs::remove_file(&path);
            Paths::remove_folder();
            return Err(not_attached());
        };
        Ok(Journal { file, path, record })
    }

    /// Records a change. Call this before making the change.
    ///
    /// # Errors
    /// [`HostError::Io`] if the journal cannot be written. Then do not make the change.
    pub(super) fn will(&mut self, change: impl FnOnce(&mut Record)) -> Result<(), HostError> {
        change(&mut self.record);
        run_folder::append(&self.file, &self.path, &self.record)
    }

    /// Removes the journal after everything is undone.
    ///
    /// # Errors
    /// [`HostError::Io`] if it cannot be removed.
    pub(super) fn close(self) -> Result<(), HostError> {
        fs::remove_file(&self.path).map_err(HostError::io(Operation::Remove, &self.path))?;
        Paths::remove_folder();
        Ok(())
    }
}

/// Reads the current record of a drive, without a lock.
pub(super) fn read(paths: &Paths) -> Option<Record> {
    let text = fs::read(paths.journal()).ok()?;
    // An incomplete last line is ignored: its change was never made.
    text.rsplit(|byte| *byte == b'\n').find_map(|line| serde_json::from_slice(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: a drive that was dropped while another thread started a program stayed attached. Cause: the forked
    /// process held the journal's lock, and the first failure to lock it was final. Fix: wait for the lock.
    #[test]
    fn a_lock_that_a_fork_holds_briefly_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        let file = run_folder::open_locked(&path, true, PATIENCE).expect("unlocked");
        let copy = file.try_clone().expect("a copy, as a fork has it");
        drop(file);
        let holder = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(copy);
        });
        run_folder::open_locked(&path, false, PATIENCE).expect("unlocked after 100 ms");
        holder.join().expect("no panic");
    }
}
