//! The ceiling of the simulator: the same drive and load as in [`super::simulate`], reduced to the map.
//!
//! Uniform overwrites of one unit, greedy cleaning, one block open for the host and one for what is cleaned. Not here:
//! all that the simulator adds: time, dies and channels, the write buffer, the pace of cleaning, requests in flight,
//! latencies and intervals. What is left is what waits for memory, so the ratio of the two rates means the same on any
//! machine.

use lowtide_core::rng::{Rng, below};

/// Entries that are loaded together before they are used.
const AHEAD: usize = 64;
/// Erased blocks below which a block is cleaned.
const SPARE: usize = 8;
const UNMAPPED: u32 = u32::MAX;
/// In the count of a block that is erased, open or being cleaned.
const NOT_FULL: u32 = 1 << 31;

/// A block that units are written to, one after the other.
struct Open {
    block: u32,
    written: u32,
}

/// The map of a drive, and what is valid in its blocks.
pub(super) struct Mapping {
    block_units: u32,
    physical_of: Vec<u32>,
    logical_of: Vec<u32>,
    valid: Vec<u64>,
    counts: Vec<u32>,
    /// Full blocks by count, of counts below `listed`; an entry whose block has another count is void.
    lists: Vec<Vec<u32>>,
    listed: u32,
    lowest: u32,
    free: Vec<u32>,
    host: Open,
    cleaned: Open,
    /// Units that cleaning has moved.
    pub(super) moved: u64,
}

impl Mapping {
    /// A drive of `blocks` blocks, each of `block_units` units, a multiple of 64, of which the host uses `logical_units`,
    /// all of them written once.
    pub(super) fn filled(blocks: u32, block_units: u32, logical_units: u32) -> Self {
        let units = (blocks * block_units) as usize;
        let mut free: Vec<u32> = (0..blocks).rev().collect();
        let mut open = || Open { block: free.pop().expect("a drive has blocks"), written: 0 };
        let (host, cleaned) = (open(), open());
        let mut mapping = Mapping {
            block_units,
            physical_of: vec![UNMAPPED; logical_units as usize],
            logical_of: vec![UNMAPPED; units],
            valid: vec![0; units / 64],
            counts: vec![NOT_FULL; blocks as usize],
            lists: vec![Vec::new(); block_units as usize + 1],
            listed: 0,
            lowest: 0,
            free,
            host,
            cleaned,
            moved: 0,
        };
        (0..logical_units).for_each(|logical| mapping.write(logical));
        mapping
    }

    /// Overwrites about `units` units at random, whole batches of them; how many.
    pub(super) fn overwrite(&mut self, units: u64, rng: &mut Rng) -> u64 {
        let mut logical = [0; AHEAD];
        let batches = units.div_ceil(AHEAD as u64);
        for _ in 0..batches {
            logical.fill_with(|| below(rng, self.physical_of.len() as u64) as u32);
            self.load(&logical);
            logical.iter().for_each(|&unit| self.write(unit));
        }
        batches * AHEAD as u64
    }

    /// Loads what writes will change into the processor's cache, so that the loads of one kind overlap.
    fn load(&self, logical: &[u32; AHEAD]) {
        let physical = logical.map(|unit| self.physical_of[unit as usize]);
        let sum = physical.iter().fold(0, |sum, &at| {
            sum ^ self.valid[(at >> 6) as usize] ^ u64::from(self.counts[(at / self.block_units) as usize])
        });
        std::hint::black_box(sum);
    }

    fn write(&mut self, logical: u32) {
        let old = self.physical_of[logical as usize];
        if old != UNMAPPED {
            self.valid[(old >> 6) as usize] &= !(1 << (old & 63));
            let block = old / self.block_units;
            let count = &mut self.counts[block as usize];
            *count -= 1;
            let count = *count;
            self.list(block, count);
        }
        if self.host.written == self.block_units {
            self.close(self.host.block);
            while self.free.len() < SPARE {
                self.clean();
            }
            self.host = Open { block: self.free.pop().expect("cleaning gave back blocks"), written: 0 };
        }
        let to = self.host.block * self.block_units + self.host.written;
        self.host.written += 1;
        self.counts[self.host.block as usize] += 1;
        self.put(logical, to);
    }

    fn put(&mut self, logical: u32, to: u32) {
        self.physical_of[logical as usize] = to;
        self.logical_of[to as usize] = logical;
        self.valid[(to >> 6) as usize] |= 1 << (to & 63);
    }

    /// Nothing more is written to a block.
    fn close(&mut self, block: u32) {
        self.counts[block as usize] &= !NOT_FULL;
        self.list(block, self.counts[block as usize]);
    }

    fn list(&mut self, block: u32, count: u32) {
        if count < self.listed {
            self.lists[count as usize].push(block);
            self.lowest = self.lowest.min(count);
        }
    }

    /// A block with the fewest valid units.
    fn victim(&mut self) -> u32 {
        loop {
            while self.lowest < self.listed {
                while let Some(block) = self.lists[self.lowest as usize].pop() {
                    if self.counts[block as usize] == self.lowest {
                        return block;
                    }
                }
                self.lowest += 1;
            }
            self.lists.iter_mut().for_each(Vec::clear);
            self.lowest = self.counts.iter().copied().min().expect("a drive has blocks");
            self.listed = self.lowest + 1 + self.block_units / 64;
            (0..self.counts.len() as u32).for_each(|block| self.list(block, self.counts[block as usize]));
        }
    }

    /// Moves what is valid in a block, and erases it.
    fn clean(&mut self) {
        let victim = self.victim();
        let mut live = Vec::with_capacity(self.block_units as usize);
        let first = victim * self.block_units;
        for at in (first..first + self.block_units).step_by(64) {
            let mut bits = std::mem::take(&mut self.valid[(at >> 6) as usize]);
            while bits != 0 {
                live.push(self.logical_of[(at + bits.trailing_zeros()) as usize]);
                bits &= bits - 1;
            }
        }
        std::hint::black_box(live.iter().fold(0, |sum, &unit| sum ^ self.physical_of[unit as usize]));
        for &logical in &live {
            if self.cleaned.written == self.block_units {
                self.close(self.cleaned.block);
                self.cleaned = Open { block: self.free.pop().expect("spare blocks are kept"), written: 0 };
            }
            let to = self.cleaned.block * self.block_units + self.cleaned.written;
            self.cleaned.written += 1;
            self.counts[self.cleaned.block as usize] += 1;
            self.put(logical, to);
        }
        self.moved += live.len() as u64;
        self.counts[victim as usize] = NOT_FULL;
        self.free.push(victim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;

    /// At ρ = 0.9 greedy cleaning of blocks of 256 units writes about five units for each of the host's; every unit is
    /// where the map says, and the counts are those of what is valid.
    #[test]
    fn it_writes_what_the_simulator_writes_and_keeps_its_books() {
        let (blocks, block_units) = (1 << 9, 256);
        let logical = (f64::from(blocks * block_units) * 0.9) as u32;
        let mut mapping = Mapping::filled(blocks, block_units, logical);
        let mut rng = Seed::new(1).stream();
        mapping.overwrite(u64::from(logical), &mut rng);
        let before = mapping.moved;
        let written = mapping.overwrite(2 * u64::from(logical), &mut rng);
        let amplification = 1.0 + (mapping.moved - before) as f64 / written as f64;
        // The spare blocks of so small a drive are a tenth of what it has in reserve.
        assert!((5.0..8.0).contains(&amplification), "{amplification}");
        for (logical, &at) in mapping.physical_of.iter().enumerate() {
            assert_eq!(mapping.logical_of[at as usize], logical as u32);
        }
        for (block, count) in mapping.counts.iter().enumerate() {
            let words = block_units as usize / 64;
            let valid = &mapping.valid[block * words..(block + 1) * words];
            assert_eq!(valid.iter().map(|bits| bits.count_ones()).sum::<u32>(), count & !NOT_FULL);
        }
    }
}
