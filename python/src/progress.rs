//! Progress events of a running campaign, queued until the calling thread delivers them. Python callables run in the
//! calling thread, so they never delay a measurement.
//!
//! Only the newest progress event of each running cell is kept. Events are delivered in `run`.

use lowtide_lab::campaign::{Progress, Stage};
use lowtide_lab::plan::PlannedCell;
use lowtide_record::Row;
use lowtide_record::analysis::Verdict;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// A progress event.
pub enum Event {
    /// The campaign was recorded in the store.
    Begun { campaign: i64 },
    /// A cell is being replayed, prepared or measured.
    Cell { cell: u32, label: String, stage: Stage, share: f64, row: Option<Box<Row>> },
    /// A cell ended.
    Ended { cell: u32, label: String, failure: Option<String>, verdict: Option<Verdict>, unit: &'static str },
    /// Cells were skipped.
    Spared { cells: usize },
    /// A message to the user.
    Note { text: String },
}

#[derive(Default)]
struct Kept {
    happened: Vec<Event>,
    /// The newest event of each running cell.
    running: BTreeMap<u32, Event>,
    verdicts: BTreeMap<u32, Verdict>,
    campaign: Option<i64>,
}

/// Collects the events of a campaign.
pub struct Heard {
    kept: Mutex<Kept>,
    /// `true` if progress of running cells is wanted.
    listened: bool,
}

impl Heard {
    pub fn new(listened: bool) -> Self {
        Heard { kept: Mutex::default(), listened }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("nobody panics while holding it")
    }

    /// Takes the events since the last call. Events of running cells come last.
    pub fn take(&self) -> Vec<Event> {
        let mut kept = self.kept();
        let mut all = std::mem::take(&mut kept.happened);
        all.extend(std::mem::take(&mut kept.running).into_values());
        all
    }

    /// The campaign's number, once assigned.
    pub fn campaign(&self) -> Option<i64> {
        self.kept().campaign
    }
}

impl Progress for Heard {
    fn cell(&self, cell: &PlannedCell, stage: Stage, share: f64, last: Option<&Row>) {
        if self.listened {
            let row = last.cloned().map(Box::new);
            let event = Event::Cell { cell: cell.index, label: cell.label(), stage, share, row };
            self.kept().running.insert(cell.index, event);
        }
    }

    fn ended(&self, cell: &PlannedCell, failure: Option<&str>) {
        let oltp = cell.settings.load.work.is_transactions();
        let unit = if oltp { "NOTPM" } else { "MiB/s" };
        let mut kept = self.kept();
        kept.running.remove(&cell.index);
        let (cell, label, failure) = (cell.index, cell.label(), failure.map(str::to_owned));
        let verdict = kept.verdicts.remove(&cell);
        kept.happened.push(Event::Ended { cell, label, failure, verdict, unit });
    }

    fn spared(&self, cells: usize) {
        self.kept().happened.push(Event::Spared { cells });
    }

    fn note(&self, text: &str) {
        self.kept().happened.push(Event::Note { text: text.to_owned() });
    }

    fn begun(&self, campaign: i64) {
        let mut kept = self.kept();
        kept.campaign = Some(campaign);
        kept.happened.push(Event::Begun { campaign });
    }

    fn judged(&self, cell: &PlannedCell, verdict: &Verdict) {
        self.kept().verdicts.insert(cell.index, verdict.clone());
    }
}

impl Event {
    /// Converts the event to the keyword arguments of `lowtide.Event`.
    pub fn into_dict<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        match self {
            Event::Begun { campaign } => {
                dict.set_item("kind", "begun")?;
                dict.set_item("campaign", campaign)?;
            }
            Event::Cell { cell, label, stage, share, row } => {
                dict.set_item("kind", "cell")?;
                dict.set_item("cell", cell)?;
                dict.set_item("label", label)?;
                let stage = match stage {
                    Stage::Replay => "replay",
                    Stage::Prepare => "prepare",
                    Stage::Measure => "measure",
                };
                dict.set_item("stage", stage)?;
                dict.set_item("share", share)?;
                if let Some(row) = row {
                    dict.set_item("row", self::row(py, &row)?)?;
                }
            }
            Event::Ended { cell, label, failure, verdict, unit } => {
                dict.set_item("kind", "ended")?;
                dict.set_item("cell", cell)?;
                dict.set_item("label", label)?;
                dict.set_item("share", 1.0)?;
                dict.set_item("failure", failure)?;
                match verdict {
                    Some(Verdict::Steady(estimate)) => {
                        dict.set_item("level", estimate.mean)?;
                        dict.set_item("half_width", estimate.half_width)?;
                        dict.set_item("unit", unit)?;
                    }
                    Some(Verdict::NoSteadyState { reason }) => dict.set_item("text", reason)?,
                    None => {}
                }
            }
            Event::Spared { cells } => {
                dict.set_item("kind", "spared")?;
                dict.set_item("text", format!("{cells} cells are not needed: their step is steady"))?;
            }
            Event::Note { text } => {
                dict.set_item("kind", "note")?;
                dict.set_item("text", text)?;
            }
        }
        Ok(dict)
    }
}

/// Converts an interval to a dict, with the column names of the table `intervals`.
fn row<'py>(py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("start_s", row.start_ns as f64 / 1e9)?;
    dict.set_item("end_s", row.end_ns as f64 / 1e9)?;
    let counts = [
        ("reads", row.reads),
        ("read_bytes", row.read_bytes),
        ("writes", row.writes),
        ("write_bytes", row.write_bytes),
        ("errors", row.errors),
        ("read_latency_ns_p50", row.read.p50_ns),
        ("read_latency_ns_p99", row.read.p99_ns),
        ("write_latency_ns_p50", row.write.p50_ns),
        ("write_latency_ns_p99", row.write.p99_ns),
    ];
    counts.into_iter().try_for_each(|(name, count)| dict.set_item(name, count))?;
    dict.set_item("iops", row.iops())?;
    dict.set_item("mib_per_s", row.mib_per_s())?;
    if row.transactions.is_some() {
        dict.set_item("notpm", row.rate())?;
    }
    Ok(dict)
}
