//! The read path, and the map lookups of reads and writes.
//!
//! The units of a read pass through controller, dies, channels and link as a pipeline. The read takes as long as its
//! slowest stage, plus the time of one unit in each other stage.
//!
//! # Not modelled
//! Reads from the write buffer. The load of map pages on dies and channels: a miss takes the time of a page read, but does
//! not delay other operations.

use super::SimulatedSsd;
use super::table::UNMAPPED;

impl SimulatedSsd {
    /// Looks up the map pages of a range from `now_ns` on. Returns the instant at which all of them are in memory.
    #[inline]
    pub(super) fn look_up(&mut self, now_ns: u64, first: u32, end: u32, dirty: bool) -> u64 {
        let Some(cache) = &mut self.map_cache else { return now_ns };
        let mut there_ns = now_ns;
        for page in cache.page_of(first)..=cache.page_of(end - 1) {
            let lookup = cache.touch(page, dirty);
            if lookup.missed {
                self.counts.map_misses += 1;
                there_ns += self.geometry.read_ns + self.geometry.transfer_map_ns;
            }
            if lookup.wrote_back {
                self.counts.map_pages_written += 1;
                self.map_pages_unwritten += 1;
            }
        }
        there_ns
    }

    /// Programs evicted map pages as soon as they fill a NAND page.
    pub(super) fn write_map_pages(&mut self, now_ns: u64) {
        let per_page = (self.spec.nand.page.get() / self.spec.map.page.get()).max(1) as u32;
        while self.map_pages_unwritten >= per_page {
            self.map_pages_unwritten -= per_page;
            self.nand.program(self.map_die, now_ns, now_ns, self.geometry.page_units);
            self.map_die = (self.map_die + 1) % self.geometry.dies;
        }
    }

    /// Map units per NAND page in the block of a physical unit.
    #[inline]
    fn page_units_at(&self, physical: u32) -> u32 {
        match &self.slc {
            Some(slc) if slc.holds(self.geometry.block_of(physical)) => slc.page_units(),
            _ => self.geometry.page_units,
        }
    }

    /// Reads `units` from the page of a physical unit. Times are those of [`NandArray::read`](super::nand::NandArray::read).
    #[inline]
    pub(super) fn read_page(
        &mut self,
        die: u32,
        physical: u32,
        issued_ns: u64,
        earliest_ns: u64,
        units: u32,
    ) -> u64 {
        let read_ns = match &self.slc {
            Some(slc) if slc.holds(self.geometry.block_of(physical)) => slc.read_ns(),
            _ => self.geometry.read_ns,
        };
        self.nand.read_for(die, issued_ns, earliest_ns, 1, units, read_ns)
    }

    pub(super) fn read(&mut self, now_ns: u64, offset: u64, length: u64) -> u64 {
        let (first, end) = self.units(offset, length);
        if first == end {
            return now_ns;
        }
        let controller = &self.spec.controller;
        let latency_ns = controller.latency.get();
        let (unit_ns, units) = (controller.read_unit.get(), u64::from(end - first));
        let decoded_ns = self.controller_busy_ns.max(now_ns) + controller.request.get();
        let blocking = self.spec.map.blocking;
        let mapped_ns = self.look_up(decoded_ns, first, end, false);
        let controlled_ns = if blocking { mapped_ns } else { decoded_ns } + unit_ns * units;
        self.controller_busy_ns = controlled_ns;
        let link_ns = self.link_ns(length);
        self.link_busy_ns = self.link_busy_ns.max(decoded_ns + unit_ns) + link_ns;
        let from_ns = mapped_ns + unit_ns;
        self.write_map_pages(from_ns);
        let mut there_ns = from_ns;
        let mut logical = first;
        while logical < end {
            let physical = self.table.physical(logical);
            logical += 1;
            if physical == UNMAPPED {
                continue;
            }
            let page_units = self.page_units_at(physical);
            let page = physical / page_units;
            let mut units = 1;
            while logical < end
                && self.table.physical(logical) == physical + units
                && (physical + units) / page_units == page
            {
                units += 1;
                logical += 1;
            }
            let die = self.blocks.die_of(self.geometry.block_of(physical));
            there_ns = there_ns.max(self.read_page(die, physical, decoded_ns, from_ns, units));
        }
        self.counts.host_read_bytes += length;
        self.link_busy_ns.max(there_ns.max(controlled_ns) + link_ns / units) + latency_ns
    }
}
