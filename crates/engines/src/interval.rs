//! Transactions of an interval ([`Interval`]), on a model or on a real database.

use crate::tpcc::Kind;
use lowtide_core::Latency;

/// Transactions of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Start of the interval, in nanoseconds since the start of the load.
    pub start_ns: u64,
    /// End of the interval, in nanoseconds since the start of the load.
    pub end_ns: u64,
    /// Outcomes of each kind, in the order of [`Kind::ALL`].
    pub kinds: [Tally; Kind::ALL.len()],
}

/// Outcomes and latencies of one kind of transaction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    /// Committed transactions.
    pub committed: u64,
    /// Transactions rolled back as the benchmark requires.
    pub rolled_back: u64,
    /// Attempts that conflicted with another transaction and were repeated.
    pub retries: u64,
    /// Time from the first attempt to commit or rollback.
    pub latency: Latency,
}
