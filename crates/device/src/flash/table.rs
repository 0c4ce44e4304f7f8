//! The tables of a page-mapped FTL: logical to physical, physical to logical, and what is valid.
//!
//! Four bytes per map unit each way and one bit. Leaves out blocks, time and cost.

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

    /// Loads the entries of logical units, and the validity of where they are, into the processor's cache. The
    /// loads of one pass do not depend on each other, so their misses overlap. Gives where the units are.
    #[inline]
    pub(super) fn warm<const N: usize>(&self, logical: &[u32; N]) -> [u32; N] {
        let physical = logical.map(|unit| self.physical_of.get(unit as usize).copied().unwrap_or(UNMAPPED));
        let sum =
            physical.iter().fold(0, |sum, at| sum ^ self.valid.get((at >> 6) as usize).copied().unwrap_or(0));
        std::hint::black_box(sum);
        physical
    }

    /// Loads the entries of what a range of physical units holds into the processor's cache.
    #[inline]
    pub(super) fn warm_held(&self, from: u32, to: u32) {
        let mut sum = 0;
        for first in (from..to).step_by(64) {
            let mut bits = self.valid_from(first);
            while bits != 0 {
                let held = self.logical_of[(first + bits.trailing_zeros()) as usize];
                sum ^= self.physical_of[held as usize];
                bits &= bits - 1;
            }
        }
        std::hint::black_box(sum);
    }

    /// Loads the reverse entries of a block about to be written into the processor's cache.
    #[inline]
    pub(super) fn warm_block(&self, from: u32, units: u32) {
        let line = 16;
        let entries = &self.logical_of[from as usize..(from + units) as usize];
        std::hint::black_box(entries.iter().step_by(line).fold(0, |sum, held| sum ^ held));
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
