//! A simulated flash drive: a page-mapped FTL over dies and channels, in virtual time.
//!
//! ```text
//!  request ─► controller ─► map (cache) ─► write buffer ─► host frontier ─┐
//!                │                                                       ├─► dies, channels
//!                └─► collector ─► victim ─► gc frontier ─────────────────┘
//! ```
//!
//! Modelled: map units with read-modify-write, separate write frontiers for the host and the collector, five policies of
//! garbage collection with bounded concurrency and pacing, idle cleaning, a demand-paged map, a write buffer, TRIM,
//! flush, secure erase and wear counts. Optional: an SLC cache, log units, and the processor time and memory of a
//! translation layer on the host.
//!
//! # Not modelled
//! Data contents, bit errors, suspended operations, end of life.

mod blocks;
mod buffer;
mod cleaning;
mod collector;
mod device;
mod divisor;
mod frontier;
mod geometry;
mod invariants;
mod log_units;
mod map_cache;
mod nand;
mod prefetch;
mod read;
mod slc;
pub mod spec;
mod table;
mod victim;
mod write;

pub use device::SimulatedSsd;
pub use geometry::Geometry;
pub use spec::FlashSpec;
