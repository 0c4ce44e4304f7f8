//! Adaptive measurement of size curves: only some sizes are measured, and the others are predicted.
//!
//! ```text
//!   Plan ─► Adaptive: a curve for each combination of the other factors
//!             └─► measured levels ─► Curve::known: forms, Gaussian process ─► next size ─► one cell ┐
//!                        ▲                             └─► all known to the precision: predict the   │
//!                        └──────────────────────────────── unmeasured sizes ─────────────────────────┘
//! ```
//!
//! docs/models/fit.md has the equations, docs/guide/adaptive.md the savings.
//!
//! # Not supported
//!
//! Loads without a single level: databases, bursts, events and traces.

mod accept;
mod choose;
mod forms;
mod linear;
mod posterior;
mod run;
#[cfg(test)]
mod tests;

pub use accept::{Adaptive, prepare};
pub use choose::{first, next};
pub use posterior::{Curve, Known, Seen};
pub use run::run;
