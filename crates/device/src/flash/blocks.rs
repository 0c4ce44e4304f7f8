//! The block table: valid counts, erase counts, and which blocks are erased, open or full.
//!
//! Leaves out which full block to clean (`victim`) and time.

use super::Geometry;
use super::divisor::Divisor;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Set in a block's count while it is not full: such a block is never a victim.
pub(super) const NOT_FULL: u32 = 1 << 31;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Blocks {
    /// Valid units, with [`NOT_FULL`].
    counts: Vec<u32>,
    erases: Vec<u32>,
    /// When the block was filled: the number of blocks filled before it.
    filled_at: Vec<u64>,
    fills: u64,
    /// Full blocks in no order, and where each stands in the list.
    full: Vec<u32>,
    position: Vec<u32>,
    /// Erased blocks by die, least recently erased first, with the instant each is ready.
    free: Vec<VecDeque<(u32, u64)>>,
    free_count: u32,
    total_erases: u64,
    dies: Divisor,
}

impl Blocks {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let count = geometry.blocks as usize;
        let mut blocks = Blocks {
            counts: vec![NOT_FULL; count],
            erases: vec![0; count],
            filled_at: vec![0; count],
            fills: 0,
            full: Vec::with_capacity(count),
            position: vec![0; count],
            free: vec![VecDeque::new(); geometry.dies as usize],
            free_count: 0,
            total_erases: 0,
            dies: Divisor::new(geometry.dies),
        };
        (0..geometry.blocks).for_each(|block| blocks.put_free(block, 0));
        blocks
    }

    #[inline]
    pub(super) fn die_of(&self, block: u32) -> u32 {
        self.dies.remainder(block)
    }
    #[inline]
    pub(super) fn free_count(&self) -> u32 {
        self.free_count
    }
    #[inline]
    pub(super) fn count(&self, block: u32) -> u32 {
        self.counts[block as usize] & !NOT_FULL
    }
    pub(super) fn total_erases(&self) -> u64 {
        self.total_erases
    }
    pub(super) fn erases(&self) -> &[u32] {
        &self.erases
    }
    /// Whether a block is neither erased, open nor being cleaned.
    pub(super) fn is_full(&self, block: u32) -> bool {
        self.counts[block as usize] & NOT_FULL == 0
    }
    /// Whether a block is full and has this count.
    #[inline]
    pub(super) fn is_full_with(&self, block: u32, count: u32) -> bool {
        self.counts[block as usize] == count
    }
    /// The erased blocks.
    pub(super) fn free(&self) -> impl Iterator<Item = u32> {
        self.free.iter().flatten().map(|&(block, _)| block)
    }
    pub(super) fn full(&self) -> &[u32] {
        &self.full
    }
    pub(super) fn filled_at(&self, block: u32) -> u64 {
        self.filled_at[block as usize]
    }
    pub(super) fn fills(&self) -> u64 {
        self.fills
    }
    pub(super) fn len(&self) -> u32 {
        self.counts.len() as u32
    }

    /// One more valid unit in an open block.
    #[inline]
    pub(super) fn add(&mut self, block: u32) {
        self.counts[block as usize] += 1;
    }
    /// So many units of a block that is being cleaned are now in an open one.
    #[inline]
    pub(super) fn moved(&mut self, from: u32, to: u32, units: u32) {
        self.counts[from as usize] -= units;
        self.counts[to as usize] += units;
    }
    /// One valid unit fewer; the count with [`NOT_FULL`] where that applies.
    #[inline]
    pub(super) fn remove(&mut self, block: u32) -> u32 {
        let count = &mut self.counts[block as usize];
        *count -= 1;
        *count
    }

    /// An erased block, of `die` if there is one, else of the die with the fewest of the open blocks that `open_on`
    /// counts (of those, the one with most erased blocks); `None` where none is left.
    pub(super) fn take_free(&mut self, die: u32, open_on: &[u32]) -> Option<(u32, u64)> {
        let die = if self.free[die as usize].is_empty() {
            let dies = self.free.iter().zip(open_on).enumerate();
            let has_some = dies.filter(|(_, (free, _))| !free.is_empty());
            has_some.min_by_key(|(_, (free, open))| (**open, usize::MAX - free.len()))?.0
        } else {
            die as usize
        };
        self.free_count -= 1;
        self.free[die].pop_front()
    }

    fn put_free(&mut self, block: u32, ready_at_ns: u64) {
        let die = self.die_of(block);
        self.free[die as usize].push_back((block, ready_at_ns));
        self.free_count += 1;
    }

    /// An open block was written to its end.
    pub(super) fn fill(&mut self, block: u32) {
        self.counts[block as usize] &= !NOT_FULL;
        self.filled_at[block as usize] = self.fills;
        self.fills += 1;
        self.position[block as usize] = self.full.len() as u32;
        self.full.push(block);
    }

    /// A full block is taken for cleaning.
    pub(super) fn take_full(&mut self, block: u32) {
        let position = self.position[block as usize];
        self.full.swap_remove(position as usize);
        if let Some(&moved) = self.full.get(position as usize) {
            self.position[moved as usize] = position;
        }
        self.counts[block as usize] |= NOT_FULL;
    }

    /// A cleaned block was erased and can be written from `ready_at_ns`.
    pub(super) fn erased(&mut self, block: u32, ready_at_ns: u64) {
        debug_assert_eq!(self.count(block), 0, "a block is erased only when nothing valid is left in it");
        self.erases[block as usize] += 1;
        self.total_erases += 1;
        self.put_free(block, ready_at_ns);
    }

    /// Erases every block that is not erased; wear stays.
    pub(super) fn erase_all(&mut self) {
        let mut is_free = vec![false; self.counts.len()];
        self.free.iter().flatten().for_each(|&(block, _)| is_free[block as usize] = true);
        self.free.iter_mut().for_each(VecDeque::clear);
        self.full.clear();
        self.free_count = 0;
        self.counts.fill(NOT_FULL);
        let mut order: Vec<u32> = (0..self.len()).collect();
        for &block in order.iter().filter(|&&block| !is_free[block as usize]) {
            self.erases[block as usize] += 1;
            self.total_erases += 1;
        }
        // The least worn go first, or drives that are erased often would wear out at their beginning.
        order.sort_by_key(|&block| self.erases[block as usize]);
        order.into_iter().for_each(|block| self.put_free(block, 0));
    }

    /// Erasures end at a power cut.
    pub(super) fn interrupt(&mut self, now_ns: u64) {
        self.free.iter_mut().flatten().for_each(|(_, ready_at_ns)| *ready_at_ns = (*ready_at_ns).min(now_ns));
    }
}
