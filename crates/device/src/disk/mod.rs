//! A simulated hard disk: a head, a turning surface, a queue, and memory for reading ahead and writing behind.
//!
//! ```text
//!   request ─► read-ahead (hit?) ─► queue ─► scheduler ─┐
//!        └───► write cache ─► dirty extents ────────────┴─► seek, turn, transfer
//! ```
//!
//! Equations and sources: `docs/models/hdd.md`. Leaves out head switches (they are part of the rated rate), reading
//! a track from wherever the head comes down, vibration, bad sectors and their spares, power saving and spin-up, and
//! recalibration.

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
