//! Marks prove that what was flushed was there, should the medium spoil it later.
//!
//! A mark is written after its flush, and is durable before that flush is reported complete. Until the first
//! checkpoint after an opening, the log that a recovery finds ends where it ended before the opening, so
//! nothing new is marked. Leaves out the contents of a mark (`format`).

use super::{Disk, failed};
use crate::error::LogError;
use crate::format::{BLOCK, Geometry, Mark};
use crate::log::Job;
use crate::{Aligned, Medium};

impl<M: Medium> Disk<M> {
    /// The mark of what was sealed just now. Write it durably after the medium was flushed and before the
    /// flush is reported complete. `None` if there is nothing to mark.
    pub fn mark(&mut self) -> Option<Job> {
        if self.fresh {
            return None;
        }
        let mark = self.log.mark()?;
        self.job_of(&mark)
    }

    fn job_of(&self, mark: &Mark) -> Option<Job> {
        let superblock = self.log.superblock();
        let data = Aligned::copy_of(&mark.write(superblock.salt));
        superblock.geometry.mark(mark.number).map(|offset| Job { offset, data })
    }

    /// Makes a mark durable.
    pub(super) fn put_mark(&mut self, mark: Option<Job>) -> Result<(), LogError> {
        let Some(Job { offset, data }) = mark else { return Ok(()) };
        let written = self.medium.write_durably(offset, &data);
        written.map_err(failed("writing a mark")).inspect_err(|_| self.broken = true)
    }

    /// Marks what the opening found, which is durable now, unless a mark or checkpoint covers it already.
    pub(super) fn mark_what_was_found(&mut self) -> Result<(), LogError> {
        if self.recovery.marked || !self.geometry().marks {
            return Ok(());
        }
        let mark = self.log.mark_of_found();
        let job = self.job_of(&mark);
        self.put_mark(job)?;
        self.recovery.marked = true;
        Ok(())
    }

    /// Makes the ring of marks of a log of version 2, all of which is durable; its superblock still says that
    /// there is no ring.
    pub(super) fn make_ring(&mut self, geometry: Geometry) -> Result<(), LogError> {
        let ring = geometry.ring().expect("it has one now");
        self.put(ring.start, Aligned::zeroes((ring.end - ring.start) as usize), "making room for marks")?;
        self.log.upgrade(geometry);
        Ok(())
    }

    /// Writes the superblocks that are not as they should be, one after the other: spoiled ones, and those of
    /// an older version or size.
    pub(super) fn mend_superblocks(&mut self) -> Result<(), LogError> {
        let block = self.log.superblock().write();
        for at in [0, BLOCK as u64] {
            let mut found = Aligned::zeroes(BLOCK);
            let read = self.medium.read(at, &mut found);
            if read.is_err() || found[..] != block {
                self.put(at, Aligned::copy_of(&block), "writing the superblock")?;
                self.sync()?;
            }
        }
        Ok(())
    }
}
