//! Preparing a block device of the host: purged, formatted, filled, left alone, and held by this process all the while.
//!
//! Everything but the data is as before at the end: the filesystem is unmounted and wiped, the scheduler restored. Leaves
//! out how; see `lowtide_host::block`.

use super::{HostTarget, PreparedHost, fill_order, wait};
use crate::experiment::{Filesystem, Fill, Purge};
use crate::plan::{PlannedBlock, PlannedCell, cells, erase};
use lowtide_core::{Bytes, Seed};
use lowtide_host::HostError;
use lowtide_host::block::{self, Claim, Consent, Discard, Disk, Formatted};
use lowtide_host::target::{Preparation, Progress, Target, TargetSpec, TestData};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A block device, held for a campaign.
#[derive(Debug)]
pub struct Block {
    planned: PlannedBlock,
    state: State,
    data: Option<TestData>,
    /// Host bytes written since it was last purged; `None` where nobody knows.
    written: Option<Bytes>,
}

/// How the device is held.
#[derive(Debug)]
enum State {
    /// As a whole.
    Claimed(Claim),
    /// By a filesystem on it.
    Formatted(Formatted),
    /// Not at all: loads only read, or it was given up because something failed.
    Free,
}

impl Block {
    /// Takes the device of a plan, if nothing speaks against that; one that is only read is left to others, too.
    ///
    /// # Errors
    /// As [`Claim::take`].
    pub fn take(planned: &PlannedBlock) -> Result<Block, HostError> {
        let state = if planned.only_read { State::Free } else { State::Claimed(claim(planned)?) };
        Ok(Block { planned: planned.clone(), state, data: None, written: None })
    }

    /// Purges the device as `cell` asks, and makes an empty filesystem on it; the directory where it is mounted.
    ///
    /// # Errors
    /// [`HostError`] where the device does not do it.
    pub fn format(&mut self, cell: &PlannedCell, interrupt: &AtomicBool) -> Result<PathBuf, HostError> {
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

    /// The device as a whole, purged and with the scheduler that `cell` asks for.
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

    /// Host bytes written since it was last purged; `None` where nobody knows.
    pub fn written(&self) -> Option<Bytes> {
        self.written
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
                self.count(cell.data);
            }
            let data = claim.data(cell.data)?;
            self.state = State::Claimed(claim);
            return Ok(data);
        }
        let spec = TargetSpec::Directory(self.format(cell, interrupt)?);
        // The files vanish with their filesystem; removing them first would add to the device's history.
        let how = Preparation { spec: &spec, layout: cell.files()?, order, seed, keep: true, interrupt };
        let target = Target::prepare(&how, progress)?;
        self.count(cell.data);
        Ok(target.data().clone())
    }
}

impl HostTarget for Block {
    /// Gives the device the history that `cell` asks for.
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
        match &self.state {
            State::Formatted(formatted) => formatted.mounted(),
            State::Claimed(_) | State::Free => None,
        }
    }

    fn count(&mut self, bytes: Bytes) {
        self.written = self.written.map(|written| written + bytes);
    }

    /// Undoes what was changed but the data, and gives the device up.
    fn finish(self: Box<Self>) -> Result<(), HostError> {
        match self.state {
            State::Claimed(claim) => claim.release(),
            State::Formatted(formatted) => formatted.release()?.release(),
            State::Free => Ok(()),
        }
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

/// Purges the device; whether that was asked for.
fn purge(claim: &Claim, purge: Purge) -> Result<bool, HostError> {
    match purge {
        Purge::None => return Ok(false),
        Purge::Trim => claim.discard(Discard::Hint)?,
        Purge::SecureErase => unreachable!("the plan asks which command is meant"),
        Purge::SecureDiscard => claim.discard(Discard::Secure)?,
        Purge::NvmeFormat | Purge::NvmeSanitize | Purge::AtaSecureErase => {
            claim.erase(erase(purge).expect("one of the drive's own"))?;
        }
    }
    Ok(true)
}

impl Purge {
    /// The commands that are given to a drive, as a user would type them; none where the kernel does it.
    pub fn commands(self, disk: &Disk) -> Vec<String> {
        erase(self).map(|erase| erase.commands(disk)).unwrap_or_default()
    }
}
