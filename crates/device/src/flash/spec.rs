//! The description of a simulated flash drive, as the table `[flash]` of a device file writes it ([`FlashSpec`]).
//!
//! Sizes, times and rates only; a file gives the source of each beside it. The derived numbers that a running
//! drive needs (units per block, watermarks in blocks) are in [`Geometry`].

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
    /// The NAND and how it is wired.
    pub nand: Nand,
    /// The mapping table.
    pub map: Map,
    /// The controller and the host link.
    pub controller: Controller,
    /// The write buffer.
    pub write_buffer: WriteBuffer,
    /// Garbage collection.
    pub gc: Gc,
    /// A part written with one bit per cell first, and moved later.
    #[serde(default)]
    pub slc_cache: Option<SlcCache>,
    /// Logical addresses mapped in large units, with a few open for writing.
    #[serde(default)]
    pub log_units: Option<LogUnits>,
    /// A flash translation layer that runs on the host.
    #[serde(default)]
    pub host_ftl: Option<HostFtl>,
}

/// NAND and wiring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Nand {
    /// All NAND that can hold data: parity and spare-area bytes are not counted.
    pub raw: Bytes,
    /// Buses between controller and dies.
    pub channels: u32,
    /// Dies that work at the same time, over all channels.
    pub dies: u32,
    /// What one program operation writes on one die, all planes together.
    pub page: Bytes,
    /// Program operations until a block is full.
    pub pages_per_block: u32,
    /// From read command to data in the die's register.
    pub read: Nanos,
    /// Mean program time of a page.
    pub program: Nanos,
    /// Erase time of a block.
    pub erase: Nanos,
    /// Bytes a channel carries per second.
    pub channel_rate: Bytes,
    /// Erase cycles a block is rated for; no model retires a block that has used them up.
    #[serde(default)]
    pub pe_cycles: Option<Cycles>,
}

/// The mapping table from logical to physical.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Map {
    /// Bytes that one entry maps; smaller writes are read, merged and written.
    pub unit: Bytes,
    /// Memory that holds map pages on demand; the whole table when absent.
    #[serde(default)]
    pub cache: Option<Bytes>,
    /// Whether the controller waits for a map page that it has to read, as firmware of one thread does; otherwise it
    /// serves other requests meanwhile.
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
    /// Added to every request without occupying anything: interface and host software.
    pub latency: Nanos,
    /// Time of the (one) controller per request.
    pub request: Nanos,
    /// Time of the controller per map unit read.
    pub read_unit: Nanos,
    /// Time of the controller per map unit written.
    pub write_unit: Nanos,
    /// Time of the controller per write, on top of `request` and whatever its length: allocating, and writing down where
    /// it went. Writes in many small requests are then slower than the same bytes in few.
    #[serde(default)]
    pub write_request: Nanos,
    /// Time of the controller per map unit that garbage collection moves.
    pub gc_unit: Nanos,
    /// Time of the controller per NAND page of a victim that garbage collection passes over, valid or not: a
    /// controller that reads whole victims to learn what is valid.
    #[serde(default)]
    pub gc_page: Nanos,
    /// Bytes the host link carries per second.
    pub link_rate: Bytes,
}

/// The write buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WriteBuffer {
    /// Its size; at least two NAND pages.
    pub size: Bytes,
    /// Whether it survives a power cut: then a flush has nothing to wait for.
    pub protected: bool,
    /// Whether a flush, or forced unit access, makes writes durable where it does not survive; else both are answered
    /// at once, and change nothing.
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
    /// Which block to clean next.
    pub policy: Policy,
    /// Blocks that are cleaned at the same time.
    pub concurrency: u32,
    /// The share of raw NAND that is kept erased in the long run.
    pub set_point: f64,
    /// A late start: nothing is cleaned until little is left, then the pool is refilled at the host's cost.
    #[serde(default)]
    pub catch_up: Option<CatchUp>,
    /// Cleaning while the drive is idle.
    #[serde(default)]
    pub idle: Option<Idle>,
}

/// Which block to clean next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The block with the fewest valid pages.
    Greedy,
    /// The best of `d` blocks drawn at random (Van Houdt).
    DChoices(u32),
    /// The block that was filled first.
    Fifo,
    /// Any block.
    Random,
    /// The block with the highest (1 − u)·age / 2u (Rosenblum and Ousterhout).
    CostBenefit,
}

/// A late start of garbage collection and how the drive catches up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CatchUp {
    /// Cleaning starts when this share of raw NAND is left erased.
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
    /// How long nothing must have happened.
    pub after: Nanos,
    /// Cleaning goes on until this share of raw NAND is erased.
    pub until: f64,
}

impl FlashSpec {
    /// What the drive keeps acknowledged writes in.
    pub(crate) fn cache(&self) -> Cache {
        let WriteBuffer { size, protected, honours_flush } = self.write_buffer;
        if protected { Cache::Protected } else { Cache::Volatile { size, honours_flush } }
    }

    /// Gives the write buffer another kind.
    pub(crate) fn set_cache(&mut self, kind: CacheKind) {
        self.write_buffer.protected = kind == CacheKind::Protected;
        self.write_buffer.honours_flush = kind != CacheKind::Lying;
    }

    /// Map units in an erase block.
    pub fn units_per_block(&self) -> u64 {
        self.nand.page.get() / self.map.unit.get() * u64::from(self.nand.pages_per_block)
    }

    /// Memory of the host that the driver takes for the map; nothing where the drive maps itself.
    pub fn host_memory(&self) -> Bytes {
        let entries = self.capacity.get() / self.map.unit.get();
        self.host_ftl.as_ref().map_or(Bytes::ZERO, |ftl| ftl.bytes_per_entry * entries)
    }

    /// Bytes of an erase block.
    pub fn block_bytes(&self) -> Bytes {
        self.nand.page * u64::from(self.nand.pages_per_block)
    }

    /// The same drive, `factor` times smaller: capacity, NAND and map cache shrink, timings and dies do not.
    ///
    /// Open blocks do not shrink either, and hold live data. So raw NAND is chosen such that the live share of
    /// the full blocks, and with it write amplification, stays the same on a drive filled with data. A
    /// description that does not validate is given back as it is.
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
        // A drive hardly larger than its open blocks has no share to keep.
        let wanted = wanted.round().clamp(1.0, f64::from(full_size.blocks)) as i64;
        let mut blocks = wanted + full_size.open_blocks() as i64;
        // What is held back depends on the number of blocks; a few steps settle it.
        for _ in 0..8 {
            spec.nand.raw = block * blocks as u64;
            blocks = (blocks + wanted - Geometry::new(&spec).circulating_blocks()).max(1);
        }
        spec
    }
}
