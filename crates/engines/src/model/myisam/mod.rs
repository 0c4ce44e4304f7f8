//! MyISAM on the kernel's page cache, in virtual time.
//!
//! ```text
//!   terminals ─► statements ─► table locks ─► key cache ─┐   ┌─► reads ─────────────────────────────┐
//!       │                                     rows ──────┴─► page cache                             ├─► device
//!       └─► processors                                       └─► dirty pages ─► write-back by file ─┘
//! ```
//!
//! MyISAM has no log and issues no flush, so no statement waits for durability. A statement is a list of the index
//! blocks and data pages that it reads and changes.
//!
//! # Not modelled
//!
//! Page contents, query results, query plans, inner index blocks, recovery, metadata writes of the filesystem.

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

pub(super) use engine::Engine;
pub use settings::MyisamSettings;

use layout::Layout;
use lowtide_core::Bytes;

/// Bytes of a page of the page cache, and of an index block.
const PAGE: u64 = 4096;
const BLOCK: u64 = 1024;

/// Size of the data and index files after the load.
pub(super) fn loaded(warehouses: u32) -> Bytes {
    Bytes::new(u64::from(Layout::new(warehouses).pages()) * PAGE)
}
