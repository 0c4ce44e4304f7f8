//! Plans and measured cells for the tests of stores.

use super::writer::{Entry, Measured};
use crate::experiment::Experiment;
use crate::plan::Plan;
use lowtide_core::{Counters, Interval, Latency, Nanos, Seed};

/// Length of an interval.
pub(super) const INTERVAL_NS: u64 = 10_000_000_000;

/// A plan whose cells differ in the number of threads, which counts from 1.
pub(super) fn plan(cells: u32, seed: u64) -> Plan {
    let threads: Vec<u32> = (1..=cells).collect();
    let text = format!(
        "name = 't'\ntarget.device = 'intel-320-160gb'\n[before-each-cell]\npurge = 'secure-erase'\n\
         [workload]\npattern = 'random-write'\nblock = '4KiB'\nduration = '1min'\n[sweep]\nthreads = {threads:?}\n"
    );
    Plan::new(Experiment::parse("t.toml", &text, &[]).expect("valid"), Seed::new(seed), 1).expect("plans")
}

/// Three intervals with writes only.
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
