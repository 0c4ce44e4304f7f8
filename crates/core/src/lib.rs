//! Types and contracts that all other crates share: units, seeded random streams, the [`BlockDevice`] contract,
//! workload generation, and the measurement records of intervals.
//!
//! The crate is pure. It has no I/O, no wall clock and no threads, so that the same code drives a simulated device in
//! virtual time and a real one in wall time.

pub mod batch;
pub mod block;
pub mod extents;
mod filesystem;
mod in_flight;
pub mod measure;
pub mod rng;
mod state;
pub mod storage;
pub mod suggest;
pub mod trace;
pub mod units;
pub mod virtual_load;
pub mod workload;
mod wraps;

pub use block::{BlockDevice, Completion, Counter, Counters, DeviceError, Op, Request, Tag, rest};
pub use extents::Extents;
pub use filesystem::Filesystem;
pub use measure::{Distribution, Interval, Latency, Recorder};
pub use rng::Seed;
pub use state::StateError;
pub use trace::Trace;
pub use units::{Bytes, Nanos, UnitError, VirtualTime};
pub use virtual_load::Control;
pub use workload::{Generator, Workload};
pub use wraps::Wraps;
