//! The numbers that a running drive needs, derived once from its description, in map units, blocks and nanoseconds.

use super::divisor::Divisor;
use super::spec::FlashSpec;
use lowtide_core::Bytes;

/// Derived sizes, timings and watermarks of a drive.
#[derive(Debug, Clone)]
pub struct Geometry {
    /// Bytes of a map unit.
    pub unit_bytes: u64,
    /// The base-2 logarithm of `unit_bytes`, if it is a power of two.
    unit_bits: Option<u32>,
    /// Map units the host may address.
    pub logical_units: u32,
    /// Map units in a NAND page.
    pub page_units: u32,
    /// Map units in an erase block.
    pub block_units: u32,
    per_block: Divisor,
    /// Divides by the map units of a page.
    pub(super) per_page: Divisor,
    /// Erase blocks.
    pub blocks: u32,
    /// Dies.
    pub dies: u32,
    /// Channels.
    pub channels: u32,
    /// Open blocks for host data, which get a page each in turn. Log units have rows instead.
    pub host_lanes: u32,
    /// Open blocks for data moved by garbage collection.
    pub gc_lanes: u32,
    /// Map units in a log unit; none without log units.
    pub log_units: u32,
    /// The row of an open log unit: its own open blocks, which get a page each in turn.
    pub row_lanes: u32,
    /// Log units that may occupy twice their blocks: each open one, and one more in a merge.
    pub doubled_units: u32,
    /// Blocks cleaned at the same time.
    pub gc_slots: u32,
    /// Erased blocks below which the host waits until one is cleaned.
    pub floor_blocks: u32,
    /// Erased blocks kept in the long run.
    pub set_point_blocks: u32,
    /// Erased blocks at which cleaning pauses.
    pub high_blocks: u32,
    /// Erased blocks at which a late start begins to clean; equal to `high_blocks` without a late start.
    pub start_blocks: u32,
    /// Page read time.
    pub read_ns: u64,
    /// Page program time.
    pub program_ns: u64,
    /// Block erase time.
    pub erase_ns: u64,
    /// Time of a channel per map unit.
    pub transfer_unit_ns: u64,
    /// Blocks set aside for the SLC cache.
    pub slc_static_blocks: u32,
    /// Open blocks of the SLC cache; none without one.
    pub slc_lanes: u32,
    /// Blocks of the SLC cache folded at the same time.
    pub fold_slots: u32,
    /// Map units in a block of the SLC cache.
    pub slc_block_units: u32,
    /// Map units in a page of the SLC cache.
    pub slc_page_units: u32,
    /// Time of a channel per page of the map.
    pub transfer_map_ns: u64,
}

impl Geometry {
    /// Derives the numbers of a description.
    pub fn new(spec: &FlashSpec) -> Self {
        let (nand, gc) = (&spec.nand, &spec.gc);
        let unit_bytes = spec.map.unit.get();
        let block_units = spec.units_per_block() as u32;
        let blocks = (nand.raw.get() / spec.block_bytes().get()) as u32;
        let host_lanes = nand.dies.min((blocks / 16).max(1));
        let gc_lanes = gc.concurrency.min(host_lanes);
        let logs = spec.log_units.as_ref();
        let log_blocks = logs.map_or(0, |logs| (logs.unit.get() / spec.block_bytes().get()) as u32);
        // A unit fills whole rows.
        let divides = |lanes: &u32| log_blocks.is_multiple_of(*lanes);
        let row_lanes = if log_blocks == 0 { 0 } else { (1..=host_lanes).rev().find(divides).unwrap_or(1) };
        let slc = spec.slc_cache.as_ref();
        let bits = slc.map_or(1, |slc| slc.bits_per_cell.max(1));
        let fold_slots = if slc.is_some() { gc.concurrency } else { 0 };
        let slc_static_blocks = slc.map_or(0, |slc| {
            (u64::from(bits) * slc.size.get() / spec.block_bytes().get()).min(u64::from(blocks)) as u32
        });
        // Each lane of the collector may need a new block while the first victim is still being emptied.
        let floor_blocks = gc_lanes + gc.concurrency + fold_slots + 1;
        let share = |share: f64| (share * f64::from(blocks)).round() as u32;
        let set_point_blocks = share(gc.set_point).max(floor_blocks + 2);
        let (start_blocks, high_blocks) = match gc.catch_up {
            Some(late) => {
                let start = share(late.start).max(floor_blocks + 1).min(set_point_blocks);
                (start, share(late.until).max(set_point_blocks + 2))
            }
            None => {
                let high = set_point_blocks + (set_point_blocks / 2).max(2);
                (high, high)
            }
        };
        Geometry {
            unit_bytes,
            unit_bits: unit_bytes.is_power_of_two().then(|| unit_bytes.ilog2()),
            slc_static_blocks,
            slc_lanes: if slc.is_some() { host_lanes } else { 0 },
            fold_slots,
            slc_block_units: block_units / bits,
            slc_page_units: (nand.page.get() / unit_bytes) as u32 / bits,
            logical_units: (spec.capacity.get() / unit_bytes) as u32,
            page_units: (nand.page.get() / unit_bytes) as u32,
            block_units,
            per_block: Divisor::new(block_units),
            per_page: Divisor::new((nand.page.get() / unit_bytes) as u32),
            blocks,
            dies: nand.dies,
            channels: nand.channels.min(nand.dies),
            host_lanes,
            gc_lanes,
            log_units: log_blocks * block_units,
            row_lanes,
            doubled_units: logs.map_or(0, |logs| logs.open + 1),
            gc_slots: gc.concurrency,
            floor_blocks,
            set_point_blocks,
            high_blocks,
            start_blocks,
            read_ns: nand.read.get(),
            program_ns: nand.program.get(),
            erase_ns: nand.erase.get(),
            transfer_unit_ns: unit_bytes * 1_000_000_000 / nand.channel_rate.get(),
            transfer_map_ns: spec.map.page.get() * 1_000_000_000 / nand.channel_rate.get(),
        }
    }

    /// The map unit that holds a byte.
    #[inline]
    pub fn unit_of(&self, byte: u64) -> u64 {
        match self.unit_bits {
            Some(bits) => byte >> bits,
            None => byte / self.unit_bytes,
        }
    }

    /// Returns whether a number of bytes is a multiple of the map unit.
    #[inline]
    pub fn is_whole(&self, bytes: u64) -> bool {
        self.unit_of(bytes) * self.unit_bytes == bytes
    }

    /// The block of a physical unit.
    #[inline]
    pub fn block_of(&self, physical: u32) -> u32 {
        self.per_block.divide(physical)
    }

    /// Blocks being filled or being cleaned.
    pub fn open_blocks(&self) -> u64 {
        let cache = u64::from(self.slc_lanes) + u64::from(self.fold_slots);
        self.written_blocks() + u64::from(self.gc_lanes) + u64::from(self.gc_slots) + cache
    }

    /// Blocks being filled by the host: its frontier, or the rows of open log units.
    fn written_blocks(&self) -> u64 {
        match self.doubled_units {
            0 => u64::from(self.host_lanes),
            units => u64::from(units) * u64::from(self.unit_blocks()),
        }
    }

    /// Blocks of a log unit; one without log units.
    pub fn unit_blocks(&self) -> u32 {
        (self.log_units / self.block_units.max(1)).max(1)
    }

    /// Erased blocks that the collector must be able to reclaim: the set point, or the level at which catching up ends.
    pub fn pool_blocks(&self) -> u32 {
        if self.start_blocks <= self.set_point_blocks { self.high_blocks } else { self.set_point_blocks }
    }

    /// Blocks that are full in the long run, with data or garbage: neither open nor kept erased.
    pub fn circulating_blocks(&self) -> i64 {
        i64::from(self.blocks)
            - i64::from(self.set_point_blocks)
            - i64::from(self.slc_static_blocks)
            - self.open_blocks() as i64
    }

    /// The live data in open blocks, in blocks, for `data` blocks of live data in total. On average a block being filled is
    /// half full, and a block being cleaned has half of its live units left.
    pub fn live_open_blocks(&self, data: f64) -> f64 {
        let share = data / self.circulating_blocks().max(1) as f64;
        let filled = self.written_blocks() as f64 + f64::from(self.gc_lanes);
        0.5 * (filled + f64::from(self.gc_slots) * share)
    }

    /// Blocks in excess of capacity, open blocks and pool. If negative, the drive cannot work.
    pub fn spare_blocks(&self) -> i64 {
        // Log units do not share blocks, so the last unit occupies whole blocks even if it is incomplete.
        let unit_blocks = self.unit_blocks();
        let data = self.logical_units.div_ceil((unit_blocks * self.block_units).max(1)) * unit_blocks;
        i64::from(self.blocks)
            - i64::from(data)
            - self.open_blocks() as i64
            - i64::from(self.pool_blocks())
            - i64::from(self.slc_static_blocks)
    }

    /// All NAND.
    pub fn raw(&self) -> Bytes {
        Bytes::new(u64::from(self.blocks) * u64::from(self.block_units) * self.unit_bytes)
    }
}
