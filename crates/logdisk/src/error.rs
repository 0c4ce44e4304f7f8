//! What can go wrong with a log disk, in words.

use crate::format::FormatError;
use crate::format::geometry::GeometryError;
use std::io;

/// So many blocks, in words.
pub fn blocks(count: u64) -> String {
    if count == 1 { "1 block".to_owned() } else { format!("{count} blocks") }
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The medium failed.
    #[error("{what}: {source}")]
    Medium {
        /// What was being done.
        what: &'static str,
        /// How it failed.
        source: io::Error,
    },
    /// The bytes on the medium are not those of a log disk that can be opened.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// There can be no log of these sizes.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// Neither checkpoint can be read: what is wrong with each.
    #[error("neither of the two checkpoints can be read ({}; {})", .0[0], .0[1])]
    NoCheckpoint(Box<[FormatError; 2]>),
    /// Slots of so many blocks were durable and cannot be read, and nothing says of some of them which blocks those were.
    #[error(
        "damaged: {} of the flushed end of the log cannot be read, and nothing says which that is: opening would give old data for \
         new", blocks(*.0)
    )]
    Damaged(u64),
    /// A write or a flush failed before.
    #[error("a write or a flush failed before, so what is there is not known: open the log disk again")]
    Broken,
    /// A block past the end.
    #[error("block {block} is past the end of the disk, which has {blocks}")]
    OutOfRange {
        /// The first such block.
        block: u64,
        /// How many there are.
        blocks: u32,
    },
    /// The data of a block is lost: its checksum does not fit, or an earlier generation of its segment is there.
    #[error("block {0} cannot be read: its checksum does not fit, or it is out of date")]
    Unreadable(u32),
    /// There is nothing left to clean, although there should be.
    #[error("no segment can be made free: {dead} wait, {stuck} cannot be cleaned")]
    Exhausted {
        /// Segments without anything live.
        dead: usize,
        /// Segments in which something that counts as live was not found.
        stuck: usize,
    },
}
