//! The drive itself: how the parts answer a request together.
//!
//! Leaves out the parts' own rules, which stand in their files.

use super::Geometry;
use super::blocks::Blocks;
use super::buffer::WriteBuffer;
use super::collector::Collector;
use super::frontier::Frontier;
use super::map_cache::MapCache;
use super::nand::NandArray;
use super::table::{Table, UNMAPPED};
use super::victim::Selector;
use crate::spec::{DeviceSpec, SpecError};
use lowtide_core::rng::Rng;
use lowtide_core::{BlockDevice, Bytes, Completion, Counters, DeviceError, Op, Request, Seed, VirtualTime};

/// The logical block of every simulated drive.
const SECTOR: u64 = 512;

/// Steps of cleaning that one host page may wait for; debt beyond them stays for the next page.
const MAX_STEPS_PER_PAGE: u32 = 64;

/// A flash drive in virtual time.
#[derive(Debug, Clone)]
pub struct SimulatedSsd {
    pub(super) spec: DeviceSpec,
    pub(super) geometry: Geometry,
    table: Table,
    blocks: Blocks,
    selector: Selector,
    host: Frontier,
    cleaned: Frontier,
    nand: NandArray,
    buffer: WriteBuffer,
    map_cache: Option<MapCache>,
    collector: Collector,
    rng: Rng,
    link_busy_ns: u64,
    controller_busy_ns: u64,
    last_activity_ns: u64,
    map_die: u32,
    map_pages_unwritten: u32,
    counts: Counts,
}

/// What the drive counts, in map units where it can.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    host_read_bytes: u64,
    host_written_bytes: u64,
    placed_units: u64,
    moved_units: u64,
    map_pages_written: u64,
    map_misses: u64,
    rmw_reads: u64,
    gc_stall_ns: u64,
    trimmed_units: u64,
    lost_units: u64,
}

impl SimulatedSsd {
    /// A fresh drive.
    ///
    /// # Errors
    /// [`SpecError`] where the description does not fit together.
    pub fn new(spec: &DeviceSpec, seed: Seed) -> Result<Self, SpecError> {
        spec.validate()?;
        let geometry = Geometry::new(spec);
        let entries_per_page = (spec.map.page.get() / 4).max(1) as u32;
        let map_pages = u64::from(geometry.logical_units).div_ceil(u64::from(entries_per_page));
        let frontier = |lanes| Frontier::new(lanes, geometry.dies, geometry.page_units, geometry.block_units);
        let mut drive = SimulatedSsd {
            table: Table::new(geometry.logical_units, geometry.blocks * geometry.block_units),
            blocks: Blocks::new(&geometry),
            selector: Selector::new(spec.gc.policy, geometry.blocks, geometry.block_units),
            host: frontier(geometry.host_lanes),
            cleaned: frontier(geometry.gc_lanes),
            nand: NandArray::new(&geometry),
            buffer: WriteBuffer::new(
                (spec.write_buffer.size.get() / geometry.unit_bytes) as usize,
                spec.write_buffer.protected,
            ),
            map_cache: spec
                .map
                .cache
                .and_then(|cache| MapCache::new(map_pages, cache.get() / spec.map.page.get(), entries_per_page)),
            collector: Collector::new(&geometry, &spec.gc),
            rng: seed.part("victims", 0).stream(),
            link_busy_ns: 0,
            controller_busy_ns: 0,
            last_activity_ns: 0,
            map_die: 0,
            map_pages_unwritten: 0,
            counts: Counts::default(),
            spec: spec.clone(),
            geometry,
        };
        drive.collector.observe(drive.blocks.free_count());
        Ok(drive)
    }

    /// The description it was made from.
    pub fn spec(&self) -> &DeviceSpec {
        &self.spec
    }

    /// Sizes, timings and watermarks.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Erase cycles of each block.
    pub fn erase_counts(&self) -> &[u32] {
        self.blocks.erases()
    }

    fn check(&self, request: &Request) -> Result<(), DeviceError> {
        let Request { op, offset, length } = *request;
        let capacity = self.capacity().get();
        if op == Op::Flush {
            return Ok(());
        }
        if offset.checked_add(length).is_none_or(|end| end > capacity) {
            return Err(DeviceError::OutOfRange { offset, length, capacity });
        }
        if !offset.is_multiple_of(SECTOR) || !length.is_multiple_of(SECTOR) {
            return Err(DeviceError::Unaligned { offset, length, block: SECTOR });
        }
        Ok(())
    }

    /// The logical units that a range touches: first, and one past the last.
    #[inline]
    fn units(&self, offset: u64, length: u64) -> (u32, u32) {
        let unit = self.geometry.unit_bytes;
        ((offset / unit) as u32, (offset + length).div_ceil(unit) as u32)
    }

    #[inline]
    fn link_ns(&self, bytes: u64) -> u64 {
        bytes * 1_000_000_000 / self.spec.controller.link_rate.get()
    }

    /// Looks up the map pages of a range; how long the request waits for those that were not in memory.
    #[inline]
    fn look_up(&mut self, first: u32, end: u32, dirty: bool) -> u64 {
        let Some(cache) = &mut self.map_cache else { return 0 };
        let mut wait_ns = 0;
        for page in cache.page_of(first)..=cache.page_of(end - 1) {
            let lookup = cache.touch(page, dirty);
            if lookup.missed {
                self.counts.map_misses += 1;
                wait_ns += self.geometry.read_ns + self.geometry.transfer_unit_ns;
            }
            if lookup.wrote_back {
                self.counts.map_pages_written += 1;
                self.map_pages_unwritten += 1;
            }
        }
        wait_ns
    }

    /// Programs the map pages that were evicted, a NAND page of them at a time.
    fn write_map_pages(&mut self, now_ns: u64) {
        let per_page = (self.spec.nand.page.get() / self.spec.map.page.get()).max(1) as u32;
        while self.map_pages_unwritten >= per_page {
            self.map_pages_unwritten -= per_page;
            self.nand.program(self.map_die, now_ns, self.geometry.page_units);
            self.map_die = (self.map_die + 1) % self.geometry.dies;
        }
    }

    fn write(&mut self, now_ns: u64, offset: u64, length: u64, fua: bool) -> u64 {
        let (first, end) = self.units(offset, length);
        if first == end {
            return now_ns;
        }
        let controller = &self.spec.controller;
        let (request_ns, unit_ns, latency_ns) =
            (controller.request.get(), controller.write_unit.get(), controller.latency.get());
        self.link_busy_ns = self.link_busy_ns.max(now_ns) + self.link_ns(length);
        let mut begun_ns = self.controller_busy_ns.max(now_ns) + request_ns;
        let map_wait_ns = self.look_up(first, end, true);
        self.write_map_pages(begun_ns);
        if !(offset | length).is_multiple_of(self.geometry.unit_bytes) {
            begun_ns = self.read_to_merge(begun_ns, offset, length, first, end);
        }
        self.controller_busy_ns = begun_ns + unit_ns * u64::from(end - first);
        // Cleaning that this write must pay for takes the controller from here on.
        let paid_ns = self.controller_busy_ns;
        let mut at_ns = (self.controller_busy_ns + map_wait_ns).max(self.link_busy_ns);
        let mut durable_ns = at_ns;
        for logical in first..end {
            if self.host.needs_block() {
                self.open_for_host();
            }
            let placed = self.host.place();
            let old = self.table.map(logical, placed.physical);
            if old != UNMAPPED {
                self.drop_unit(old);
            }
            self.blocks.add(placed.block);
            at_ns = self.buffer.admit(at_ns, placed.physical);
            if let Some(ready_ns) = placed.page_full {
                durable_ns = self.program_host_page(placed.block, placed.block_full, at_ns.max(ready_ns));
                self.pay_for_page();
            }
        }
        self.counts.placed_units += u64::from(end - first);
        self.counts.host_written_bytes += length;
        let stall_ns = self.controller_busy_ns - paid_ns;
        self.counts.gc_stall_ns += stall_ns;
        at_ns += stall_ns;
        if fua && !self.buffer.protected {
            at_ns = at_ns.max(self.pad_page(at_ns).max(durable_ns));
        }
        at_ns + latency_ns
    }

    /// Reads the units that a write covers only in part.
    fn read_to_merge(&mut self, now_ns: u64, offset: u64, length: u64, first: u32, end: u32) -> u64 {
        let unit = self.geometry.unit_bytes;
        let mut done_ns = now_ns;
        let head = !offset.is_multiple_of(unit);
        let tail = !(offset + length).is_multiple_of(unit) && (end - first > 1 || !head);
        for (partial, logical) in [(head, first), (tail, end - 1)] {
            let physical = self.table.physical(logical);
            if partial && physical != UNMAPPED {
                self.counts.rmw_reads += 1;
                let die = self.blocks.die_of(physical / self.geometry.block_units);
                done_ns = done_ns.max(self.nand.read(die, now_ns, 1, 1));
            }
        }
        done_ns
    }

    /// A physical unit became invalid.
    #[inline]
    fn drop_unit(&mut self, physical: u32) {
        let block = physical / self.geometry.block_units;
        let count = self.blocks.remove(block);
        self.selector.lowered(block, count);
    }

    fn program_host_page(&mut self, block: u32, block_full: bool, at_ns: u64) -> u64 {
        let durable_ns = self.nand.program(self.blocks.die_of(block), at_ns, self.geometry.page_units);
        self.buffer.programmed(durable_ns);
        if block_full {
            self.blocks.fill(block);
            self.selector.filled(block, self.blocks.count(block));
        }
        durable_ns
    }

    /// Opens a block for host data; cleans first where only the collector's own blocks are left.
    fn open_for_host(&mut self) {
        while self.blocks.free_count() <= self.geometry.floor_blocks {
            let credit = self.clean_step(self.controller_busy_ns);
            let credit = credit.expect("a valid drive has blocks to clean whenever it runs out of erased ones");
            self.collector.pay(credit);
        }
        let block = self.host.open(&mut self.blocks).expect("the floor leaves a block for the host");
        self.table.warm_block(block * self.geometry.block_units, self.geometry.block_units);
        self.collector.observe(self.blocks.free_count());
    }

    /// Cleans as much as a host page must pay for.
    #[inline]
    fn pay_for_page(&mut self) {
        let mut due = self.collector.charge(self.geometry.page_units);
        let mut steps = 0;
        while due && steps < MAX_STEPS_PER_PAGE {
            let Some(credit) = self.clean_step(self.controller_busy_ns) else { return };
            due = self.collector.pay(credit);
            steps += 1;
        }
    }

    /// Moves a few units of one victim, and erases it once it is empty. Gives the units reclaimed (in
    /// [`super::collector::ONE`]s), or `None` where there is nothing to clean.
    fn clean_step(&mut self, now_ns: u64) -> Option<i64> {
        let units_per_block = self.geometry.block_units;
        let index = self.collector.next_slot();
        if self.collector.slots[index].victim.is_none() {
            let victim = self.selector.take(&mut self.blocks, &mut self.rng)?;
            let slot = &mut self.collector.slots[index];
            slot.begin(victim, self.blocks.count(victim), units_per_block);
            self.table.warm_held(slot.cursor, slot.end);
        }
        let slot = &mut self.collector.slots[index];
        let victim = slot.victim.expect("a victim was just taken");
        let start_ns = slot.busy_ns.max(now_ns);
        let die = self.blocks.die_of(victim);

        let mut moved = 0;
        let mut pages_read = 0;
        let mut last_page = u32::MAX;
        let mut done_ns = start_ns;
        let (mut cursor, end) = (slot.cursor, slot.end);
        // Nothing but this loop changes the victim meanwhile, so 64 units of its validity may be kept at hand.
        let mut valid = if cursor < end { self.table.valid_from(cursor) } else { 0 };
        while moved < self.collector.step_units {
            if valid == 0 {
                cursor = (cursor | 63) + 1;
                if cursor >= end {
                    break;
                }
                valid = self.table.valid_from(cursor);
                continue;
            }
            let from = (cursor & !63) + valid.trailing_zeros();
            valid &= valid - 1;
            let page = from / self.geometry.page_units;
            if page != last_page {
                last_page = page;
                pages_read += 1;
            }
            if self.cleaned.needs_block() {
                let block = self.cleaned.open(&mut self.blocks).expect("the floor leaves blocks for the collector");
                self.table.warm_block(block * units_per_block, units_per_block);
                self.collector.observe(self.blocks.free_count());
            }
            let placed = self.cleaned.place();
            self.table.map(self.table.logical(from), placed.physical);
            self.blocks.remove(victim);
            self.blocks.add(placed.block);
            moved += 1;
            if let Some(ready_ns) = placed.page_full {
                let read_ns = self.nand.read(die, start_ns, pages_read, self.geometry.page_units);
                pages_read = 0;
                last_page = u32::MAX;
                let to = self.blocks.die_of(placed.block);
                let programmed_ns = self.nand.program(to, read_ns.max(ready_ns), self.geometry.page_units);
                done_ns = done_ns.max(programmed_ns);
                if placed.block_full {
                    self.blocks.fill(placed.block);
                    self.selector.filled(placed.block, self.blocks.count(placed.block));
                }
            }
        }
        if pages_read > 0 {
            done_ns = done_ns.max(self.nand.read(die, start_ns, pages_read, moved));
        }
        self.controller_busy_ns =
            self.controller_busy_ns.max(now_ns) + self.spec.controller.gc_unit.get() * u64::from(moved);
        self.counts.moved_units += u64::from(moved);
        let slot = &mut self.collector.slots[index];
        // Units already moved are no longer valid, so the next step may begin at the same 64 again.
        slot.cursor = cursor.min(end);
        slot.busy_ns = done_ns;
        let mut credit = slot.credit(moved);
        if self.blocks.count(victim) == 0 {
            credit += slot.finish(units_per_block);
            let ready_ns = self.nand.erase(die, done_ns);
            self.collector.slots[index].busy_ns = ready_ns;
            self.blocks.erased(victim, ready_ns);
            self.collector.observe(self.blocks.free_count());
        }
        Some(credit)
    }

    /// Programs the page being filled, with padding; the instant it is durable.
    fn pad_page(&mut self, now_ns: u64) -> u64 {
        if self.buffer.pending() == 0 {
            return self.buffer.last_durable_ns();
        }
        loop {
            let placed = self.host.place();
            self.counts.placed_units += 1;
            if let Some(ready_ns) = placed.page_full {
                return self.program_host_page(placed.block, placed.block_full, now_ns.max(ready_ns));
            }
        }
    }

    fn read(&mut self, now_ns: u64, offset: u64, length: u64) -> u64 {
        let (first, end) = self.units(offset, length);
        if first == end {
            return now_ns;
        }
        let controller = &self.spec.controller;
        let latency_ns = controller.latency.get();
        let busy_ns = self.controller_busy_ns.max(now_ns)
            + controller.request.get()
            + controller.read_unit.get() * u64::from(end - first);
        self.controller_busy_ns = busy_ns;
        let link_ns = self.link_ns(length);
        self.link_busy_ns = self.link_busy_ns.max(busy_ns) + link_ns;
        let from_ns = busy_ns + self.look_up(first, end, false);
        self.write_map_pages(from_ns);
        let mut there_ns = from_ns;
        let mut logical = first;
        while logical < end {
            let physical = self.table.physical(logical);
            logical += 1;
            if physical == UNMAPPED {
                continue;
            }
            let page = physical / self.geometry.page_units;
            let mut units = 1;
            while logical < end && self.table.physical(logical) == physical + units && (physical + units) / self.geometry.page_units == page {
                units += 1;
                logical += 1;
            }
            let die = self.blocks.die_of(physical / self.geometry.block_units);
            there_ns = there_ns.max(self.nand.read(die, from_ns, 1, units));
        }
        self.counts.host_read_bytes += length;
        self.link_busy_ns.max(there_ns + link_ns) + latency_ns
    }

    /// Unmaps the units that lie wholly in the range.
    fn trim(&mut self, now_ns: u64, offset: u64, length: u64) -> u64 {
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

    fn flush(&mut self, now_ns: u64) -> u64 {
        self.controller_busy_ns = self.controller_busy_ns.max(now_ns) + self.spec.controller.request.get();
        let at_ns = self.controller_busy_ns;
        let durable_ns = if self.buffer.protected { at_ns } else { self.pad_page(at_ns) };
        at_ns.max(durable_ns) + self.spec.controller.latency.get()
    }

    /// Cleans in the background between two instants.
    fn clean_while_idle(&mut self, from_ns: u64, until_ns: u64) {
        let Some(idle) = self.spec.gc.idle else { return };
        let begin_ns = from_ns + idle.after.get();
        let wanted = (idle.until * f64::from(self.geometry.blocks)) as u32;
        while self.blocks.free_count() < wanted {
            let free_at_ns = self.collector.slots.iter().map(|slot| slot.busy_ns).min().unwrap_or(0);
            if free_at_ns.max(begin_ns).max(self.controller_busy_ns) >= until_ns || self.clean_step(begin_ns).is_none() {
                return;
            }
        }
    }
}

impl BlockDevice for SimulatedSsd {
    fn capacity(&self) -> Bytes {
        Bytes::new(u64::from(self.geometry.logical_units) * self.geometry.unit_bytes)
    }

    fn raw_capacity(&self) -> Option<Bytes> {
        Some(self.geometry.raw())
    }

    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        if let Err(error) = self.check(request) {
            return Completion { at: now, status: Err(error) };
        }
        let now_ns = now.as_nanos();
        if now_ns > self.last_activity_ns {
            self.clean_while_idle(self.last_activity_ns, now_ns);
        }
        let Request { op, offset, length } = *request;
        let at_ns = match op {
            Op::Write { fua } => self.write(now_ns, offset, length, fua),
            Op::Read => self.read(now_ns, offset, length),
            Op::Trim | Op::WriteZeroes => self.trim(now_ns, offset, length),
            Op::Flush => self.flush(now_ns),
        };
        self.last_activity_ns = self.last_activity_ns.max(at_ns);
        Completion { at: VirtualTime::from_nanos(at_ns), status: Ok(()) }
    }

    fn warm(&self, upcoming: &[Request]) {
        let unit = self.geometry.unit_bytes;
        for chunk in upcoming.chunks(32) {
            let mut logical = [UNMAPPED; 32];
            for (slot, request) in logical.iter_mut().zip(chunk) {
                *slot = (request.offset / unit) as u32;
            }
            self.blocks.warm(self.table.warm(&logical).map(|physical| physical / self.geometry.block_units));
        }
    }

    fn idle_until(&mut self, until: VirtualTime) {
        self.clean_while_idle(self.last_activity_ns, until.as_nanos());
        self.last_activity_ns = self.last_activity_ns.max(until.as_nanos());
    }

    fn power_cut(&mut self, now: VirtualTime) {
        if self.buffer.protected {
            return;
        }
        for physical in self.buffer.lose(now.as_nanos()) {
            let logical = self.table.logical(physical);
            if logical != UNMAPPED && self.table.physical(logical) == physical {
                self.table.unmap(logical);
                self.drop_unit(physical);
                self.counts.lost_units += 1;
            }
        }
    }

    fn secure_erase(&mut self) {
        self.table.clear();
        self.blocks.erase_all();
        self.selector.clear();
        self.host.clear();
        self.cleaned.clear();
        self.collector.clear();
        self.collector.observe(self.blocks.free_count());
        self.buffer.lose(u64::MAX);
        if let Some(cache) = &mut self.map_cache {
            cache.clear();
        }
    }

    fn counters(&self) -> Counters {
        let unit = self.geometry.unit_bytes;
        let counts = &self.counts;
        let map_written_bytes = counts.map_pages_written * self.spec.map.page.get();
        Counters {
            host_read_bytes: counts.host_read_bytes,
            host_written_bytes: counts.host_written_bytes,
            nand_written_bytes: (counts.placed_units + counts.moved_units) * unit + map_written_bytes,
            gc_moved_bytes: counts.moved_units * unit,
            map_written_bytes,
            map_misses: counts.map_misses,
            rmw_reads: counts.rmw_reads,
            erases: self.blocks.total_erases(),
            free_blocks: u64::from(self.blocks.free_count()),
            gc_stall_ns: counts.gc_stall_ns,
            trimmed_bytes: counts.trimmed_units * unit,
            lost_bytes: counts.lost_units * unit,
        }
    }
}
