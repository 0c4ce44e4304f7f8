//! Facts about the machine, the target and the campaign, each with a name and a value.
//!
//! Facts are collected in `lowtide_lab::{witness, campaign}`.

/// A fact: name and value.
pub type Fact = (String, String);

/// The name of a fact that is a warning for the reader.
pub const WARNING: &str = "warning";
/// The name prefix of raw logs, which are stored but not shown.
pub const LOG: &str = "log-";
/// The name of the fact about the cells that an adaptive campaign skipped.
pub const SPARED: &str = "adaptive";
