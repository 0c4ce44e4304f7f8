//! What terminals did in an interval, on a model or on a real database.
//!
//! Leaves out what the device did meanwhile.

use crate::tpcc::Kind;
use lowtide_core::Latency;

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
