//! A log-structured block layer: all writes go to the medium in sequence.
//!
//! ```text
//!   blocks of 4 KiB ─► Disk ─► Log: map, segments, streams ─► Medium: a file, a block device, a model
//! ```
//!
//! Flushed writes survive a power cut. Of later writes, a prefix in the order of writing survives. Damaged blocks are
//! reported as errors and never return wrong data. This crate has no protocols, threads or files.

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
