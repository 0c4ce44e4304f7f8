//! Facts about the machine, the target and the campaign: a name and a value each.
//!
//! Not here: who finds them (`lowtide_lab::{witness, campaign}`).

/// A fact: name and value.
pub type Fact = (String, String);

/// The name under which a fact warns the reader.
pub const WARNING: &str = "warning";
/// How the names of raw logs begin, which are kept but not shown.
pub const LOG: &str = "log-";
/// The name of the fact that says how much an adaptive campaign spared.
pub const SPARED: &str = "adaptive";
