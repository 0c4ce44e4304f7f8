//! Writing marks, which prove that slots were durable, in case the medium damages them later.
//!
//! A mark is written after its flush, and is durable before the flush is reported complete. No mark is written
//! between an opening and the first checkpoint after it, because recovery would still end at the same slot. The
//! contents of a mark are in module `format`.

use super::{Disk, failed};
use crate::error::LogError;
use crate::format::{BLOCK, Geometry, Mark};
use crate::log::Job;
use crate::{Aligned, Medium};

impl<M: Medium> Disk<M> {
    /// The mark for the last [`Disk::seal`]. The caller writes it durably after the medium was flushed and before the
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

    /// Writes a mark durably.
    pub(super) fn put_mark(&mut self, mark: Option<Job>) -> Result<(), LogError> {
        let Some(Job { offset, data }) = mark else { return Ok(()) };
        let written = self.medium.write_durably(offset, &data);
        written.map_err(failed("writing a mark")).inspect_err(|_| self.broken = true)
    }

    /// Marks the recovered slots, which are durable now, unless a mark or checkpoint covers them.
    pub(super) fn mark_recovered_slots(&mut self) -> Result<(), LogError> {
        if self.recovery.marked || !self.geometry().marks {
            return Ok(());
        }
        let mark = self.log.mark_recovered();
        let job = self.job_of(&mark);
        self.put_mark(job)?;
        self.recovery.marked = true;
        Ok(())
    }

    /// Makes the ring of marks of a log disk of version 2, whose superblock is updated later.
    pub(super) fn make_ring(&mut self, geometry: Geometry) -> Result<(), LogError> {
        let ring = geometry.ring().expect("an upgraded geometry has a ring");
        self.put(ring.start, Aligned::zeroes((ring.end - ring.start) as usize), "making room for marks")?;
        self.log.upgrade(geometry);
        Ok(())
    }

    /// Rewrites superblocks that are damaged or of an older version or size, one after the other.
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
