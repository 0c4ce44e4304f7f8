//! Reports, exports and comparisons of large campaigns take little memory, which grows with the non-empty buckets of
//! the histograms and not with their size.
//!
//! The campaign is written by the store's writer, not measured. It has 200 cells, or 8,000 with `LOWTIDE_LONG`.

mod common;

use common::{Lab, Running, memory_kib};
use lowtide_core::rng::unit;
use lowtide_core::{Counters, Interval, Nanos, Seed};
use lowtide_lab::experiment::Experiment;
use lowtide_lab::plan::Plan;
use lowtide_lab::store::{About, CellEnd, CellStart, Entry, Measured, Store, Writer};
use lowtide_record::analysis::{Estimate, Verdict};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SEED: u64 = 29;
/// Intervals of a cell.
const INTERVALS: u64 = 20;
const INTERVAL_NS: u64 = 10_000_000_000;

/// Returns whether to test the campaign of 8,000 cells.
fn is_long() -> bool {
    std::env::var_os("LOWTIDE_LONG").is_some()
}

/// An experiment with `sizes` file sizes, 8 thread counts and `repetitions` of each.
fn experiment(sizes: u32, repetitions: u32) -> String {
    format!(
        "name = 'large'\ntarget.device = 'intel-320-160gb'\n[before-each-cell]\npurge = 'secure-erase'\n\
         [workload]\npattern = 'random-mixed'\nmix = 0.5\nblock = '4KiB'\nduration = '200s'\ninterval = '10s'\n\
         [sweep]\nfile_size = {{ from = '1GiB', to = '{sizes}GiB', step = '1GiB' }}\n\
         threads = [1, 2, 3, 4, 5, 6, 7, 8]\n[repeat]\ntimes = {repetitions}\n"
    )
}

/// The intervals of which cells consist: reads and writes with a few dozen latencies.
fn templates() -> Vec<Measured> {
    let one = |number: u64| {
        let mut rng = Seed::new(SEED).part("interval", number).stream();
        let mut interval = Interval::default();
        for _ in 0..24 {
            let took = |share: f64| Nanos::new((60_000.0 * 40f64.powf(share * share)) as u64);
            interval.read_latency.record_many(took(unit(&mut rng)), 3);
            interval.write_latency.record_many(took(unit(&mut rng)), 2);
        }
        (interval.reads, interval.read_bytes) = (72, 72 * 4096);
        (interval.writes, interval.write_bytes) = (48, 48 * 4096);
        Measured::of(&interval)
    };
    (0..16).map(one).collect()
}

/// Writes the campaign; returns its number of cells.
fn write(path: &Path, sizes: u32, repetitions: u32) -> usize {
    println!("seed {SEED}");
    let experiment = Experiment::parse("large.toml", &experiment(sizes, repetitions), &[]).expect("valid");
    let plan = Plan::new(experiment, Seed::new(SEED), 1).expect("plans");
    let mut store = Store::open(path).expect("a new store");
    let campaign = store.begin(&plan, &About::default()).expect("begins");
    let writer = Writer::start(store, Arc::default());
    let sender = writer.sender(campaign);
    let templates = templates();
    for cell in &plan.cells {
        let mut counters = Counters::default();
        let start = CellStart { raw_capacity: None, written_before: None, counters: Some(counters) };
        sender.send(Entry::Start(cell.index, start));
        for k in 0..INTERVALS {
            let mut measured = templates[(u64::from(cell.index) * 7 + k) as usize % templates.len()].clone();
            counters.host_written_bytes += measured.row.write_bytes;
            counters.nand_written_bytes += measured.row.write_bytes * 2;
            measured.row.start_ns = k * INTERVAL_NS;
            measured.row.end_ns = (k + 1) * INTERVAL_NS;
            measured.row.counters = Some(counters);
            sender.send(Entry::Interval(cell.index, Box::new(measured)));
        }
        let mean = 30.0 + f64::from(cell.index % 100) / 10.0;
        let window = (5 * INTERVAL_NS, INTERVALS * INTERVAL_NS);
        let verdict = Verdict::Steady(Estimate {
            mean,
            half_width: mean / 100.0,
            from_ns: window.0,
            to_ns: window.1,
            batches: 15,
        });
        sender.send(Entry::Took(cell.index, Nanos::from_secs(200)));
        sender.send(Entry::End(cell.index, CellEnd::Done { verdict, wear: Vec::new() }));
    }
    drop(sender);
    writer.finish().expect("is written");
    plan.cells.len()
}

/// Runs the command to its end; returns its peak resident memory, in MiB.
fn peak_mib(lab: &Lab, arguments: &str) -> u64 {
    let mut command = lab.command(arguments);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::inherit());
    let mut child = Running::start(&mut command);
    let mut peak_kib = 0;
    while !child.has_ended() {
        peak_kib = peak_kib.max(memory_kib(child.0.id(), "VmHWM").unwrap_or(0));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(child.wait(), Some(0), "lowtide {arguments}");
    println!("{} MiB: lowtide {arguments}", peak_kib >> 10);
    peak_kib >> 10
}

/// Symptom: a store of 75 MB took 8.6 GB to report and 12.8 GB to compare. Cause: each cell kept two
/// histograms with room for every bucket, and copies of them, and exports were built in memory. Fix:
/// distributions that keep only non-empty buckets, and exports that are written as they are made.
#[test]
fn memory_does_not_grow_with_the_room_of_histograms() {
    let lab = Lab::new();
    let (sizes, repetitions, most_mib) = if is_long() { (100, 10, 300) } else { (25, 1, 60) };
    let cells = write(&lab.path("large.db"), sizes, repetitions);
    assert_eq!(cells, if is_long() { 8_000 } else { 200 });
    let commands = [
        "report -o report.html",
        "store export --format csv -o rows.csv",
        "store export --format json -o all.json",
        "compare 1 --factor threads",
        "compare 1 1",
        "store show 1",
    ];
    let peaks = commands.map(|command| peak_mib(&lab, &format!("{command} --store large.db")));
    assert!(peaks.iter().all(|peak| *peak <= most_mib), "{peaks:?} MiB, and {most_mib} are enough");
    let rows = lab.read("rows.csv").lines().count();
    assert_eq!(rows, cells * INTERVALS as usize + 1);
    let page = std::fs::metadata(lab.path("report.html")).expect("a page").len();
    println!("{} KiB of page for {cells} cells", page >> 10);
    assert!(page < 1_000_000 + 2_000 * cells as u64, "{page} bytes of page");
}
