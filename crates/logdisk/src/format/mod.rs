//! The format of a log disk: superblock, checkpoints, marks, segments, slots. `docs/formats.md` specifies every byte.
//!
//! ```text
//!   superblock ×2 │ checkpoint A │ checkpoint B │ marks │ segment 0 │ segment 1 │ …
//!                                                          └─ frames of 1 MiB, of 254 slots: header, data …, summary
//! ```
//!
//! This module only encodes, decodes and validates; module `disk` decides when to write.

pub mod checkpoint;
mod fields;
pub mod geometry;
pub mod mark;
pub mod slot;
pub mod summary;
pub mod superblock;
pub mod unmaps;

pub use checkpoint::Checkpoint;
pub use geometry::Geometry;
pub use mark::Mark;
pub use slot::{Header, Kind, Predecessor, Seq, Slot};
pub use superblock::Superblock;

/// Size of a logical block in bytes, and the unit of I/O.
pub const BLOCK: usize = 4096;

/// The version that this code writes.
pub const VERSION: u32 = 3;

/// The previous version, which can be read. It has no marks, and is upgraded by the first write if there is room.
pub const WITHOUT_MARKS: u32 = 2;

/// The number of a logical block.
pub type Lba = u32;

/// Invalid bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Not a log disk.
    #[error("not a log disk: the superblock begins with other bytes")]
    NotOurs,
    /// An unknown version.
    #[error(
        "this log disk has version {0} of the format; this program reads versions {WITHOUT_MARKS} and {VERSION}"
    )]
    Version(u32),
    /// A wrong checksum.
    #[error("the checksum of the {0} is wrong")]
    Checksum(&'static str),
    /// An invalid value.
    #[error("the {what} has an invalid {name}, {value}: {why}")]
    Value {
        /// The structure.
        what: &'static str,
        /// The field.
        name: &'static str,
        /// The invalid value.
        value: u64,
        /// The rule that it violates.
        why: &'static str,
    },
}
