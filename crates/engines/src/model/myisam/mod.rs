//! MyISAM over the page cache of the kernel, in virtual time.
//!
//! ```text
//!   terminals ─► statements ─► table locks ─► key cache ─┐   ┌─► reads ─────────────────────────────┐
//!       │                                     rows ──────┴─► page cache                             ├─► device
//!       └─► processors                                       └─► dirty pages ─► write-back by file ─┘
//! ```
//!
//! No log, no flush: nothing waits until something is on the device. What a statement does is which blocks of indexes and pages of
//! rows it reads and changes, not what is in them. Leaves out results, plans, inner blocks of indexes, recovery, the filesystem's own
//! writes.

mod cache;
mod contents;
mod engine;
mod layout;
mod locks;
mod settings;
mod statement;
#[cfg(test)]
mod tests;
mod warm;
mod writeback;

pub use settings::MyisamSettings;

use super::{Done, ModelLoad};
use crate::Interval;
use engine::Engine;
use layout::Layout;
use lowtide_core::storage::Storage;
use lowtide_core::{Bytes, Control, DeviceError, VirtualTime};

/// Bytes of a page of the page cache, and of a block of an index.
const PAGE: u64 = 4096;
const BLOCK: u64 = 1024;

/// Bytes of the files of data and indexes after the load.
pub(super) fn loaded(warehouses: u32) -> Bytes {
    Bytes::new(u64::from(Layout::new(warehouses).pages()) * PAGE)
}

/// Runs a load until `each` says to stop; the instant of the end.
pub(super) fn run(
    model: &MyisamSettings,
    load: &ModelLoad,
    storage: Storage<'_>,
    start: VirtualTime,
    each: &mut dyn FnMut(Interval, Done) -> Control,
) -> Result<u64, DeviceError> {
    let mut engine = Engine::new(model, load, storage, start);
    let end = engine.run(load.interval, each);
    // After an error too, so that a later load does not meet what is queued.
    engine.drain();
    end
}
