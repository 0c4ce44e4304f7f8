//! The tables of a page-mapped FTL: logical to physical units, physical to logical units, and valid bits.
//!
//! A map unit takes four bytes in each direction, and one bit.

use super::prefetch::prefetch;

/// The entry of an unmapped unit.
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

    /// The physical unit of a logical unit, or [`UNMAPPED`].
    #[inline]
    pub(super) fn physical(&self, logical: u32) -> u32 {
        self.physical_of[logical as usize]
    }

    /// The logical unit in a physical unit.
    #[inline]
    pub(super) fn logical(&self, physical: u32) -> u32 {
        self.logical_of[physical as usize]
    }

    /// Maps a logical unit to a new physical unit. Returns the previous one, or [`UNMAPPED`].
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

    /// Unmaps a logical unit. Returns its physical unit.
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

    /// The valid bits of the aligned group of 64 physical units that contains `physical`, without the units before it. Bit 0
    /// is the first unit of the group.
    #[inline]
    pub(super) fn valid_from(&self, physical: u32) -> u64 {
        self.valid[(physical >> 6) as usize] & (u64::MAX << (physical & 63))
    }

    /// Prefetches the entry of a logical unit.
    #[inline]
    pub(super) fn prefetch(&self, logical: u64) {
        prefetch(&self.physical_of, logical as usize);
    }

    /// The physical unit of a logical unit; [`UNMAPPED`] if the unit is unmapped or does not exist.
    #[inline]
    pub(super) fn physical_or_unmapped(&self, logical: u64) -> u32 {
        self.physical_of.get(logical as usize).copied().unwrap_or(UNMAPPED)
    }

    /// Invalidates up to `out.len()` valid units from `*cursor`, a multiple of 64, to `end`, and stores them in `out`. Returns
    /// their number. `*cursor` becomes the start of the next call, and stays at a group of 64 units until all of it is taken.
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

    /// Maps the contents of the units `from`, taken by [`Table::take_valid`], to the units from `to` on, within one page.
    #[inline]
    pub(super) fn map_moved(&mut self, from: &[u32], to: u32) {
        for (at, &from) in (to..).zip(from) {
            let logical = self.logical_of[from as usize];
            self.physical_of[logical as usize] = at;
            self.logical_of[at as usize] = logical;
            self.valid[(at >> 6) as usize] |= 1 << (at & 63);
        }
    }

    /// Prefetches the map entries for the next `most` valid units between `from`, a multiple of 64, and `to`.
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

    /// Prefetches the reverse entries of a block that will be written or cleaned next.
    #[inline]
    pub(super) fn prefetch_block(&self, from: u32, units: u32) {
        let line = 16;
        (from..from + units).step_by(line).for_each(|at| prefetch(&self.logical_of, at as usize));
    }

    /// The physical unit of each logical unit. The other tables can be derived from it.
    pub(super) fn physical_of(&self) -> &[u32] {
        &self.physical_of
    }

    /// Like [`Table::physical_of`], to be changed. [`Table::rebuild`] must be called afterwards.
    pub(super) fn physical_of_mut(&mut self) -> &mut [u32] {
        &mut self.physical_of
    }

    /// Derives the other tables from the physical units. Returns whether all of those exist, each for one logical unit only.
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
