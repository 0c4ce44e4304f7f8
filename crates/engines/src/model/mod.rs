//! TPC-C on models of storage engines, in virtual time: what a database would do on a device, without either.
//!
//! ```text
//!   Terminal ─► Transaction ─► innodb │ myisam ─► Timeline ─► devices (virtual time)
//!                                │  └─► Processors
//!                                └─► Facts: what the database holds
//! ```
//!
//! The transactions, their mix and their inputs are those that real databases are asked (`tpcc`). Shared are terminals, what they find
//! in the database, processors and time; how a transaction becomes accesses to pages, and what becomes of those, is each engine's. docs/models/oltp.md has the
//! equations, sources and limits. Leaves out results of queries.

mod facts;
pub mod innodb;
mod machine;
pub mod myisam;
mod processors;
mod settings;
mod terminal;
#[cfg(test)]
mod testing;
mod timeline;

pub use machine::Machine;
pub use settings::ModelSettings;

use crate::Interval;
use lowtide_core::storage::{Journal, Place, Storage};
use lowtide_core::{Bytes, Control, Counters, DeviceError, Nanos, Seed, VirtualTime};

/// A load of terminals on a model; each asks again at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelLoad {
    /// Warehouses.
    pub warehouses: u32,
    /// Terminals.
    pub terminals: u32,
    /// Length of an interval.
    pub interval: Nanos,
    /// Where random choices come from.
    pub seed: Seed,
}

/// What was asked of the devices, and what they counted, until the end of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Reads.
    pub reads: u64,
    /// Bytes of those.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of those.
    pub write_bytes: u64,
    /// What the devices counted, together.
    pub counters: Counters,
}

/// Where the files of an engine lie.
pub struct Files<'a> {
    /// The devices, where the data files begin and where the log does.
    pub storage: Storage<'a>,
    /// Where the system tablespace begins.
    pub system: Place,
    /// By device, the journal of its filesystem, where it has one.
    pub journals: Vec<Option<Journal>>,
}

/// Bytes of the data files after the load.
pub fn loaded(model: &ModelSettings, warehouses: u32) -> Bytes {
    match model {
        ModelSettings::Innodb(model) => innodb::loaded(model, warehouses),
        ModelSettings::Myisam(_) => myisam::loaded(warehouses),
    }
}

/// Runs terminals on a model from the instant `start`, with memory that is warm, until `each` says to stop: it hears of every
/// interval, and what the devices have counted by its end. The instant of the end.
///
/// # Errors
/// [`DeviceError`] where a device refuses a request, or fails at one: data files that grew past its end among them.
pub fn run(
    model: &ModelSettings,
    load: &ModelLoad,
    files: Files<'_>,
    start: VirtualTime,
    each: &mut dyn FnMut(Interval, Done) -> Control,
) -> Result<VirtualTime, DeviceError> {
    let end = match model {
        ModelSettings::Innodb(model) => innodb::run(model, load, files, start, each),
        ModelSettings::Myisam(model) => myisam::run(model, load, files.storage, start, each),
    };
    end.map(VirtualTime::from_nanos)
}
