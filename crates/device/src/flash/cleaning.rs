//! Cleaning: moves units, erases blocks, and charges both to dies and controller.
//!
//! [`super::collector`] decides how much to clean, and [`super::victim`] which block. A unit counts as moved when it has
//! a place in the page being filled. Drives with log units do not clean; [`super::log_units`] erases their blocks.
//!
//! # Not modelled
//! A victim is erased without waiting until the page with its last units is programmed.

use super::SimulatedSsd;
use super::divisor::Divisor;

/// The most cleaning steps that one host page waits for. Further debt is left to the next page.
const MAX_STEPS_PER_PAGE: u32 = 64;

/// The most units moved at once.
const MOST_AT_ONCE: usize = 64;

impl SimulatedSsd {
    /// Opens a block for host data. Cleans first if only the collector's reserve is left.
    pub(super) fn open_for_host(&mut self) {
        while self.free_blocks() <= self.geometry.floor_blocks {
            let credit = self.reclaim_step(self.controller_busy_ns);
            let credit =
                credit.expect("a valid drive has blocks to clean whenever it runs out of erased ones");
            self.collector.pay(credit);
        }
        let block = self.host.open(&mut self.blocks).expect("the floor leaves a block for the host");
        self.table.prefetch_block(block * self.geometry.block_units, self.geometry.block_units);
        self.observe_pool();
    }

    /// Cleans as much as a host page in `block` must pay for.
    #[inline]
    pub(super) fn pay_for_page(&mut self, block: u32) {
        // A page in the SLC cache uses a dense block only when it is folded.
        let cached = self.slc.as_ref().is_some_and(|slc| slc.holds(block));
        let mut due = self.collector.charge(if cached { 0 } else { self.geometry.page_units });
        let mut steps = 0;
        while due && steps < MAX_STEPS_PER_PAGE {
            let Some(credit) = self.reclaim_step(self.controller_busy_ns) else { return };
            due = self.collector.pay(credit);
            steps += 1;
        }
    }

    /// Folds the SLC cache if its blocks are needed, because folding reclaims most of a block; otherwise cleans. Returns
    /// the units reclaimed, or `None` if there is nothing to do.
    #[inline]
    fn reclaim_step(&mut self, now_ns: u64) -> Option<i64> {
        if self.cache_must_shrink() { self.fold_step(now_ns) } else { self.clean_step(now_ns) }
    }

    /// Moves a few units of one victim. Returns the units reclaimed, or `None` if there is nothing to clean.
    pub(super) fn clean_step(&mut self, now_ns: u64) -> Option<i64> {
        let units_per_block = self.geometry.block_units;
        let index = self.collector.next_slot();
        if self.collector.slots[index].victim.is_none() {
            let victim = self.selector.take(&mut self.blocks, &mut self.rng)?;
            let slot = &mut self.collector.slots[index];
            slot.begin(victim, self.blocks.count(victim), units_per_block);
            self.table.prefetch_block(slot.cursor, units_per_block);
            self.table.prefetch_held(slot.cursor, slot.end, self.collector.step_units);
        }
        let (moved, credit) = self.move_some(index, now_ns, self.geometry.per_page, self.geometry.read_ns);
        self.counts.moved_units += u64::from(moved);
        Some(credit)
    }

    /// Moves a few units of the victim of a slot, and erases the victim once it is empty. Its pages have `victim_page`
    /// units and are read in `read_ns`. Returns the units moved, and the units reclaimed (in [`super::collector::ONE`]s).
    #[inline(always)]
    pub(super) fn move_some(
        &mut self,
        index: usize,
        now_ns: u64,
        victim_page: Divisor,
        victim_read_ns: u64,
    ) -> (u32, i64) {
        let units_per_block = self.geometry.block_units;
        let slot = &mut self.collector.slots[index];
        let victim = slot.victim.expect("a victim was just taken");
        let start_ns = slot.busy_ns.max(now_ns);
        let die = self.blocks.die_of(victim);

        let mut moved = 0;
        let (mut pages_read, mut units_read) = (0, 0);
        // Units from this one on are in pages that are not read yet.
        let mut read_to = 0;
        let mut done_ns = start_ns;
        let (mut cursor, end) = (slot.cursor, slot.end);
        let begun_at = cursor;
        let mut run = [0; MOST_AT_ONCE];
        while moved < self.collector.step_units {
            let room = self.cleaned.room_in_page().min(self.collector.step_units - moved) as usize;
            let taken = self.table.take_valid(&mut cursor, end, &mut run[..room.min(MOST_AT_ONCE)]);
            if taken == 0 {
                break;
            }
            for &from in &run[..taken] {
                if from >= read_to {
                    read_to = victim_page.multiple_above(from);
                    pages_read += 1;
                }
            }
            let units = taken as u32;
            units_read += units;
            moved += units;
            if self.cleaned.needs_block() {
                let block =
                    self.cleaned.open(&mut self.blocks).expect("the floor leaves blocks for the collector");
                self.table.prefetch_block(block * units_per_block, units_per_block);
                self.observe_pool();
            }
            let placed = self.cleaned.place_run(units);
            self.table.map_moved(&run[..taken], placed.physical);
            self.blocks.moved(victim, placed.block, units);
            if let Some(ready_ns) = placed.page_full {
                let read_ns =
                    self.nand.read_for(die, now_ns, start_ns, pages_read, units_read, victim_read_ns);
                (pages_read, units_read, read_to) = (0, 0, 0);
                let to = self.blocks.die_of(placed.block);
                let programmed_ns =
                    self.nand.program(to, now_ns, read_ns.max(ready_ns), self.geometry.page_units);
                done_ns = done_ns.max(programmed_ns);
                if placed.block_full {
                    self.fill_block(placed.block);
                }
            }
        }
        if pages_read > 0 {
            let read_ns = self.nand.read_for(die, now_ns, start_ns, pages_read, units_read, victim_read_ns);
            done_ns = done_ns.max(read_ns);
        }
        let controller = &self.spec.controller;
        // A victim without valid units is erased without being read.
        let passed = if moved > 0 { (cursor.min(end) - begun_at).div_ceil(victim_page.by()) } else { 0 };
        self.controller_busy_ns = self.controller_busy_ns.max(now_ns)
            + controller.gc_unit.get() * u64::from(moved)
            + controller.gc_page.get() * u64::from(passed);
        let slot = &mut self.collector.slots[index];
        // Moved units are no longer valid, so the next step may begin at the same 64 units.
        slot.cursor = cursor.min(end);
        self.table.prefetch_held(slot.cursor, end, self.collector.step_units);
        slot.busy_ns = done_ns;
        let mut credit = slot.credit(moved);
        debug_assert!(
            cursor < end || self.blocks.count(victim) == 0,
            "block {victim} counts units that are not valid"
        );
        if self.blocks.count(victim) == 0 {
            credit += slot.finish(units_per_block);
            let ready_ns = self.nand.erase(die, done_ns);
            self.collector.slots[index].busy_ns = ready_ns;
            self.blocks.erased(victim, ready_ns);
            self.observe_pool();
        }
        (moved, credit)
    }

    /// Cleans in the background between two instants, as long as full blocks contain garbage.
    #[inline]
    pub(super) fn clean_while_idle(&mut self, from_ns: u64, until_ns: u64) {
        if self.slc.is_some() {
            self.fold_while_idle(from_ns, until_ns);
        }
        if let Some(idle) = self.spec.gc.idle
            && self.logs.is_none()
            && from_ns + idle.after.get() < until_ns
        {
            self.refill_pool(idle.until, from_ns + idle.after.get(), until_ns);
        }
    }

    fn refill_pool(&mut self, share: f64, begin_ns: u64, until_ns: u64) {
        let wanted = (share * f64::from(self.geometry.blocks)) as u32;
        if self.free_blocks() >= wanted {
            return;
        }
        // Without garbage, cleaning reclaims nothing.
        let garbage: u64 = self
            .blocks
            .full()
            .iter()
            .map(|&block| u64::from(self.geometry.block_units - self.blocks.count(block)))
            .sum();
        let wanted = wanted.min(self.free_blocks() + (garbage / u64::from(self.geometry.block_units)) as u32);
        while self.free_blocks() < wanted {
            let free_at_ns = self.collector.cleaning().iter().map(|slot| slot.busy_ns).min().unwrap_or(0);
            if free_at_ns.max(begin_ns).max(self.controller_busy_ns) >= until_ns
                || self.clean_step(begin_ns).is_none()
            {
                return;
            }
        }
    }
}
