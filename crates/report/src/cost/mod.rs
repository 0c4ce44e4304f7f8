//! What capacity and speed cost: dollars per usable GB at the fill that keeps a level, per IOPS and per MiB/s; of
//! databases, new orders per minute for a dollar.
//!
//! ```text
//!   Campaign ─► points ─► curves ─► floor ─┐
//!   device file, list ─► Prices ───────────┴─► show ─► Report
//! ```
//!
//! Capacity is the data under test, not what the box says: dollars per GB hold at that fill. Not here: power,
//! machines, and what a drive costs over its life; see `lifetime` for how long that is.

mod curve;
mod floor;
mod price;
mod published;
mod show;

pub use curve::{Curve, Fit, Point, Unpriced, curves};
pub use floor::Floor;
pub use price::{Prices, PricesError};
pub use published::{Recomputed, recomputed};
pub use show::{of_curves, of_published};
