//! TPC-C, and models of storage engines in virtual time. The crate is pure: it has no I/O and no clock.
//!
//! [`tpcc`] is the benchmark, for models and real databases. [`model`] contains the modelled storage engines that run
//! TPC-C. [`inserts`] is a modelled engine whose connections only insert. Real databases are in crate `lowtide-oltp`,
//! devices in crate `lowtide-device`.

pub mod inserts;
mod interval;
pub mod model;
mod settings;
pub mod tpcc;

pub use interval::{Interval, Tally};
pub use settings::{Durability, Engine, Least, Preset, Settings, SettingsError};
