//! What survives a power cut: the writes that a device still holds in volatile memory, and a choice among them.
//!
//! ```text
//!   write, with an undo ─► Pending ─► acknowledged ─► flushed, or FUA, or pushed out ─► durable, forgotten
//!                             │
//!                            cut: each write that is not durable is kept, dropped or torn
//! ```
//!
//! [`Pending`] has no contents of its own: its caller keeps the newest, and hands over an undo of what each write
//! replaced. So one set of rules serves a drive with data, and [`PowerCut`], which keeps only which write a sector holds.
//! The rules, and what they leave out, stand in `docs/models/power.md`. Leaves out time: a write is durable when the caller
//! says that it was acknowledged, or flushed.

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
