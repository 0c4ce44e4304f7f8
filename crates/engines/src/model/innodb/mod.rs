//! InnoDB in virtual time: buffer pool, redo log, page cleaner, change buffer.
//!
//! ```text
//!   terminals ─► steps ─► pool ─┬─► reads ─────────────────────────┐
//!       │                       ├─► cleaner ─► doublewrite, pages ─┼─► devices (virtual time)
//!       └─► processors          └─► redo log, group commit ────────┘
//! ```
//!
//! A transaction is a list of pages that it reads and changes (`work`).
//!
//! # Not modelled
//!
//! Page contents, query results, query plans, page latches, recovery.

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

pub(super) use engine::Engine;
pub use settings::{Cleaner, InnodbSettings};

use layout::Layout;
use lowtide_core::Bytes;

/// Bytes of a page.
pub const PAGE: u64 = 16 << 10;
/// Size of the system tablespace: doublewrite buffer and undo log.
pub(super) const SYSTEM: Bytes = Bytes::new((layout::DOUBLEWRITE + layout::UNDO) as u64 * PAGE);

/// Size of the data files after the load.
pub(super) fn loaded(model: &InnodbSettings, warehouses: u32) -> Bytes {
    Bytes::new(u64::from(Layout::new(warehouses, model.foreign_keys, PAGE).pages()) * PAGE)
}
