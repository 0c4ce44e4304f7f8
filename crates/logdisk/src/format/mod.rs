//! The bytes on the medium: superblock, checkpoints, segments, slots. `docs/formats.md` has them byte by byte.
//!
//! ```text
//!   superblock ×2 │ checkpoint A │ checkpoint B │ marks │ segment 0 │ segment 1 │ …
//!                                                          └─ frames of 1 MiB, of 254 slots: header, data …, summary
//! ```
//!
//! Only turns values into bytes and back, and says why bytes are not what they should be. Leaves out when anything is written.

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
pub use slot::{Before, Header, Kind, Seq, Slot};
pub use superblock::Superblock;

/// Bytes of a logical block, and the unit in which the medium is written.
pub const BLOCK: usize = 4096;

/// The version that this code writes.
pub const VERSION: u32 = 3;

/// The version before, which is read too: it has no marks, and gets them with the first write where there is room.
pub const WITHOUT_MARKS: u32 = 2;

/// A block of the disk that the log layer offers.
pub type Lba = u32;

/// Why bytes are not taken for what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Something else is there.
    #[error("there is no log disk here: the superblock begins with other bytes")]
    NotOurs,
    /// A version that this program does not read.
    #[error(
        "this log disk has version {0} of the format; this program reads versions {WITHOUT_MARKS} and {VERSION}"
    )]
    Version(u32),
    /// A checksum does not fit.
    #[error("the checksum of the {0} does not fit its bytes")]
    Checksum(&'static str),
    /// A value makes no sense.
    #[error("the {what} says {name} {value}, which cannot be: {why}")]
    Value {
        /// The structure.
        what: &'static str,
        /// The field.
        name: &'static str,
        /// What it says.
        value: u64,
        /// What it must be.
        why: &'static str,
    },
}
