//! All Linux-specific code, and all `unsafe` code except the prefetch of simulated drives.
//!
//! ```text
//!   target  ──►  TestData  ──►  engine::run  ──►  Interval, Interval, … , Summary
//!   (made, filled, marked)      (uring | sync)    (merged over threads, in order)
//! ```
//!
//! * [`target`] makes and fills the files under test, and never destroys a file that lowtide did not make.
//! * [`block`] does the same for devices. It overwrites a device only if the user typed its serial.
//! * [`engine`] runs a workload of `lowtide-core` on them; [`bench`] measures the overhead of the engine.
//! * [`environment`] describes the machine.
//! * [`clock`] measures time without the intervals in which lowtide did not run.
//! * [`memory`] backs large tables with huge pages.
//! * [`attach`] makes a drive that is served [`live`] a block device of the kernel.
//! * [`sqlite_vfs`] runs SQLite on files that the program provides.
//!
//! Runs on Linux only. Simulated devices and the analysis of measurements are in other crates.

pub mod attach;
pub mod bench;
pub mod block;
mod cgroup;
pub mod clock;
pub mod cpu;
pub mod data;
pub mod engine;
pub mod environment;
pub mod error;
mod event;
pub mod http;
pub mod live;
pub mod memory;
mod mountinfo;
pub mod nbd;
mod objection;
mod pattern;
pub mod process;
mod region;
mod run_folder;
pub mod sqlite_vfs;
pub mod target;

pub use error::{HostError, IoFailure, Operation};
pub use event::Event;
