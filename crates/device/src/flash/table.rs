//! The tables of a page-mapped FTL: logical to physical, physical to logical, and what is valid.
//!
//! Four bytes per map unit each way and one bit. Leaves out blocks, time and cost.

use super::prefetch::prefetch;

/// An entry that maps to nothing.
pub(super) const UNMAPPED: u32 = u32::MAX;

#[derive(Debug, Clone)]
pub(super) struct Table {
    physical_of: Vec<u32>,
    logical_of: Vec<u32>,
    valid: Vec<u64>,
}

impl Table {
    pub(super) fn new(logical_units: u32, physical_units: u32) -> Self {
        Table {
            physical_of: vec![UNMAPPED; logical_units as usize],
            logical_of: vec![UNMAPPED; physical_units as usize],
            valid: vec![0; physical_units.div_ceil(64) as usize],
        }
    }

    /// Where a logical unit is, or [`UNMAPPED`].
    #[inline]
    pub(super) fn physical(&self, logical: u32) -> u32 {
        self.physical_of[logical as usize]
    }

    /// What a physical unit holds.
    #[inline]
    pub(super) fn logical(&self, physical: u32) -> u32 {
        self.logical_of[physical as usize]
    }

    /// Maps a logical unit to a new physical one; where it was before, or [`UNMAPPED`].
    #[inline]
    pub(super) fn map(&mut self, logical: u32, physical: u32) -> u32 {
        let old = std::mem::replace(&mut self.physical_of[logical as usize], physical);
        self.logical_of[physical as usize] = logical;
        self.valid[(physical >> 6) as usize] |= 1 << (physical & 63);
        if old != UNMAPPED {
            self.invalidate(old);
        }
        old
    }

    /// Unmaps a logical unit; where it was.
    #[inline]
    pub(super) fn unmap(&mut self, logical: u32) -> u32 {
        let old = std::mem::replace(&mut self.physical_of[logical as usize], UNMAPPED);
        if old != UNMAPPED {
            self.invalidate(old);
        }
        old
    }

    #[inline]
    fn invalidate(&mut self, physical: u32) {
        self.valid[(physical >> 6) as usize] &= !(1 << (physical & 63));
    }

    /// The valid physical units of the aligned 64 that hold `physical`, from it on: bit 0 is the first of the 64.
    #[inline]
    pub(super) fn valid_from(&self, physical: u32) -> u64 {
        self.valid[(physical >> 6) as usize] & (u64::MAX << (physical & 63))
    }

    /// Asks for the entry of a logical unit.
    #[inline]
    pub(super) fn prefetch(&self, logical: u64) {
        prefetch(&self.physical_of, logical as usize);
    }

    /// Where a logical unit is, or [`UNMAPPED`], also where there is no such unit.
    #[inline]
    pub(super) fn physical_or_unmapped(&self, logical: u64) -> u32 {
        self.physical_of.get(logical as usize).copied().unwrap_or(UNMAPPED)
    }

    /// Takes up to `out.len()` of the valid units from `*cursor`, a multiple of 64, to `end`: they are no longer valid.
    /// How many there were; `*cursor` is where to go on, so it stays at 64 units of which some may be left.
    #[inline]
    pub(super) fn take_valid(&mut self, cursor: &mut u32, end: u32, out: &mut [u32]) -> usize {
        let mut taken = 0;
        while taken < out.len() && *cursor < end {
            let valid = &mut self.valid[(*cursor >> 6) as usize];
            if *valid == 0 {
                *cursor += 64;
                continue;
            }
            while *valid != 0 && taken < out.len() {
                out[taken] = *cursor + valid.trailing_zeros();
                *valid &= *valid - 1;
                taken += 1;
            }
        }
        taken
    }

    /// Maps what the units `from`, which [`Table::take_valid`] took, hold to the units from `to` on, of one page.
    #[inline]
    pub(super) fn map_moved(&mut self, from: &[u32], to: u32) {
        for (at, &from) in (to..).zip(from) {
            let logical = self.logical_of[from as usize];
            self.physical_of[logical as usize] = at;
            self.logical_of[at as usize] = logical;
            self.valid[(at >> 6) as usize] |= 1 << (at & 63);
        }
    }

    /// Asks for the entries of what the next valid units hold, from `from`, a multiple of 64, to `to`: `most` of them.
    #[inline]
    pub(super) fn prefetch_held(&self, from: u32, to: u32, most: u32) {
        let mut left = most;
        for first in (from..to).step_by(64) {
            let mut bits = self.valid_from(first);
            while bits != 0 {
                if left == 0 {
                    return;
                }
                left -= 1;
                let held = self.logical_of[(first + bits.trailing_zeros()) as usize];
                prefetch(&self.physical_of, held as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Asks for the reverse entries of a block that is about to be written or cleaned.
    #[inline]
    pub(super) fn prefetch_block(&self, from: u32, units: u32) {
        let line = 16;
        (from..from + units).step_by(line).for_each(|at| prefetch(&self.logical_of, at as usize));
    }

    /// Where each logical unit is: all that must be kept of the tables.
    pub(super) fn physical_of(&self) -> &[u32] {
        &self.physical_of
    }

    /// The same to be written; [`Table::rebuild`] must follow.
    pub(super) fn physical_of_mut(&mut self) -> &mut [u32] {
        &mut self.physical_of
    }

    /// Derives the rest from where each logical unit is; whether each home is there, and of one unit only.
    pub(super) fn rebuild(&mut self) -> bool {
        self.logical_of.fill(UNMAPPED);
        self.valid.fill(0);
        for (logical, &physical) in self.physical_of.iter().enumerate() {
            if physical == UNMAPPED {
                continue;
            }
            match self.logical_of.get_mut(physical as usize) {
                Some(held) if *held == UNMAPPED => *held = logical as u32,
                _ => return false,
            }
            self.valid[(physical >> 6) as usize] |= 1 << (physical & 63);
        }
        true
    }

    /// Unmaps everything.
    pub(super) fn clear(&mut self) {
        self.physical_of.fill(UNMAPPED);
        self.logical_of.fill(UNMAPPED);
        self.valid.fill(0);
    }
}
