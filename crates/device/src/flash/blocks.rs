//! The block table: valid units, erase counts, and the state of each block (erased, open, being cleaned, full).
//!
//! `victim` selects the block to clean.

use super::Geometry;
use super::divisor::Divisor;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A bit set in the count of a block that is not full, so that the block is never a victim.
pub(super) const NOT_FULL: u32 = 1 << 31;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Blocks {
    /// Valid units of each block, with [`NOT_FULL`].
    counts: Vec<u32>,
    erases: Vec<u32>,
    /// The age of each block: the number of blocks filled before it.
    filled_at: Vec<u64>,
    fills: u64,
    /// Full blocks in no particular order, and the position of each in the list.
    full: Vec<u32>,
    position: Vec<u32>,
    /// Erased blocks of each die with the instant at which each is ready, least recently erased first.
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
    /// Returns whether a block is full: neither erased, nor open, nor being cleaned.
    pub(super) fn is_full(&self, block: u32) -> bool {
        self.counts[block as usize] & NOT_FULL == 0
    }
    /// Returns whether a block is full and has this many valid units.
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

    /// Adds a valid unit to an open block.
    #[inline]
    pub(super) fn add(&mut self, block: u32) {
        self.counts[block as usize] += 1;
    }
    /// Moves the count of some units from a block being cleaned to an open block.
    #[inline]
    pub(super) fn moved(&mut self, from: u32, to: u32, units: u32) {
        self.counts[from as usize] -= units;
        self.counts[to as usize] += units;
    }
    /// Removes a valid unit. Returns the new count, with [`NOT_FULL`] if the block is not full.
    #[inline]
    pub(super) fn remove(&mut self, block: u32) -> u32 {
        let count = &mut self.counts[block as usize];
        *count -= 1;
        *count
    }

    /// Takes an erased block: from `die` if possible, else from the die with the fewest open blocks in `open_on`. Among
    /// several such dies, the one with the most erased blocks is used. `None` if no block is erased.
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

    /// Marks an open block as full.
    pub(super) fn fill(&mut self, block: u32) {
        self.counts[block as usize] &= !NOT_FULL;
        self.filled_at[block as usize] = self.fills;
        self.fills += 1;
        self.position[block as usize] = self.full.len() as u32;
        self.full.push(block);
    }

    /// Removes a full block from the list, to be cleaned.
    pub(super) fn take_full(&mut self, block: u32) {
        let position = self.position[block as usize];
        self.full.swap_remove(position as usize);
        if let Some(&moved) = self.full.get(position as usize) {
            self.position[moved as usize] = position;
        }
        self.counts[block as usize] |= NOT_FULL;
    }

    /// Marks a cleaned block as erased, and writable from `ready_at_ns` on.
    pub(super) fn erased(&mut self, block: u32, ready_at_ns: u64) {
        debug_assert_eq!(self.count(block), 0, "a block is erased only when nothing valid is left in it");
        self.erases[block as usize] += 1;
        self.total_erases += 1;
        self.put_free(block, ready_at_ns);
    }

    /// Erases every block that is not erased. Erase counts are kept.
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
        // The least worn blocks are used first. Otherwise frequent secure erases would wear out the first blocks.
        order.sort_by_key(|&block| self.erases[block as usize]);
        order.into_iter().for_each(|block| self.put_free(block, 0));
    }

    /// Ends erasures in progress at a power cut.
    pub(super) fn interrupt(&mut self, now_ns: u64) {
        self.free.iter_mut().flatten().for_each(|(_, ready_at_ns)| *ready_at_ns = (*ready_at_ns).min(now_ns));
    }
}
