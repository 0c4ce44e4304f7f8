//! [`Claim`]: a device held for one campaign, open exclusively.
//!
//! The kernel gives a device exclusively (`O_EXCL`) to one user: with a claim, nobody can mount it or build on it.
//! Not here: what is done with it.

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

/// How long a device may be looked at by others (udev does, when it comes or was written to) before that counts.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same for a device that lowtide itself has just released.
const PATIENCE_AFTERWARDS: Duration = Duration::from_secs(5);
/// The least number of looks before an objection counts.
const LEAST_LOOKS: u32 = 3;

/// A device that may be overwritten, as long as this lives. Dropping it undoes what was changed of its settings.
#[derive(Debug)]
pub struct Claim {
    disk: Disk,
    /// Open exclusively, but while a program makes or removes a filesystem, or one is mounted.
    file: Option<File>,
    /// What it lies on is held all the while.
    guard: Guard,
    consent: Owned,
    /// What is to be undone. After the file, which is closed first: programs that undo want the device.
    journal: Option<Journal>,
}

/// What the user has said of the device.
#[derive(Debug, Clone, Copy)]
pub struct Consent<'a> {
    /// The serial that was typed, if any.
    pub serial: Option<&'a str>,
    /// Whether what lies on it may be lost.
    pub force_signature: bool,
    /// Which device was planned for.
    pub planned: &'a Identity,
}

/// The same, to be kept.
#[derive(Debug, Clone)]
struct Owned {
    serial: Option<String>,
    force_signature: bool,
    planned: Identity,
}

impl Owned {
    fn as_consent(&self) -> Consent<'_> {
        let Owned { serial, force_signature, planned } = self;
        Consent { serial: serial.as_deref(), force_signature: *force_signature, planned }
    }
}

impl Claim {
    /// Takes a device: undoes what a killed run left on it, examines it, opens it exclusively, and examines it again
    /// through what was opened.
    ///
    /// # Errors
    /// [`HostError::Refused`] with every objection that the consent does not cover; [`HostError`] where it cannot be
    /// examined or opened.
    pub fn take(disk: &Disk, consent: Consent<'_>) -> Result<Claim, HostError> {
        if consent.serial == Some(disk.identity.serial.as_str()) {
            Journal::clean(disk)?;
        }
        let (disk, file, guard) = hold(disk, PATIENCE, |disk, guard| objections(disk, guard, consent))?;
        let Consent { serial, force_signature, planned } = consent;
        let serial = serial.map(str::to_owned);
        let consent = Owned { serial, force_signature, planned: planned.clone() };
        Ok(Claim { disk, file: Some(file), guard, consent, journal: None })
    }

    /// The device.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The first `size` bytes, for an engine.
    ///
    /// # Errors
    /// [`HostError::Invalid`] where there is no byte.
    pub fn data(&self, size: Bytes) -> Result<TestData, HostError> {
        TestData::of_claim(self.disk.node.clone(), size)
    }

    /// Writes the first `size` bytes once with random bytes; `progress` hears of each piece.
    ///
    /// # Errors
    /// [`HostError::Interrupted`] once `interrupt` is set; [`HostError::Io`] where a write fails.
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

    /// Tells the device that nothing on it is needed any more.
    ///
    /// # Errors
    /// [`HostError::Io`] where the device does not do that.
    pub fn discard(&self, how: Discard) -> Result<(), HostError> {
        discard(self.file(), self.disk.identity.size, how)
            .map_err(HostError::io(Operation::Discard, &self.disk.node))
    }

    /// Has the drive erase itself by a command of its own.
    ///
    /// # Errors
    /// [`HostError::Invalid`] where it is no drive of that kind; [`HostError::Tool`] where the program that gives the
    /// command is missing or fails.
    pub fn erase(&self, how: Erase) -> Result<(), HostError> {
        erase::erase(&self.disk, how)
    }

    /// Gives the disk another I/O scheduler, until the claim ends.
    ///
    /// # Errors
    /// [`HostError::Invalid`] with those that it has; [`HostError::Io`] where it cannot be set.
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
    /// [`HostError`] where that fails; the device is given up, and may be taken again.
    pub fn format(self, how: &Mkfs<'_>, interrupt: &AtomicBool) -> Result<Formatted, HostError> {
        Formatted::make(self, how, interrupt)
    }

    /// Wipes the signatures that lie on it: nobody shall take it for what it was.
    ///
    /// # Errors
    /// [`HostError`] where that fails, or the device cannot be taken again.
    pub fn wipe(mut self) -> Result<Claim, HostError> {
        self.let_go();
        let node = self.disk.node.to_string_lossy().into_owned();
        tool::run(("wipefs", "of util-linux"), &["--all", "--quiet", &node])
            .map_err(|error| self.explain(error))?;
        self.hold_again()
    }

    /// The device, open past the page cache, for whoever writes what is to stay there. It is held for as long as that is
    /// open, and what it lies on for as long as the guard lives.
    ///
    /// # Errors
    /// [`HostError`] where it cannot be used so, or where something of it is to be undone and cannot be.
    pub fn into_file(mut self) -> Result<(File, Guard), HostError> {
        let file = self.file.take().expect("only a filesystem on the device takes it away");
        self.journal.take().map_or(Ok(()), Journal::close)?;
        Ok((keep::direct(file, &self.disk)?, self.guard))
    }

    /// Undoes what was changed of the device's settings, and gives it up.
    ///
    /// # Errors
    /// [`HostError`] where something cannot be undone.
    pub fn release(mut self) -> Result<(), HostError> {
        self.file = None;
        self.journal.take().map_or(Ok(()), Journal::close)
    }

    /// Why a program that wanted the device did not get it: somebody else uses it since it was let go of; else its own error.
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

    /// Closes the device, for a program that wants it.
    pub(super) fn let_go(&mut self) {
        self.file = None;
    }

    /// Opens it again, under the same consent.
    pub(super) fn hold_again(mut self) -> Result<Claim, HostError> {
        // What it lies on is held anew, too: the device may have another file by now.
        self.guard = Guard::default();
        let (disk, file, guard) = hold(&self.disk, PATIENCE_AFTERWARDS, |disk, guard| {
            objections(disk, guard, self.consent.as_consent())
        })?;
        (self.disk, self.file, self.guard) = (disk, Some(file), guard);
        Ok(self)
    }

    /// The journal of what is to be undone, begun where there is none yet.
    pub(super) fn journal(&mut self) -> Result<&mut Journal, HostError> {
        if self.journal.is_none() {
            self.journal = Some(Journal::open(&self.disk)?);
        }
        Ok(self.journal.as_mut().expect("it was opened"))
    }

    fn file(&self) -> &File {
        self.file.as_ref().expect("only a filesystem on the device takes it away")
    }
}

/// A wait for objections that may pass.
#[derive(Debug)]
pub(super) struct Wait {
    begin: Instant,
    patience: Duration,
    looks: u32,
}

impl Wait {
    /// A wait of at most `patience`, but of at least [`LEAST_LOOKS`] looks: on a busy machine, one look may
    /// take longer than `patience`.
    pub(super) fn new(patience: Duration) -> Wait {
        Wait { begin: Instant::now(), patience, looks: 0 }
    }

    /// Sleeps briefly and returns `true` if there is to be another look.
    pub(super) fn again(&mut self) -> bool {
        self.looks += 1;
        let again = self.looks < LEAST_LOOKS || self.begin.elapsed() < self.patience;
        if again {
            std::thread::sleep(Duration::from_millis(50));
        }
        again
    }
}

/// Examines a device and opens it exclusively if there are no objections; objections that may pass are waited
/// for, up to `patience`.
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
    // The same again, now that nobody can come between: the path may have become another device's.
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

/// What speaks against the device and is not covered by the consent.
fn objections(disk: &Disk, guard: Option<&Guard>, consent: Consent<'_>) -> Result<Vec<Objection>, HostError> {
    let mut all = Vec::new();
    if consent.planned != &disk.identity {
        let (planned, is) = (consent.planned.to_string(), disk.identity.to_string());
        all.push(Objection::Changed { planned, is });
    }
    let is = disk.identity.to_string();
    match consent.serial {
        Some(typed) if typed == disk.identity.serial => {}
        Some(typed) => all.push(Objection::WrongSerial { typed: typed.to_owned(), is }),
        None => all.push(Objection::NotTyped { serial: disk.identity.serial.clone(), is }),
    }
    all.extend(examine_held(disk, guard)?);
    all.retain(|objection| !(consent.force_signature && objection.is_data()));
    all.sort();
    Ok(all)
}
