//! TPC-C, and models of storage engines in virtual time. No I/O, no clock.
//!
//! [`tpcc`] is the benchmark, for models and real databases alike. [`model`] has storage engines that run it,
//! [`inserts`] an engine whose sessions only insert. Leaves out real databases (crate `lowtide-oltp`) and
//! devices (crate `lowtide-device`).

pub mod inserts;
mod interval;
pub mod model;
mod settings;
pub mod tpcc;

pub use interval::{Interval, Tally};
pub use settings::{Durability, Engine, Least, Preset, Settings, SettingsError};
