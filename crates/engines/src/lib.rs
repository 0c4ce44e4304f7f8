//! What databases do on a device, without I/O and without a clock: TPC-C, and engines as models in virtual time.
//!
//! [`tpcc`] is what the benchmark asks, whichever database answers. [`model`] has storage engines that answer it, [`inserts`]
//! one whose sessions only insert. Leaves out real databases (crate `lowtide-oltp`), and devices (crate `lowtide-device`).

pub mod inserts;
mod interval;
pub mod model;
mod settings;
pub mod tpcc;

pub use interval::{Interval, Tally};
pub use settings::{Durability, Engine, Least, Preset, Settings, SettingsError};
