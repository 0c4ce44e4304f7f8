//! The SLC cache: blocks that are first written with one bit per cell, and later folded into dense blocks.
//!
//! Blocks and pages in the cache have 1/bits of the dense capacity, because a program operation still writes one word line
//! of each plane. The static part of the cache consists of blocks that the other parts of the drive do not count as erased.
//! The dynamic part uses the other erased blocks, as long as there are more of them than cleaning keeps erased. The oldest
//! block is folded first: its valid units move to the collector's frontier.
//!
//! # Not modelled
//! Lower wear with one bit per cell (an erase counts the same), folding within a die without its channel, and reads that
//! keep a block in the cache.

use super::SimulatedSsd;
use super::divisor::Divisor;
use super::frontier::{Frontier, Placed};
use super::spec::{SlcCache, WhenFull};
use super::{Geometry, device::NOT_A_BLOCK};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Slc {
    pub(super) frontier: Frontier,
    /// Full blocks, oldest first.
    pub(super) full: VecDeque<u32>,
    /// For each block, true if it is in the cache: open, full or being folded.
    holds: Vec<bool>,
    /// The number of blocks in the cache.
    in_use: u32,
    static_blocks: u32,
    dynamic: f64,
    when_full: WhenFull,
    fold_after_ns: Option<u64>,
    /// Erased blocks that the dynamic part must not use.
    keep: u32,
    page_units: u32,
    read_ns: u64,
    program_ns: u64,
    /// The first of its slots among those of the collector, their number, and the next one in turn.
    first_slot: usize,
    slots: usize,
    turn: usize,
    pub(super) folded_units: u64,
}

impl Slc {
    pub(super) fn new(geometry: &Geometry, spec: &SlcCache) -> Self {
        let (page, block) = (geometry.slc_page_units, geometry.slc_block_units);
        Slc {
            frontier: Frontier::new(geometry.slc_lanes, geometry.dies, page, geometry.block_units, block),
            full: VecDeque::new(),
            holds: vec![false; geometry.blocks as usize],
            in_use: 0,
            static_blocks: geometry.slc_static_blocks,
            dynamic: spec.dynamic,
            when_full: spec.when_full,
            fold_after_ns: spec.fold_after.map(|after| after.get()),
            keep: geometry.high_blocks.max(geometry.start_blocks) + geometry.host_lanes,
            page_units: page,
            read_ns: spec.read.get(),
            program_ns: spec.program.get(),
            first_slot: geometry.gc_slots as usize,
            slots: geometry.fold_slots as usize,
            turn: 0,
            folded_units: 0,
        }
    }

    #[inline]
    pub(super) fn holds(&self, block: u32) -> bool {
        self.holds[block as usize]
    }
    /// Erased blocks that only the cache may use.
    pub(super) fn reserved(&self) -> u32 {
        self.static_blocks.saturating_sub(self.in_use)
    }
    pub(super) fn read_ns(&self) -> u64 {
        self.read_ns
    }
    pub(super) fn page_units(&self) -> u32 {
        self.page_units
    }
    fn dynamic_blocks(&self) -> u32 {
        self.in_use.saturating_sub(self.static_blocks)
    }

    /// Returns whether the cache may use one more erased block; `free` is their number without those of the static part.
    fn may_grow(&self, free: u32) -> bool {
        if self.in_use < self.static_blocks {
            return true;
        }
        let taken = self.dynamic_blocks();
        free > self.keep && f64::from(taken + 1) <= self.dynamic * f64::from(free + taken)
    }

    /// Removes a folded and erased block from the cache.
    fn release(&mut self, block: u32) {
        self.holds[block as usize] = false;
        self.in_use -= 1;
    }

    pub(super) fn clear(&mut self) {
        self.frontier.clear();
        self.full.clear();
        self.holds.fill(false);
        self.in_use = 0;
    }
}

impl SimulatedSsd {
    /// Erased blocks that are not set aside for the SLC cache.
    #[inline]
    pub(super) fn free_blocks(&self) -> u32 {
        let free = self.blocks.free_count();
        self.slc.as_ref().map_or(free, |slc| free.saturating_sub(slc.reserved()))
    }

    /// Places the next unit of the host in the SLC cache; `None` if it goes to a dense block.
    #[inline(never)]
    pub(super) fn place_in_cache(&mut self) -> Option<Placed> {
        let slc = self.slc.as_mut()?;
        if self.host.in_page() {
            return None;
        }
        if !slc.frontier.needs_block() {
            return Some(slc.frontier.place());
        }
        if !self.make_room_in_cache() {
            return None;
        }
        let slc = self.slc.as_mut()?;
        let block = slc.frontier.open(&mut self.blocks)?;
        slc.holds[block as usize] = true;
        slc.in_use += 1;
        self.table.prefetch_block(block * self.geometry.block_units, self.geometry.slc_block_units);
        let placed = self.slc.as_mut()?.frontier.place();
        self.observe_pool();
        Some(placed)
    }

    /// Makes room for an open block in the cache, by folding if the description says so. Returns whether there is room.
    fn make_room_in_cache(&mut self) -> bool {
        loop {
            // The blocks below the collector's floor are reserved for the collector.
            if self.blocks.free_count() <= self.geometry.floor_blocks {
                return false;
            }
            let free = self.free_blocks();
            let Some(slc) = &self.slc else { return false };
            if slc.may_grow(free) {
                return true;
            }
            // Folding a block without valid units only erases it.
            let empty = slc.full.front().is_some_and(|&block| self.blocks.count(block) == 0);
            let fold = slc.when_full == WhenFull::Fold || empty;
            if !fold || !self.fold_on(self.controller_busy_ns) {
                return false;
            }
        }
    }

    /// Folds a few units if the dense blocks have room. Returns whether there was something to fold.
    fn fold_on(&mut self, now_ns: u64) -> bool {
        while self.free_blocks() <= self.geometry.floor_blocks
            && !self.cache_must_shrink()
            && self.clean_step(now_ns).is_some()
        {}
        let folded = |drive: &Self| drive.slc.as_ref().map_or(0, |slc| slc.folded_units);
        let before = folded(self);
        let some = self.fold_step(now_ns).is_some();
        // Folded units occupy dense blocks like units written there by the host, so the next page of the host pays for them.
        self.collector.charge((folded(self) - before) as u32);
        some
    }

    /// Returns whether the cache occupies blocks that other parts of the drive need.
    #[inline]
    pub(super) fn cache_must_shrink(&self) -> bool {
        self.slc.as_ref().is_some_and(|slc| slc.dynamic_blocks() > 0 && self.has_to_fold(slc))
    }

    fn has_to_fold(&self, slc: &Slc) -> bool {
        let slots = &self.collector.slots[slc.first_slot..slc.first_slot + slc.slots];
        !slc.full.is_empty() || slots.iter().any(|slot| slot.victim.is_some())
    }

    /// Moves a few units out of the oldest blocks of the cache. Returns the units reclaimed, like
    /// [`SimulatedSsd::move_some`], or `None` if there is nothing to fold.
    #[inline(never)]
    pub(super) fn fold_step(&mut self, now_ns: u64) -> Option<i64> {
        let slc = self.slc.as_mut()?;
        let slots = &mut self.collector.slots[slc.first_slot..slc.first_slot + slc.slots];
        // The next slot in turn that has a block, or can get one.
        let turns = (0..slc.slots).map(|n| (slc.turn + n) % slc.slots);
        let turn = turns.into_iter().find(|&n| slots[n].victim.is_some() || !slc.full.is_empty())?;
        slc.turn = (turn + 1) % slc.slots;
        let slot = &mut slots[turn];
        if slot.victim.is_none() {
            let block = slc.full.pop_front()?;
            slot.begin(block, self.blocks.count(block), self.geometry.block_units);
            slot.end = slot.cursor + self.geometry.slc_block_units;
        }
        let block = slot.victim.unwrap_or(NOT_A_BLOCK);
        let index = slc.first_slot + turn;
        let (page, read_ns) = (Divisor::new(slc.page_units), slc.read_ns);
        let (moved, credit) = self.move_some(index, now_ns, page, read_ns);
        let slc = self.slc.as_mut()?;
        slc.folded_units += u64::from(moved);
        if self.collector.slots[index].victim.is_none() {
            slc.release(block);
            self.observe_pool();
        }
        Some(credit)
    }

    /// Programs a page of the cache. Returns the instant at which it is durable.
    #[inline(never)]
    pub(super) fn program_cache_page(
        &mut self,
        block: u32,
        block_full: bool,
        now_ns: u64,
        earliest_ns: u64,
    ) -> u64 {
        let die = self.blocks.die_of(block);
        let slc = self.slc.as_mut().expect("a page of the cache is programmed only where there is one");
        if block_full {
            slc.full.push_back(block);
        }
        self.nand.program_for(die, now_ns, earliest_ns, slc.page_units, slc.program_ns)
    }

    /// Folds the cache between two instants.
    #[inline(never)]
    pub(super) fn fold_while_idle(&mut self, from_ns: u64, until_ns: u64) {
        let Some(slc) = &self.slc else { return };
        let Some(after_ns) = slc.fold_after_ns else { return };
        let begin_ns = from_ns + after_ns;
        let fold = slc.first_slot..slc.first_slot + slc.slots;
        loop {
            let busy = self.collector.slots[fold.clone()].iter().map(|slot| slot.busy_ns);
            let free_at_ns = busy.min().unwrap_or(0);
            if free_at_ns.max(begin_ns).max(self.controller_busy_ns) >= until_ns {
                return;
            }
            if !self.fold_on(begin_ns) {
                return;
            }
        }
    }
}
