//! Tests of the import with unusual and hostile files. `crates/cli/tests/import.rs` imports output of the real
//! programs.

use super::*;
use lowtide_record::analysis::Verdict;
use proptest::prelude::*;
use std::path::Path;

/// Imports files with these names and texts.
fn files(list: &[(&str, &str)], options: &Options) -> Result<Imported, ImportError> {
    let directory = tempfile::tempdir().expect("a directory");
    let paths: Vec<PathBuf> = list.iter().map(|(name, _)| directory.path().join(name)).collect();
    for (path, (_, text)) in paths.iter().zip(list) {
        std::fs::write(path, text).expect("written");
    }
    import(&paths, options)
}

/// The error for a file, without its folder.
fn told(name: &str, text: &str) -> String {
    let error = files(&[(name, text)], &Options::default()).map(drop).expect_err(text).to_string();
    error[error.find(name).unwrap_or(0)..].to_owned()
}

/// Reads, bytes read, writes and bytes written of a cell.
fn totals(imported: &Imported, cell: usize) -> (u64, u64, u64, u64) {
    imported.measured[cell].iter().fold((0, 0, 0, 0), |(a, b, c, d), it| {
        (a + it.row.reads, b + it.row.read_bytes, c + it.row.writes, d + it.row.write_bytes)
    })
}

fn reason(imported: &Imported, cell: usize) -> String {
    match &imported.campaign.cells[cell].verdict {
        Some(Verdict::NoSteadyState { reason }) => reason.clone(),
        other => panic!("{other:?}"),
    }
}

/// A job of fio 3 with 1000 reads of 4 KiB in two seconds.
fn job(name: &str, more: &str) -> String {
    let none = r#"{"io_bytes": 0, "io_kbytes": 0, "runtime": 0, "total_ios": 0}"#;
    format!(
        r#"{{"jobname": "{name}", "error": 0, "job options": {{"rw": "randread", "bs": "4k" {more}}},
        "read": {{"io_bytes": 4096000, "io_kbytes": 4000, "runtime": 2000, "total_ios": 1000,
          "clat_ns": {{"min": 1, "max": 70000, "mean": 1500.5, "N": 1000,
            "percentile": {{"50.000000": 1000, "95.000000": 5000, "99.000000": 9000, "99.900000": 20000}}}}}},
        "write": {none}, "trim": {none}}}"#
    )
}

fn output(jobs: &[String]) -> String {
    format!(r#"{{"fio version": "fio-3.36", "timestamp": 1700000000, "jobs": [{}]}}"#, jobs.join(", "))
}

#[test]
fn a_total_is_one_row_without_a_steady_state() {
    let text = format!("note: {{both}} ends\n{}\ntrailing {{", output(&[job("a", "")]));
    let imported = files(&[("run.json", &text)], &Options::default()).expect("imports");
    let row = &imported.measured[0][0].row;
    assert_eq!((row.end_ns, row.reads, row.read_bytes, row.writes), (2_000_000_000, 1000, 4_096_000, 0));
    assert_eq!((row.read.mean_ns, row.read.max_ns), (1500.5, 70_000));
    assert!((row.read.p99_ns as f64 / 9000.0 - 1.0).abs() < 0.001, "{}", row.read.p99_ns);
    assert!(reason(&imported, 0).contains("one number"));
    let campaign = &imported.campaign;
    assert_eq!((campaign.name.as_str(), campaign.target.as_str()), ("run", "fio"));
    assert_eq!(campaign.started_at, "2023-11-14T22:13:20Z");
    assert!(campaign.cells[0].factors.is_empty() && campaign.is_imported());
}

#[test]
fn what_differs_between_jobs_is_a_factor_and_the_same_again_is_a_repetition() {
    let depths = output(&[job("a", r#", "iodepth": "1""#), job("b", r#", "iodepth": "16""#)]);
    let imported = files(&[("1.json", &depths), ("2.json", &depths)], &Options::default()).expect("imports");
    let cells: Vec<(String, u32)> =
        imported.campaign.cells.iter().map(|cell| (cell.label(), cell.repetition)).collect();
    let label = |text: &str, n: u32| (text.to_owned(), n);
    assert_eq!(
        cells,
        [
            label("depth 1", 1),
            label("depth 16", 1),
            label("depth 1, repetition 2", 2),
            label("depth 16, repetition 2", 2)
        ]
    );
    let clones = output(&[job("a", ""), job("a", "")]);
    let imported = files(&[("1.json", &clones)], &Options::default()).expect("imports");
    let labels: Vec<String> = imported.campaign.cells.iter().map(lowtide_record::Cell::label).collect();
    assert_eq!(labels, ["job a.1", "job a.2"], "clones of a job ran beside each other");
    let alike = output(&[job("a", ""), job("b", "")]);
    let imported = files(&[("1.json", &alike)], &Options::default()).expect("imports");
    let labels: Vec<String> = imported.campaign.cells.iter().map(lowtide_record::Cell::label).collect();
    assert_eq!(labels, ["job a", "job b"]);
}

/// fio 2.2 prints KiB and microseconds.
#[test]
fn version_2_counts_kib_and_microseconds() {
    let text = output(&[job("a", "")])
        .replace(r#""io_bytes": 4096000, "io_kbytes": 4000"#, r#""io_bytes": 4000"#)
        .replace("clat_ns", "clat");
    let imported = files(&[("old.json", &text)], &Options::default()).expect("imports");
    let row = &imported.measured[0][0].row;
    assert_eq!((row.read_bytes, row.read.max_ns), (4_096_000, 70_000_000));
    assert!((row.read.p50_ns as f64 / 1e6 - 1.0).abs() < 0.001);
}

#[test]
fn averages_are_spread_over_even_intervals_and_sums_stay() {
    // Reads: 1000 KiB/s for 200 ms, then 2000 KiB/s for 400 ms: 1000 KiB. Writes: 500 KiB/s for 600 ms: 300 KiB.
    let bw =
        "200, 1000, 0, 0, 0\n200, 500, 1, 0, 0\n500, 2000, 0, 0, 0\n600, 500, 1, 0, 0\n600, 2000, 0, 0, 0\n";
    let iops = "200, 250, 0, 0\n600, 500, 0, 0\n600, 125, 1, 0\n";
    let lat = "200, 1000, 0, 0\n600, 3000, 0, 0\n";
    let list = [("j_bw.1.log", bw), ("j_iops.1.log", iops), ("j_clat.1.log", lat), ("j_slat.1.log", "")];
    let imported = files(&list, &Options::default()).expect("imports");
    assert_eq!(totals(&imported, 0), (250, 1000 << 10, 75, 300 << 10));
    let rows: Vec<_> = imported.measured[0].iter().map(|it| &it.row).collect();
    assert!(rows.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
    assert_eq!(rows.last().expect("rows").end_ns, 600_000_000);
    // The usual gap is 300 ms: 200 ms at 1000 ns and 100 ms at 3000 ns.
    let mean_ns = (200.0 * 1000.0 + 100.0 * 3000.0) / 300.0;
    assert!((rows[0].read.mean_ns / mean_ns - 1.0).abs() < 1e-9, "{}", rows[0].read.mean_ns);
    assert_eq!(rows[0].read.p99_ns, 0, "a mean has no percentiles");
    assert_eq!(imported.notes, ["how long submission took (`_slat` logs) is not kept"]);
    assert!(reason(&imported, 0).contains("--size"), "writes over data of unknown size");
}

#[test]
fn lines_of_single_requests_are_counted_exactly() {
    let lat = "0, 100, 0, 4096, 0\n1, 200, 1, 8192, 0\n1, 300, 0, 4096, 0\n40, 400, 2, 4096, 0\n100, 500, 0, 4096, 0\n";
    let imported = files(&[("j_lat.2.log", lat)], &Options::default()).expect("imports");
    assert_eq!(totals(&imported, 0), (3, 12_288, 1, 8192));
    let longest = imported.measured[0].iter().map(|it| it.row.read.max_ns).max();
    assert_eq!(longest, Some(500));
    assert_eq!(imported.campaign.name, "j.2");
}

#[test]
fn a_long_even_series_of_reads_settles_and_times_of_the_day_are_understood() {
    let line = |n: u64| format!("{}, {}, 0, 0, 0\n", 1_700_000_000_000 + n * 1000, 100_000 + n * 7919 % 1000);
    let bw: String = (1..=300).map(line).collect();
    let imported = files(&[("j_bw.1.log", &bw)], &Options::default()).expect("imports");
    assert_eq!(imported.measured[0].len(), 300);
    assert_eq!(imported.campaign.started_at, "2023-11-14T22:13:20Z");
    let Some(Verdict::Steady(estimate)) = &imported.campaign.cells[0].verdict else {
        panic!("{:?}", imported.campaign.cells[0].verdict)
    };
    assert!((estimate.mean - 98.1).abs() < 0.2, "{estimate:?}");
    // Like measured cells, imported ones stay in the honeymoon while the writes are no larger than the data.
    let writes = bw.replace(", 0, 0, 0", ", 1, 0, 0");
    let options = Options { size: Some(Bytes::gib(100)), ..Options::default() };
    let imported = files(&[("j_bw.1.log", &writes)], &options).expect("imports");
    assert!(reason(&imported, 0).contains("honeymoon"), "{}", reason(&imported, 0));
}

const SYSBENCH_05: &str = "sysbench 0.5:  multi-threaded system evaluation benchmark\n\nNumber of threads: 4\n\
    Block size 16Kb\n1Gb total file size\nDoing random r/w test\nThreads started!\n\
    [   1s] reads: 5.00 MB/s writes: 3.00 MB/s fsyncs: 552.21/s response time: 0.324ms (95%)\n\
    [   2s] reads: 6.00 MB/s writes: 4.00 MB/s fsyncs: 552.21/s response time: 0.324ms (95%)\n\
    Operations performed:  704 reads, 448 writes, 1280 Other = 2432 Total\n\
    Read 11Mb  Written 7Mb  Total transferred 18Mb  (9Mb/sec)\n  576 Requests/sec executed\n\n\
    General statistics:\n    total time:                          2.0000s\n    response time:\n\
         min:  0.01ms\n         avg:  5.31ms\n         max:  56.28ms\n         approx.  95 percentile:  18.93ms\n";

#[test]
fn sysbench_reports_become_intervals() {
    let imported = files(&[("sb.txt", SYSBENCH_05)], &Options::default()).expect("imports");
    assert_eq!(totals(&imported, 0), (704, 11 << 20, 448, 7 << 20));
    let cell = &imported.campaign.cells[0];
    assert_eq!((cell.threads, cell.data), (4, Bytes::gib(1)));
    assert!(reason(&imported, 0).contains("honeymoon") || reason(&imported, 0).contains("short"));
    let fact = |name: &str| imported.campaign.environment.iter().find(|(key, _)| key == name);
    let (_, latency) = fact("latency of reads, writes and syncs together").expect("it is kept as a fact");
    assert_eq!(latency, "mean 5.31 ms, 95th percentile 18.93 ms, longest 56.28 ms");
    let without: String =
        SYSBENCH_05.lines().filter(|line| !line.starts_with('[')).map(|line| format!("{line}\n")).collect();
    let imported = files(&[("sb.txt", &without)], &Options::default()).expect("imports");
    assert_eq!(totals(&imported, 0), (704, 11 << 20, 448, 7 << 20));
    assert!(reason(&imported, 0).contains("one number"));
}

#[test]
fn bad_files_are_told_where_and_what_is_accepted() {
    let whole = output(&[job("a", "")]);
    for (name, text, expected) in [
        ("a.json", "", "a.json: it is empty"),
        ("a.txt", "hello\n", "a.txt: nothing says what it is"),
        ("a.json", &whole[..300], "a.json:3:68: the JSON ends too early"),
        ("a.json", &whole.replace("1500.5", "NaN"), "a.json:3:55: this is not JSON: expected value"),
        ("a.json", &whole.replace("4096000", "-5"), "a.json: `jobs[0].read.io_bytes` is `-5`"),
        ("a.json", &whole.replace("4096000", "1e300"), "a.json: `jobs[0].read.io_bytes` is `1e+300`"),
        ("a.json", &whole.replace("total_ios", "t"), "a.json: `jobs[0].read.total_ios` is missing"),
        ("a.json", &whole.replace("\"jobs\"", "\"j\""), "a.json: `jobs` is missing"),
        ("a.json", r#"{"fio version": "x", "jobs": []}"#, "a.json: `jobs` is `[]`"),
        ("a.log", "1, 2, 0, 0\n", "a.log: it looks like a log of fio, whose logs all look alike"),
        ("a_bw.1.log", "5, 2, 0, 0\n4, 2, 0, 0\n", "a_bw.1.log:2: the time goes back from 5 to 4 ms"),
        ("a_bw.1.log", "5, 2, 0, 0\n6, -2, 0, 0\n", "a_bw.1.log:2: the value is `-2`"),
        ("a_bw.1.log", "5, 2, 7, 0\n", "a_bw.1.log:1: the direction is `7`"),
        ("a_bw.1.log", "5, 2, 0, 0\n6\n", "a_bw.1.log:2: 1 columns"),
        ("a_bw.1.log", "5, 2, 0, 0\n99999999999999, 2, 0, 0\n", "a_bw.1.log: it lasts 99999999999999 ms"),
        ("a_bw.1.log", "0, 2, 0, 0\n", "a_bw.1.log: the run took no time"),
        ("a_lat.1.log", "5, 2, 0, 0\n", "a_lat.1.log: nothing says how much data was moved"),
        ("a_clat_hist.1.log", &format!("5, 0, 0{}\n", ", 1".repeat(77)), "a_clat_hist.1.log:1: 77 bins"),
        (
            "a_bw.1.log",
            &format!("100, {0}, 0, 0\n200, {0}, 0, 0\n", 1u64 << 60),
            "a_bw.1.log: more bytes or operations than any device serves",
        ),
        ("a.iolog", "fio version 3 iolog\n", "a.iolog: it is a trace, a load and not a result"),
        ("a.txt", "sysbench 1.0.20\n", "a.txt: `total time` is missing: did the run end?"),
        ("a.txt", &SYSBENCH_05.replace("[   2s]", "[   1s]"), "a.txt:9: the time goes back from 1 to 1 s"),
        ("a.txt", &SYSBENCH_05.replace("5.00 MB/s", "MB/s"), "a.txt:8: a report that cannot be read"),
    ] {
        let told = told(name, text);
        assert!(told.starts_with(expected), "{name}: {told}\n not: {expected}");
    }
    let binary = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(binary.path(), b"\xff\xfe\x00{\"fio version\"").expect("written");
    let error = import(&[binary.path().to_owned()], &Options::default()).expect_err("binary");
    assert!(error.to_string().ends_with("it is not text"), "{error}");
    let error = import(&[Path::new("/does/not/exist").to_owned()], &Options::default()).expect_err("missing");
    assert!(error.to_string().starts_with("/does/not/exist: it cannot be read"), "{error}");
    assert_eq!(
        "fio-jsno".parse::<Kind>().expect_err("unknown").split("; ").nth(1),
        Some("did you mean `fio-json`?")
    );
    let options = Options { kind: Some(Kind::Sysbench), ..Options::default() };
    assert!(files(&[("a.json", &whole)], &options).is_err(), "the wrong kind");
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(
        at in 0usize..2000, with in "[ -~\n]{0,12}", which in 0usize..4, cut in any::<bool>(),
    ) {
        let json = output(&[job("a", "")]);
        let (name, text) = [
            ("a.json", json.as_str()),
            ("a_bw.1.log", "200, 1000, 0, 0, 0\n200, 500, 1, 0, 0\n500, 2000, 0, 0, 0\n"),
            ("a_lat.1.log", "0, 100, 0, 4096, 0\n1, 200, 1, 8192, 0\n1, 300, 0, 4096, 0\n"),
            ("a.txt", SYSBENCH_05),
        ][which];
        let at = at % text.len();
        let rest = if cut { "" } else { &text[at..] };
        let _ = files(&[(name, &format!("{}{with}{rest}", &text[..at]))], &Options::default());
    }
}
