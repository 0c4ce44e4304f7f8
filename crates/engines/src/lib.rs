//! TPC-C, and models of storage engines in virtual time. Pure: no I/O, no clock.
//!
//! [`tpcc`] is the benchmark, for models and real databases. [`model`] has the storage engines that run it.
//! [`inserts`] is an engine whose sessions only insert. Real databases are in crate `lowtide-oltp`, devices
//! in crate `lowtide-device`.

pub mod inserts;
mod interval;
pub mod model;
mod settings;
pub mod tpcc;

pub use interval::{Interval, Tally};
pub use settings::{Durability, Engine, Least, Preset, Settings, SettingsError};
