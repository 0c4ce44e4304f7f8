//! A model of a storage engine in virtual time: many connections insert into one growing index.
//!
//! ```text
//!   connections ──► right edge of the index ──► log buffer ──► log writer ──────────► log file
//!   (take turns)    (one at a time; a page      dirty pages ─► checkpoint, gathered ─► data files
//!                    of a data file each row)
//! ```
//!
//! `docs/models/inserts.md` describes the model. Rows arrive in key order, so every row goes to the last page, and a
//! row fills a page. Data and log are on two devices, or at two offsets of one device. In one turn, a connection
//! inserts an extent of eight rows.
//!
//! # Not modelled
//!
//! Reads, rows that share a page, updates and recovery.

mod allocation;
mod checkpoint;
mod engine;
mod log;
#[cfg(test)]
mod tests;

pub use engine::run;

use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Bytes of a page.
pub const PAGE: u64 = 8192;
/// Pages of an extent.
pub const EXTENT_PAGES: u64 = 8;
/// Bytes of an extent, the unit by which a data file grows.
pub const EXTENT: u64 = PAGE * EXTENT_PAGES;

/// The workload, and the parameters of the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inserts {
    /// Number of connections.
    pub connections: u32,
    /// Rows per connection. A row fills a page.
    pub rows: u64,
    /// Rows per transaction.
    pub commit: u64,
    /// Number of data files.
    pub data_files: u32,
    /// Bytes of all data files together.
    pub database: Bytes,
    /// Costs of a row.
    pub row: RowCost,
    /// Parameters of the log.
    pub log: Log,
    /// Parameters of the checkpoint.
    pub checkpoint: Checkpoint,
}

/// Costs of one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowCost {
    /// Time at the right edge of the index, which only one connection can use at a time.
    pub insert: Nanos,
    /// Additional time at the right edge if another connection takes pages of the same data file.
    pub hand_off: Nanos,
    /// Time of the connection outside the right edge, concurrent with other connections.
    pub connection: Nanos,
    /// Bytes of log records.
    pub log: Bytes,
}

/// Parameters of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// Size of the log file, which is a ring.
    pub size: Bytes,
    /// Alignment of the offset and length of writes.
    pub align: Bytes,
    /// Maximum bytes of one write. Consecutive blocks that are ready share a write.
    pub write: Bytes,
    /// Maximum writes in flight.
    pub outstanding: u32,
}

/// Parameters of the checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Dirty bytes at which a checkpoint begins.
    pub after: Bytes,
    /// Dirty bytes at which connections wait.
    pub memory: Bytes,
    /// Maximum bytes of one write. Neighbouring pages share a write.
    pub gather: Bytes,
    /// Maximum writes in flight.
    pub outstanding: u32,
}

impl Inserts {
    /// Total number of rows of all connections.
    pub fn total_rows(&self) -> u64 {
        self.rows * u64::from(self.connections)
    }

    /// Size of a data file.
    pub fn file_size(&self) -> Bytes {
        (self.database / u64::from(self.data_files.max(1))).align_down(Bytes::new(EXTENT))
    }

    /// Returns a copy whose database is at most `room` large; `None` if the rows do not fit in the smaller files.
    pub fn with_database_in(&self, room: Bytes) -> Option<Inserts> {
        let mut smaller = self.clone();
        smaller.database = self.database.min(room);
        // Extents come from the files in turn, so every file must hold its share of the extents, rounded up.
        let files = u64::from(self.data_files);
        let extents = self.rows.div_ceil(EXTENT_PAGES) * u64::from(self.connections);
        (smaller.file_size().get() >= extents.div_ceil(files) * EXTENT).then_some(smaller)
    }

    /// Returns a copy with all sizes divided by `factor`. The costs of a row are unchanged.
    pub fn scaled(&self, factor: u64) -> Inserts {
        let mut smaller = self.clone();
        let extent = Bytes::new(EXTENT);
        let less = |size: Bytes, least: Bytes| (size / factor).align_down(extent).max(least);
        smaller.rows = (self.rows / factor).max(1);
        smaller.database = (self.database / factor).max(Bytes::new(
            smaller.rows.div_ceil(EXTENT_PAGES) * EXTENT * u64::from(self.connections + self.data_files),
        ));
        smaller.log.size = less(self.log.size, self.log.write);
        smaller.checkpoint.after = less(self.checkpoint.after, extent);
        smaller.checkpoint.memory = less(self.checkpoint.memory, smaller.checkpoint.after + extent);
        smaller
    }

    /// Total size of the rows.
    pub fn data(&self) -> Bytes {
        Bytes::new(self.total_rows() * PAGE)
    }
}
