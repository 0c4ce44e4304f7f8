//! Benchmarks for the figures that the project states, so that anyone can check them.
//!
//! The benchmark of the I/O engine is in `lowtide_host::bench`.

mod logdisk;
mod logdisk_file;
mod mapping;
mod nbd;
mod simulate;
mod steady;

pub use logdisk::{LogdiskBench, LogdiskBenchError, logdisk};
pub use nbd::{NbdBench, nbd};
pub use simulate::{DRIVE, Simulated, drive, simulate};
pub use steady::{Judged, Rule, steady};
