//! A log-structured layer over another device: whatever is written, wherever, goes to it in sequence.
//!
//! The layer itself, and how it behaves in virtual time, is `lowtide_logdisk`; the rules are in `docs/guide/logdisk.md`. Here is only
//! its description.

pub mod spec;

pub use spec::{LogParameters, LogSpec};
