//! A log-structured block layer: whatever is written, wherever, goes to the medium in sequence.
//!
//! ```text
//!   blocks of 4 KiB ─► Disk ─► Log: map, segments, streams ─► Medium: a file, a block device, a model
//! ```
//!
//! What was flushed survives a power cut; what was not comes back as a prefix of the order in which it was written; what the
//! medium spoils is an error, never wrong data. Leaves out protocols, threads, and files.

mod aligned;
pub mod check;
pub mod closed_form;
pub mod disk;
mod error;
pub mod format;
pub mod log;
pub mod medium;
pub mod reader;
mod recover;
pub mod resize;
mod scan;
pub mod virtual_time;

pub use aligned::Aligned;
pub use disk::{Disk, Options};
pub use error::{LogError, blocks};
pub use format::{BLOCK, Lba};
pub use medium::Medium;
pub use virtual_time::LogDevice;
