//! [`Claim`]: a device held for one campaign, open exclusively.
//!
//! The kernel lets one user open a device exclusively (`O_EXCL`). While a claim holds it, nobody can mount it
//! or build another device on it.

use super::discard::{Discard, discard};
use super::disk::{Disk, Identity};
use super::erase::{self, Erase};
use super::examine_held;
use super::filesystem::{Formatted, Mkfs};
use super::guard::Guard;
use super::journal::{Change, Journal};
use super::{keep, scheduler, tool, usage};
use crate::data::{Order, Progress, TestData, fill};
use crate::error::{HostError, Operation};
use crate::objection::Objection;
use lowtide_core::{Bytes, Seed};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Time limit for others to close the device: udev opens a device that appears or is written to.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time limit for a device that lowtide itself has just released.
const PATIENCE_AFTERWARDS: Duration = Duration::from_secs(5);
/// Minimum number of examinations before an objection is final.
const MIN_EXAMINATIONS: u32 = 3;

/// A device that may be overwritten while the claim exists. Dropping the claim restores the settings of the
/// device.
#[derive(Debug)]
pub struct Claim {
    disk: Disk,
    /// Open exclusively, except while a filesystem is made, mounted or removed.
    file: Option<File>,
    /// Holds the lower levels of the device.
    guard: Guard,
    consent: Consent,
    /// The changes to undo. Declared after `file`, which must be closed first, because the programs that undo changes
    /// open the device.
    journal: Option<Journal>,
}

/// The user's permission to overwrite a device.
#[derive(Debug, Clone)]
pub struct Consent {
    /// The serial that the user typed, if any.
    pub serial: Option<String>,
    /// Whether existing data may be lost.
    pub force_signature: bool,
    /// The device that the plan was made for.
    pub planned: Identity,
}

impl Claim {
    /// Takes a device: undoes the changes that a killed run left on it, examines it, opens it exclusively, and
    /// examines it again through the open descriptor.
    ///
    /// # Errors
    /// [`HostError::Refused`] with every objection that the consent does not cover; [`HostError`] if the
    /// device cannot be examined or opened.
    pub fn take(disk: &Disk, consent: Consent) -> Result<Claim, HostError> {
        if consent.serial.as_ref() == Some(&disk.identity.serial) {
            Journal::clean(disk)?;
        }
        let (disk, file, guard) = hold(disk, PATIENCE, |disk, guard| objections(disk, guard, &consent))?;
        Ok(Claim { disk, file: Some(file), guard, consent, journal: None })
    }

    /// The device.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The first `size` bytes, for an engine.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if `size` is zero.
    pub fn data(&self, size: Bytes) -> Result<TestData, HostError> {
        TestData::of_claim(self.disk.node.clone(), size)
    }

    /// Writes the first `size` bytes once with random bytes, and calls `progress` after each write.
    ///
    /// # Errors
    /// [`HostError::Interrupted`] once `interrupt` is set; [`HostError::Io`] if a write fails.
    pub fn fill(
        &self,
        size: Bytes,
        order: Order,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), HostError> {
        let mut done = Bytes::ZERO;
        fill((self.file(), &self.disk.node), size, 0, order, seed, interrupt, &mut |written| {
            done += written;
            progress(Progress { done, total: size });
        })?;
        self.file().sync_all().map_err(HostError::io(Operation::Sync, &self.disk.node))
    }

    /// Discards the whole device.
    ///
    /// # Errors
    /// [`HostError::Io`] if the device rejects the command.
    pub fn discard(&self, how: Discard) -> Result<(), HostError> {
        discard(self.file(), self.disk.identity.size, how)
            .map_err(HostError::io(Operation::Discard, &self.disk.node))
    }

    /// Erases the drive by one of its own commands.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if the drive does not have that command; [`HostError::Tool`] if the program that sends
    /// the command is missing or fails.
    pub fn erase(&self, how: Erase) -> Result<(), HostError> {
        erase::erase(&self.disk, how)
    }

    /// Sets the I/O scheduler of the disk until the claim ends.
    ///
    /// # Errors
    /// [`HostError::Invalid`] with the available schedulers; [`HostError::Io`] if it cannot be set.
    pub fn set_scheduler(&mut self, name: &str) -> Result<(), HostError> {
        let (_, chosen) = scheduler::choices(&self.disk.whole_name());
        if chosen.as_deref() == Some(name) {
            return Ok(());
        }
        self.disk.check_scheduler(name)?;
        let was = chosen.unwrap_or_else(|| "none".to_owned());
        self.journal()?.will(Change::Scheduler { was })?;
        scheduler::set(&self.disk, name)
    }

    /// Makes a filesystem on the device and mounts it. See [`Formatted`].
    ///
    /// # Errors
    /// [`HostError`] if that fails. The claim is then released, and the device can be taken again.
    pub fn format(self, how: &Mkfs<'_>, interrupt: &AtomicBool) -> Result<Formatted, HostError> {
        Formatted::make(self, how, interrupt)
    }

    /// Wipes the signatures on the device, so that no program recognises its former contents.
    ///
    /// # Errors
    /// [`HostError`] if that fails, or the device cannot be taken again.
    pub fn wipe(mut self) -> Result<Claim, HostError> {
        self.close();
        let node = self.disk.node.to_string_lossy().into_owned();
        tool::run(tool::WIPEFS, &["--all", "--quiet", &node]).map_err(|error| self.explain(error))?;
        self.hold_again()
    }

    /// Returns the device, open for direct I/O, to store an on-device format permanently. The file holds the device,
    /// and the guard holds its lower levels.
    ///
    /// # Errors
    /// [`HostError`] if direct I/O cannot be enabled, or a change cannot be undone.
    pub fn into_file(mut self) -> Result<(File, Guard), HostError> {
        let file = self.file.take().expect("only a filesystem on the device takes it away");
        self.journal.take().map_or(Ok(()), Journal::close)?;
        Ok((keep::direct(file, &self.disk)?, self.guard))
    }

    /// Restores the settings of the device and releases it.
    ///
    /// # Errors
    /// [`HostError`] if a change cannot be undone.
    pub fn release(mut self) -> Result<(), HostError> {
        self.file = None;
        self.journal.take().map_or(Ok(()), Journal::close)
    }

    /// Explains why an external program failed: by another user of the device if there is one now, otherwise by the
    /// error of the program.
    pub(super) fn explain(&self, error: HostError) -> HostError {
        if !matches!(error, HostError::Tool { .. }) {
            return error;
        }
        let mut objections = usage::objections(&self.disk, Some(&self.guard));
        objections.retain(|objection| !objection.is_data());
        if objections.is_empty() {
            return error;
        }
        HostError::Refused { path: self.disk.path.clone(), objections }
    }

    /// Closes the device, so that an external program can open it.
    pub(super) fn close(&mut self) {
        self.file = None;
    }

    /// Opens the device again under the same consent.
    pub(super) fn hold_again(mut self) -> Result<Claim, HostError> {
        // The lower levels are taken again, because the device may have another backing file by now.
        self.guard = Guard::default();
        let (disk, file, guard) =
            hold(&self.disk, PATIENCE_AFTERWARDS, |disk, guard| objections(disk, guard, &self.consent))?;
        (self.disk, self.file, self.guard) = (disk, Some(file), guard);
        Ok(self)
    }

    /// The journal of changes to undo, created on first use.
    pub(super) fn journal(&mut self) -> Result<&mut Journal, HostError> {
        if self.journal.is_none() {
            self.journal = Some(Journal::open(&self.disk)?);
        }
        Ok(self.journal.as_mut().expect("the journal was just opened"))
    }

    fn file(&self) -> &File {
        self.file.as_ref().expect("only a filesystem on the device takes it away")
    }
}

/// A limited wait for objections that may disappear.
#[derive(Debug)]
pub(super) struct Wait {
    begin: Instant,
    patience: Duration,
    examinations: u32,
}

impl Wait {
    /// A wait of at most `patience`, but with at least [`MIN_EXAMINATIONS`] examinations: on a busy machine, a single
    /// one may take longer than `patience`.
    pub(super) fn new(patience: Duration) -> Wait {
        Wait { begin: Instant::now(), patience, examinations: 0 }
    }

    /// Sleeps briefly and returns whether to examine once more.
    pub(super) fn again(&mut self) -> bool {
        self.examinations += 1;
        let again = self.examinations < MIN_EXAMINATIONS || self.begin.elapsed() < self.patience;
        if again {
            std::thread::sleep(Duration::from_millis(50));
        }
        again
    }
}

/// Examines a device and opens it exclusively if there are no objections. Waits up to `patience` for objections to
/// disappear.
pub(super) fn hold(
    disk: &Disk,
    patience: Duration,
    objections: impl Fn(&Disk, Option<&Guard>) -> Result<Vec<Objection>, HostError>,
) -> Result<(Disk, File, Guard), HostError> {
    let mut wait = Wait::new(patience);
    loop {
        match hold_now(disk, &objections) {
            Err(HostError::Refused { objections, .. })
                if objections.iter().all(Objection::is_passing) && wait.again() => {}
            held => return held,
        }
    }
}

fn hold_now(
    disk: &Disk,
    objections: &impl Fn(&Disk, Option<&Guard>) -> Result<Vec<Objection>, HostError>,
) -> Result<(Disk, File, Guard), HostError> {
    let now = Disk::find(&disk.path)?;
    let refuse = |disk: &Disk, objections| HostError::Refused { path: disk.path.clone(), objections };
    let found = objections(&now, None)?;
    if !found.is_empty() {
        return Err(refuse(&now, found));
    }
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags((OFlags::EXCL | OFlags::CLOEXEC).bits() as i32)
        .open(&now.node);
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
            return Err(refuse(&now, vec![Objection::Busy]));
        }
        opened => opened.map_err(HostError::io(Operation::Open, &now.node))?,
    };
    // Examined again, now that nobody else can open it: the path may lead to another device by now.
    let number = file.metadata().map_err(HostError::io(Operation::Inspect, &now.node))?.rdev();
    let number = (rustix::fs::major(number), rustix::fs::minor(number));
    let held = Disk::of_number(&disk.path, now.node.clone(), number)?;
    let guard = usage::guard(&held).map_err(|found| refuse(&held, found))?;
    let found = objections(&held, Some(&guard))?;
    if !found.is_empty() {
        return Err(refuse(&held, found));
    }
    Ok((held, file, guard))
}

/// The objections that the consent does not cover.
fn objections(disk: &Disk, guard: Option<&Guard>, consent: &Consent) -> Result<Vec<Objection>, HostError> {
    let mut all = Vec::new();
    let is = disk.identity.to_string();
    if consent.planned != disk.identity {
        all.push(Objection::Changed { planned: consent.planned.to_string(), is: is.clone() });
    }
    match &consent.serial {
        Some(typed) if *typed == disk.identity.serial => {}
        Some(typed) => all.push(Objection::WrongSerial { typed: typed.clone(), is }),
        None => all.push(Objection::NotTyped { serial: disk.identity.serial.clone(), is }),
    }
    all.extend(examine_held(disk, guard)?);
    all.retain(|objection| !(consent.force_signature && objection.is_data()));
    all.sort();
    Ok(all)
}
