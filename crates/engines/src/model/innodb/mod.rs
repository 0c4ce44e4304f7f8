//! InnoDB in virtual time: pool, redo log, cleaner, change buffer.
//!
//! ```text
//!   terminals ─► steps ─► pool ─┬─► reads ────────────────────────┐
//!       │                       └─► cleaner ─► doublewrite, pages ─┼─► devices (virtual time)
//!       └─► processors          └─► redo log, group commit ────────┘
//! ```
//!
//! What a transaction does is which pages it reads and changes (`work`), not what is in them. Leaves out results of queries, plans,
//! latches, recovery.

mod cleaning;
mod engine;
mod latch;
mod layout;
mod pool;
mod redo;
mod session;
mod settings;
#[cfg(test)]
mod tests;
mod warm;
mod work;

pub use settings::{Cleaner, InnodbSettings};

use super::{Done, Files, ModelLoad};
use crate::Interval;
use engine::Engine;
use layout::Layout;
use lowtide_core::{Bytes, Control, DeviceError, VirtualTime};

/// Bytes of a page.
pub const PAGE: u64 = 16 << 10;
/// Bytes of the system tablespace: doublewrite buffer and undo log.
pub(super) const SYSTEM: Bytes = Bytes::new((layout::DOUBLEWRITE + layout::UNDO) as u64 * PAGE);

/// Bytes of the data files after the load.
pub(super) fn loaded(model: &InnodbSettings, warehouses: u32) -> Bytes {
    Bytes::new(u64::from(Layout::new(warehouses, model.foreign_keys, PAGE).pages()) * PAGE)
}

/// Runs a load until `each` says to stop; the instant of the end.
pub(super) fn run(
    model: &InnodbSettings,
    load: &ModelLoad,
    files: Files<'_>,
    start: VirtualTime,
    each: &mut dyn FnMut(Interval, Done) -> Control,
) -> Result<u64, DeviceError> {
    let mut engine = Engine::new(model, load, files, start);
    let end = engine.run(load.interval, each);
    // After an error too, so that a later load does not meet what is queued.
    engine.drain();
    end
}
