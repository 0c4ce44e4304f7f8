//! [`Kind`]: detects the kind of a file from its content and name.
//!
//! fio's logs all have the same form, so the file name determines the meaning of their values.

use super::error::ImportError;
use lowtide_core::suggest;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Output of fio with `--output-format=json`, `json+`, or `normal,json`.
    FioJson,
    /// A log of fio.
    FioLog(Log),
    /// Output of sysbench fileio.
    Sysbench,
}

/// The values in a log of fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Log {
    /// KiB per second.
    Bandwidth,
    /// Operations per second.
    Iops,
    /// Request latency, total or from submission (`_lat`, `_clat`).
    Latency,
    /// Histograms of completion latency.
    Histogram,
    /// Submission latency, which lowtide does not store.
    Submission,
}

impl Kind {
    /// The kinds, with their names on the command line.
    pub const WORDS: [(&'static str, Kind); 6] = [
        ("fio-json", Kind::FioJson),
        ("fio-bw-log", Kind::FioLog(Log::Bandwidth)),
        ("fio-iops-log", Kind::FioLog(Log::Iops)),
        ("fio-lat-log", Kind::FioLog(Log::Latency)),
        ("fio-hist-log", Kind::FioLog(Log::Histogram)),
        ("sysbench", Kind::Sysbench),
    ];

    /// The accepted names, for error messages.
    pub fn accepted() -> String {
        Kind::WORDS.map(|(word, _)| word).join(", ")
    }
}

impl FromStr for Kind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, kind)) = Kind::WORDS.iter().find(|(word, _)| *word == text) {
            return Ok(*kind);
        }
        let near = suggest::nearest(text, Kind::WORDS.iter().map(|(word, _)| *word));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Err(format!("use one of {}{hint}", Kind::accepted()))
    }
}

/// The text of a file.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl Source {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Source, ImportError> {
        let bytes = std::fs::read(path).map_err(|error| {
            ImportError::file(path, format!("it cannot be read: {error}"), "name a file that exists")
        })?;
        let text = String::from_utf8(bytes).map_err(|_| {
            ImportError::file(
                path,
                "it is not text",
                format!("the kinds that are read are {}", Kind::accepted()),
            )
        })?;
        Ok(Source { path: path.to_owned(), text })
    }

    /// The file name without its directory.
    pub(super) fn name(&self) -> String {
        self.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// The first line that is not empty.
    fn first_line(&self) -> &str {
        self.text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
    }

    /// The kind of the file; `wanted` if given.
    pub(super) fn kind(&self, wanted: Option<Kind>) -> Result<Kind, ImportError> {
        if let Some(kind) = wanted {
            return Ok(kind);
        }
        let named = Log::of_name(&self.name()).map(|(_, log)| log);
        let first = self.first_line();
        if first.is_empty() {
            return match named {
                // fio creates this log even if the engine does not measure submission.
                Some(Log::Submission) => Ok(Kind::FioLog(Log::Submission)),
                _ => Err(ImportError::file(&self.path, "it is empty", "has the run ended?")),
            };
        }
        if lowtide_files::trace::is_trace(first) {
            return Err(ImportError::file(
                &self.path,
                "it is a trace, a load and not a result",
                "replay it: `workload.trace = \"PATH\"` in an experiment",
            ));
        }
        if self.text.contains("\"fio version\"") {
            return Ok(Kind::FioJson);
        }
        if self.text.lines().take(200).any(|line| line.trim_start().starts_with("sysbench ")) {
            return Ok(Kind::Sysbench);
        }
        let columns: Vec<&str> = first.split(',').map(str::trim).collect();
        let number = |text: &&str| text.parse::<f64>().is_ok();
        if columns.len() >= 3 && columns.iter().take(3).all(number) {
            if columns.len() >= super::bins::FEWEST_COLUMNS {
                return Ok(Kind::FioLog(Log::Histogram));
            }
            return named.map(Kind::FioLog).ok_or_else(|| {
                ImportError::file(
                    &self.path,
                    "it looks like a log of fio, whose logs all look alike",
                    "keep fio's name for it, such as `job_bw.1.log`, or say what it is with `--kind fio-bw-log`, \
                     `fio-iops-log` or `fio-lat-log`",
                )
            });
        }
        Err(ImportError::file(
            &self.path,
            "nothing says what it is",
            format!("the kinds that are read are {}; `--kind KIND` names one", Kind::accepted()),
        ))
    }
}

impl Log {
    /// Splits fio's name of a log into job and kind: `job_bw.3.log` is a bandwidth log of job `job.3`.
    pub(super) fn of_name(name: &str) -> Option<(String, Log)> {
        let stem = name.strip_suffix(".log")?;
        let (stem, number) = match stem.rsplit_once('.') {
            Some((stem, number)) if number.chars().all(|c| c.is_ascii_digit()) => (stem, Some(number)),
            _ => (stem, None),
        };
        let endings = [
            ("_bw", Log::Bandwidth),
            ("_iops", Log::Iops),
            ("_clat_hist", Log::Histogram),
            ("_slat", Log::Submission),
            ("_clat", Log::Latency),
            ("_lat", Log::Latency),
        ];
        let (job, log) = endings.iter().find_map(|(ending, log)| Some((stem.strip_suffix(ending)?, *log)))?;
        Some((number.map_or_else(|| job.to_owned(), |number| format!("{job}.{number}")), log))
    }
}
