//! Optional parts of a description: an SLC cache, log units, a translation layer on the host.
//!
//! The modules `slc` and `log_units` implement the first two; `device` counts the costs on the host.

use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Blocks that are written fast, with one bit per cell, and later folded into dense blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SlcCache {
    /// The capacity of the static part with one bit per cell, rounded down to blocks.
    pub size: Bytes,
    /// The share of the other erased blocks that the cache may also use; none if absent.
    #[serde(default)]
    pub dynamic: f64,
    /// Bits per cell outside the cache, which is the ratio of dense to cached capacity of a block or page.
    pub bits_per_cell: u32,
    /// Time from the read command to data in the die's register, with one bit per cell.
    pub read: Nanos,
    /// Program time with one bit per cell, for `nand.page / bits-per-cell` bytes.
    pub program: Nanos,
    /// The handling of writes while the cache is full.
    pub when_full: WhenFull,
    /// The idle time after which the cache is folded in the background; never if absent.
    #[serde(default)]
    pub fold_after: Option<Nanos>,
}

/// The handling of writes while the SLC cache is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// Write to dense blocks.
    Direct,
    /// Wait until the oldest block of the cache is folded.
    Fold,
}

/// Addresses mapped in large units (block mapping), of which a few are open for writing. Each open unit has its own row
/// of blocks. The map unit must be a NAND page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogUnits {
    /// Bytes of a unit; a multiple of the erase block.
    pub unit: Bytes,
    /// The number of open units; 1 to 1024.
    pub open: u32,
}

/// Processor time and memory of the host for a translation layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostFtl {
    /// Processor time of the host per request.
    pub cpu_per_request: Nanos,
    /// Processor time of the host per map unit read or written.
    #[serde(default)]
    pub cpu_per_unit: Nanos,
    /// Processor time of the host per map unit that garbage collection moves.
    #[serde(default)]
    pub cpu_per_moved_unit: Nanos,
    /// Bytes of the host's memory per map unit of the capacity.
    pub bytes_per_entry: Bytes,
}
