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

    /// The first valid physical unit in `from..to`.
    #[inline]
    pub(super) fn next_valid(&self, from: u32, to: u32) -> Option<u32> {
        let mut word = from >> 6;
        let mut bits = self.valid.get(word as usize)? & (u64::MAX << (from & 63));
        loop {
            if bits != 0 {
                let found = (word << 6) + bits.trailing_zeros();
                return (found < to).then_some(found);
            }
            word += 1;
            if word << 6 >= to {
                return None;
            }
            bits = self.valid[word as usize];
        }
    }

    /// Loads the entries of logical units into the processor's cache. The loads do not depend on each other,
    /// so their misses overlap.
    #[inline]
    pub(super) fn warm(&self, logical: impl Iterator<Item = u32>) {
        let sum = logical.fold(0u32, |sum, unit| sum ^ self.physical_of.get(unit as usize).copied().unwrap_or(0));
        std::hint::black_box(sum);
    }

    /// Unmaps everything.
    pub(super) fn clear(&mut self) {
        self.physical_of.fill(UNMAPPED);
        self.logical_of.fill(UNMAPPED);
        self.valid.fill(0);
    }
}
