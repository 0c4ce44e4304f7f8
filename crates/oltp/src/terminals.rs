//! The terminals: who asks, when, and what came of it, interval by interval.
//!
//! Each terminal has a session, a home warehouse and random streams of its own. Leaves out when a measurement is over:
//! whoever hears of the intervals decides.

use crate::tpcc::{Kind, Scale};
use crate::{Database, OltpError};
use lowtide_core::{Control, Latency, Nanos, Seed};
use std::sync::atomic::AtomicBool;

/// A load of terminals.
#[derive(Debug, Clone)]
pub struct Load<'a> {
    /// How many; terminal `t` of a part is bound to warehouse `t mod warehouses` of it.
    pub terminals: u32,
    /// Whether terminals wait for keys and for thoughts (clause 5.2.5.4); else they ask again at once.
    pub think: bool,
    /// Length of an interval.
    pub interval: Nanos,
    /// Where random choices come from.
    pub seed: Seed,
    /// Ends the load from outside.
    pub interrupt: &'a AtomicBool,
}

/// A database, and the warehouses that are in it. Terminals are spread evenly over several.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// What is asked.
    pub database: &'a dyn Database,
    /// What is in it.
    pub scale: &'a Scale,
}

/// What was done in an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Nanoseconds from the beginning of the load to that of the interval.
    pub start_ns: u64,
    /// Nanoseconds from the beginning of the load to the end of the interval.
    pub end_ns: u64,
    /// By kind, in the order of [`Kind::ALL`].
    pub kinds: [Tally; Kind::ALL.len()],
}

/// What became of one kind of transaction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    /// Committed.
    pub committed: u64,
    /// Rolled back because they had to be.
    pub rolled_back: u64,
    /// Attempts that met another transaction and were made again.
    pub retries: u64,
    /// From the first attempt to the end, of those committed and rolled back.
    pub latency: Latency,
}

/// What a load came to, apart from its intervals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Transactions that ended.
    pub transactions: u64,
    /// Statements sent for them.
    pub statements: u64,
    /// Processor time of the terminals' threads.
    pub client_cpu: Nanos,
    /// Order lines asked for, and those that another warehouse supplied.
    pub lines: (u64, u64),
    /// Payments, and those of customers of another warehouse.
    pub payments: (u64, u64),
    /// Deliveries that found a district without new orders.
    pub skipped_deliveries: u64,
}

/// Runs a load; `each` hears of every interval, in order, and says whether to go on.
///
/// # Errors
/// [`OltpError`] where a session cannot be opened, or a transaction fails for good. What was measured until then was
/// heard.
pub fn run(
    parts: &[Part<'_>],
    load: &Load<'_>,
    each: &mut dyn FnMut(Interval) -> Control,
) -> Result<Summary, OltpError> {
    let _ = (parts, load, each);
    Err(OltpError::Invalid("terminals are not written yet".to_owned()))
}
