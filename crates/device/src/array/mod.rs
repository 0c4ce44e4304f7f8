//! Several devices behind one controller: stripes, mirrors, stripes of mirrors, one after the other, or one alone.
//!
//! The equations are in `docs/models/array.md`. Leaves out parity (RAID 5 and 6), failed members and rebuilding.

mod device;
mod map;
pub mod spec;
mod write_cache;

pub use device::Array;
pub use spec::{ArrayParameters, ArraySpec};
