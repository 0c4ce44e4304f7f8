//! [`Journal`]: what lowtide changes on a device and has to undo, written down before it is changed.
//!
//! `/run/lowtide/NAME.undo` holds a line of JSON for each change, locked by the process that made it. Whoever ends in
//! order undoes its lines and removes the file; what a killed process left is undone by the next one that takes the
//! device. `/run` is empty after the machine was started anew, and so are its mounts and schedulers.
//!
//! A line says nothing but what cannot be known otherwise. A journal undoes changes of its own device alone, and wipes a
//! filesystem only where it still is the one that lowtide made. The folder belongs to the user that runs lowtide, and
//! nobody else may write to it. Not here: data; what was overwritten is gone.

use super::disk::Disk;
use super::{filesystem, scheduler, signature, tool, usage};
use crate::error::{HostError, Operation};
use crate::objection::Objection;
use crate::run_folder;
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for programs that have the device open.
const PATIENCE: Duration = Duration::from_secs(20);

/// A change, by what undoes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "changed", rename_all = "kebab-case")]
pub(super) enum Change {
    /// The I/O scheduler of the whole disk.
    Scheduler {
        /// What it was.
        was: String,
    },
    /// A filesystem was made.
    Filesystem {
        /// Its UUID.
        uuid: String,
    },
    /// It was mounted at [`mount_point`].
    Mount,
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// It is about to be made.
    Change(Change),
    /// The last one that was not undone yet, was.
    Undone,
}

/// What is to be undone on one device. Dropping it undoes everything.
#[derive(Debug)]
pub(super) struct Journal {
    disk: Disk,
    file: File,
    path: PathBuf,
    changes: Vec<Change>,
    /// A killed process left them: others may use the device by now.
    is_left: bool,
}

/// Where a filesystem on a device is mounted.
pub(super) fn mount_point(disk: &Disk) -> PathBuf {
    Path::new(run_folder::PATH).join(&disk.name)
}

fn path(disk: &Disk) -> PathBuf {
    Path::new(run_folder::PATH).join(format!("{}.undo", disk.name))
}

impl Journal {
    /// A journal for a device that has none in use. What a killed process left is undone first.
    ///
    /// # Errors
    /// [`HostError::InUse`] where another lowtide changes the device; [`HostError`] where the journal cannot be made or
    /// something cannot be undone.
    pub(super) fn open(disk: &Disk) -> Result<Journal, HostError> {
        run_folder::make(Path::new(run_folder::PATH))?;
        let path = path(disk);
        loop {
            let file = OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .mode(0o600)
                .open(&path)
                .map_err(HostError::io(Operation::Create, &path))?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(HostError::InUse { path: disk.path.clone() });
                }
                locked => locked.map_err(HostError::io(Operation::Open, &path))?,
            }
            // Another may have removed the file between opening and locking it.
            if file.metadata().is_ok_and(|metadata| metadata.nlink() == 0) {
                continue;
            }
            let changes = read(&file, &path)?;
            let mut journal = Journal { disk: disk.clone(), changes, file, path, is_left: true };
            journal.undo(0)?;
            journal.is_left = false;
            return Ok(journal);
        }
    }

    /// Undoes what a killed process left on a device, where it left anything.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub(super) fn clean(disk: &Disk) -> Result<(), HostError> {
        if !path(disk).exists() {
            return Ok(());
        }
        // One that is being used speaks for itself: its device is busy.
        match Journal::open(disk) {
            Err(HostError::InUse { .. }) => Ok(()),
            opened => opened.and_then(Journal::close),
        }
    }

    /// Writes a change down; call it before making the change.
    ///
    /// # Errors
    /// [`HostError::Io`] where it cannot be written: then do not change anything.
    pub(super) fn will(&mut self, change: Change) -> Result<(), HostError> {
        self.write(&Line::Change(change.clone()))?;
        self.changes.push(change);
        Ok(())
    }

    /// How many changes there are.
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Undoes all but the first `keep` changes, the last first. One that cannot be undone does not keep the others from
    /// it, but for those that build on each other.
    ///
    /// # Errors
    /// [`HostError::NotUndone`] where one cannot be undone; it stays written down.
    pub(super) fn undo(&mut self, keep: usize) -> Result<(), HostError> {
        let (mut left, mut failure) = (Vec::new(), None);
        while self.changes.len() > keep {
            let change = self.changes.pop().expect("there is one");
            let below = matches!(change, Change::Filesystem { .. }) && left.contains(&Change::Mount);
            let undone = if below { Ok(()) } else { undo(&self.disk, &change, self.is_left) };
            match undone {
                // Where this cannot be written, it is undone a second time, which does no harm.
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
        // What was cut off before does not take this line with it.
        let text = format!("\n{}\n", serde_json::to_string(line).expect("a line serialises"));
        self.file.write_all(text.as_bytes()).map_err(HostError::io(Operation::Write, &self.path))
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
        // Whoever wants to know calls `close`. What cannot be undone stays written down for the next run.
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
    // A line that was cut off, or is none, was not acted upon.
    for line in bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()) {
        match line {
            Line::Change(change) => changes.push(change),
            Line::Undone => drop(changes.pop()),
        }
    }
    Ok(changes)
}

/// Undoes a change that was made, or only about to be.
fn undo(disk: &Disk, change: &Change, is_left: bool) -> Result<(), HostError> {
    match change {
        Change::Scheduler { was } => scheduler::set(disk, was),
        Change::Mount => filesystem::unmount(&mount_point(disk)),
        Change::Filesystem { uuid } => {
            wait_until_free(&disk.node)?;
            // What others made since is theirs.
            if signature::has_uuid(disk, uuid)? {
                if is_left {
                    wait_until_unused(disk)?;
                }
                let node = disk.node.to_string_lossy();
                tool::run(("wipefs", "of util-linux"), &["--all", "--quiet", &node])?;
            }
            Ok(())
        }
    }
}

/// Waits for whoever uses a device, or what it lies on, for a moment.
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

/// Waits for whoever holds a device: a `mkfs` that a killed run began may still be at it.
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
    fn lines_that_were_cut_off_or_are_none_are_passed_over() {
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
