//! [`Run`]: one job of another program, the result of every parser.
//!
//! The module `campaign` chooses the factors.

use super::error::ImportError;
use super::kind::Source;
use crate::store::Measured;
use lowtide_core::Bytes;

/// Limit of counts and bytes. Several of them can be added without overflow.
pub(super) const MOST: u64 = 1 << 60;
/// Limit of the duration of a run: a year, in milliseconds.
pub(super) const MOST_MS: u64 = 366 * 24 * 3600 * 1000;
/// Limit of the rows of a cell.
pub(super) const MOST_ROWS: u64 = 2_000_000;

/// One job.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The program: `fio`, `sysbench`.
    pub(super) program: &'static str,
    /// Its name among the jobs of its file.
    pub(super) job: String,
    /// Its settings under the keys of `[workload]`, in the notation of levels: `("block", "4KiB")`.
    pub(super) settings: Vec<(&'static str, String)>,
    /// The target, if known.
    pub(super) target: Option<String>,
    /// Size of the data under test, if known.
    pub(super) data: Option<Bytes>,
    /// Total number of threads or processes.
    pub(super) threads: u32,
    /// Its rows in order: one for the whole run, or a series.
    pub(super) measured: Vec<Measured>,
    /// Whether the rows are a time series, as opposed to one row of totals.
    pub(super) is_series: bool,
    /// The reason of a failed run.
    pub(super) failure: Option<String>,
    /// Start time (RFC 3339), if known.
    pub(super) started_at: Option<String>,
    /// Other facts in the file: name and value.
    pub(super) facts: Vec<(String, String)>,
}

/// Parses a whole number up to `most`. Errors name the line and the column `what`.
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
