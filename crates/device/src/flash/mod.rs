//! A simulated flash drive: a page-mapped FTL over dies and channels, in virtual time.
//!
//! ```text
//!  request ─► controller ─► map (cache) ─► write buffer ─► host frontier ─┐
//!                │                                                       ├─► dies, channels
//!                └─► collector ─► victim ─► gc frontier ─────────────────┘
//! ```
//!
//! Models: map unit with read-modify-write, separate frontiers for host and collector, five cleaning policies,
//! bounded cleaning concurrency and its pacing, idle cleaning, demand-paged map, write buffer, TRIM, flush,
//! secure erase, wear counts; where described, an SLC cache, log units, and what a translation layer on the host takes
//! of it. Leaves out: data contents, bit errors, suspension, end of life.

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
