//! Parses the output of `sysbench fileio` (versions 0.4, 0.5 and 1.0): one [`Run`], a series with
//! `--report-interval`.
//!
//! sysbench's latency covers reads, writes and syncs together. It is stored as latency only for read-only loads, and
//! as a fact for other loads. Rates have two decimals, which limits the accuracy of the operation counts.
//!
//! # Not handled
//! Histograms (`--histogram`), whose values have too few digits for a modern device.

use super::error::ImportError;
use super::kind::Source;
use super::run::{MOST, MOST_MS, Run};
use crate::store::Measured;
use lowtide_core::{Bytes, Latency};
use lowtide_record::{Percentiles, Row};

const ACCEPTED: &str = "the whole output of `sysbench fileio … run` (0.4, 0.5 or 1.0)";

/// The totals of the run, and the settings needed to compute rows.
#[derive(Default)]
struct Totals {
    block: Option<Bytes>,
    seconds: Option<f64>,
    /// Operations, as a count or a rate.
    reads: Option<f64>,
    writes: Option<f64>,
    syncs: f64,
    per_second: bool,
    mib_read: Option<f64>,
    mib_written: Option<f64>,
    mean_ms: Option<f64>,
    max_ms: Option<f64>,
    /// `(percent, ms)`.
    percentile: Option<(f64, f64)>,
}

/// A line of `--report-interval`.
struct Report {
    line: usize,
    end_s: f64,
    read_mib_per_s: f64,
    write_mib_per_s: f64,
    p95_ms: Option<f64>,
}

/// Parses a file.
pub(super) fn read(source: &Source) -> Result<Run, ImportError> {
    let mut run = Run { program: "sysbench", job: "fileio".to_owned(), threads: 1, ..Run::default() };
    let mut totals = Totals::default();
    let mut reports: Vec<Report> = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') && line.contains("reads:") {
            let report = report(line, number + 1).ok_or_else(|| {
                let help = "`[ 1s ] reads: 1.00 MiB/s writes: 1.00 MiB/s …`";
                ImportError::line(source, number + 1, "a report that cannot be read", help)
            })?;
            let before = reports.last().map_or(0.0, |report| report.end_s);
            if report.end_s <= before {
                let message = format!("the time goes back from {before} to {} s", report.end_s);
                return Err(ImportError::line(source, number + 1, message, "one run of sysbench"));
            }
            reports.push(report);
            continue;
        }
        setting(line, &mut run);
        total(line, &mut totals);
    }
    if let Some((_, text)) = run.settings.iter().find(|(name, _)| *name == "block") {
        totals.block = text.parse().ok();
    }
    let missing = |what: &str| {
        ImportError::file(&source.path, format!("{what} is missing: did the run end?"), ACCEPTED)
    };
    let seconds = totals.seconds.ok_or_else(|| missing("`total time`"))?;
    if !(seconds > 0.0 && seconds * 1000.0 <= MOST_MS as f64) {
        return Err(ImportError::file(&source.path, format!("the total time is {seconds} s"), ACCEPTED));
    }
    let (Some(reads), Some(writes)) = (totals.reads, totals.writes) else {
        return Err(missing("the number of reads and writes"));
    };
    let factor = if totals.per_second { seconds } else { 1.0 };
    let (reads, writes) = ((reads * factor).round(), (writes * factor).round());
    let bytes = |count: f64, mib: Option<f64>| match (totals.block, mib) {
        (Some(block), _) => count * block.get() as f64,
        (None, mib) => mib.unwrap_or(0.0) * factor * Bytes::mib(1).get() as f64,
    };
    let (read_bytes, write_bytes) = (bytes(reads, totals.mib_read), bytes(writes, totals.mib_written));
    if [reads, writes, read_bytes, write_bytes].iter().any(|n| !(0.0..=MOST as f64).contains(n)) {
        return Err(ImportError::file(&source.path, "more than any device serves", ACCEPTED));
    }
    let only_reads = writes == 0.0 && totals.syncs == 0.0;
    let latency = latency(&totals, only_reads, &mut run);
    if totals.syncs > 0.0 {
        run.facts.push(("syncs, not counted".to_owned(), (totals.syncs * factor).round().to_string()));
    }
    if reports.is_empty() {
        let row = Row {
            start_ns: 0,
            end_ns: (seconds * 1e9) as u64,
            reads: reads as u64,
            read_bytes: read_bytes as u64,
            writes: writes as u64,
            write_bytes: write_bytes as u64,
            read: latency,
            write: Percentiles::default(),
            ..Row::default()
        };
        run.measured = vec![Measured::new(row, &Latency::default(), &Latency::default())];
        return Ok(run);
    }
    run.is_series = true;
    let mut start_s = 0.0;
    for report in &reports {
        let row = report_row(report, start_s, totals.block, only_reads);
        let row = row
            .ok_or_else(|| ImportError::line(source, report.line, "more than any device serves", ACCEPTED))?;
        run.measured.push(Measured::new(row, &Latency::default(), &Latency::default()));
        start_s = report.end_s;
    }
    Ok(run)
}

fn report_row(report: &Report, start_s: f64, block: Option<Bytes>, only_reads: bool) -> Option<Row> {
    let seconds = report.end_s - start_s;
    let bytes = |mib_per_s: f64| {
        let bytes = mib_per_s * seconds * Bytes::mib(1).get() as f64;
        (0.0..=MOST as f64).contains(&bytes).then_some(bytes as u64)
    };
    let (read_bytes, write_bytes) = (bytes(report.read_mib_per_s)?, bytes(report.write_mib_per_s)?);
    let count = |bytes: u64| block.map_or(0, |block| bytes / block.get());
    let p95_ns = report.p95_ms.filter(|_| only_reads).map_or(0, |ms| (ms * 1e6) as u64);
    Some(Row {
        start_ns: (start_s * 1e9) as u64,
        end_ns: (report.end_s * 1e9) as u64,
        reads: count(read_bytes),
        read_bytes,
        writes: count(write_bytes),
        write_bytes,
        read: Percentiles { p95_ns, ..Percentiles::default() },
        write: Percentiles::default(),
        ..Row::default()
    })
}

/// Parses an interval report. Version 1.0:
/// `[ 1s ] reads: 167.52 MiB/s writes: 111.69 MiB/s fsyncs: 711.41/s latency (ms,95%): 0.003`. Version 0.5:
/// `[   1s] reads: 5.12 MB/s writes: 3.41 MB/s fsyncs: 552.21/s response time: 0.324ms (95%)`.
fn report(line: &str, number: usize) -> Option<Report> {
    let (time, rest) = line.strip_prefix('[')?.split_once(']')?;
    let after = |key: &str| -> Option<f64> {
        let text = rest.split_once(key)?.1.trim_start();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        text[..end].parse().ok()
    };
    let is_95 = rest.contains("95%");
    let p95_ms = after("latency (ms,95%):").or(after("response time:")).filter(|_| is_95);
    let end_s = time
        .trim()
        .trim_end_matches('s')
        .parse()
        .ok()
        .filter(|s: &f64| *s > 0.0 && *s < MOST_MS as f64 / 1000.0)?;
    let (read_mib_per_s, write_mib_per_s) = (after("reads:")?, after("writes:")?);
    Some(Report { line: number, end_s, read_mib_per_s, write_mib_per_s, p95_ms })
}

/// Parses a line with a setting of the run.
fn setting(line: &str, run: &mut Run) {
    if let Some(version) = line.strip_prefix("sysbench ") {
        let version = version.split([' ', ':']).next().unwrap_or(version);
        run.facts.push(("sysbench".to_owned(), version.to_owned()));
    } else if let Some(threads) = line.strip_prefix("Number of threads: ") {
        run.threads = threads.parse().unwrap_or(1).clamp(1, 65_536);
        run.settings.push(("threads", run.threads.to_string()));
    } else if let Some(block) = line.strip_prefix("Block size ").and_then(size) {
        run.settings.push(("block", block.to_string()));
    } else if let Some(data) = line.strip_suffix(" total file size").and_then(size) {
        run.data = Some(data);
        run.settings.push(("file_size", data.to_string()));
    } else if let Some(mode) = line.strip_prefix("Doing ").and_then(|line| line.strip_suffix(" test")) {
        let pattern = match mode {
            "random r/w" => "random-mixed",
            "random read" => "random-read",
            "random write" => "random-write",
            "sequential read" => "sequential-read",
            "sequential write (creation)" | "sequential rewrite" => "sequential-write",
            other => other,
        };
        run.settings.push(("pattern", pattern.to_owned()));
    } else if line.starts_with("Using ") && line.ends_with(" mode") {
        run.facts.push(("mode".to_owned(), line.trim_start_matches("Using ").to_owned()));
    } else if line.starts_with("Periodic FSYNC") || line.starts_with("Calling fsync()") {
        run.facts.push(("sync".to_owned(), line.trim_end_matches('.').to_owned()));
    } else if let Some(flags) = line.strip_prefix("Extra file open flags: ") {
        run.facts.push(("open flags".to_owned(), flags.to_owned()));
    }
}

/// Parses a line of the totals at the end.
fn total(line: &str, totals: &mut Totals) {
    let number = |text: &str| -> Option<f64> {
        let text = text.trim().trim_end_matches(['s', 'm', ',', 'b', 'M', 'G', 'T', 'K']);
        text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)
    };
    if let Some(rest) = line.strip_prefix("Operations performed:") {
        // 0.5: `600 reads, 400 writes, 1280 Other = 2280 Total`; 0.4: `Read 600, Write 400, Other 1280 = Total 2280`.
        for part in rest.split([',', '=']) {
            let words: Vec<&str> = part.split_whitespace().collect();
            let [a, b] = words[..] else { continue };
            let (word, count) = if a.parse::<f64>().is_ok() { (b, number(a)) } else { (a, number(b)) };
            match word.to_ascii_lowercase().trim_end_matches('s') {
                "read" => totals.reads = count,
                "write" => totals.writes = count,
                "other" => totals.syncs = count.unwrap_or(0.0),
                _ => {}
            }
        }
        return;
    }
    let Some((key, value)) = line.split_once(':') else { return };
    let value = number(value);
    match key.trim() {
        "reads/s" => (totals.reads, totals.per_second) = (value, true),
        "writes/s" => totals.writes = value,
        "fsyncs/s" => totals.syncs = value.unwrap_or(0.0),
        "read, MiB/s" => totals.mib_read = value,
        "written, MiB/s" => totals.mib_written = value,
        "total time" => totals.seconds = value,
        "avg" => totals.mean_ms = totals.mean_ms.or(value),
        "max" => totals.max_ms = totals.max_ms.or(value),
        other => {
            let words = other.trim_start_matches("approx.").trim();
            let percent = words.strip_suffix("percentile").map(|it| it.trim().trim_end_matches("th"));
            if let (Some(Ok(percent)), Some(ms)) = (percent.map(str::parse::<f64>), value) {
                totals.percentile = Some((percent, ms));
            }
        }
    }
}

/// The latency of a read-only load. For other loads, adds the latency as a fact.
fn latency(totals: &Totals, only_reads: bool, run: &mut Run) -> Percentiles {
    let ns = |ms: Option<f64>| ms.unwrap_or(0.0) * 1e6;
    if only_reads {
        let p = |percent: f64| {
            totals.percentile.filter(|(at, _)| *at == percent).map_or(0, |(_, ms)| (ms * 1e6) as u64)
        };
        let (p50_ns, p95_ns, p99_ns) = (p(50.0), p(95.0), p(99.0));
        let max_ns = ns(totals.max_ms) as u64;
        return Percentiles {
            mean_ns: ns(totals.mean_ms),
            p50_ns,
            p95_ns,
            p99_ns,
            max_ns,
            ..Percentiles::default()
        };
    }
    let mut parts = Vec::new();
    parts.extend(totals.mean_ms.map(|ms| format!("mean {ms} ms")));
    parts.extend(totals.percentile.map(|(percent, ms)| format!("{percent}th percentile {ms} ms")));
    parts.extend(totals.max_ms.map(|ms| format!("longest {ms} ms")));
    if !parts.is_empty() {
        run.facts.push(("latency of reads, writes and syncs together".to_owned(), parts.join(", ")));
    }
    Percentiles::default()
}

/// Parses a size, `16KiB` or in older versions `16Kb`. Both are powers of 1024.
fn size(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let shift = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    let bytes = digits.parse::<f64>().ok()? * (1u64 << shift) as f64;
    (1.0..=MOST as f64).contains(&bytes).then_some(Bytes::new(bytes as u64))
}
