//! [`Journal`]: changes to a device that must be undone, each recorded before it is made.
//!
//! `/run/lowtide/NAME.undo` holds a line of JSON for each change, and is locked by the process that makes the
//! changes. A process that ends normally undoes its changes and removes the file. After a kill, the next process that
//! takes the device undoes them. Mounts and schedulers do not survive a reboot, and neither do the files in `/run`.
//!
//! A line contains only facts that cannot be looked up. A journal undoes changes of its own device only, and wipes
//! only a filesystem that lowtide made. The user that runs lowtide owns the folder, and nobody else may write to it.
//! Overwritten data cannot be restored.

use super::disk::Disk;
use super::{filesystem, scheduler, signature, tool, usage};
use crate::error::{HostError, Operation};
use crate::objection::Objection;
use crate::run_folder;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time limit for other programs to close the device.
const PATIENCE: Duration = Duration::from_secs(20);

/// A change, with the facts needed to undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "changed", rename_all = "kebab-case")]
pub(super) enum Change {
    /// The I/O scheduler of the whole disk.
    Scheduler {
        /// The scheduler before the change.
        was: String,
    },
    /// A filesystem was made.
    Filesystem {
        /// Its UUID.
        uuid: String,
    },
    /// The filesystem was mounted at [`mount_point`].
    Mount,
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// The change is about to be made.
    Change(Change),
    /// The latest remaining change was undone.
    Undone,
}

/// The changes of one device. Dropping the journal undoes all of them.
#[derive(Debug)]
pub(super) struct Journal {
    disk: Disk,
    file: File,
    path: PathBuf,
    changes: Vec<Change>,
    /// Whether a killed process left these changes. Other programs may use the device by now.
    is_stale: bool,
}

/// The mount point for a filesystem on a device.
pub(super) fn mount_point(disk: &Disk) -> PathBuf {
    Path::new(run_folder::PATH).join(&disk.name)
}

fn path(disk: &Disk) -> PathBuf {
    Path::new(run_folder::PATH).join(format!("{}.undo", disk.name))
}

impl Journal {
    /// Opens the journal of a device. First undoes the changes that a killed process left.
    ///
    /// # Errors
    /// [`HostError::InUse`] if another process has the journal open; [`HostError`] if it cannot be created,
    /// or a change cannot be undone.
    pub(super) fn open(disk: &Disk) -> Result<Journal, HostError> {
        run_folder::make(Path::new(run_folder::PATH))?;
        let path = path(disk);
        let file = run_folder::open_locked(&path, true, Duration::ZERO).map_err(|error| match error {
            HostError::InUse(_) => HostError::InUse(disk.path.clone()),
            error => error,
        })?;
        let changes = read(&file, &path)?;
        let mut journal = Journal { disk: disk.clone(), changes, file, path, is_stale: true };
        journal.undo(0)?;
        journal.is_stale = false;
        Ok(journal)
    }

    /// Undoes the changes that a killed process left on a device, if any.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub(super) fn clean(disk: &Disk) -> Result<(), HostError> {
        if !path(disk).exists() {
            return Ok(());
        }
        // If the journal is in use, the device is too, which its examination reports.
        match Journal::open(disk) {
            Err(HostError::InUse { .. }) => Ok(()),
            opened => opened.and_then(Journal::close),
        }
    }

    /// Records a change. Call this before making the change.
    ///
    /// # Errors
    /// [`HostError::Io`] if the journal cannot be written. Then do not make the change.
    pub(super) fn will(&mut self, change: Change) -> Result<(), HostError> {
        self.write(&Line::Change(change.clone()))?;
        self.changes.push(change);
        Ok(())
    }

    /// The number of changes.
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Undoes all but the first `keep` changes, latest first. If a change cannot be undone, the others still are,
    /// except those that it depends on.
    ///
    /// # Errors
    /// [`HostError::NotUndone`] if a change cannot be undone. It stays in the journal.
    pub(super) fn undo(&mut self, keep: usize) -> Result<(), HostError> {
        let (mut left, mut failure) = (Vec::new(), None);
        while self.changes.len() > keep {
            let change = self.changes.pop().expect("the length was checked");
            let below = matches!(change, Change::Filesystem { .. }) && left.contains(&Change::Mount);
            let undone = if below { Ok(()) } else { undo(&self.disk, &change, self.is_stale) };
            match undone {
                // If this cannot be written, the change is undone a second time, which is harmless.
                Ok(()) if !below => drop(self.write(&Line::Undone)),
                undone => {
                    left.push(change);
                    failure = failure.or(undone.err());
                }
            }
        }
        self.changes.extend(left.into_iter().rev());
        match failure {
            Some(source) => {
                Err(HostError::NotUndone { path: self.disk.path.clone(), source: Box::new(source) })
            }
            None => Ok(()),
        }
    }

    fn write(&mut self, line: &Line) -> Result<(), HostError> {
        run_folder::append(&self.file, &self.path, line)
    }

    /// Undoes everything and removes the journal.
    ///
    /// # Errors
    /// As [`Journal::undo`].
    pub(super) fn close(mut self) -> Result<(), HostError> {
        self.undo(0)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Errors are reported by `close`. Changes that cannot be undone stay in the journal for the next run.
        if self.undo(0).is_ok() {
            let _ = fs::remove_file(&self.path);
            let _ = fs::remove_dir(run_folder::PATH);
        }
    }
}

fn read(mut file: &File, path: &Path) -> Result<Vec<Change>, HostError> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(HostError::io(Operation::Read, path))?;
    let mut changes = Vec::new();
    // An incomplete last line is ignored: its change was never made.
    for line in bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()) {
        match line {
            Line::Change(change) => changes.push(change),
            Line::Undone => drop(changes.pop()),
        }
    }
    Ok(changes)
}

/// Undoes a recorded change, which may never have been made.
fn undo(disk: &Disk, change: &Change, is_stale: bool) -> Result<(), HostError> {
    match change {
        Change::Scheduler { was } => scheduler::set(disk, was),
        Change::Mount => filesystem::unmount(&mount_point(disk)),
        Change::Filesystem { uuid } => {
            wait_until_free(&disk.node)?;
            // A filesystem with another UUID belongs to another program.
            if signature::has_uuid(disk, uuid)? {
                if is_stale {
                    wait_until_unused(disk)?;
                }
                let node = disk.node.to_string_lossy();
                tool::run(tool::WIPEFS, &["--all", "--quiet", &node])?;
            }
            Ok(())
        }
    }
}

/// Waits until nobody uses a device or its lower levels.
fn wait_until_unused(disk: &Disk) -> Result<(), HostError> {
    let begin = Instant::now();
    loop {
        let mut objections = usage::objections(disk, None);
        objections.retain(|objection| !objection.is_data());
        if objections.is_empty() {
            return Ok(());
        }
        if !objections.iter().all(Objection::is_passing) || begin.elapsed() > PATIENCE {
            return Err(HostError::NotOpened { path: disk.path.clone(), objections });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until nobody holds the device exclusively, because a `mkfs` that a killed run started may still be running.
fn wait_until_free(node: &Path) -> Result<(), HostError> {
    let begin = Instant::now();
    loop {
        let flags = OFlags::EXCL.bits() as i32;
        match OpenOptions::new().read(true).custom_flags(flags).open(node) {
            Err(error) if is_busy(&error) && begin.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(50));
            }
            opened => return opened.map(drop).map_err(HostError::io(Operation::Open, node)),
        }
    }
}

fn is_busy(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_and_unknown_lines_are_ignored() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("undo");
        let lines: &[&[u8]] = &[
            br#"{"change":{"changed":"scheduler","was":"none"}}"#,
            br#"{"change":{"changed":"mount"}}"#,
            br#"{"change":{"changed":"filesys"#,
            br#"{"change":{"changed":"filesystem","node":"/dev/sda","serial":"x"}}"#,
            b"\xff\xfe\x00",
            br#""undone""#,
        ];
        fs::write(&path, lines.join(&b'\n')).expect("written");
        let file = File::open(&path).expect("opened");
        let left = read(&file, &path).expect("read");
        assert_eq!(left, [Change::Scheduler { was: "none".to_owned() }]);
    }
}
