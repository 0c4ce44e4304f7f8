//! Power cuts: the writes that are still in a device's volatile memory, and the random choice of those that survive.
//!
//! ```text
//!   write, with an undo ─► Pending ─► acknowledged ─► flushed, or FUA, or pushed out ─► durable, forgotten
//!                             │
//!                            cut: each write that is not durable is kept, dropped or torn
//! ```
//!
//! [`Pending`] has no contents. The caller keeps the newest contents and passes an undo for the data that each write
//! replaced. The same rules therefore serve a drive with data and [`PowerCut`], which records only the number of the
//! write in each sector. The rules and their limits are in `docs/models/power.md`.
//!
//! # Not modelled
//! Time. The caller reports when a write was acknowledged or flushed.

mod cut;
mod fate;
mod left;
mod pending;
mod runs;
mod tear;
#[cfg(test)]
mod tests;

pub use crate::spec::durability::{Cache, CacheKind, CacheKindError};
pub use cut::PowerCut;
pub use pending::{CutWrite, Loss, Number, Part, Pending, Tally};
pub use tear::Tear;
