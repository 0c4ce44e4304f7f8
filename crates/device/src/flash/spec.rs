//! The description of a simulated flash drive ([`FlashSpec`]), which is the table `[flash]` of a device file.
//!
//! It has sizes, times and rates. Device files give the source of each in a comment. Derived numbers, such as units per
//! block and watermarks in blocks, are in [`Geometry`].

mod cycles;
mod extras;
mod validate;

pub use self::extras::{HostFtl, LogUnits, SlcCache, WhenFull};
use super::Geometry;
pub use crate::spec::SpecError;
use crate::spec::durability::{Cache, CacheKind};
pub use cycles::{Cycles, CyclesError};
use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// A simulated flash drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FlashSpec {
    /// Bytes the host may address.
    pub capacity: Bytes,
    /// NAND, dies and channels.
    pub nand: Nand,
    /// The mapping table.
    pub map: Map,
    /// The controller and the host link.
    pub controller: Controller,
    /// The write buffer.
    pub write_buffer: WriteBuffer,
    /// Garbage collection.
    pub gc: Gc,
    /// An SLC cache.
    #[serde(default)]
    pub slc_cache: Option<SlcCache>,
    /// Log units.
    #[serde(default)]
    pub log_units: Option<LogUnits>,
    /// A flash translation layer that runs on the host.
    #[serde(default)]
    pub host_ftl: Option<HostFtl>,
}

/// NAND, dies and channels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Nand {
    /// All NAND that can hold data: parity and spare-area bytes are not counted.
    pub raw: Bytes,
    /// Buses between controller and dies.
    pub channels: u32,
    /// Dies that work at the same time, over all channels.
    pub dies: u32,
    /// Bytes that one program operation writes on one die, over all planes.
    pub page: Bytes,
    /// Program operations per block.
    pub pages_per_block: u32,
    /// Time from the read command to data in the die's register.
    pub read: Nanos,
    /// Mean program time of a page.
    pub program: Nanos,
    /// Erase time of a block.
    pub erase: Nanos,
    /// Bytes per second of a channel.
    pub channel_rate: Bytes,
    /// Rated erase cycles of a block. No model retires blocks.
    #[serde(default)]
    pub pe_cycles: Option<Cycles>,
}

/// The mapping table from logical to physical units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Map {
    /// Bytes that one entry maps; smaller writes are read, merged and written.
    pub unit: Bytes,
    /// Memory for the pages of a demand-paged map; the whole table if absent.
    #[serde(default)]
    pub cache: Option<Bytes>,
    /// True if the controller waits while it reads a map page, like single-threaded firmware. Otherwise it serves other
    /// requests meanwhile.
    #[serde(default)]
    pub blocking: bool,
    /// Bytes of a page of the table, four per entry.
    #[serde(default = "default_map_page")]
    pub page: Bytes,
}

fn default_map_page() -> Bytes {
    Bytes::kib(4)
}

/// The controller and the host link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Controller {
    /// Latency of interface and host software, added to every request. It does not occupy the controller.
    pub latency: Nanos,
    /// Time of the controller per request. There is one controller.
    pub request: Nanos,
    /// Time of the controller per map unit read.
    pub read_unit: Nanos,
    /// Time of the controller per map unit written.
    pub write_unit: Nanos,
    /// Additional time of the controller per write of any length, for allocation and the journal of the map. It makes many
    /// small writes slower than the same bytes in few writes.
    #[serde(default)]
    pub write_request: Nanos,
    /// Time of the controller per map unit that garbage collection moves.
    pub gc_unit: Nanos,
    /// Time of the controller per NAND page of a victim, valid or not, for controllers that read whole victims to find the
    /// valid units.
    #[serde(default)]
    pub gc_page: Nanos,
    /// Bytes per second of the host link.
    pub link_rate: Bytes,
}

/// The write buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WriteBuffer {
    /// Size; at least two NAND pages.
    pub size: Bytes,
    /// True if the buffer survives a power cut. A flush then completes at once.
    pub protected: bool,
    /// True if flushes and forced unit access make writes durable, for a buffer that does not survive a power cut. Otherwise
    /// both complete at once without effect.
    #[serde(default = "honours_flush")]
    pub honours_flush: bool,
}

fn honours_flush() -> bool {
    true
}

/// Garbage collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Gc {
    /// The selection of the next block to clean.
    pub policy: Policy,
    /// The number of blocks cleaned concurrently.
    pub concurrency: u32,
    /// The share of raw NAND that is kept erased in the long run.
    pub set_point: f64,
    /// A late start: cleaning begins when few erased blocks are left, and then slows the host until the pool is refilled.
    #[serde(default)]
    pub catch_up: Option<CatchUp>,
    /// Cleaning while the drive is idle.
    #[serde(default)]
    pub idle: Option<Idle>,
}

/// The selection of the next block to clean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The block with the fewest valid pages.
    Greedy,
    /// The best of `d` blocks drawn at random (Van Houdt).
    DChoices(u32),
    /// The block that was filled first.
    Fifo,
    /// A random full block.
    Random,
    /// The block with the highest (1 − u)·age / 2u (Rosenblum and Ousterhout).
    CostBenefit,
}

/// A late start of garbage collection, and its pace while it catches up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CatchUp {
    /// Cleaning starts when only this share of raw NAND is erased.
    pub start: f64,
    /// Catching up ends when this share is erased again.
    pub until: f64,
    /// Units reclaimed per unit the host writes while catching up; above 1.
    pub pace: f64,
}

/// Cleaning while idle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Idle {
    /// The idle time before cleaning begins.
    pub after: Nanos,
    /// Cleaning ends when this share of raw NAND is erased.
    pub until: f64,
}

impl FlashSpec {
    /// The cache of acknowledged writes.
    pub(crate) fn cache(&self) -> Cache {
        let WriteBuffer { size, protected, honours_flush } = self.write_buffer;
        if protected { Cache::Protected } else { Cache::Volatile { size, honours_flush } }
    }

    /// Changes the kind of the write buffer.
    pub(crate) fn set_cache(&mut self, kind: CacheKind) {
        self.write_buffer.protected = kind == CacheKind::Protected;
        self.write_buffer.honours_flush = kind != CacheKind::Lying;
    }

    /// Map units in an erase block.
    pub fn units_per_block(&self) -> u64 {
        self.nand.page.get() / self.map.unit.get() * u64::from(self.nand.pages_per_block)
    }

    /// Memory of the host for the map; none if the drive has its own map.
    pub fn host_memory(&self) -> Bytes {
        let entries = self.capacity.get() / self.map.unit.get();
        self.host_ftl.as_ref().map_or(Bytes::ZERO, |ftl| ftl.bytes_per_entry * entries)
    }

    /// Bytes of an erase block.
    pub fn block_bytes(&self) -> Bytes {
        self.nand.page * u64::from(self.nand.pages_per_block)
    }

    /// The drive at `1 / factor` of its size. Capacity, NAND and map cache shrink; timings and dies stay the same.
    ///
    /// The number of open blocks, which hold live data, stays the same, too. Raw NAND is therefore chosen so that the share of
    /// live data in full blocks, and with it write amplification, does not change on a full drive. An invalid description is
    /// returned unchanged.
    pub fn scaled(&self, factor: u64) -> FlashSpec {
        let mut spec = self.clone();
        if factor <= 1 || self.validate().is_err() {
            return spec;
        }
        spec.capacity = (self.capacity / factor).align_down(self.map.unit);
        if let Some(slc) = &mut spec.slc_cache {
            slc.size = slc.size / factor;
        }
        spec.map.cache = self.map.cache.map(|cache| (cache / factor).align_up(self.map.page));
        let block = self.block_bytes();
        let full_size = Geometry::new(self);
        let data = self.capacity.get() as f64 / block.get() as f64;
        let held = full_size.live_open_blocks(data);
        let wanted = full_size.circulating_blocks() as f64 * (data / factor as f64 - held) / (data - held);
        // A drive that is hardly larger than its open blocks has no such share.
        let wanted = wanted.round().clamp(1.0, f64::from(full_size.blocks)) as i64;
        let mut blocks = wanted + full_size.open_blocks() as i64;
        // The reserved blocks depend on the number of blocks, so the equation is solved by iteration.
        for _ in 0..8 {
            spec.nand.raw = block * blocks as u64;
            blocks = (blocks + wanted - Geometry::new(&spec).circulating_blocks()).max(1);
        }
        spec
    }
}
