//! A map-only loop as an upper bound on the simulator's speed, with the drive and load of [`super::simulate`].
//!
//! The loop runs uniform overwrites of one unit with greedy cleaning, one open block for the host and one for moved
//! units. Memory latency limits both the loop and the simulator, so the ratio of their speeds is similar on all
//! machines.
//!
//! # Not modelled
//!
//! Everything else in the simulator: time, dies and channels, the write buffer, the pace of cleaning, requests in
//! flight, latencies and intervals.

use lowtide_core::rng::{Rng, below};

/// Entries that are prefetched together.
const AHEAD: usize = 64;
/// Cleaning runs when there are fewer erased blocks than this.
const SPARE: usize = 8;
const UNMAPPED: u32 = u32::MAX;
/// Flag in the count of a block that is erased, open or being cleaned.
const NOT_FULL: u32 = 1 << 31;

/// A block with room for more units, written in sequence.
struct Open {
    block: u32,
    written: u32,
}

/// The map of a drive, with the valid units of each block.
pub(super) struct Mapping {
    block_units: u32,
    physical_of: Vec<u32>,
    logical_of: Vec<u32>,
    valid: Vec<u64>,
    counts: Vec<u32>,
    /// Full blocks by valid count, for counts below `listed`. Entries with an outdated count are skipped.
    lists: Vec<Vec<u32>>,
    listed: u32,
    lowest: u32,
    free: Vec<u32>,
    host: Open,
    cleaned: Open,
    /// Units moved by cleaning.
    pub(super) moved: u64,
}

impl Mapping {
    /// Creates a drive of `blocks` blocks with `block_units` units each, a multiple of 64. All `logical_units` units
    /// of the host are written once.
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

    /// Overwrites random units in whole batches, at least `units` of them. Returns the number written.
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

    /// Loads the entries that the next writes change, so that their cache misses overlap.
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

    /// Closes a full block.
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

    /// The block with the fewest valid units.
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

    /// Moves the valid units of the victim block, and erases it.
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

    /// At ρ = 0.9, greedy cleaning with 256 units per block has a write amplification of about five. Afterwards the
    /// map, its inverse and the counts must agree.
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
        // The upper limit allows for the erased blocks kept free: 8 of the 51 spare blocks of such a small drive.
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
