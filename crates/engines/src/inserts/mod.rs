//! Inserts by many connections into one growing index, as a storage engine makes them, in virtual time.
//!
//! ```text
//!   connections ──► right edge of the index ──► log buffer ──► log writer ──────────► log file
//!   (take turns)    (one at a time; a page      dirty pages ─► checkpoint, gathered ─► data files
//!                    of a data file each row)
//! ```
//!
//! The engine is that of `docs/models/inserts.md`: rows arrive in the order of the key, so every row goes to the
//! last page, and a row fills its page. Two devices, or two ends of one, hold data and log. Leaves out reads, rows
//! that share a page, updates, and recovery; one turn of a connection is one extent of eight rows.

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
/// Bytes of an extent, which is what a data file grows by.
pub const EXTENT: u64 = PAGE * EXTENT_PAGES;

/// What is inserted, and by what kind of engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inserts {
    /// Connections that insert.
    pub connections: u32,
    /// Rows that each of them inserts; a row fills a page.
    pub rows: u64,
    /// Rows of a transaction.
    pub commit: u64,
    /// Data files.
    pub data_files: u32,
    /// Bytes of all data files together.
    pub database: Bytes,
    /// What a row costs.
    pub row: RowCost,
    /// The log.
    pub log: Log,
    /// When changed pages are written.
    pub checkpoint: Checkpoint,
}

/// What a row costs the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowCost {
    /// Time of the right edge of the index: one connection after the other.
    pub insert: Nanos,
    /// More of it where the page comes from a data file that another connection takes pages from too.
    pub hand_off: Nanos,
    /// Time of the connection itself, beside others.
    pub connection: Nanos,
    /// Bytes of log.
    pub log: Bytes,
}

/// The log file and how it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// Bytes of the file, written round and round.
    pub size: Bytes,
    /// Writes begin and end at multiples of this.
    pub align: Bytes,
    /// The most bytes of one write: blocks that are ready together go together.
    pub write: Bytes,
    /// Writes in flight.
    pub outstanding: u32,
}

/// When and how changed pages are written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// A checkpoint begins when so much is changed and not written.
    pub after: Bytes,
    /// Connections wait when so much is.
    pub memory: Bytes,
    /// The most bytes of one write: neighbouring pages go together.
    pub gather: Bytes,
    /// Writes in flight.
    pub outstanding: u32,
}

impl Inserts {
    /// Rows of all connections together.
    pub fn total_rows(&self) -> u64 {
        self.rows * u64::from(self.connections)
    }

    /// Bytes of a data file.
    pub fn file_size(&self) -> Bytes {
        (self.database / u64::from(self.data_files.max(1))).align_down(Bytes::new(EXTENT))
    }

    /// The same with a database of at most `room`, where smaller files still hold the rows.
    pub fn with_database_in(&self, room: Bytes) -> Option<Inserts> {
        let mut smaller = self.clone();
        smaller.database = self.database.min(room);
        // Files are filled in turn: one may be an extent ahead of another for each connection.
        let files = u64::from(self.data_files);
        let extents = self.rows.div_ceil(EXTENT_PAGES) * u64::from(self.connections);
        (smaller.file_size().get() >= extents.div_ceil(files) * EXTENT).then_some(smaller)
    }

    /// The same with sizes divided by `factor`; rows cost what they cost.
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

    /// Bytes of the rows.
    pub fn data(&self) -> Bytes {
        Bytes::new(self.total_rows() * PAGE)
    }
}
