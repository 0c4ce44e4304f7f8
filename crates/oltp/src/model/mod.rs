//! TPC-C on a model of a storage engine, in virtual time: what a database would do on a device, without either.
//!
//! ```text
//!   terminals ─► steps ─► pool ─┬─► reads ────────────────────────┐
//!       │                       └─► cleaner ─► doublewrite, pages ─┼─► devices (virtual time)
//!       └─► processors          └─► redo log, group commit ────────┘
//! ```
//!
//! The transactions, their mix and their inputs are those that real databases are asked (`tpcc`); what a transaction does is which
//! pages it reads and changes (`work`), not what is in them. docs/models/oltp.md has the equations, sources and limits. Leaves out
//! results of queries, plans, latches, recovery.

mod cleaning;
mod engine;
mod latch;
mod layout;
mod pool;
mod processors;
mod redo;
mod settings;
mod terminal;
#[cfg(test)]
mod tests;
mod warm;
mod work;

pub use settings::{Cleaner, ModelSettings};

use crate::terminals::Interval;
use crate::tpcc::random::{Random, RunConstants};
use engine::Engine;
use layout::Layout;
use lowtide_core::storage::Storage;
use lowtide_core::{Bytes, Control, Counters, DeviceError, Nanos, Seed, VirtualTime};
use work::Contents;

/// Bytes of a page.
pub const PAGE: u64 = 16 << 10;

/// A load of terminals on the model; each asks again at once.
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

impl ModelLoad {
    fn contents(&self, model: &ModelSettings) -> Contents {
        let random = Random::new(self.seed.part("contents", 0));
        Contents::new(self.warehouses, model.foreign_keys, PAGE, RunConstants::of(self.seed), random)
    }
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

/// Bytes of the data files after the load.
pub fn loaded(model: &ModelSettings, warehouses: u32) -> Bytes {
    Bytes::new(u64::from(Layout::new(warehouses, model.foreign_keys, PAGE).pages()) * PAGE)
}

/// Runs terminals on the model from the instant `start`, with a pool that is warm, until `each` says to stop: it hears of every
/// interval, and what the devices have counted by its end. The instant of the end.
///
/// # Errors
/// [`DeviceError`] where a device refuses a request, or fails at one: data files that grew past its end among them.
pub fn run(
    model: &ModelSettings,
    load: &ModelLoad,
    storage: Storage<'_>,
    start: VirtualTime,
    each: &mut dyn FnMut(Interval, Done) -> Control,
) -> Result<VirtualTime, DeviceError> {
    let mut engine = Engine::new(model, load, storage, start);
    let end = engine.run(load.interval, each);
    // After an error too, so that a later load does not meet what is queued.
    engine.drain();
    end.map(VirtualTime::from_nanos)
}
