//! Files that lowtide reads and writes: the catalogue of experiments and devices, device files, traces, and
//! output files, which are replaced atomically.
//!
//! Not here: experiments (`lowtide_lab::experiment`) and stores (`lowtide_lab::store`).

pub mod application;
pub mod catalogue;
pub mod device;
pub mod output;
pub mod passwords;
pub mod table;
pub mod trace;
