//! Cells for store tests, in the form in which the writer stores measured cells.

use super::writer::{Entry, Measured};
use lowtide_core::{Counters, Interval, Latency, Nanos};

/// Length of an interval.
pub(super) const INTERVAL_NS: u64 = 10_000_000_000;

/// The three intervals of a cell that writes.
pub(super) fn intervals(cell: u32) -> impl Iterator<Item = Entry> {
    (0..3).map(move |k| {
        let mut write_latency = Latency::default();
        write_latency.record_many(Nanos::new(90_000), 40 + k);
        write_latency.record(Nanos::new(2_000_000));
        let interval = Interval {
            start_ns: k * INTERVAL_NS,
            end_ns: (k + 1) * INTERVAL_NS,
            writes: 41 + k,
            write_bytes: (41 + k) * 4096,
            write_latency,
            counters: Some(Counters { host_written_bytes: (k + 1) << 20, ..Counters::default() }),
            ..Interval::default()
        };
        Entry::Interval(cell, Box::new(Measured::of(&interval)))
    })
}
