//! [`Journal`]: what lowtide changes on a device and has to undo, written down before it is changed.
//!
//! `/run/lowtide/NAME.undo` holds a line of JSON for each change, locked by the process that made it. Whoever ends in
//! order undoes its lines and removes the file; what a killed process left is undone by the next one that takes the
//! device. `/run` is empty after the machine was started anew, and so are its mounts and schedulers. Leaves out data:
//! what was overwritten is gone.

use super::disk::Disk;
use super::{filesystem, scheduler, tool};
use crate::error::{HostError, Operation};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for programs that have the device open.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where journals and mount points are.
pub(super) const FOLDER: &str = "/run/lowtide";

/// A change, by what undoes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "changed", rename_all = "kebab-case")]
pub(super) enum Change {
    /// The I/O scheduler of a disk.
    Scheduler {
        /// The name of the kernel: `sdb`.
        disk: String,
        /// What it was.
        was: String,
    },
    /// A filesystem was made.
    Filesystem {
        /// On which node.
        node: PathBuf,
        /// With which serial.
        serial: String,
    },
    /// It was mounted.
    Mount {
        /// Where.
        at: PathBuf,
    },
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
    file: File,
    path: PathBuf,
    changes: Vec<Change>,
}

impl Journal {
    /// A journal for a device that has none in use. What a killed process left is undone first.
    ///
    /// # Errors
    /// [`HostError::InUse`] where another lowtide changes the device; [`HostError`] where the journal cannot be made or
    /// something cannot be undone.
    pub(super) fn open(disk: &Disk) -> Result<Journal, HostError> {
        fs::create_dir_all(FOLDER).map_err(HostError::io(Operation::Create, Path::new(FOLDER)))?;
        let path = path(disk);
        loop {
            let file = OpenOptions::new().read(true).append(true).create(true).open(&path);
            let file = file.map_err(HostError::io(Operation::Create, &path))?;
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
            let mut journal = Journal { changes: read(&file, &path)?, file, path };
            journal.undo(0)?;
            return Ok(journal);
        }
    }

    /// Undoes what a killed process left on a device, and says whether there was anything.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub(super) fn clean(disk: &Disk) -> Result<bool, HostError> {
        let path = path(disk);
        if !path.exists() {
            return Ok(false);
        }
        // One that is being used speaks for itself: its device is busy.
        match Journal::open(disk) {
            Err(HostError::InUse { .. }) => Ok(false),
            opened => opened.and_then(Journal::close).map(|()| true),
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

    /// Undoes all but the first `keep` changes, the last first.
    ///
    /// # Errors
    /// [`HostError`] where one cannot be undone; those before it stay, and stay written down.
    pub(super) fn undo(&mut self, keep: usize) -> Result<(), HostError> {
        while self.changes.len() > keep {
            undo(self.changes.last().expect("there is one"))?;
            self.write(&Line::Undone)?;
            self.changes.pop();
        }
        Ok(())
    }

    fn write(&mut self, line: &Line) -> Result<(), HostError> {
        let text = serde_json::to_string(line).expect("a line serialises") + "\n";
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
            let _ = fs::remove_dir(FOLDER);
        }
    }
}

fn path(disk: &Disk) -> PathBuf {
    Path::new(FOLDER).join(format!("{}.undo", disk.name))
}

fn read(mut file: &File, path: &Path) -> Result<Vec<Change>, HostError> {
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(HostError::io(Operation::Read, path))?;
    let mut changes = Vec::new();
    // A last line that was cut off was not acted upon.
    for line in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match line {
            Line::Change(change) => changes.push(change),
            Line::Undone => drop(changes.pop()),
        }
    }
    Ok(changes)
}

/// Undoes a change that was made, or only about to be.
fn undo(change: &Change) -> Result<(), HostError> {
    match change {
        Change::Scheduler { disk, was } => scheduler::write(disk, was),
        Change::Mount { at } => filesystem::unmount(at),
        Change::Filesystem { node, serial } => {
            // The node may have become another device's since.
            if !Disk::find(node).is_ok_and(|disk| disk.identity.serial == *serial) {
                return Ok(());
            }
            // A `mkfs` that a killed run began may still be at it, and udev looks at what was just closed.
            let begin = Instant::now();
            loop {
                let node = node.to_string_lossy();
                match tool::run(("wipefs", "of util-linux"), &["--all", "--quiet", &node]) {
                    Err(_) if begin.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(100)),
                    wiped => return wiped.map(drop),
                }
            }
        }
    }
}
