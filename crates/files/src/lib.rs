//! Files that lowtide reads and writes: the catalogue of experiments and drives, drives' descriptions, traces, and outputs
//! that are replaced whole.
//!
//! Leaves out experiments (crate `lowtide-lab`, `experiment`) and stores (there, `store`).

pub mod application;
pub mod catalogue;
pub mod device;
pub mod output;
pub mod passwords;
pub mod table;
pub mod trace;
