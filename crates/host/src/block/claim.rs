//! [`Claim`]: a device held for one campaign, open exclusively.
//!
//! The kernel gives a device exclusively (`O_EXCL`) to one user: with a claim, nobody can mount it or build on it.
//! Leaves out what is done with it.

use super::discard::{Discard, discard};
use super::disk::{Disk, Identity};
use super::examine;
use super::objection::Objection;
use crate::error::{HostError, Operation};
use crate::target::{Progress, TestData, fill};
use lowtide_core::{Bytes, Seed};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::atomic::AtomicBool;

/// A device that may be overwritten, as long as this lives.
#[derive(Debug)]
pub struct Claim {
    disk: Disk,
    file: File,
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

impl Claim {
    /// Takes a device: examines it, opens it exclusively, and examines it again through what was opened.
    ///
    /// # Errors
    /// [`HostError::Refused`] with every objection that the consent does not cover; [`HostError`] where it cannot be
    /// examined or opened.
    pub fn take(disk: &Disk, consent: Consent<'_>) -> Result<Claim, HostError> {
        let now = Disk::find(&disk.path)?;
        let refuse = |disk: &Disk, objections| HostError::Refused { path: disk.path.clone(), objections };
        let objections = objections(&now, consent)?;
        if !objections.is_empty() {
            return Err(refuse(&now, objections));
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
        let objections = self::objections(&held, consent)?;
        if !objections.is_empty() {
            return Err(refuse(&held, objections));
        }
        Ok(Claim { disk: held, file })
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
        TestData::new(vec![self.disk.node.clone()], size)
    }

    /// Writes the first `size` bytes, in order, with random bytes; `progress` hears of each MiB.
    ///
    /// # Errors
    /// [`HostError::Interrupted`] once `interrupt` is set; [`HostError::Io`] where a write fails.
    pub fn fill(
        &self,
        size: Bytes,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), HostError> {
        let mut done = Bytes::ZERO;
        fill((&self.file, &self.disk.node), size, 0, seed, interrupt, &mut |written| {
            done += written;
            progress(Progress { done, total: size });
        })?;
        self.file.sync_all().map_err(HostError::io(Operation::Sync, &self.disk.node))
    }

    /// Tells the device that nothing on it is needed any more.
    ///
    /// # Errors
    /// [`HostError::Io`] where the device does not do that.
    pub fn discard(&self, how: Discard) -> Result<(), HostError> {
        discard(&self.file, self.disk.identity.size, how)
            .map_err(HostError::io(Operation::Discard, &self.disk.node))
    }
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
