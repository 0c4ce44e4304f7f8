//! A size curve from a part of its sizes: which is measured next, and when enough is known.
//!
//! ```text
//!   Plan ─► Adaptive: a curve for each combination of the other factors
//!             └─► measured levels ─► Curve::known: forms, Gaussian process ─► next size ─► one cell ┐
//!                        ▲                             └─► all known to the precision: the rest is   │
//!                        └──────────────────────────────── predicted ────────────────────────────────┘
//! ```
//!
//! docs/models/fit.md has the equations, docs/guide/adaptive.md what it saved. Not here: loads without one level; databases, bursts,
//! events and traces.

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
