//! Writing checkpoints, in an order that keeps one of the two complete at any time.
//!
//! The contents of a checkpoint are in module `format`.

use super::Disk;
use crate::error::LogError;
use crate::format::Checkpoint;
use crate::log::Stall;
use crate::reader::load_pages;
use crate::{Aligned, Medium};

impl<M: Medium> Disk<M> {
    /// Writes the state of the log, so that recovery starts here.
    pub fn checkpoint(&mut self, clean: bool) -> Result<(), LogError> {
        // During an upgrade, the checkpoint of version 2 locates the log until the superblock has version 3.
        let upgraded = self.geometry().upgraded().filter(|_| self.fresh);
        let first = self.fresh;
        let checkpoint = self.begin_checkpoint(clean)?;
        // This sync is not reported as a flush; the checkpoint covers it.
        self.sync()?;
        if let Some(geometry) = upgraded {
            self.make_ring(geometry)?;
        }
        self.write_checkpoint(&checkpoint)?;
        self.sync()?;
        if first {
            self.mend_superblocks()?;
        }
        self.end_checkpoint(&checkpoint);
        Ok(())
    }

    /// Returns the current state of the log as a checkpoint, and hands the slots to which it refers to the medium.
    /// The caller flushes the medium before and after writing the checkpoint. Meanwhile the log accepts requests.
    pub fn begin_checkpoint(&mut self, clean: bool) -> Result<Checkpoint, LogError> {
        self.ensure_intact()?;
        if self.fresh {
            self.sync_recovered()?;
        }
        let mut again = true;
        let checkpoint = loop {
            match self.log.checkpoint(clean) {
                Ok(checkpoint) => break checkpoint,
                Err(Stall::Missing(page)) => load_pages(&self.medium, &mut self.log, vec![page])?,
                Err(Stall::NoSegment) if again && !self.fresh => {
                    again = false;
                    self.flush_for_room()?;
                }
                Err(Stall::NoSegment) => {
                    // Pages that are already in the log are recorded only by their slots.
                    self.run_jobs()?;
                    return Err(self.exhausted());
                }
            }
        };
        self.run_jobs()?;
        Ok(checkpoint)
    }

    /// Writes a checkpoint; the medium must have been flushed since [`Disk::begin_checkpoint`]. Returns
    /// `false` if a later checkpoint was made meanwhile.
    pub fn write_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<bool, LogError> {
        self.ensure_intact()?;
        if self.log.is_past(checkpoint) {
            return Ok(false);
        }
        self.log.durable(checkpoint.next_seq - 1);
        let range = self.geometry().checkpoint((checkpoint.generation % 2) as usize);
        let bytes = checkpoint.write(self.log.superblock().salt);
        self.put(range.start, Aligned::copy_of(&bytes), "writing a checkpoint")?;
        Ok(true)
    }

    /// Marks a checkpoint as durable.
    pub fn end_checkpoint(&mut self, checkpoint: &Checkpoint) {
        if !self.log.is_past(checkpoint) {
            self.log.checkpointed(checkpoint);
            self.fresh = false;
            self.shrink();
        }
    }
}
