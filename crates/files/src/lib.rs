//! Files that lowtide reads and writes: the catalogue of experiments and devices, device files, traces, and
//! output files, which are replaced atomically.
//!
//! Experiments are in `lowtide_lab::experiment`, stores in `lowtide_lab::store`.

pub mod application;
pub mod catalogue;
pub mod device;
pub mod output;
pub mod passwords;
pub mod table;
pub mod trace;
