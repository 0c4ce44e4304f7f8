//! Open loops on both engines: latency counts from the intended start, and every due request is counted.
//!
//! The files are in memory, because a busy disk could not keep the rate.
#![allow(clippy::print_stdout)]

mod common;

use common::{each_engine, in_memory, load, run_all, target, workload};
use lowtide_core::workload::{Access, Arrival};
use lowtide_core::{Bytes, Latency, Workload};

fn merged(intervals: &[lowtide_core::Interval]) -> Latency {
    let mut latency = Latency::default();
    intervals.iter().for_each(|interval| latency.merge(&interval.read_latency));
    latency
}

#[test]
fn a_rate_that_the_target_keeps_is_kept() {
    each_engine(|engine| {
        let directory = in_memory();
        let target = target(directory.path(), 1, Bytes::mib(4));
        for threads in [1, 2] {
            let arrival = Arrival::Fixed { per_second: 200.0 };
            let workload = Workload { arrival, ..workload(1.0, Access::Random, threads, 4) };
            let (summary, intervals) = run_all(&load(target.data(), &workload, engine, 1000));
            let summary = summary.expect("ran");
            assert_eq!(summary.completed + summary.unfinished, 200, "no request is forgotten");
            assert!(summary.unfinished < 100, "{summary:?}");
            assert_eq!(merged(&intervals).count(), summary.completed);
        }
    });
}

#[test]
fn a_backlog_counts_from_the_intended_start() {
    each_engine(|engine| {
        let directory = in_memory();
        let target = target(directory.path(), 1, Bytes::mib(4));
        // The rate is far beyond one request at a time, so the target falls further and further behind. Requests that
        // complete near the end must include that delay. Counted from their issue, they would take well under a
        // millisecond.
        let closed = workload(1.0, Access::Random, 1, 1);
        let (_, intervals) = run_all(&load(target.data(), &closed, engine, 300));
        let service = merged(&intervals);
        let arrival = Arrival::Fixed { per_second: 2_000_000.0 };
        let open = Workload { arrival, ..closed };
        let (summary, intervals) = run_all(&load(target.data(), &open, engine, 600));
        let summary = summary.expect("ran");
        let waited = merged(&intervals);
        assert_eq!(summary.completed + summary.unfinished, 1_200_000, "no request is forgotten");
        let behind = 600_000_000 / 1_200_000 * summary.unfinished;
        assert!(waited.max().get() > behind / 2, "the longest wait was {} of {behind} ns", waited.max());
        let (median, plain) = (waited.percentile(50.0).get(), service.percentile(50.0).get());
        assert!(median > behind / 6, "median {median} ns against {plain} ns of service, {behind} ns behind");
        assert!(summary.unfinished > 1000, "{} are still due", summary.unfinished);
    });
}

#[test]
fn poisson_arrivals_keep_their_mean() {
    each_engine(|engine| {
        let directory = in_memory();
        let target = target(directory.path(), 1, Bytes::mib(4));
        let arrival = Arrival::Poisson { per_second: 1000.0 };
        let workload = Workload { arrival, ..workload(1.0, Access::Random, 2, 4) };
        let (summary, _) = run_all(&load(target.data(), &workload, engine, 1000));
        let summary = summary.expect("ran");
        // Five standard deviations around the mean of 1000.
        let all = summary.completed + summary.unfinished;
        assert!((840..1160).contains(&all), "{all} requests");
    });
}

/// A frozen filesystem: writes block until this is dropped.
struct Frozen<'a>(&'a std::path::Path);

impl Frozen<'_> {
    fn new(at: &std::path::Path) -> Frozen<'_> {
        common::loopback::run("fsfreeze", &["--freeze", at.to_str().expect("plain")]);
        Frozen(at)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        common::loopback::run("fsfreeze", &["--unfreeze", self.0.to_str().expect("plain")]);
    }
}

#[test]
fn a_stall_of_a_real_filesystem_is_in_the_open_loops_percentiles_and_not_in_the_closed_loops() {
    let Some(disk) = common::loopback::Loop::new(64, &[]) else { return };
    let node = disk.node.to_str().expect("plain");
    common::loopback::run("mkfs.ext4", &["-q", node]);
    let directory = in_memory();
    let at = directory.path();
    common::loopback::run("mount", &[node, at.to_str().expect("plain")]);
    let measure = |arrival: Arrival| {
        let target = target(at, 1, Bytes::mib(4));
        let workload = Workload { arrival, ..workload(0.0, Access::Random, 1, 1) };
        let load = load(target.data(), &workload, lowtide_host::engine::EngineChoice::Sync, 2000);
        let intervals = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(800));
                let frozen = Frozen::new(at);
                std::thread::sleep(std::time::Duration::from_millis(500));
                drop(frozen);
            });
            run_all(&load).1
        });
        let mut latency = Latency::default();
        intervals.iter().for_each(|interval| latency.merge(&interval.write_latency));
        latency
    };
    // 100 requests per second for two seconds. A quarter of them fall due during the stall, which lasts half a
    // second.
    let open = measure(Arrival::Fixed { per_second: 100.0 });
    let closed = measure(Arrival::Closed);
    common::loopback::run("umount", &[at.to_str().expect("plain")]);
    let (open, closed) = (open.percentile(99.0), closed.percentile(99.0));
    assert!(open.get() > 300_000_000, "p99 of the open loop: {open}");
    assert!(closed.get() < 100_000_000, "p99 of the closed loop: {closed}");
}
