//! The parts of a description that only some drives have: an SLC cache, log units, a translation layer on the host.
//!
//! A drive without them has none of their cost. Leaves out what they do; see `slc`, `log_units` and `host_ftl`.

use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Blocks that are written with one bit per cell, which is fast, and folded into dense ones later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SlcCache {
    /// What blocks set aside for it hold with one bit per cell; rounded down to blocks.
    pub size: Bytes,
    /// The share of the other erased blocks that it may take as well; nothing when absent.
    #[serde(default)]
    pub dynamic: f64,
    /// Bits per cell outside the cache: a block holds this many times less in it, and so does a page.
    pub bits_per_cell: u32,
    /// From read command to data in the die's register, with one bit per cell.
    pub read: Nanos,
    /// Program time with one bit per cell; it writes `nand.page / bits-per-cell`.
    pub program: Nanos,
    /// What a write does that finds the cache full.
    pub when_full: WhenFull,
    /// How long nothing must have happened before it is emptied; never by itself when absent.
    #[serde(default)]
    pub fold_after: Option<Nanos>,
}

/// What a write does that finds the SLC cache full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// It goes to dense blocks.
    Direct,
    /// It waits until the oldest block of the cache is folded.
    Fold,
}

/// Addresses mapped in large units (block mapping), of which a few are open for writing. Each open one has a row of
/// blocks to itself. The map unit must be a NAND page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogUnits {
    /// Bytes that stay together; a multiple of an erase block.
    pub unit: Bytes,
    /// How many are open at the same time; 1 to 1024.
    pub open: u32,
}

/// What a translation layer on the host takes of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostFtl {
    /// Time of the host's processors per request.
    pub cpu_per_request: Nanos,
    /// The same per map unit read or written.
    #[serde(default)]
    pub cpu_per_unit: Nanos,
    /// The same per map unit that garbage collection moves.
    #[serde(default)]
    pub cpu_per_moved_unit: Nanos,
    /// Bytes of the host's memory per map unit of the capacity.
    pub bytes_per_entry: Bytes,
}
