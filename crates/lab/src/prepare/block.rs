//! Preparation of a block device of the host: purge, filesystem, fill and idle time. This process holds the device.
//!
//! At the end everything except the data is restored: the filesystem is unmounted and wiped, and the scheduler reset.
//! The operations on the device are in `lowtide_host::block`.

use super::data_set::Copies;
use super::home::{Home, Ready};
use super::{HostTarget, PreparedHost, fill_order, wait};
use crate::cell_error::CellError;
use crate::experiment::{Filesystem, Fill, Purge};
use crate::plan::{PlannedBlock, PlannedCell, cells, erase};
use lowtide_core::{Bytes, Counters, Seed};
use lowtide_host::HostError;
use lowtide_host::block::{self, Claim, Consent, Discard, Disk, Formatted, Traffic};
use lowtide_host::target::{Preparation, Progress, Target, TargetSpec, TestData};
use lowtide_record::analysis::Medium;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A block device, held for a campaign.
#[derive(Debug)]
pub struct Block {
    planned: PlannedBlock,
    state: State,
    data: Option<TestData>,
    /// Host bytes written since the last purge; `None` if unknown.
    written: Option<Bytes>,
}

/// The hold on the device.
#[derive(Debug)]
enum State {
    /// An exclusive hold on the device.
    Claimed(Claim),
    /// A mounted filesystem on the device.
    Formatted(Formatted),
    /// No hold: loads only read, or an operation failed and the hold was released.
    Free,
}

impl Block {
    /// Takes the device of a plan, unless a check refuses it. A device that is only read is not held.
    ///
    /// # Errors
    /// As [`Claim::take`].
    pub fn take(planned: &PlannedBlock) -> Result<Block, HostError> {
        let state = if planned.only_read { State::Free } else { State::Claimed(claim(planned)?) };
        Ok(Block { planned: planned.clone(), state, data: None, written: None })
    }

    /// Purges the device as `cell` asks, makes a filesystem on it, and returns the mount point.
    fn format(&mut self, cell: &PlannedCell, interrupt: &AtomicBool) -> Result<PathBuf, HostError> {
        let claim = self.purged(cell)?;
        let layout = &cell.settings.preparation.layout;
        let usable = cells::usable(&cell.settings, cell.capacity).expect("the plan checked the partition");
        let how = block::Mkfs {
            kind: layout.filesystem.made().expect("a filesystem is asked for"),
            size: (usable < cell.capacity).then_some(usable),
            trims: layout.mkfs_trims,
            options: &layout.mount_options,
        };
        let formatted = claim.format(&how, interrupt)?;
        let directory = formatted.directory().to_owned();
        self.state = State::Formatted(formatted);
        Ok(directory)
    }

    /// Takes an exclusive hold on the device, and applies the purges and the scheduler of `cell`.
    fn purged(&mut self, cell: &PlannedCell) -> Result<Claim, HostError> {
        let preparation = &cell.settings.preparation;
        let mut claim = match std::mem::replace(&mut self.state, State::Free) {
            State::Claimed(claim) => claim,
            State::Formatted(formatted) => formatted.release()?,
            State::Free => claim(&self.planned)?,
        };
        for purge in [cell.purge_before, preparation.purge] {
            if self::purge(&claim, purge)? {
                self.written = Some(Bytes::ZERO);
            }
        }
        if let Some(scheduler) = &preparation.scheduler {
            claim.set_scheduler(scheduler)?;
        }
        Ok(claim)
    }

    fn add_written(&mut self, bytes: Bytes) {
        self.written = self.written.map(|written| written + bytes);
    }

    fn mounted_options(&self) -> Option<String> {
        match &self.state {
            State::Formatted(formatted) => formatted.mounted(),
            State::Claimed(_) | State::Free => None,
        }
    }

    /// Undoes all changes except the data, and releases the device.
    fn release(self) -> Result<(), HostError> {
        match self.state {
            State::Claimed(claim) => claim.release(),
            State::Formatted(formatted) => formatted.release()?.release(),
            State::Free => Ok(()),
        }
    }

    fn give_history(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<TestData, HostError> {
        let preparation = &cell.settings.preparation;
        let order = fill_order(cell);
        if preparation.layout.filesystem == Filesystem::None {
            let claim = self.purged(cell)?;
            if preparation.fill != Fill::None {
                claim.fill(cell.data, order, seed, interrupt, progress)?;
                self.add_written(cell.data);
            }
            let data = claim.data(cell.data)?;
            self.state = State::Claimed(claim);
            return Ok(data);
        }
        let spec = TargetSpec::Directory(self.format(cell, interrupt)?);
        // The files are destroyed with their filesystem. Removing the files first would add to the device's history.
        let how = Preparation { spec: &spec, layout: cell.files()?, order, seed, keep: true, interrupt };
        let target = Target::prepare(&how, progress)?;
        self.add_written(cell.data);
        Ok(target.data().clone())
    }
}

impl HostTarget for Block {
    fn prepare(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PreparedHost<'_>, HostError> {
        let data = if self.planned.only_read {
            TestData::new(vec![self.planned.disk.node.clone()], cell.data)?
        } else {
            self.give_history(cell, seed, interrupt, progress)?
        };
        wait(cell.settings.preparation.idle, self.path(), interrupt)?;
        let (written_before, rotational) = (self.written, self.planned.disk.rotational);
        let data = self.data.insert(data);
        Ok(PreparedHost { data, capacity: cell.capacity, rotational, written_before })
    }

    fn path(&self) -> &Path {
        &self.planned.disk.path
    }

    fn disk(&self) -> Option<&Disk> {
        Some(&self.planned.disk)
    }

    fn mounted(&self) -> Option<String> {
        self.mounted_options()
    }

    fn count(&mut self, bytes: Bytes) {
        self.add_written(bytes);
    }

    fn finish(self: Box<Self>) -> Result<(), HostError> {
        self.release()
    }
}

impl Home for Block {
    fn copies(&self) -> Copies {
        Copies::Device
    }

    fn prepare(
        &mut self,
        cell: &PlannedCell,
        _: Seed,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Ready, CellError> {
        let (data, capacity, written) = (self.format(cell, interrupt)?, cell.capacity, self.written);
        let medium = if self.planned.disk.rotational { Medium::Other } else { Medium::Unknown };
        Ok(Ready { data, log: None, capacity, raw_capacity: None, medium, written })
    }

    fn begin(&mut self, ready: &mut Ready, copied: Bytes) -> Result<(), CellError> {
        ready.settle(copied)?;
        self.add_written(copied);
        Ok(())
    }

    fn count(&mut self, written: Bytes) {
        self.add_written(written);
    }

    fn activity(&self) -> (Option<Traffic>, Option<Counters>) {
        (self.planned.disk.traffic(), None)
    }

    fn mounted(&self) -> Option<String> {
        self.mounted_options()
    }

    fn finish(self: Box<Self>) -> Result<(), HostError> {
        self.release()
    }
}

fn claim(planned: &PlannedBlock) -> Result<Claim, HostError> {
    let consent = Consent {
        serial: planned.destroy.clone(),
        force_signature: planned.force_signature,
        planned: planned.disk.identity.clone(),
    };
    Claim::take(&planned.disk, consent)
}

/// Purges the device. Returns whether a purge was asked for.
fn purge(claim: &Claim, purge: Purge) -> Result<bool, HostError> {
    match purge {
        Purge::None => return Ok(false),
        Purge::Trim => claim.discard(Discard::Hint)?,
        Purge::SecureErase => unreachable!("the plan refuses it on a real drive"),
        Purge::SecureDiscard => claim.discard(Discard::Secure)?,
        Purge::NvmeFormat | Purge::NvmeSanitize | Purge::AtaSecureErase => {
            claim.erase(erase(purge).expect("a command of the drive"))?;
        }
    }
    Ok(true)
}

impl Purge {
    /// The commands for a drive, as a user would type them; empty if the kernel purges the drive.
    pub fn commands(self, disk: &Disk) -> Vec<String> {
        erase(self).map(|erase| erase.commands(disk)).unwrap_or_default()
    }
}
