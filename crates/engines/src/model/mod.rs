//! TPC-C on models of storage engines, in virtual time.
//!
//! ```text
//!   Terminal ─► Transaction ─► innodb │ myisam ─► Timeline ─► devices (virtual time)
//!                                │  └─► Processors
//!                                └─► Facts: contents of the database
//! ```
//!
//! Real databases and models run identical transactions, mixes and inputs (`tpcc`). Terminals, contents, processors
//! and time are common to the modelled engines. Each engine models the page accesses of a transaction. Equations,
//! sources and limits are in `docs/models/oltp.md`.
//!
//! # Not modelled
//!
//! Query results.

mod facts;
mod frames;
pub mod innodb;
mod machine;
pub mod myisam;
mod processors;
mod settings;
mod terminal;
#[cfg(test)]
mod testing;
mod timeline;
mod warm;

pub use machine::Machine;
pub use settings::ModelSettings;

use crate::Interval;
use lowtide_core::storage::{Journal, Place, Storage};
use lowtide_core::{Bytes, Control, Counters, DeviceError, Nanos, Seed, VirtualTime};

/// A load of terminals on a model. Terminals have no think time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelLoad {
    /// Warehouses.
    pub warehouses: u32,
    /// Terminals.
    pub terminals: u32,
    /// Length of a measurement interval.
    pub interval: Nanos,
    /// Seed of all random choices.
    pub seed: Seed,
}

/// Totals of device requests and device counters at the end of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoTotals {
    /// Read requests.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Sum of the devices' counters.
    pub counters: Counters,
}

/// Position of an engine's files on the devices.
pub struct Files<'a> {
    /// The devices, with the offsets of data files and log.
    pub storage: Storage<'a>,
    /// Start of the system tablespace.
    pub system: Place,
    /// For each device, the journal of its filesystem, if any.
    pub journals: Vec<Option<Journal>>,
}

/// Size of the data files after the load.
pub fn loaded(model: &ModelSettings, warehouses: u32) -> Bytes {
    match model {
        ModelSettings::Innodb(model) => innodb::loaded(model, warehouses),
        ModelSettings::Myisam(_) => myisam::loaded(warehouses),
    }
}

/// Runs terminals on a model with warm memory, from `start` until `each` stops the run. `each` receives every
/// interval and the totals at its end. Returns the end time.
///
/// # Errors
/// [`DeviceError`] if a device rejects or fails a request, for example because the data files grow past the end of
/// the device.
pub fn run(
    model: &ModelSettings,
    load: &ModelLoad,
    files: Files<'_>,
    start: VirtualTime,
    each: &mut dyn FnMut(Interval, IoTotals) -> Control,
) -> Result<VirtualTime, DeviceError> {
    let end = match model {
        ModelSettings::Innodb(model) => {
            innodb::Engine::new(model, load, files, start).run(load.interval, each)
        }
        ModelSettings::Myisam(model) => {
            myisam::Engine::new(model, load, files.storage, start).run(load.interval, each)
        }
    };
    end.map(VirtualTime::from_nanos)
}
