//! `trace`, `pace` and `wrap` of `[workload]`: recorded requests instead of a pattern.
//!
//! The plan reads the trace, because an experiment in a store may outlive its trace.

use super::read::{Entry, Table};
use super::schema;
use super::words::words;
use lowtide_core::trace::Trace;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

words! {
    /// When the requests of a trace are issued.
    ReplayPace, "pace";
    /// At their recorded times.
    Recorded = "recorded",
    /// As soon as earlier requests complete, with `depth` requests in flight.
    AsFastAsPossible = "as-fast-as-possible",
}

/// A trace instead of a pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The file.
    pub path: PathBuf,
    /// When its requests are issued.
    pub pace: ReplayPace,
    /// Whether requests beyond the end of the data wrap around to its beginning. If not, such requests are refused.
    pub wrap: bool,
    /// The requests, at their positions in the data; `None` until the plan reads the trace.
    #[serde(skip)]
    pub trace: Option<Arc<Trace>>,
}

/// Reads the trace of a workload, if it has one. Records keys that need a trace or that a trace replaces.
pub(super) fn read(table: &Table<'_>) -> Option<Replay> {
    let Some(entry) = table.get("trace") else {
        for key in ["pace", "wrap"] {
            let message = format!("`{key}` belongs to `trace`, which is absent");
            table.refuse_key(key, message, "remove it, or name a `trace`");
        }
        return None;
    };
    for key in schema::REPLACED_BY_TRACE.names() {
        let message = format!("`{key}` with `trace`, which has every request");
        table.refuse_key(key, message, "remove it, or `trace`");
    }
    let path = entry.text("\"requests.log\"")?;
    let pace = table.value_or("pace", ReplayPace::Recorded, Entry::word)?;
    let wrap = table.value_or("wrap", false, Entry::boolean)?;
    Some(Replay { path: PathBuf::from(path), pace, wrap, trace: None })
}
