//! Preparing a block device of the host: discarded, filled, left alone, and held by this process all the while.
//!
//! Leaves out filesystems on it, and the drive's own commands (format, sanitize, secure erase).

use super::{PreparedHost, wait};
use crate::experiment::{Fill, Purge};
use crate::plan::{PlannedBlock, PlannedCell};
use lowtide_core::{Bytes, Seed};
use lowtide_host::HostError;
use lowtide_host::block::{Claim, Consent, Discard};
use lowtide_host::target::{Progress, TestData};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A block device, held for a campaign.
#[derive(Debug)]
pub struct Block {
    claim: Claim,
    data: Option<TestData>,
    /// Host bytes written since it was last purged; `None` where nobody knows.
    written: Option<Bytes>,
}

impl Block {
    /// Takes the device of a plan, if nothing speaks against that.
    ///
    /// # Errors
    /// As [`Claim::take`].
    pub fn take(planned: &PlannedBlock) -> Result<Block, HostError> {
        let consent = Consent {
            serial: planned.destroy.as_deref(),
            force_signature: planned.force_signature,
            planned: &planned.disk.identity,
        };
        Ok(Block { claim: Claim::take(&planned.disk, consent)?, data: None, written: None })
    }

    /// Gives the device the history that `cell` asks for.
    ///
    /// # Errors
    /// [`HostError`] where the device does not do it.
    pub fn prepare(
        &mut self,
        cell: &PlannedCell,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<PreparedHost<'_>, HostError> {
        let preparation = &cell.settings.preparation;
        self.purge(cell.purge_before)?;
        self.purge(preparation.purge)?;
        if preparation.fill != Fill::None {
            self.claim.fill(cell.data, seed, interrupt, progress)?;
            self.count(cell.data);
        }
        wait(preparation.idle, &self.claim.disk().path, interrupt)?;
        let written_before = self.written;
        let rotational = self.claim.disk().rotational;
        let data = self.data.insert(self.claim.data(cell.data)?);
        Ok(PreparedHost { data, capacity: cell.capacity, rotational, written_before })
    }

    /// The device, as the user named it.
    pub fn path(&self) -> &Path {
        &self.claim.disk().path
    }

    /// The load has written that much.
    pub fn count(&mut self, bytes: Bytes) {
        self.written = self.written.map(|written| written + bytes);
    }

    fn purge(&mut self, purge: Purge) -> Result<(), HostError> {
        match purge {
            Purge::None => return Ok(()),
            Purge::Trim => self.claim.discard(Discard::Hint)?,
            Purge::SecureErase => self.claim.discard(Discard::Secure)?,
        }
        self.written = Some(Bytes::ZERO);
        Ok(())
    }
}
