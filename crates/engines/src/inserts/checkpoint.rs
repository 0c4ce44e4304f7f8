//! The checkpoint: writes the pages that were dirty at its start. Neighbouring pages share a request, and the data
//! files take turns.
//!
//! # Not modelled
//!
//! The hash-table order in which a real buffer pool is scanned. Allocation pages.

use super::Checkpoint;

/// Dirty pages, and the checkpoint in progress.
#[derive(Debug)]
pub(super) struct Dirty {
    after: u64,
    memory: u64,
    gather: u64,
    outstanding: u32,
    /// Dirty bytes, including bytes being written.
    dirty: u64,
    /// For each file, the offset up to which writes have been submitted, and the offset at which this checkpoint
    /// ends.
    begun: Vec<u64>,
    until: Vec<u64>,
    left: u64,
    in_flight: u32,
    file: usize,
}

/// A write of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DataWrite {
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl Dirty {
    pub(super) fn new(checkpoint: &Checkpoint, files: u32) -> Self {
        Dirty {
            after: checkpoint.after.get(),
            memory: checkpoint.memory.get(),
            gather: checkpoint.gather.get(),
            outstanding: checkpoint.outstanding,
            dirty: 0,
            begun: vec![0; files as usize],
            until: vec![0; files as usize],
            left: 0,
            in_flight: 0,
            file: 0,
        }
    }

    #[inline]
    pub(super) fn add(&mut self, bytes: u64) {
        self.dirty += bytes;
    }

    /// Returns true if memory has no room for another dirty page.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.dirty >= self.memory
    }

    /// Returns the next write that can be submitted. `changed` is the end of the dirty data in each file.
    #[inline]
    pub(super) fn next_write(&mut self, changed: &[u64]) -> Option<DataWrite> {
        if self.in_flight == self.outstanding {
            return None;
        }
        if self.left == 0 {
            if self.in_flight > 0 || self.dirty < self.after {
                return None;
            }
            self.until.copy_from_slice(changed);
            self.left = self.until.iter().sum::<u64>() - self.begun.iter().sum::<u64>();
        }
        while self.begun[self.file] == self.until[self.file] {
            self.file = (self.file + 1) % self.begun.len();
        }
        let (file, offset) = (self.file, self.begun[self.file]);
        let length = (self.until[file] - offset).min(self.gather);
        self.begun[file] += length;
        self.left -= length;
        self.in_flight += 1;
        self.file = (file + 1) % self.begun.len();
        Some(DataWrite { file, offset, length })
    }

    #[inline]
    pub(super) fn complete(&mut self, bytes: u64) {
        self.in_flight -= 1;
        self.dirty -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Bytes;

    #[test]
    fn a_checkpoint_writes_the_pages_that_were_dirty_when_it_began() {
        let settings = Checkpoint {
            after: Bytes::new(300),
            memory: Bytes::new(1000),
            gather: Bytes::new(128),
            outstanding: 8,
        };
        let mut dirty = Dirty::new(&settings, 2);
        dirty.add(200);
        assert_eq!(dirty.next_write(&[200, 0]), None, "below the limit");
        dirty.add(100);
        let mut writes = vec![dirty.next_write(&[200, 100]).expect("it begins")];
        dirty.add(64);
        writes.extend(std::iter::from_fn(|| dirty.next_write(&[264, 100])));
        let expected = [(0, 0, 128), (1, 0, 100), (0, 128, 72)];
        assert_eq!(writes, expected.map(|(file, offset, length)| DataWrite { file, offset, length }));
    }
}
