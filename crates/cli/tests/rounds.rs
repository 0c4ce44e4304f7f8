//! Rounds, bursts and preconditioning. The SNIA experiments must end with the round that the specification's rule
//! gives; these tests compute the rule from the exported rows. `resume.rs` tests resuming rounds.

mod common;

use common::{Lab, assert_says, json};
use std::collections::BTreeMap;

/// A row of an exported CSV, by column.
type Row = BTreeMap<String, String>;

fn number(row: &Row, key: &str) -> f64 {
    row[key].parse().unwrap_or_else(|_| panic!("{key}: {}", row[key]))
}

/// `value(rows)` of each round of the cells that `wanted` selects, in order.
fn by_round(rows: &[Row], wanted: impl Fn(&Row) -> bool, value: impl Fn(&[&Row]) -> f64) -> Vec<f64> {
    let mut rounds: BTreeMap<u32, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| wanted(row)) {
        rounds.entry(row["repetition"].parse().expect("a number")).or_default().push(row);
    }
    rounds.values().map(|rows| value(rows)).collect()
}

fn seconds(row: &Row) -> f64 {
    (number(row, "end_ns") - number(row, "start_ns")) / 1e9
}

fn iops(rows: &[&BTreeMap<String, String>]) -> f64 {
    let requests: f64 = rows.iter().map(|row| number(row, "reads") + number(row, "writes")).sum();
    requests / rows.iter().map(|row| seconds(row)).sum::<f64>()
}

/// The specification's rule: the first round, counted from 1, at which the last five rounds span at most 20 % of
/// their average and their regression line changes by at most 10 % of that average.
fn steady_after(rounds: &[f64]) -> Option<usize> {
    (5..=rounds.len()).find(|end| {
        let window = &rounds[end - 5..*end];
        let average = window.iter().sum::<f64>() / 5.0;
        let largest = window.iter().copied().fold(f64::MIN, f64::max);
        let smallest = window.iter().copied().fold(f64::MAX, f64::min);
        // Normal equations of y = a + b·x for x = 1 … 5.
        let (sum_x, sum_xx) = (15.0, 55.0);
        let sum_y: f64 = window.iter().sum();
        let sum_xy: f64 = window.iter().zip(1..).map(|(y, x)| y * f64::from(x)).sum();
        let b = (5.0 * sum_xy - sum_x * sum_y) / (5.0 * sum_xx - sum_x * sum_x);
        largest - smallest <= 0.2 * average && (b * 4.0).abs() <= 0.1 * average
    })
}

/// Runs an experiment of the catalogue with `--require-steady`; returns its exported rows, its report and the exit
/// code.
fn run(lab: &Lab, name: &str, scale: &str) -> (Vec<Row>, String, Option<i32>) {
    let output = lab.run(&format!("run {name} --scale {scale} --require-steady --store {name}.db"));
    let (code, text, _) = common::decoded(&output);
    (common::rows(&lab.ok(&format!("store export --store {name}.db"))), text, code)
}

/// Asserts that at most `most` rounds ended as the rule requires, and that the report and the exit code agree.
fn ends_where_the_rule_says(name: &str, tracked: &[f64], most: usize, text: &str, code: Option<i32>) {
    match steady_after(tracked) {
        Some(end) => {
            assert_eq!(tracked.len(), end, "{name}: rounds after it was steady, {tracked:?}");
            assert_says(text, &[&format!("Steady state after {end} rounds")]);
            assert_eq!(code, Some(0), "{name}");
        }
        None => {
            assert_eq!(tracked.len(), most, "{name}: rounds that are missing, {tracked:?}");
            assert_says(text, &[&format!("No steady state after {most} rounds")]);
            assert_eq!(code, Some(4), "{name}");
        }
    }
}

#[test]
fn the_iops_test_ends_where_the_rule_says() {
    let lab = Lab::new();
    let (rows, text, code) = run(&lab, "snia-iops", "1/64");
    let of = |mix: &str, block: &str| by_round(&rows, |row| row["mix"] == mix && row["block"] == block, iops);
    let tracked = of("0", "4KiB");
    ends_where_the_rule_says("snia-iops", &tracked, 25, &text, code);
    // The matrix holds the mean over the window.
    let report = lab.json("store show snia-iops --store snia-iops.db");
    let row = |block: &str| {
        let rows = report["tables"]["matrix"]["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["block"] == block).expect("a block size").clone()
    };
    for (mix, key) in [("1", "iops_r_w_100_0"), ("0.65", "iops_r_w_65_35"), ("0", "iops_r_w_0_100")] {
        for block in ["512B", "16KiB", "1MiB"] {
            let rounds = of(mix, block);
            let mean = rounds[rounds.len() - 5..].iter().sum::<f64>() / 5.0;
            let shown = row(block)[key].as_f64().unwrap_or_else(|| panic!("{block} {key}: {}", row(block)));
            assert!((shown / mean - 1.0).abs() < 1e-9, "{mix} {block}: {shown}, not {mean}");
        }
    }
}

#[test]
fn the_latency_test_ends_where_the_rule_says() {
    let lab = Lab::new();
    // At 1/64 the values vary too much for a steady state.
    for scale in ["1/64", "1/16"] {
        let (rows, text, code) = run(&lab, "snia-latency", scale);
        let mean = |rows: &[&Row]| {
            let waited = |row: &Row, op| {
                number(row, op) * number(row, &format!("{}_latency_ns_mean", &op[..op.len() - 1]))
            };
            let sum = |value: &dyn Fn(&Row) -> f64| rows.iter().map(|row| value(row)).sum::<f64>();
            sum(&|row| waited(row, "reads") + waited(row, "writes"))
                / sum(&|row| number(row, "reads") + number(row, "writes"))
        };
        let tracked = by_round(&rows, |row| row["mix"] == "0" && row["block"] == "4KiB", mean);
        ends_where_the_rule_says("snia-latency", &tracked, 25, &text, code);
        lab.remove("snia-latency.db");
    }
}

#[test]
fn the_composite_test_has_its_sizes_and_ends_where_the_rule_says() {
    let lab = Lab::new();
    let (rows, _, code) = run(&lab, "snia-enterprise-composite", "1/64");
    let full = |row: &Row| row["threads"] == "32" && row["depth"] == "32";
    let tracked = by_round(&rows, |row| row["step"] == "intensity" && full(row), iops);
    let saturated = by_round(&rows, |row| row["step"] == "saturation" && row["start_ns"] == "0", iops);
    let ends = [&saturated, &tracked].map(|rounds| {
        let end = steady_after(rounds);
        assert_eq!(rounds.len(), end.unwrap_or(25), "{rounds:?}");
        end
    });
    assert_eq!(code, Some(if ends.contains(&None) { 4 } else { 0 }), "{ends:?}");
    let sum = |key: &str| rows.iter().map(|row| number(row, key)).sum::<f64>();
    let (reads, writes) = (sum("reads"), sum("writes"));
    assert!(reads + writes > 1e6, "{reads} reads and {writes} writes");
    assert!((reads / (reads + writes) - 0.4).abs() < 0.005, "{reads} reads and {writes} writes");
    // The expected mean of the twelve sizes; the standard deviation of the mean over so many requests is 0.2 %.
    for (key, requests) in [("read_bytes", reads), ("write_bytes", writes)] {
        let mean = sum(key) / requests;
        assert!((mean / 7818.24 - 1.0).abs() < 0.01, "{key}: {mean} a request");
    }
    let name = "snia-enterprise-composite";
    let report = lab.json(&format!("store show {name} --store {name}.db"));
    let flow = report["tables"]["flow"]["rows"].to_string().replace('\u{a0}', " ");
    assert_says(
        &flow,
        &["512B 4 %, ", "4KiB 67 %, ", "64KiB 3 %", "50 % to the first 5 %, 30 % to the next 15 %, 20 %"],
    );
}

#[test]
fn write_saturation_ends_where_the_rule_says_of_the_first_minutes() {
    let lab = Lab::new();
    let (rows, text, code) = run(&lab, "snia-write-saturation", "1/32");
    let first_minute_ns = 60e9 / 32.0;
    let tracked = by_round(&rows, |row| number(row, "start_ns") < first_minute_ns, iops);
    ends_where_the_rule_says("snia-write-saturation", &tracked, 48, &text, code);
    // The first round is on a fresh drive.
    assert!(tracked[0] > 3.0 * tracked[tracked.len() - 1], "{tracked:?}");
}

#[test]
fn the_same_seed_gives_the_same_rounds() {
    let lab = Lab::new();
    for store in ["a.db", "b.db"] {
        lab.ok(&format!("run snia-throughput --scale 1/128 --store {store}"));
    }
    assert!(lab.exports("a.db") == lab.exports("b.db"));
}

const BURSTS: &str = include_str!("data/bursts.toml");

#[test]
fn bursts_are_intervals_and_pauses_bring_speed_back() {
    let lab = Lab::with(&[("bursts.toml", BURSTS)]);
    lab.ok("run ./bursts.toml --scale 1/32");
    let (csv, export) = lab.exports("lowtide.db");
    let rows = common::rows(&csv);
    let of = |step: &str| -> Vec<&Row> { rows.iter().filter(|row| row["step"] == step).collect() };
    // A minute under load: bursts of 5 s with pauses, intervals of 30 s without.
    assert_eq!([of("pauses").len(), of("none").len()], [12, 2]);
    let ends: Vec<f64> = of("pauses").iter().map(|row| number(row, "end_ns")).collect();
    let starts: Vec<f64> = of("pauses").iter().map(|row| number(row, "start_ns")).collect();
    assert_eq!(starts[1..], ends[..11], "pauses are no part of the time of intervals");
    let (paused, worn) = (iops(&of("pauses")[1..]), iops(&of("worn")[100..]));
    assert!(paused > 1.2 * worn, "{paused} IOPS with pauses, {worn} without");
    // Preconditioning counts as written.
    let campaign = json(&export);
    let first = &campaign["cells"][0];
    let [before, data] =
        ["written_before_bytes", "data_bytes"].map(|key| first[key].as_u64().expect("bytes"));
    assert_eq!(before, 2 * data);
    // The plan includes pauses: an hour, a minute with eleven pauses, and a minute.
    let plan = lab.json("plan ./bursts.toml");
    let longest: Vec<f64> =
        (0..3).map(|cell| plan["cells"][cell]["longest_s"].as_f64().expect("seconds")).collect();
    assert_eq!(longest, [3600.0, 60.0 + 11.0 * 50.0, 60.0]);
}

#[test]
fn rounds_and_bursts_run_on_files_of_the_host() {
    let lab = Lab::new();
    lab.make_directory("data");
    let text = BURSTS
        .replace("target.device = \"intel-320-160gb\"", "target.directory = \"data\"")
        .replace("[workload]", "[workload]\nfile_size = \"4100KiB\"")
        .replace("\"1h\"", "\"100ms\"\nrepeat = { times = 5, track = { of = \"iops\" } }")
        .replace("\"1min\"", "\"100ms\"")
        .replace("\"30s\"", "\"50ms\"")
        .replace("\"5s\"", "\"20ms\"")
        .replace("\"50s\"", "\"10ms\"");
    lab.write("files.toml", text);
    let says = ["after 5 rounds", "2 × the active range", "not available for files: not done"];
    lab.prints("run ./files.toml --format json", &says);
    let rows = common::rows(&lab.exports("lowtide.db").0);
    let starts: Vec<f64> =
        (rows.iter().filter(|row| row["step"] == "pauses")).map(|row| number(row, "start_ns")).collect();
    assert!(starts.len() >= 2 && starts.is_sorted(), "{starts:?}");
    assert_eq!(common::names(&lab.path("data")), Vec::<String>::new(), "the files are removed");
}

#[test]
fn invalid_bursts_and_preconditions_are_refused() {
    let lab = Lab::new();
    for (from, to, says) in [
        ("burst = \"5s\"\n", "", "`pause` without `burst`"),
        (
            "duration = \"1min\"\n",
            "requests = 5\n",
            "`burst` in a measurement that does not end by its duration",
        ),
        ("times = 2", "times = 0", "`times`: 0 is not a count"),
        ("times = 2", "times = 5000", "5000 passes"),
        (
            "[workload]",
            "[workload]\nfile_size = \"64KiB\"",
            "a precondition in blocks of 128KiB of files of 64KiB",
        ),
        ("block = \"128KiB\"", "block = \"100B\"", "not a multiple of 512"),
        ("precondition", "preconditon", "did you mean `precondition`?"),
    ] {
        lab.write("wrong.toml", BURSTS.replacen(from, to, 1));
        lab.refuses("plan ./wrong.toml", 2, &[says]);
    }
}
