//! The errors of a log disk.

use crate::format::FormatError;
use crate::format::geometry::GeometryError;
use std::io;

/// A number of blocks, in words.
pub fn blocks(count: u64) -> String {
    if count == 1 { "1 block".to_owned() } else { format!("{count} blocks") }
}

/// An error of a log disk.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The medium failed.
    #[error("{what}: {source}")]
    Medium {
        /// The operation.
        what: &'static str,
        /// The medium's error.
        source: io::Error,
    },
    /// The medium does not hold a readable log disk.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// No log disk has these sizes.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// Neither checkpoint can be read, for these reasons.
    #[error("neither of the two checkpoints can be read ({}; {})", .0[0], .0[1])]
    NoCheckpoint(Box<[FormatError; 2]>),
    /// This many blocks in durable slots cannot be read, and some of these blocks are unknown.
    #[error(
        "damaged: {} of the flushed end of the log cannot be read, and it is unknown which: opening would return \
         old data", blocks(*.0)
    )]
    Damaged(u64),
    /// A write or a flush failed before.
    #[error(
        "an earlier write or flush failed, so the contents of the medium are unknown: open the log disk again"
    )]
    Broken,
    /// A block past the end.
    #[error("block {block} is past the end of the disk, which has {blocks}")]
    OutOfRange {
        /// The first such block.
        block: u64,
        /// The number of blocks.
        blocks: u32,
    },
    /// The data of a block is lost: its checksum is wrong, or its segment holds an earlier generation.
    #[error("block {0} cannot be read: its checksum is wrong, or it is out of date")]
    Unreadable(u32),
    /// No segment can be cleaned, although the reserve should suffice.
    #[error("no segment can be freed: {dead} are waiting, {stuck} cannot be cleaned")]
    Exhausted {
        /// Segments without live slots.
        dead: usize,
        /// Segments whose live slots could not be found.
        stuck: usize,
    },
}
