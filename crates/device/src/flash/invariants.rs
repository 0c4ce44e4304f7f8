//! Invariants of a drive between two requests, checked by tests only.
//!
//! Every block is in exactly one state, every mapped unit has exactly one valid physical unit, and every count equals
//! the number of valid units. Times are not checked.

use super::SimulatedSsd;
use super::table::UNMAPPED;
use lowtide_core::Bytes;

impl SimulatedSsd {
    /// Checks the tables against each other.
    ///
    /// # Panics
    /// If they disagree, which is a bug of the model.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.check_map();
        self.check_places();
        match &self.logs {
            None => self.selector.check(&self.blocks),
            Some(_) => self.check_nothing_to_clean(),
        }
    }

    /// Returns whether the unit of a byte is mapped.
    #[doc(hidden)]
    pub fn is_mapped(&self, offset: Bytes) -> bool {
        self.table.physical((offset.get() / self.geometry.unit_bytes) as u32) != UNMAPPED
    }

    /// The map is one to one; valid bits are set for mapped units only; counts equal the number of valid bits.
    fn check_map(&self) {
        let units = self.geometry.block_units;
        let mut counts = vec![0; self.geometry.blocks as usize];
        let mut mapped = 0u64;
        for logical in 0..self.geometry.logical_units {
            let physical = self.table.physical(logical);
            if physical != UNMAPPED {
                mapped += 1;
                counts[(physical / units) as usize] += 1;
                assert_eq!(
                    self.table.logical(physical),
                    logical,
                    "unit {logical} and its home {physical} agree"
                );
                assert_eq!(
                    self.table.valid_from(physical) >> (physical & 63) & 1,
                    1,
                    "the home of {logical} is valid"
                );
            }
        }
        let physical_units = self.geometry.blocks * units;
        let valid: u64 =
            (0..physical_units).step_by(64).map(|at| u64::from(self.table.valid_from(at).count_ones())).sum();
        assert_eq!(valid, mapped, "valid units are the mapped ones");
        for (block, &count) in counts.iter().enumerate() {
            assert_eq!(self.blocks.count(block as u32), count, "block {block} counts its valid units");
        }
    }

    /// With log units, every full block has valid units, and enough blocks are always erased.
    fn check_nothing_to_clean(&self) {
        for &block in self.blocks.full() {
            assert_ne!(self.blocks.count(block), 0, "full block {block} holds something");
        }
        assert!(self.free_blocks() > self.geometry.high_blocks, "{} blocks are erased", self.free_blocks());
        assert!(self.collector.slots.iter().all(|slot| slot.victim.is_none()), "nothing is cleaned");
    }

    /// Each block is in exactly one state: erased, open, being cleaned or full.
    fn check_places(&self) {
        let mut places = vec![0u32; self.geometry.blocks as usize];
        let mut put = |block: u32| places[block as usize] += 1;
        self.blocks.free().for_each(&mut put);
        self.host.open_blocks().for_each(&mut put);
        self.cleaned.open_blocks().for_each(&mut put);
        if let Some(logs) = &self.logs {
            logs.open_blocks().for_each(&mut put);
        }
        if let Some(slc) = &self.slc {
            slc.frontier.open_blocks().chain(slc.full.iter().copied()).for_each(&mut put);
        }
        self.collector.slots.iter().filter_map(|slot| slot.victim).for_each(&mut put);
        self.blocks.full().iter().copied().for_each(&mut put);
        assert!(places.iter().all(|&times| times == 1), "each block is in one place: {places:?}");
        assert_eq!(
            self.blocks.free().count(),
            self.blocks.free_count() as usize,
            "erased blocks are counted"
        );
        for block in self.blocks.free() {
            assert_eq!(self.blocks.count(block), 0, "erased block {block} holds nothing");
        }
        let full = self.blocks.full();
        for block in 0..self.geometry.blocks {
            assert_eq!(
                self.blocks.is_full(block),
                full.contains(&block),
                "block {block} knows whether it is full"
            );
        }
        let erases: u64 = self.blocks.erases().iter().map(|&erases| u64::from(erases)).sum();
        assert_eq!(erases, self.blocks.total_erases(), "erasures of blocks add up");
    }
}
