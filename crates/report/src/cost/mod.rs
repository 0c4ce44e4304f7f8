//! The cost of capacity and speed: dollars per usable GB at the fill that keeps a level, per IOPS and per MiB/s; for
//! databases, new orders per minute per dollar.
//!
//! ```text
//!   Campaign ─► points ─► curves ─► floor ─┐
//!   device file, list ─► Prices ───────────┴─► show ─► Report
//! ```
//!
//! Capacity is the data under test instead of the nominal capacity, so dollars per GB apply at that fill.
//!
//! # Not modelled
//!
//! Power, machines, and the cost over a drive's life, whose length `lifetime` predicts.

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
