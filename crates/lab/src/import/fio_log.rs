//! Parses fio's logs: lines of `time (ms), value, direction, block size, …` ("Log file formats" in fio's manual).
//!
//! Values are KiB/s, operations per second or latency; a histogram log has bins in place of the value. Latency is
//! taken to be in nanoseconds, as fio 3 writes it; fio 2 wrote microseconds, and a log does not contain its unit.
//! Columns after the block size (offset, priority, issue time) are skipped. The module `series` combines the logs of
//! a job.
//!
//! # Not handled
//! Logs with two values per line (`log_window_value=both`).

use super::bins::Layout;
use super::error::ImportError;
use super::kind::Source;
use super::run::{MOST, whole};
use lowtide_core::Nanos;

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
    Trim,
}

impl Direction {
    pub(super) const KEPT: [Direction; 2] = [Direction::Read, Direction::Write];
}

/// A log line with one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) time_ms: u64,
    pub(super) value: u64,
    pub(super) direction: Direction,
    /// Size in bytes of the line's only request; 0 if the line covers several requests.
    pub(super) block: u64,
}

/// A number of operations with the same latency, and the time of their log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Took {
    pub(super) time_ms: u64,
    pub(super) direction: Direction,
    pub(super) latency: Nanos,
    pub(super) count: u64,
}

/// Parses a log with one value per line.
pub(super) fn entries(source: &Source) -> Result<Vec<Entry>, ImportError> {
    let mut entries: Vec<Entry> = Vec::new();
    each_line(source, |line, columns| {
        let (time_ms, direction) = begin(source, line, columns, 2)?;
        let value = whole(source, line, "value", columns[1], MOST)?;
        let block = columns.get(3).map_or(Ok(0), |text| whole(source, line, "block size", text, MOST))?;
        in_order(source, line, entries.last().map(|entry| entry.time_ms), time_ms)?;
        entries.push(Entry { time_ms, value, direction, block });
        Ok(())
    })?;
    Ok(entries)
}

/// Parses a histogram log into a [`Took`] for each non-empty bin.
pub(super) fn histograms(source: &Source) -> Result<Vec<Took>, ImportError> {
    let mut all: Vec<Took> = Vec::new();
    let mut last_ms = None;
    each_line(source, |line, columns| {
        let (time_ms, direction) = begin(source, line, columns, 1)?;
        let bins = columns.get(3..).unwrap_or_default();
        let layout = Layout::of_count(bins.len()).ok_or_else(|| {
            let message = format!("{} bins", bins.len());
            ImportError::line(
                source,
                line,
                message,
                "1856 of fio 3 or 1216 of fio 2, or these by a power of two",
            )
        })?;
        in_order(source, line, last_ms, time_ms)?;
        last_ms = Some(time_ms);
        for (index, text) in bins.iter().enumerate().filter(|(_, text)| **text != "0") {
            let count = whole(source, line, "count of a bin", text, MOST)?;
            all.push(Took { time_ms, direction, latency: layout.value(index), count });
        }
        Ok(())
    })?;
    Ok(all)
}

/// Calls `each` for the non-empty lines, with line number and columns.
fn each_line(
    source: &Source,
    mut each: impl FnMut(usize, &[&str]) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut columns = Vec::new();
    for (number, line) in source.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        columns.clear();
        columns.extend(line.split(',').map(str::trim));
        if columns.len() < 3 {
            let message = format!("{} columns", columns.len());
            let help = "`time, value, direction, block size, …`: was the file cut off?";
            return Err(ImportError::line(source, number + 1, message, help));
        }
        each(number + 1, &columns)?;
    }
    Ok(())
}

/// Parses time and direction of a line; `at` is the column of the direction, from 0.
fn begin(source: &Source, line: usize, columns: &[&str], at: usize) -> Result<(u64, Direction), ImportError> {
    let time_ms = whole(source, line, "time in milliseconds", columns[0], MOST)?;
    let direction = match columns[at] {
        "0" => Direction::Read,
        "1" => Direction::Write,
        "2" => Direction::Trim,
        other => {
            let shown: String = other.chars().take(40).collect();
            let help = "0 (read), 1 (write) or 2 (trim); logs with two values a line (`log_window_value=both`) are \
                        not read";
            return Err(ImportError::line(source, line, format!("the direction is `{shown}`"), help));
        }
    };
    Ok((time_ms, direction))
}

fn in_order(source: &Source, line: usize, last_ms: Option<u64>, time_ms: u64) -> Result<(), ImportError> {
    match last_ms.filter(|last| *last > time_ms) {
        None => Ok(()),
        Some(last) => Err(ImportError::line(
            source,
            line,
            format!("the time goes back from {last} to {time_ms} ms"),
            "the log of one job; with `per_job_logs=0` several write to one file",
        )),
    }
}
