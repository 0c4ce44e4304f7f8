//! `trace`, `pace` and `wrap` of `[workload]`: recorded requests in place of a pattern.
//!
//! Not here: reading the trace, which the plan does; an experiment in a store is read again long after its trace is gone.

use super::error::Problems;
use super::read::Table;
use super::schema;
use super::words::words;
use lowtide_core::trace::Trace;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

words! {
    /// When the requests of a trace are made again.
    ReplayPace, "pace";
    /// At the times at which they were recorded.
    Recorded = "recorded",
    /// As soon as those before them are done, `depth` at a time.
    AsFastAsPossible = "as-fast-as-possible",
}

/// A trace in place of a pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The file.
    pub path: PathBuf,
    /// When its requests are made.
    pub pace: ReplayPace,
    /// Whether what reaches beyond the data begins again from the front; else it is refused.
    pub wrap: bool,
    /// What it holds, as it lies on the data; the plan reads it.
    #[serde(skip)]
    pub trace: Option<Arc<Trace>>,
}

/// Keys of `[workload]` that say what a trace says.
const REPLACED: [&str; 16] = [
    "pattern",
    "mix",
    "block",
    "blocks",
    "threads",
    "streams",
    "sync",
    "zipf",
    "hot-cold",
    "zones",
    "rate",
    "arrival",
    "duration",
    "until",
    "max",
    "precision",
];

/// The full keys that a trace takes the place of.
pub(super) fn replaced() -> impl Iterator<Item = String> {
    REPLACED.into_iter().map(|key| schema::dotted("workload", key))
}

/// Reads the trace of a workload, where it has one; records keys that go with or against one.
pub(super) fn read(table: &Table<'_>, problems: &mut Problems<'_>) -> Option<Replay> {
    let Some(entry) = table.get("trace") else {
        for key in ["pace", "wrap"] {
            if let Some(entry) = table.get(key) {
                let message = format!("`{key}` belongs to `trace`, which is absent");
                problems.add(entry.key_span, message, "has no effect", "remove it, or name a `trace`");
            }
        }
        return None;
    };
    for key in REPLACED {
        if let Some(entry) = table.get(key) {
            let message = format!("`{key}` beside `trace`, which says every request");
            problems.add(entry.key_span, message, "has no effect", "remove it, or `trace`");
        }
    }
    let path = entry.text("\"requests.log\"", problems)?;
    let pace = table.get("pace").map(|entry| entry.word(problems)).unwrap_or(Some(ReplayPace::Recorded))?;
    let wrap = table.get("wrap").map(|entry| entry.boolean(problems)).unwrap_or(Some(false))?;
    Some(Replay { path: PathBuf::from(path), pace, wrap, trace: None })
}
