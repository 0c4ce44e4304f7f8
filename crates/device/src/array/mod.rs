//! Several devices behind one controller: stripes, mirrors, stripes of mirrors, and linear arrays.
//!
//! The equations are in `docs/models/array.md`.
//!
//! # Not modelled
//! Parity (RAID 5 and 6), failed members, rebuilds.

mod device;
mod map;
pub mod spec;
mod write_cache;

pub use device::Array;
pub use spec::{ArrayParameters, ArraySpec};
