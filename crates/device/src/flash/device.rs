//! The drive: combines its parts into a [`BlockDevice`].
//!
//! The rules of each part are in the file of that part.

use super::Geometry;
use super::blocks::Blocks;
use super::buffer::WriteBuffer;
use super::collector::Collector;
use super::frontier::Frontier;
use super::log_units::Logs;
use super::map_cache::MapCache;
use super::nand::NandArray;
use super::slc::Slc;
use super::spec::{FlashSpec, SpecError};
use super::table::{Table, UNMAPPED};
use super::victim::Selector;
use crate::composite::transfer_ns;
use crate::state::{Sink, Source, sense};
use lowtide_core::rng::Rng;
use lowtide_core::{BlockDevice, Bytes, Completion, Counters, Op, Request, Seed, StateError, VirtualTime};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};

/// The logical block of every simulated drive.
const SECTOR: u64 = 512;

/// A number that no block has.
pub(super) const NOT_A_BLOCK: u32 = u32::MAX;

/// A flash drive in virtual time.
#[derive(Debug, Clone)]
pub struct SimulatedSsd {
    pub(super) spec: FlashSpec,
    pub(super) geometry: Geometry,
    pub(super) table: Table,
    pub(super) blocks: Blocks,
    pub(super) selector: Selector,
    pub(super) host: Frontier,
    pub(super) cleaned: Frontier,
    pub(super) nand: NandArray,
    pub(super) buffer: WriteBuffer,
    pub(super) map_cache: Option<MapCache>,
    pub(super) collector: Collector,
    pub(super) slc: Option<Slc>,
    pub(super) logs: Option<Logs>,
    pub(super) rng: Rng,
    pub(super) link_busy_ns: u64,
    /// Length of the last request in bytes, and its time on the link. Successive requests often have the same length.
    link_last: (u64, u64),
    pub(super) controller_busy_ns: u64,
    pub(super) last_activity_ns: u64,
    pub(super) map_die: u32,
    pub(super) map_pages_unwritten: u32,
    pub(super) counts: Counts,
}

/// The drive's counters, in map units if possible.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) host_read_bytes: u64,
    pub(super) host_written_bytes: u64,
    pub(super) placed_units: u64,
    pub(super) moved_units: u64,
    pub(super) map_pages_written: u64,
    pub(super) map_misses: u64,
    pub(super) rmw_reads: u64,
    pub(super) gc_stall_ns: u64,
    pub(super) trimmed_units: u64,
    pub(super) lost_units: u64,
    /// Processor time of the host for requests and their units, in nanoseconds. Moved units are counted separately.
    pub(super) host_cpu_ns: u64,
}

impl SimulatedSsd {
    /// A fresh drive.
    ///
    /// # Errors
    /// [`SpecError`] if the description is inconsistent.
    pub fn new(spec: &FlashSpec, seed: Seed) -> Result<Self, SpecError> {
        spec.validate()?;
        let geometry = Geometry::new(spec);
        let entries_per_page = (spec.map.page.get() / 4).max(1) as u32;
        let map_pages = u64::from(geometry.logical_units).div_ceil(u64::from(entries_per_page));
        let frontier = |lanes| {
            let block = geometry.block_units;
            Frontier::new(lanes, geometry.dies, geometry.page_units, block, block)
        };
        let mut drive = SimulatedSsd {
            table: Table::new(geometry.logical_units, geometry.blocks * geometry.block_units),
            blocks: Blocks::new(&geometry),
            selector: Selector::new(spec.gc.policy, geometry.block_units),
            host: frontier(geometry.host_lanes),
            cleaned: frontier(geometry.gc_lanes),
            nand: NandArray::new(&geometry),
            buffer: WriteBuffer::new(
                (spec.write_buffer.size.get() / geometry.unit_bytes) as usize,
                spec.write_buffer.protected,
            ),
            map_cache: spec.map.cache.and_then(|cache| {
                MapCache::new(map_pages, cache.get() / spec.map.page.get(), entries_per_page)
            }),
            collector: Collector::new(&geometry, &spec.gc),
            slc: spec.slc_cache.as_ref().map(|slc| Slc::new(&geometry, slc)),
            logs: spec.log_units.as_ref().map(Logs::new),
            rng: seed.part("victims", 0).stream(),
            link_busy_ns: 0,
            link_last: (0, 0),
            controller_busy_ns: 0,
            last_activity_ns: 0,
            map_die: 0,
            map_pages_unwritten: 0,
            counts: Counts::default(),
            spec: spec.clone(),
            geometry,
        };
        drive.observe_pool();
        Ok(drive)
    }

    /// The description of the device.
    pub fn spec(&self) -> &FlashSpec {
        &self.spec
    }

    /// Sizes, timings and watermarks.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Updates everything that depends on the number of erased blocks.
    #[inline]
    pub(super) fn observe_pool(&mut self) {
        let free = self.free_blocks();
        self.collector.observe(free);
    }

    /// Counts the host's processor time for a request.
    fn count_host_cpu(&mut self, request: &Request) {
        let Some(ftl) = &self.spec.host_ftl else { return };
        let (first, end) =
            if request.op == Op::Flush { (0, 0) } else { self.units(request.offset, request.length) };
        self.counts.host_cpu_ns +=
            ftl.cpu_per_request.get() + ftl.cpu_per_unit.get() * u64::from(end - first);
    }

    /// The host's processor time for moved units.
    fn moving_host_cpu_ns(&self) -> u64 {
        let moved = self.counts.moved_units + self.slc.as_ref().map_or(0, |slc| slc.folded_units);
        self.spec.host_ftl.as_ref().map_or(0, |ftl| ftl.cpu_per_moved_unit.get() * moved)
    }

    /// The logical units that a range overlaps: the first, and one past the last.
    #[inline]
    pub(super) fn units(&self, offset: u64, length: u64) -> (u32, u32) {
        let geometry = &self.geometry;
        let end = geometry.unit_of(offset + length + (geometry.unit_bytes - 1));
        (geometry.unit_of(offset) as u32, end as u32)
    }

    #[inline]
    pub(super) fn link_ns(&mut self, bytes: u64) -> u64 {
        if self.link_last.0 != bytes {
            self.link_last = (bytes, transfer_ns(bytes, Some(self.spec.controller.link_rate.get())));
        }
        self.link_last.1
    }
}

impl BlockDevice for SimulatedSsd {
    fn capacity(&self) -> Bytes {
        Bytes::new(u64::from(self.geometry.logical_units) * self.geometry.unit_bytes)
    }

    fn raw_capacity(&self) -> Option<Bytes> {
        // With log units there is no garbage collection, so the cost of writes does not change when the raw capacity is used up.
        self.logs.is_none().then(|| self.geometry.raw())
    }

    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        if let Err(error) = request.check(self.capacity().get(), SECTOR) {
            return Completion { at: now, status: Err(error) };
        }
        let now_ns = now.as_nanos();
        if now_ns > self.last_activity_ns {
            self.clean_while_idle(self.last_activity_ns, now_ns);
        }
        if self.spec.host_ftl.is_some() {
            self.count_host_cpu(request);
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
        for request in upcoming {
            self.table.prefetch(self.geometry.unit_of(request.offset));
        }
        // Loads instead of prefetches: the processor drops some of many prefetches, and each dropped one later stalls.
        let mut sum = 0;
        for request in upcoming {
            let physical = self.table.physical_or_unmapped(self.geometry.unit_of(request.offset));
            if physical != UNMAPPED {
                sum ^= self.table.valid_from(physical);
                sum ^= u64::from(self.blocks.count(self.geometry.block_of(physical)));
            }
        }
        std::hint::black_box(sum);
    }

    fn idle_until(&mut self, until: VirtualTime) {
        // Idle time counts from the last request, even if several calls divide it.
        self.clean_while_idle(self.last_activity_ns, until.as_nanos());
    }

    fn busy_until(&self) -> VirtualTime {
        VirtualTime::from_nanos(self.nand.busy_ns().max(self.controller_busy_ns).max(self.link_busy_ns))
    }

    fn power_cut(&mut self, now: VirtualTime) {
        let now_ns = now.as_nanos();
        // Operations end with the power, and the map is read again afterwards.
        self.nand.interrupt(now_ns);
        self.blocks.interrupt(now_ns);
        self.collector.interrupt(now_ns);
        self.controller_busy_ns = self.controller_busy_ns.min(now_ns);
        self.link_busy_ns = self.link_busy_ns.min(now_ns);
        if let Some(cache) = &mut self.map_cache {
            cache.clear();
        }
        self.map_pages_unwritten = 0;
        if self.buffer.protected {
            return;
        }
        for physical in self.buffer.lose(now_ns) {
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
        if let Some(slc) = &mut self.slc {
            slc.clear();
        }
        if let Some(logs) = &mut self.logs {
            logs.clear();
        }
        self.observe_pool();
        self.buffer.lose(u64::MAX);
        self.map_pages_unwritten = 0;
        if let Some(cache) = &mut self.map_cache {
            cache.clear();
        }
    }

    fn counters(&self) -> Counters {
        let unit = self.geometry.unit_bytes;
        let counts = &self.counts;
        let folded_units = self.slc.as_ref().map_or(0, |slc| slc.folded_units);
        let map_written_bytes = counts.map_pages_written * self.spec.map.page.get();
        Counters {
            host_read_bytes: counts.host_read_bytes,
            host_written_bytes: counts.host_written_bytes,
            nand_written_bytes: (counts.placed_units + counts.moved_units + folded_units) * unit
                + map_written_bytes,
            gc_moved_bytes: counts.moved_units * unit,
            map_written_bytes,
            map_misses: counts.map_misses,
            rmw_reads: counts.rmw_reads,
            erases: self.blocks.total_erases(),
            free_blocks: u64::from(self.blocks.free_count()),
            gc_stall_ns: counts.gc_stall_ns,
            trimmed_bytes: counts.trimmed_units * unit,
            lost_bytes: counts.lost_units * unit,
            host_cpu_ns: counts.host_cpu_ns + self.moving_host_cpu_ns(),
            layer_written_bytes: 0,
        }
    }

    fn host_memory(&self) -> Bytes {
        self.spec.host_memory()
    }

    fn erase_counts(&self) -> Vec<u32> {
        self.blocks.erases().to_vec()
    }

    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        let mut sink = Sink(out);
        sink.value(&(
            &self.blocks,
            &self.selector,
            (&self.host, &self.cleaned),
            &self.nand,
            &self.buffer,
            &self.map_cache,
            &self.collector,
            &self.slc,
            &self.logs,
            &self.rng,
            (self.link_busy_ns, self.controller_busy_ns, self.last_activity_ns),
            (self.map_die, self.map_pages_unwritten),
            self.counts,
        ))?;
        // The reverse map is derived from the map, so it is not saved.
        sink.words(self.table.physical_of())
    }

    fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        let (frontiers, busy, map);
        let mut source = Source(from);
        (
            self.blocks,
            self.selector,
            frontiers,
            self.nand,
            self.buffer,
            self.map_cache,
            self.collector,
            self.slc,
            self.logs,
            self.rng,
            busy,
            map,
            self.counts,
        ) = source.value()?;
        (self.host, self.cleaned) = frontiers;
        (self.link_busy_ns, self.controller_busy_ns, self.last_activity_ns) = busy;
        (self.map_die, self.map_pages_unwritten) = map;
        source.words(self.table.physical_of_mut())?;
        sense(self.table.rebuild(), "two units of the map have one home, or a home that is not there")
    }
}
