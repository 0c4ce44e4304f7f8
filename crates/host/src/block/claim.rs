//! [`Claim`]: a device held for one campaign, open exclusively.
//!
//! The kernel gives a device exclusively (`O_EXCL`) to one user: with a claim, nobody can mount it or build on it.
//! Leaves out what is done with it.

use super::discard::{Discard, discard};
use super::disk::{Disk, Identity};
use super::erase::{self, Erase};
use super::examine;
use super::filesystem::{Filesystem, Formatted};
use super::journal::{Change, Journal};
use super::objection::Objection;
use super::{keep, scheduler, tool};
use crate::error::{HostError, Operation};
use crate::target::{Order, Progress, TestData, fill};
use lowtide_core::{Bytes, Seed};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long a device that lowtide itself let go of may be looked at by others (udev does) before that counts.
const PATIENCE: Duration = Duration::from_secs(5);

/// A device that may be overwritten, as long as this lives. Dropping it undoes what was changed of its settings.
#[derive(Debug)]
pub struct Claim {
    disk: Disk,
    /// Open exclusively, but while a program makes or removes a filesystem, or one is mounted.
    file: Option<File>,
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
        let (disk, file) = hold(disk, |disk| objections(disk, consent))?;
        let Consent { serial, force_signature, planned } = consent;
        let serial = serial.map(str::to_owned);
        let consent = Owned { serial, force_signature, planned: planned.clone() };
        Ok(Claim { disk, file: Some(file), consent, journal: None })
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
    pub fn format(self, how: &Filesystem<'_>, interrupt: &AtomicBool) -> Result<Formatted, HostError> {
        Formatted::make(self, how, interrupt)
    }

    /// Wipes the signatures that lie on it: nobody shall take it for what it was.
    ///
    /// # Errors
    /// [`HostError`] where that fails, or the device cannot be taken again.
    pub fn wipe(mut self) -> Result<Claim, HostError> {
        self.let_go();
        let node = self.disk.node.to_string_lossy().into_owned();
        tool::run(("wipefs", "of util-linux"), &["--all", "--quiet", &node])?;
        self.hold_again()
    }

    /// The device, open past the page cache, for whoever writes what is to stay there. It is held for as long as that is
    /// open.
    ///
    /// # Errors
    /// [`HostError`] where it cannot be used so, or where something of it is to be undone and cannot be.
    pub fn into_file(mut self) -> Result<File, HostError> {
        let file = self.file.take().expect("only a filesystem on the device takes it away");
        self.journal.take().map_or(Ok(()), Journal::close)?;
        keep::direct(file, &self.disk)
    }

    /// Undoes what was changed of the device's settings, and gives it up.
    ///
    /// # Errors
    /// [`HostError`] where something cannot be undone.
    pub fn release(mut self) -> Result<(), HostError> {
        self.file = None;
        self.journal.take().map_or(Ok(()), Journal::close)
    }

    /// Closes the device, for a program that wants it.
    pub(super) fn let_go(&mut self) {
        self.file = None;
    }

    /// Opens it again, under the same consent.
    pub(super) fn hold_again(mut self) -> Result<Claim, HostError> {
        let begin = Instant::now();
        let passing = |objection: &Objection| matches!(objection, Objection::Open { .. } | Objection::Busy);
        let (disk, file) = loop {
            match hold(&self.disk, |disk| objections(disk, self.consent.as_consent())) {
                Err(HostError::Refused { objections, .. })
                    if objections.iter().all(passing) && begin.elapsed() < PATIENCE =>
                {
                    std::thread::sleep(Duration::from_millis(50));
                }
                held => break held?,
            }
        };
        (self.disk, self.file) = (disk, Some(file));
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

/// Examines a device and opens it exclusively, if nothing speaks against it.
pub(super) fn hold(
    disk: &Disk,
    objections: impl Fn(&Disk) -> Result<Vec<Objection>, HostError>,
) -> Result<(Disk, File), HostError> {
    let now = Disk::find(&disk.path)?;
    let refuse = |disk: &Disk, objections| HostError::Refused { path: disk.path.clone(), objections };
    let found = objections(&now)?;
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
    let found = objections(&held)?;
    if !found.is_empty() {
        return Err(refuse(&held, found));
    }
    Ok((held, file))
}

/// What speaks against the device and is not covered by the consent.
fn objections(disk: &Disk, consent: Consent<'_>) -> Result<Vec<Objection>, HostError> {
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
    all.extend(examine(disk)?);
    all.retain(|objection| !(consent.force_signature && objection.is_data()));
    all.sort();
    Ok(all)
}
