//! Drives served live: requests come from real software, and are answered when a model says so.
//!
//! Leaves out the models, which reach this crate behind a trait.

mod port;

pub use port::{Done, Outcome, Port};
