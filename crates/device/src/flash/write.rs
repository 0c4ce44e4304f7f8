//! The write path: controller, map, merge, buffer and frontier; also trims and flushes.
//!
//! # Not modelled
//! Data contents. A merge is only the time of its reads.

use super::SimulatedSsd;
use super::frontier::Placed;
use super::table::UNMAPPED;
use std::ops::Range;

impl SimulatedSsd {
    pub(super) fn write(&mut self, now_ns: u64, offset: u64, length: u64, fua: bool) -> u64 {
        let (first, end) = self.units(offset, length);
        if first == end {
            return now_ns;
        }
        let link_ns = self.link_ns(length);
        let controller = &self.spec.controller;
        let units_ns = controller.write_unit.get() * u64::from(end - first);
        let request_ns = controller.request.get() + controller.write_request.get();
        let latency_ns = controller.latency.get();
        self.link_busy_ns = self.link_busy_ns.max(now_ns) + link_ns;
        let blocking = self.spec.map.blocking;
        let mut begun_ns = self.controller_busy_ns.max(now_ns) + request_ns;
        let mut ready_ns = self.look_up(begun_ns, first, end, true);
        self.write_map_pages(begun_ns);
        if blocking {
            begun_ns = ready_ns;
        }
        if !(self.geometry.is_whole(offset) && self.geometry.is_whole(length)) {
            ready_ns = self.read_to_merge(ready_ns, offset, length, first, end);
        }
        // The controller serves other requests while this write waits for its map page or its merge.
        self.controller_busy_ns = begun_ns + units_ns;
        // From here on, the controller does the cleaning that this write has to pay for.
        let mut paid_ns = self.controller_busy_ns;
        let at_ns = (ready_ns + units_ns).max(self.link_busy_ns);
        let (mut at_ns, durable_ns) = if self.logs.is_some() {
            let (written, merges_ns) = self.write_to_logs(at_ns, first, end);
            paid_ns += merges_ns;
            written
        } else {
            self.place_units(at_ns, first..end, Self::place_host_unit)
        };
        self.counts.placed_units += u64::from(end - first);
        self.counts.host_written_bytes += length;
        if fua && self.waits_for_medium() {
            at_ns = at_ns.max(durable_ns).max(self.pad_page(at_ns));
        }
        let stall_ns = self.controller_busy_ns - paid_ns;
        self.counts.gc_stall_ns += stall_ns;
        at_ns + stall_ns + latency_ns
    }

    /// Places logical units and programs the pages that they fill. Returns the instants at which all units are in the buffer
    /// and at which those pages are durable.
    #[inline]
    pub(super) fn place_units(
        &mut self,
        now_ns: u64,
        units: Range<u32>,
        place: impl Fn(&mut Self) -> Placed,
    ) -> (u64, u64) {
        let (mut at_ns, mut durable_ns) = (now_ns, now_ns);
        for logical in units {
            let placed = place(self);
            let old = self.table.map(logical, placed.physical);
            if old != UNMAPPED {
                self.drop_unit(old);
            }
            self.blocks.add(placed.block);
            at_ns = self.buffer.admit(at_ns, placed.physical);
            if let Some(ready_ns) = placed.page_full {
                let programmed_ns = self.program_host_page(placed.block, placed.block_full, at_ns, ready_ns);
                durable_ns = durable_ns.max(programmed_ns);
                self.pay_for_page(placed.block);
            }
        }
        (at_ns, durable_ns)
    }

    /// Places the next unit of host data.
    #[inline]
    fn place_host_unit(&mut self) -> Placed {
        if self.slc.is_some()
            && let Some(placed) = self.place_in_cache()
        {
            return placed;
        }
        if self.host.needs_block() {
            self.open_for_host();
        }
        self.host.place()
    }

    /// Reads the units that a write covers only partly.
    fn read_to_merge(&mut self, now_ns: u64, offset: u64, length: u64, first: u32, end: u32) -> u64 {
        let unit = self.geometry.unit_bytes;
        let mut done_ns = now_ns;
        let head = !offset.is_multiple_of(unit);
        let tail = !(offset + length).is_multiple_of(unit) && (end - first > 1 || !head);
        for (partial, logical) in [(head, first), (tail, end - 1)] {
            let physical = self.table.physical(logical);
            if partial && physical != UNMAPPED {
                self.counts.rmw_reads += 1;
                let die = self.blocks.die_of(self.geometry.block_of(physical));
                done_ns = done_ns.max(self.read_page(die, physical, now_ns, now_ns, 1));
            }
        }
        done_ns
    }

    /// Counts a physical unit that became invalid.
    #[inline]
    pub(super) fn drop_unit(&mut self, physical: u32) {
        let block = self.geometry.block_of(physical);
        let count = self.blocks.remove(block);
        self.selector.lowered(block, count);
        if count == 0 && self.logs.is_some() {
            self.erase_dead(block);
        }
    }

    /// Programs a page of host data, which is complete at `now_ns`, as soon as its block can be programmed.
    pub(super) fn program_host_page(
        &mut self,
        block: u32,
        block_full: bool,
        now_ns: u64,
        ready_ns: u64,
    ) -> u64 {
        if self.slc.as_ref().is_some_and(|slc| slc.holds(block)) {
            let durable_ns = self.program_cache_page(block, block_full, now_ns, now_ns.max(ready_ns));
            self.buffer.programmed(durable_ns);
            return durable_ns;
        }
        let units = self.geometry.page_units;
        let durable_ns = self.nand.program(self.blocks.die_of(block), now_ns, now_ns.max(ready_ns), units);
        self.buffer.programmed(durable_ns);
        if block_full {
            self.fill_block(block);
        }
        durable_ns
    }

    /// Closes an open block.
    pub(super) fn fill_block(&mut self, block: u32) {
        self.blocks.fill(block);
        match (&self.logs, self.blocks.count(block)) {
            (None, count) => self.selector.filled(block, count),
            (Some(_), 0) => self.erase_dead(block),
            (Some(_), _) => {}
        }
    }

    /// Programs the partly filled page with padding, if there is one. Returns the instant at which it is durable.
    fn pad_page(&mut self, now_ns: u64) -> u64 {
        if self.buffer.pending() == 0 {
            return now_ns;
        }
        loop {
            let placed = match &mut self.slc {
                Some(slc) if slc.frontier.in_page() => slc.frontier.place(),
                _ => self.host.place(),
            };
            self.counts.placed_units += 1;
            if let Some(ready_ns) = placed.page_full {
                let durable_ns = self.program_host_page(placed.block, placed.block_full, now_ns, ready_ns);
                self.pay_for_page(placed.block);
                return durable_ns;
            }
        }
    }

    /// Unmaps the units that are completely within the range.
    pub(super) fn trim(&mut self, now_ns: u64, offset: u64, length: u64) -> u64 {
        if length == 0 {
            return now_ns;
        }
        let unit = self.geometry.unit_bytes;
        let (first, end) = (offset.div_ceil(unit) as u32, ((offset + length) / unit) as u32);
        for logical in first..end {
            let old = self.table.unmap(logical);
            if old != UNMAPPED {
                self.drop_unit(old);
                self.counts.trimmed_units += 1;
            }
        }
        self.controller_busy_ns = self.controller_busy_ns.max(now_ns) + self.spec.controller.request.get();
        self.controller_busy_ns + self.spec.controller.latency.get()
    }

    /// Returns whether a flush has to wait for the NAND.
    fn waits_for_medium(&self) -> bool {
        !self.buffer.protected && self.spec.write_buffer.honours_flush
    }

    /// Waits until all acknowledged writes are durable, and for the cleaning that a padded page has to pay for.
    pub(super) fn flush(&mut self, now_ns: u64) -> u64 {
        let paid_ns = self.controller_busy_ns.max(now_ns) + self.spec.controller.request.get();
        self.controller_busy_ns = paid_ns;
        let mut at_ns = paid_ns;
        if self.waits_for_medium() {
            self.pad_page(paid_ns);
            at_ns = at_ns.max(self.buffer.last_durable_ns());
        }
        let stall_ns = self.controller_busy_ns - paid_ns;
        self.counts.gc_stall_ns += stall_ns;
        at_ns + stall_ns + self.spec.controller.latency.get()
    }
}
