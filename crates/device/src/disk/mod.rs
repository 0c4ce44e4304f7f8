//! A simulated hard disk: a head, a turning surface, a queue, read-ahead memory and a write cache.
//!
//! ```text
//!   request ─► read-ahead (hit?) ─► queue ─► scheduler ─┐
//!        └───► write cache ─► dirty extents ────────────┴─► seek, turn, transfer
//! ```
//!
//! Equations and sources: `docs/models/hdd.md`.
//!
//! # Not modelled
//! Head switches (the rated rate includes them), reading a track from the middle, vibration, bad and spare sectors,
//! power saving, spin-up, and recalibration.

mod device;
mod mechanism;
mod queue;
mod read_ahead;
mod seek;
pub mod spec;
mod surface;
mod write_cache;

pub use device::SimulatedDisk;
pub use seek::SeekCurve;
pub use spec::DiskSpec;
pub use surface::Surface;

/// Bytes of a sector.
const SECTOR: u64 = 512;
