//! The description of a simulated flash drive, as a device file writes it ([`DeviceSpec`]).
//!
//! Sizes, times and rates only; a file gives the source of each beside it. Leaves out disks and arrays. The
//! derived numbers that a running drive needs (units per block, watermarks in blocks) are in
//! [`crate::flash::Geometry`].

use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// A simulated flash drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DeviceSpec {
    /// The name it is called by.
    pub name: String,
    /// A line for people: maker, model, year.
    pub title: String,
    /// What the host may address.
    pub capacity: Bytes,
    /// The published numbers that were used to choose parameters, as `study:row` (`e02:3`).
    #[serde(default)]
    pub fitted_to: Vec<String>,
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
    /// Erase cycles a block is rated for.
    #[serde(default)]
    pub pe_cycles: Option<u32>,
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
    /// Time of the controller per map unit that garbage collection moves.
    pub gc_unit: Nanos,
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

/// A description that no drive can have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SpecError {
    /// The key at fault, dotted: `nand.page`.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
}

impl DeviceSpec {
    /// Checks that the parts fit together.
    ///
    /// # Errors
    /// [`SpecError`] names the key that does not fit.
    pub fn validate(&self) -> Result<(), SpecError> {
        let fail = |key, message: String| Err(SpecError { key, message });
        let (nand, map, gc) = (&self.nand, &self.map, &self.gc);
        if map.unit.get() < 512 || !map.unit.get().is_multiple_of(512) {
            return fail("map.unit", format!("{} is not a multiple of 512 bytes", map.unit));
        }
        if nand.page.get() == 0 || !nand.page.get().is_multiple_of(map.unit.get()) {
            return fail("nand.page", format!("{} is not a multiple of the map unit {}", nand.page, map.unit));
        }
        if nand.pages_per_block == 0 || !self.units_per_block().is_multiple_of(64) {
            return fail("nand.pages-per-block", "a block must hold a multiple of 64 map units".to_owned());
        }
        for (key, n) in [("nand.channels", nand.channels), ("nand.dies", nand.dies), ("gc.concurrency", gc.concurrency)] {
            if n == 0 {
                return fail(key, "must be at least 1".to_owned());
            }
        }
        for (key, rate) in [("nand.channel-rate", nand.channel_rate), ("controller.link-rate", self.controller.link_rate)] {
            if rate == Bytes::ZERO {
                return fail(key, "must be above zero bytes per second".to_owned());
            }
        }
        if self.write_buffer.size.get() < 2 * nand.page.get() {
            return fail("write-buffer.size", format!("must hold two NAND pages ({})", nand.page * 2));
        }
        let share = |key, value: f64| {
            if (0.0..0.5).contains(&value) { Ok(()) } else { fail(key, format!("{value} is not a share from 0 to 0.5")) }
        };
        share("gc.set-point", gc.set_point)?;
        if let Some(catch_up) = gc.catch_up {
            share("gc.catch-up.start", catch_up.start)?;
            share("gc.catch-up.until", catch_up.until)?;
            if catch_up.start >= catch_up.until || gc.set_point >= catch_up.until || catch_up.start > gc.set_point {
                return fail("gc.catch-up", "needs start ≤ set-point < until".to_owned());
            }
            if catch_up.pace <= 1.0 {
                return fail("gc.catch-up.pace", "must be above 1, or the pool never refills".to_owned());
            }
        }
        if let Some(idle) = gc.idle {
            share("gc.idle.until", idle.until)?;
        }
        if gc.policy == Policy::DChoices(0) {
            return fail("gc.policy", "d-choices needs at least 1".to_owned());
        }
        if nand.raw.get() / map.unit.get() >= u64::from(u32::MAX) {
            return fail("nand.raw", "more than 2^32 map units; use a larger map unit or a scale".to_owned());
        }
        let geometry = crate::flash::Geometry::new(self);
        if geometry.spare_blocks() < 4 {
            return fail(
                "nand.raw",
                format!(
                    "{} leaves no room to clean: {} of capacity and {} open or reserved blocks of {} need more",
                    nand.raw,
                    self.capacity,
                    geometry.floor_blocks,
                    self.block_bytes()
                ),
            );
        }
        Ok(())
    }

    /// Map units in an erase block.
    pub fn units_per_block(&self) -> u64 {
        self.nand.page.get() / self.map.unit.get() * u64::from(self.nand.pages_per_block)
    }

    /// Bytes of an erase block.
    pub fn block_bytes(&self) -> Bytes {
        self.nand.page * u64::from(self.nand.pages_per_block)
    }

    /// The same drive, `factor` times smaller: capacity, NAND and map cache shrink, timings and dies do not.
    ///
    /// Open and reserved blocks do not shrink either, so that the share of blocks in circulation, and with it
    /// write amplification, stays the same.
    pub fn scaled(&self, factor: u64) -> DeviceSpec {
        let mut spec = self.clone();
        if factor <= 1 {
            return spec;
        }
        let unit = self.map.unit;
        spec.capacity = (self.capacity / factor).align_down(unit);
        let block = self.block_bytes().get();
        let blocks = self.nand.raw.get() / block;
        let fixed = crate::flash::Geometry::new(self).open_blocks().min(blocks);
        spec.nand.raw = Bytes::new((fixed + (blocks - fixed) / factor) * block);
        spec.map.cache = self.map.cache.map(|cache| (cache / factor).align_up(self.map.page));
        spec
    }
}
