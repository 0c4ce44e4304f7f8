//! [`Journal`]: what is, or is about to be, of an attached drive, for whoever takes it apart.
//!
//! A line of JSON each time something is about to change; the last whole line counts. Taking apart looks at what there
//! really is, so a step that was written down and not made does no harm, nor does one that was undone already. Locked by
//! whoever attaches or detaches; the server has nothing to do with it. Not here: what the kernel tells by itself.

use super::Way;
use super::loop_device::Queue;
use super::place::Place;
use super::process::Process;
use crate::error::{HostError, Operation};
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a folder is made that somebody else removes.
const ATTEMPTS: usize = 100;

/// What is known of an attached drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Facts {
    /// As the user named it.
    pub(super) device: String,
    pub(super) way: Way,
    pub(super) server: Option<Process>,
    /// The number of the loop device.
    pub(super) loop_device: Option<u32>,
    /// How its requests were queued before it was used.
    #[serde(default)]
    pub(super) queue: Option<Queue>,
    /// Bytes of its logical block, where those of the drive are not larger.
    pub(super) block: u32,
    pub(super) mount: Option<MountPoint>,
    /// The process that it was made for, and that takes it apart; anybody may once that is gone.
    #[serde(default)]
    pub(super) owner: Option<Process>,
}

/// Where its filesystem is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct MountPoint {
    pub(super) at: PathBuf,
    /// As `mount -o` takes them; none where empty.
    pub(super) options: String,
    /// Whether the folder was not there before.
    pub(super) made: bool,
}

/// How long a lock is waited for, and how often it is tried.
const MOMENT: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);

/// The journal, locked.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    pub(super) facts: Facts,
}

impl Journal {
    /// A new one.
    ///
    /// # Errors
    /// [`HostError::AlreadyAttached`] where there is one; [`HostError::Io`] where it cannot be written.
    pub(super) fn create(place: &Place, facts: Facts) -> Result<Journal, HostError> {
        let path = place.journal();
        let mut attempts = 0..ATTEMPTS;
        let (file, before) = loop {
            match Place::make_folder().and_then(|()| lock(&path, true, place)) {
                // Whoever detached the last drive has just removed the folder.
                Err(HostError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound && attempts.next().is_some() => {}
                locked => break locked?,
            }
        };
        if before.is_some() {
            return Err(HostError::AlreadyAttached { name: place.name().to_owned() });
        }
        let mut journal = Journal { file, path, facts };
        journal.write()?;
        Ok(journal)
    }

    /// That of an attached drive.
    ///
    /// # Errors
    /// [`HostError::NotAttached`] where there is none; [`HostError::InUse`] while another attaches or detaches it.
    pub(super) fn open(place: &Place) -> Result<Journal, HostError> {
        let path = place.journal();
        let not_attached = || super::not_attached(place.name());
        if !path.exists() {
            return Err(not_attached());
        }
        let (file, facts) = lock(&path, false, place)?;
        let Some(facts) = facts else {
            // Whoever made it was killed before anything was written, and so before anything was done.
            let _ = fs::remove_file(&path);
            Place::leave_folder();
            return Err(not_attached());
        };
        Ok(Journal { file, path, facts })
    }

    /// Writes down what is about to be; call it before making it so.
    ///
    /// # Errors
    /// [`HostError::Io`] where it cannot be written: then do not change anything.
    pub(super) fn will(&mut self, change: impl FnOnce(&mut Facts)) -> Result<(), HostError> {
        change(&mut self.facts);
        self.write()
    }

    fn write(&mut self) -> Result<(), HostError> {
        // What was cut off before does not take this line with it.
        let text = format!("\n{}\n", serde_json::to_string(&self.facts).expect("facts serialise"));
        self.file.write_all(text.as_bytes()).map_err(HostError::io(Operation::Write, &self.path))
    }

    /// Removes it: nothing is left to be undone.
    ///
    /// # Errors
    /// [`HostError::Io`] where it cannot be removed.
    pub(super) fn close(self) -> Result<(), HostError> {
        fs::remove_file(&self.path).map_err(HostError::io(Operation::Remove, &self.path))?;
        Place::leave_folder();
        Ok(())
    }
}

/// What is written down of a drive, at this moment.
pub(super) fn read(place: &Place) -> Option<Facts> {
    let text = fs::read(place.journal()).ok()?;
    // A line that was cut off was not acted upon.
    text.rsplit(|byte| *byte == b'\n').find_map(|line| serde_json::from_slice(line).ok())
}

/// The lock is waited for a moment: a program that another thread starts holds a copy of it from its fork to its exec, long
/// after the journal was closed here.
fn lock(path: &Path, create: bool, place: &Place) -> Result<(File, Option<Facts>), HostError> {
    let begin = Instant::now();
    loop {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(create)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .mode(0o600)
            .open(path)
            .map_err(HostError::io(Operation::Create, path))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if begin.elapsed() < MOMENT => {
                std::thread::sleep(LOOK);
                continue;
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(HostError::InUse { path: path.to_owned() }),
            locked => locked.map_err(HostError::io(Operation::Open, path))?,
        }
        // Another may have removed the file between opening and locking it.
        if file.metadata().is_ok_and(|metadata| metadata.nlink() > 0) {
            return Ok((file, read(place)));
        }
        if !create {
            return Err(super::not_attached(place.name()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: a drive that was dropped while another thread started a program stayed attached. Cause: the fork held the
    /// journal's lock, and one look at it was enough to give up. Fix: it is waited for.
    #[test]
    fn a_lock_that_a_fork_holds_for_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, place) = (folder.path().join("journal"), Place::new("any").expect("a name"));
        let (file, _) = lock(&path, true, &place).expect("nobody has it");
        let copy = file.try_clone().expect("as a fork has it");
        drop(file);
        let holder = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(copy);
        });
        lock(&path, false, &place).expect("after a moment");
        holder.join().expect("it only sleeps");
    }
}
