//! [`Run`]: one job of another program, as every parser gives it.
//!
//! Not here: what a run means beside others; `campaign` says which of its settings are factors.

use super::error::ImportError;
use super::kind::Source;
use crate::store::Measured;
use lowtide_core::Bytes;

/// Counts and bytes above this are a mistake, and sums of a few of them still fit.
pub(super) const MOST: u64 = 1 << 60;
/// A run takes at most a year, in milliseconds.
pub(super) const MOST_MS: u64 = 366 * 24 * 3600 * 1000;
/// Rows of a cell at most.
pub(super) const MOST_ROWS: u64 = 2_000_000;

/// One job.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The program: `fio`, `sysbench`.
    pub(super) program: &'static str,
    /// Its name among the jobs of its file.
    pub(super) job: String,
    /// Its settings in the words of `[workload]`, as levels are written: `("block", "4KiB")`.
    pub(super) settings: Vec<(&'static str, String)>,
    /// What it ran on, where that is said.
    pub(super) target: Option<String>,
    /// Bytes of data under test, where that is said.
    pub(super) data: Option<Bytes>,
    /// Threads, or processes, together.
    pub(super) threads: u32,
    /// Its rows in order: one for the whole run, or a series.
    pub(super) measured: Vec<Measured>,
    /// Whether the rows are a series; else there is one.
    pub(super) is_series: bool,
    /// Why it failed.
    pub(super) failure: Option<String>,
    /// When it began (RFC 3339), where that is said.
    pub(super) started_at: Option<String>,
    /// What else the file says: name and value.
    pub(super) facts: Vec<(String, String)>,
}

/// A whole number from text, with its place.
pub(super) fn whole(
    source: &Source,
    line: usize,
    what: &str,
    text: &str,
    most: u64,
) -> Result<u64, ImportError> {
    match text.parse::<u64>() {
        Ok(number) if number <= most => Ok(number),
        _ => Err(ImportError::line(
            source,
            line,
            format!("the {what} is `{}`", text.chars().take(40).collect::<String>()),
            format!("a whole number from 0 to {most}"),
        )),
    }
}
