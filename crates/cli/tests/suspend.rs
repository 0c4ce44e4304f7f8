//! A campaign that is suspended by a signal: the stop is excluded from the measurement, and reported.

mod common;

use common::{Lab, done_and_begun};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Length of the stop, in seconds.
const STOPPED_S: f64 = 2.0;

/// Runs a campaign of one cell and stops it for [`STOPPED_S`] once it has intervals; returns the exported cell, and
/// the reports as text and HTML.
fn stopped(lab: &Lab, arguments: &str) -> (Value, [String; 2]) {
    let mut child = lab.start(arguments);
    let store = lab.path("lowtide.db");
    child.reaches("intervals", || done_and_begun(&store).1 > 0);
    child.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs_f64(STOPPED_S));
    child.signal(Signal::CONT);
    // The output is short enough not to fill the pipes.
    let code = child.wait();
    let err = child.error();
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("warning: ") && err.contains("stopped for "), "{err}");
    let exported = lab.json("store export");
    lab.ok("report");
    (exported["cells"][0].clone(), [lab.ok("store show 1"), lab.read("report.html")])
}

/// Asserts that the cell has one gap, as long as the stop, within its intervals.
fn assert_gap(cell: &Value, reports: &[String; 2]) {
    let gaps = cell["gaps"].as_array().unwrap_or_else(|| panic!("no gap: {cell}"));
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert_eq!(gaps[0]["cause"], "stopped");
    let length_s = gaps[0]["length_ns"].as_u64().expect("a length") as f64 / 1e9;
    assert!(length_s > 0.8 * STOPPED_S, "{length_s}");
    let last = cell["intervals"].as_array().and_then(|all| all.last()).expect("intervals");
    assert!(gaps[0]["at_ns"].as_u64() < last["end_ns"].as_u64(), "{gaps:?}");
    for words in ["topped for ", "(SIGSTOP or Ctrl-Z): that time", "the drive rested meanwhile"] {
        for report in reports {
            assert!(words_of(report).contains(words), "{words}: {report}");
        }
    }
}

/// A directory in memory if possible: a shared disk may stall by itself.
fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary directory can be made")
}

/// Asserts that `done` holds for every interval or, because other programs may take the processors, for the next one.
fn assert_busy(cell: &Value, done: impl Fn(&Value) -> bool) {
    let intervals = cell["intervals"].as_array().expect("intervals");
    for both in intervals.windows(2) {
        assert!(both.iter().any(&done), "nothing was done: {both:?}");
    }
}

/// A report without its line breaks.
fn words_of(report: &str) -> String {
    report.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Symptom: after Ctrl-Z, a campaign had intervals without throughput, and latencies as long as the stop. Cause: the
/// clock of the measurement continued. Fix: the clock stops, and requests in flight at the stop are not counted.
#[test]
fn a_stop_is_neither_throughput_nor_latency_of_the_drive() {
    for threads in ["threads=1", "threads=4"] {
        let lab = Lab::new();
        let directory = directory();
        let run = format!(
            "run disk-quick --target dir:{} --set pattern=random-write --set file_size=4MiB --set interval=250ms \
             --set duration=3s --set {threads}",
            directory.path().display()
        );
        let (cell, reports) = stopped(&lab, &run);
        assert_gap(&cell, &reports);
        let intervals = cell["intervals"].as_array().expect("intervals");
        let end_ns = intervals.last().and_then(|it| it["end_ns"].as_u64()).expect("an end");
        assert!((3_000_000_000..3_100_000_000).contains(&end_ns), "the stop is no part of it: {end_ns} ns");
        for interval in intervals {
            let longest_ns = interval["write_latency"]["ns_max"].as_u64().expect("a latency");
            assert!(longest_ns < 1_000_000_000, "the stop is a latency: {interval}");
        }
        assert_busy(&cell, |interval| interval["writes"].as_u64() > Some(0));
    }
}

#[test]
fn a_stop_is_neither_throughput_nor_latency_of_a_database() {
    let lab = Lab::new();
    let directory = directory();
    let text = format!(
        "name = 'quick'\n[target]\ndirectory = '{}'\n[oltp]\nengine = 'sqlite'\nwarehouses = 1\nterminals = 2\n\
         duration = '3s'\ninterval = '500ms'\n",
        directory.path().display()
    );
    lab.write("quick.toml", text);
    let (cell, reports) = stopped(&lab, "run quick.toml");
    assert_gap(&cell, &reports);
    for interval in cell["intervals"].as_array().expect("intervals") {
        for (kind, done) in interval["transactions"].as_object().expect("transactions") {
            let longest_ns = done["latency"]["ns_max"].as_u64().expect("a latency");
            assert!(longest_ns < 1_000_000_000, "the stop is a latency of {kind}: {interval}");
        }
    }
    assert_busy(&cell, |interval| {
        let all = interval["transactions"].as_object().expect("transactions");
        all.values().any(|done| done["committed"].as_u64() > Some(0))
    });
}
