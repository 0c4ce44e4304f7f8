//! Everything Linux that lowtide needs, and all of its `unsafe` but the prefetch of simulated drives.
//!
//! ```text
//!   target  ──►  TestData  ──►  engine::run  ──►  Interval, Interval, … , Summary
//!   (made, filled, marked)      (uring | sync)    (merged over threads, in order)
//! ```
//!
//! [`target`] makes and fills the files under test and never destroys what lowtide did not make; [`block`] does the same
//! for devices, which are overwritten only where the user typed which; [`engine`]
//! runs a workload of `lowtide-core` on them; [`environment`] says on what machine that happened; [`bench`]
//! measures what the engine itself costs; [`clock`] leaves out what lowtide does not run; [`memory`] backs large tables with huge pages; [`attach`] makes a drive that is
//! served [`live`] a block device of the kernel; [`sqlite_vfs`] gives SQLite files of our own. Not here:
//! simulated devices and any judgement about what was measured. Linux only.

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
