//! Combines the logs of a job into one time series.
//!
//! fio's entries are unevenly spaced, and each covers the time since the previous entry. They are distributed over
//! intervals of equal length, in proportion to time, which preserves sums. The length is the median gap between
//! entries; if every line is one request, it is 1 s, or a tenth of a shorter run. A log that begins late, or with the
//! time of day (`log_unix_epoch`), begins one gap before its first entry. fio logs nothing between its last entry and
//! the end of the run, so that part is missing.
//!
//! Bytes come from the bandwidth log and operations from the IOPS log. Any log with one line per request can replace
//! either. Latency has a distribution if it comes from a histogram log or a log with one line per request; otherwise
//! only means are known.

use super::error::ImportError;
use super::fio_log::{self, Direction, Entry, Took};
use super::kind::{Log, Source};
use super::run::{MOST, MOST_MS, MOST_ROWS, Run};
use crate::store::Measured;
use lowtide_core::Latency;
use lowtide_record::{Percentiles, Row};
use std::path::PathBuf;

/// Times above this are in milliseconds since 1970: no run takes three years.
const EPOCH_MS: u64 = 100_000_000_000;

/// Minimum gap between fio's averages, in milliseconds. Lines of single requests are closer together.
const SAMPLED_MS: u64 = 100;

/// The logs of one job.
#[derive(Debug)]
struct Job {
    /// Directory and job name, which all logs of a job share.
    key: (Option<PathBuf>, String),
    path: PathBuf,
    bandwidth: Option<Vec<Entry>>,
    iops: Option<Vec<Entry>>,
    latency: Option<(String, Vec<Entry>)>,
    histograms: Option<Vec<Took>>,
}

/// The logs of all jobs.
#[derive(Debug, Default)]
pub(super) struct Logs {
    jobs: Vec<Job>,
}

impl Logs {
    /// Adds a log, and returns a note for the user.
    pub(super) fn add(&mut self, source: &Source, what: Log) -> Result<Option<String>, ImportError> {
        if what == Log::Submission {
            return Ok(Some("how long submission took (`_slat` logs) is not kept".to_owned()));
        }
        let name = source.name();
        let job =
            Log::of_name(&name).map_or_else(|| name.trim_end_matches(".log").to_owned(), |(job, _)| job);
        let key = (source.path.parent().map(PathBuf::from), job);
        let at = self.jobs.iter().position(|job| job.key == key).unwrap_or_else(|| {
            let path = source.path.clone();
            self.jobs.push(Job { key, path, bandwidth: None, iops: None, latency: None, histograms: None });
            self.jobs.len() - 1
        });
        let job = &mut self.jobs[at];
        let second = || {
            let help = "one log of each kind for a job: jobs are told apart by folder and name";
            ImportError::file(&source.path, "a second log of the same kind for this job", help)
        };
        match what {
            Log::Bandwidth if job.bandwidth.is_none() => job.bandwidth = Some(fio_log::entries(source)?),
            Log::Iops if job.iops.is_none() => job.iops = Some(fio_log::entries(source)?),
            Log::Histogram if job.histograms.is_none() => job.histograms = Some(fio_log::histograms(source)?),
            Log::Latency => {
                // If both exist, the log of total latency (`_lat`) is used: lowtide measures total latency.
                let whole = |name: &str| name.contains("_lat.");
                let entries = fio_log::entries(source)?;
                match &job.latency {
                    Some((known, _)) if whole(known) == whole(&name) => return Err(second()),
                    Some((known, _)) if whole(known) => {}
                    _ => job.latency = Some((name, entries)),
                }
            }
            _ => return Err(second()),
        }
        Ok(None)
    }

    /// The runs, one for each job.
    pub(super) fn runs(self) -> Result<Vec<Run>, ImportError> {
        self.jobs.iter().map(Job::run).collect()
    }
}

/// An amount between two times, in milliseconds since the origin.
#[derive(Debug, Clone, Copy)]
struct Span {
    from_ms: u64,
    to_ms: u64,
    amount: f64,
}

/// The intervals of a series.
#[derive(Debug, Clone, Copy)]
struct Grid {
    origin_ms: u64,
    length_ms: u64,
    end_ms: u64,
}

impl Grid {
    fn rows(self) -> u64 {
        (self.end_ms - self.origin_ms).div_ceil(self.length_ms)
    }

    /// The end of interval `row`, since the origin.
    fn end(self, row: u64) -> u64 {
        ((row + 1) * self.length_ms).min(self.end_ms - self.origin_ms)
    }
}

impl Job {
    fn run(&self) -> Result<Run, ImportError> {
        let refuse = |message: &str, help: &str| ImportError::file(&self.path, message, help);
        let singles = [
            self.latency
                .as_ref()
                .map(|(_, entries)| entries)
                .filter(|entries| is_single(entries, Log::Latency)),
            self.iops.as_ref().filter(|entries| is_single(entries, Log::Iops)),
            self.bandwidth.as_ref().filter(|entries| is_single(entries, Log::Bandwidth)),
        ];
        let singles = singles.into_iter().flatten().next();
        let averages = self.bandwidth.as_ref().filter(|entries| !is_single(entries, Log::Bandwidth));
        let Some(bytes) = averages.or(singles) else {
            let help =
                "give the job's `_bw` log, too: what stands before `_bw` is the same in all logs of a job";
            return Err(refuse("nothing says how much data was moved", help));
        };
        let grid = self.grid(bytes, averages.is_some())?;
        let operations = self.iops.as_ref().filter(|entries| !is_single(entries, Log::Iops));
        let mut run =
            Run { program: "fio", job: self.key.1.clone(), threads: 1, is_series: true, ..Run::default() };
        let per_second = |entries: &[Entry], of: Direction, unit: f64| {
            let spans = spans(entries, of, grid, |entry, ms| entry.value as f64 * unit * ms as f64 / 1000.0);
            sums(&spans, grid)
        };
        let each = |entries: &[Entry], of: Direction, amount: fn(&Entry) -> f64| {
            let one = |entry: &Entry| {
                let at = entry.time_ms.saturating_sub(grid.origin_ms);
                Span { from_ms: at, to_ms: at, amount: amount(entry) }
            };
            let of = entries.iter().filter(|entry| entry.direction == of);
            sums(&of.map(one).collect::<Vec<_>>(), grid)
        };
        let bytes = Direction::KEPT.map(|of| match averages {
            Some(entries) => per_second(entries, of, 1024.0),
            None => each(bytes, of, |entry| entry.block as f64),
        });
        let took = self.took(grid);
        let counts = Direction::KEPT.map(|of| match (operations, singles, &took) {
            (Some(entries), ..) => per_second(entries, of, 1.0),
            (None, Some(entries), _) => each(entries, of, |_| 1.0),
            (None, None, Some(took)) => {
                let one =
                    |it: &Took| Span { from_ms: it.time_ms, to_ms: it.time_ms, amount: it.count as f64 };
                sums(&took.iter().filter(|it| it.direction == of).map(one).collect::<Vec<_>>(), grid)
            }
            (None, None, None) => vec![0.0; grid.rows() as usize],
        });
        if operations.is_none() && singles.is_none() && took.is_none() {
            run.facts.push(("operations".to_owned(), "not known: there is no `_iops` log".to_owned()));
        }
        let counted = took.iter().flatten().fold(0u64, |sum, it| sum.saturating_add(it.count));
        let total: f64 = bytes.iter().chain(&counts).flatten().sum();
        if total > MOST as f64 || counted > MOST {
            return Err(refuse("more bytes or operations than any device serves", "a log of fio, unchanged"));
        }
        let means = Direction::KEPT.map(|of| self.means(of, grid));
        let kept = match (&self.histograms, &took, &self.latency) {
            (Some(_), ..) => Some("clat, every bin of the histogram log"),
            (None, Some(_), _) => Some("every request of the latency log"),
            (None, None, Some(_)) => Some("means of the latency log, in nanoseconds as fio 3 writes it"),
            (None, None, None) => None,
        };
        run.facts.extend(kept.map(|kept| ("latency".to_owned(), kept.to_owned())));
        run.facts.push(("interval of the log".to_owned(), format!("{} ms", grid.length_ms)));
        if grid.origin_ms > EPOCH_MS {
            let at =
                i64::try_from(grid.origin_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
            run.started_at = at.map(|at| at.to_string());
        }
        run.measured = rows(grid, &bytes, &counts, &means, took.unwrap_or_default());
        Ok(run)
    }

    /// The intervals of the series. The entries of bytes determine their length and end.
    fn grid(&self, bytes: &[Entry], averaged: bool) -> Result<Grid, ImportError> {
        let refuse = |message: String| {
            ImportError::file(&self.path, message, "a log of one run of fio, of at most a year")
        };
        // A latency log may end later than the log of bytes, with requests that completed at the end of the run.
        let last_ms = bytes.iter().map(|it| it.time_ms).max().unwrap_or(0);
        let first_ms = bytes.iter().map(|it| it.time_ms).min();
        let first_ms = first_ms.ok_or_else(|| refuse("its logs hold no entry".to_owned()))?;
        let gap_ms = usual_gap(bytes).unwrap_or(first_ms.max(1));
        let late = first_ms > 2 * gap_ms.max(1000);
        let origin_ms = match (late, averaged) {
            (false, _) => 0,
            (true, true) => first_ms - gap_ms,
            (true, false) => first_ms - 1,
        };
        let took_ms = last_ms.saturating_sub(origin_ms);
        if took_ms == 0 {
            return Err(refuse("the run took no time".to_owned()));
        }
        let length_ms = if averaged { gap_ms } else { 1000.min((took_ms / 10).max(1)) };
        let grid = Grid { origin_ms, length_ms, end_ms: last_ms };
        if took_ms > MOST_MS || grid.rows() > MOST_ROWS {
            return Err(refuse(format!("it lasts {took_ms} ms in intervals of {length_ms} ms")));
        }
        Ok(grid)
    }

    /// The latency of every operation, ordered by time since the origin; `None` if only means are known.
    fn took(&self, grid: Grid) -> Option<Vec<Took>> {
        let since = |time_ms: u64| time_ms.saturating_sub(grid.origin_ms);
        if let Some(histograms) = &self.histograms {
            // A histogram covers the time since the previous one, so its operations are placed in the middle.
            let (mut from_ms, mut to_ms) = (0, 0);
            let placed = histograms.iter().map(|it| {
                if since(it.time_ms) != to_ms {
                    (from_ms, to_ms) = (to_ms, since(it.time_ms));
                }
                Took { time_ms: from_ms.midpoint(to_ms), ..*it }
            });
            return Some(placed.collect());
        }
        let (_, entries) = self.latency.as_ref().filter(|(_, entries)| is_single(entries, Log::Latency))?;
        let took = entries.iter().map(|entry| Took {
            time_ms: since(entry.time_ms),
            direction: entry.direction,
            latency: lowtide_core::Nanos::new(entry.value),
            count: 1,
        });
        Some(took.collect())
    }

    /// The mean latency of each interval, if the log has means; `None` for intervals without completions.
    fn means(&self, of: Direction, grid: Grid) -> Vec<Option<f64>> {
        let none = || vec![None; grid.rows() as usize];
        let Some((_, entries)) = &self.latency else { return none() };
        if is_single(entries, Log::Latency) {
            return none();
        }
        let weighted = sums(&spans(entries, of, grid, |entry, ms| entry.value as f64 * ms as f64), grid);
        let weights = sums(&spans(entries, of, grid, |_, ms| ms as f64), grid);
        weighted.iter().zip(weights).map(|(sum, weight)| (weight > 0.0).then(|| sum / weight)).collect()
    }
}

/// Returns whether every line is one request. Lines with averages have no block size, except in the bandwidth and
/// IOPS logs of fio 2, whose lines are far apart.
fn is_single(entries: &[Entry], what: Log) -> bool {
    let sampled = || what != Log::Latency && least_gap(entries).is_some_and(|gap| gap >= SAMPLED_MS);
    !entries.is_empty() && entries.iter().all(|entry| entry.block > 0) && !sampled()
}

/// The gaps between entries of the same direction.
fn gaps(entries: &[Entry]) -> Vec<u64> {
    let mut gaps = Vec::new();
    for of in Direction::KEPT {
        let times: Vec<u64> = entries.iter().filter(|it| it.direction == of).map(|it| it.time_ms).collect();
        gaps.extend(times.windows(2).map(|pair| pair[1] - pair[0]));
    }
    gaps.sort_unstable();
    gaps
}

fn least_gap(entries: &[Entry]) -> Option<u64> {
    gaps(entries).first().copied()
}

/// The median gap, at least 1 ms.
fn usual_gap(entries: &[Entry]) -> Option<u64> {
    let gaps = gaps(entries);
    gaps.get(gaps.len() / 2).map(|gap| (*gap).max(1))
}

/// The time span and amount that each entry of a direction covers.
fn spans(entries: &[Entry], of: Direction, grid: Grid, amount: impl Fn(&Entry, u64) -> f64) -> Vec<Span> {
    let mut from_ms = 0;
    let span = |entry: &Entry| {
        let to_ms = entry.time_ms.saturating_sub(grid.origin_ms);
        let span = Span { from_ms, to_ms, amount: amount(entry, to_ms - from_ms.min(to_ms)) };
        from_ms = to_ms;
        span
    };
    entries.iter().filter(|entry| entry.direction == of).map(span).collect()
}

/// The amount in each interval. A span is distributed evenly over its time; an instant belongs to the interval that
/// ends at or after it.
fn sums(spans: &[Span], grid: Grid) -> Vec<f64> {
    let (mut next, mut before, mut last) = (0, 0.0, 0.0);
    let mut cumulative = |at_ms: u64| {
        while let Some(span) = spans.get(next).filter(|span| span.to_ms <= at_ms) {
            before += span.amount;
            next += 1;
        }
        let part = spans.get(next).filter(|span| span.from_ms < at_ms).map_or(0.0, |span| {
            span.amount * (at_ms - span.from_ms) as f64 / (span.to_ms - span.from_ms) as f64
        });
        before + part
    };
    let mut sum = |row| {
        let now = cumulative(grid.end(row)).round();
        let amount = now - last;
        last = now;
        amount
    };
    (0..grid.rows()).map(&mut sum).collect()
}

fn rows(
    grid: Grid,
    bytes: &[Vec<f64>; 2],
    counts: &[Vec<f64>; 2],
    means: &[Vec<Option<f64>>; 2],
    mut took: Vec<Took>,
) -> Vec<Measured> {
    took.sort_by_key(|it| it.time_ms);
    let mut left = took.into_iter().peekable();
    let (mut read, mut write) = (Latency::default(), Latency::default());
    let mut rows = Vec::new();
    for row in 0..grid.rows() {
        read.clear();
        write.clear();
        let last = row + 1 == grid.rows();
        while let Some(it) = left.next_if(|it| last || it.time_ms <= grid.end(row)) {
            match it.direction {
                Direction::Read => read.record_many(it.latency, it.count),
                Direction::Write => write.record_many(it.latency, it.count),
                Direction::Trim => {}
            }
        }
        let at = row as usize;
        let percentiles = |latency: &Latency, mean: Option<f64>| match (latency.count(), mean) {
            (0, Some(mean_ns)) => Percentiles { mean_ns, ..Percentiles::default() },
            _ => Percentiles::of(latency),
        };
        let whole = |amounts: &[Vec<f64>; 2], of: usize| amounts[of][at] as u64;
        let row = Row {
            start_ns: row * grid.length_ms * 1_000_000,
            end_ns: grid.end(row) * 1_000_000,
            reads: whole(counts, 0),
            read_bytes: whole(bytes, 0),
            writes: whole(counts, 1),
            write_bytes: whole(bytes, 1),
            read: percentiles(&read, means[0][at]),
            write: percentiles(&write, means[1][at]),
            ..Row::default()
        };
        rows.push(Measured::new(row, &read, &write));
    }
    rows
}
