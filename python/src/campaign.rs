//! Campaigns of a store. A campaign is read once and then provides tables, exports and reports.
//!
//! Campaigns are run in `run`.

use crate::errors::{Raised, bad_input, detached};
use crate::table::Table;
use lowtide_files::output::{CommandFiles, Output, Role};
use lowtide_lab::store::{self, Listed, Merged, Store};
use lowtide_report::Report;
use lowtide_report::frame::{self, Column, Frame, Values};
use lowtide_studies::ask::{self, Raw};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Roles of written files, which name the files in errors.
const REPORT: Role = Role::stored("the report", "");
const EXPORT: Role = Role::stored("the export", "");
const PART: Role = Role::new("a part of the campaign", "");

/// A snapshot of a campaign, as read from its store.
#[pyclass(frozen, module = "lowtide._native")]
pub struct Campaign {
    store: PathBuf,
    number: i64,
    record: lowtide_record::Campaign,
}

/// Reads a campaign of a store, given by number or name. Without either, reads the newest campaign.
#[pyfunction]
#[pyo3(signature = (store, wanted=None))]
pub fn load(py: Python<'_>, store: PathBuf, wanted: Option<String>) -> PyResult<Campaign> {
    detached(py, || {
        let open = Store::open_existing(&store)?;
        let number = open.find(wanted.as_deref())?;
        let record = open.load(number)?;
        Ok(Campaign { store, number, record })
    })
}

/// Returns a table of the campaigns of a store, oldest first.
#[pyfunction]
pub fn campaigns(py: Python<'_>, store: PathBuf) -> PyResult<Table> {
    detached(py, || {
        let all = Store::open_existing(&store)?.campaigns()?;
        let text = |name, doc, of: fn(&Listed) -> &str| {
            column(name, doc, Values::Text(all.iter().map(|it| Some(of(it).into())).collect()))
        };
        let whole = |name, doc, of: fn(&Listed) -> i64| {
            column(name, doc, Values::Whole(all.iter().map(|it| Some(of(it))).collect()))
        };
        Ok(Table::new(Frame {
            columns: vec![
                whole("campaign", "its number", |it| it.id),
                text("name", "the experiment", |it| &it.name),
                text("target", "what was under test", |it| &it.target),
                text("started_at", "when it began (RFC 3339)", |it| &it.started_at),
                whole("done", "cells that are done", |it| it.done.into()),
                whole("cells", "cells in all", |it| it.cells.into()),
            ],
        }))
    })
}

/// Merges the campaigns of `stores` into the store `output`, which is created if missing. Parts of one campaign
/// become one campaign.
#[pyfunction]
pub fn merge(py: Python<'_>, stores: Vec<PathBuf>, output: PathBuf) -> PyResult<Table> {
    detached(py, || {
        let (_, all) = store::merge(&stores, &output)?;
        let text = |name, doc, of: fn(&Merged) -> String| {
            column(name, doc, Values::Text(all.iter().map(|it| Some(of(it).into())).collect()))
        };
        let whole = |name, doc, of: fn(&Merged) -> i64| {
            column(name, doc, Values::Whole(all.iter().map(|it| Some(of(it))).collect()))
        };
        Ok(Table::new(Frame {
            columns: vec![
                text("from", "the store it came from", |it| it.from.display().to_string()),
                whole("was", "its number there", |it| it.was),
                text("name", "the experiment", |it| it.name.clone()),
                whole("campaign", "its number in the output", |it| it.campaign),
                whole("came", "cells that came with it, and were not there before", |it| it.cells.into()),
                column(
                    "new",
                    "whether the campaign is new there",
                    Values::Flag(all.iter().map(|it| Some(it.new)).collect()),
                ),
            ],
        }))
    })
}

pub fn column(name: &str, doc: &str, values: Values) -> Column {
    Column { name: name.to_owned(), unit: "", doc: doc.to_owned(), values }
}

impl Campaign {
    fn with_report<T: Send>(&self, py: Python<'_>, of: impl FnOnce(Report) -> T + Send) -> PyResult<T> {
        detached(py, || {
            let store = Store::open_existing(&self.store)?;
            Ok(of(ask::report(&store, self.number, &self.record)?))
        })
    }
}

#[pymethods]
impl Campaign {
    /// The store's path.
    #[getter]
    fn store(&self) -> PathBuf {
        self.store.clone()
    }

    /// The campaign's number in the store.
    #[getter]
    fn number(&self) -> i64 {
        self.number
    }

    /// The experiment's name.
    #[getter]
    fn name(&self) -> &str {
        &self.record.name
    }

    /// The experiment's title.
    #[getter]
    fn title(&self) -> &str {
        &self.record.title
    }

    /// The target as the user would write it.
    #[getter]
    fn target(&self) -> &str {
        &self.record.target
    }

    /// The experiment's text with every override applied.
    #[getter]
    fn experiment(&self) -> &str {
        &self.record.experiment
    }

    /// The device files of a simulated target.
    #[getter]
    fn devices(&self) -> Vec<String> {
        self.record.devices.clone()
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.record.seed
    }

    /// The scale: sizes and times were divided by this number.
    #[getter]
    fn scale(&self) -> u64 {
        self.record.scale
    }

    /// The version of lowtide that ran the campaign.
    #[getter]
    fn version(&self) -> &str {
        &self.record.version
    }

    /// Start of the campaign (RFC 3339).
    #[getter]
    fn started_at(&self) -> &str {
        &self.record.started_at
    }

    /// The command line that reproduces the campaign.
    #[getter]
    fn command(&self) -> &str {
        &self.record.command
    }

    /// Facts about the machine and the target, in order. A name may occur several times.
    #[getter]
    fn environment(&self) -> Vec<(String, String)> {
        self.record.environment.clone()
    }

    /// The numbers of all cells, done cells, failed cells and skipped cells. The levels of skipped cells are
    /// predicted.
    #[getter]
    fn progress(&self) -> (usize, usize, usize, usize) {
        let count = |status| self.record.cells.iter().filter(|cell| cell.status == status).count();
        let (done, failed) = (count(lowtide_record::Status::Done), count(lowtide_record::Status::Failed));
        (self.record.cells.len(), done, failed, count(lowtide_record::Status::Spared))
    }

    /// Returns a table of the campaign: `cells`, `intervals`, `steady`, `transactions` or `histograms`.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        detached(py, || {
            let frame = match name {
                "cells" => frame::cells(&self.record),
                "intervals" => frame::intervals(&self.record),
                "steady" => frame::steady(&self.record),
                "transactions" => frame::transactions(&self.record),
                "histograms" => {
                    let store = Store::open_existing(&self.store)?;
                    frame::histograms(&store, self.number, &self.record)?
                }
                _ => {
                    return Err(unknown("table", name, "cells, intervals, steady, transactions, histograms"));
                }
            };
            Ok(Table::new(frame))
        })
    }

    /// Exports all raw numbers as text. `format` is `csv`, `json` or `transactions`.
    fn export(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        detached(py, || {
            let raw = match format {
                "csv" => Raw::Csv,
                "json" => Raw::Json,
                "transactions" => Raw::Transactions,
                _ => return Err(unknown("format", format, "csv, json, transactions")),
            };
            Ok(ask::export(&self.record, raw)?.text())
        })
    }

    /// Writes the result of `export` to a file, atomically.
    fn write_export(&self, py: Python<'_>, path: PathBuf, format: &str) -> PyResult<()> {
        let text = self.export(py, format)?;
        write_file(py, path, text.as_bytes(), "the export")
    }

    /// Returns the report as one HTML page.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        self.with_report(py, |report| report.html())
    }

    /// Writes the HTML report to a file, atomically.
    fn write_report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let html = self.html(py)?;
        write_file(py, path, html.as_bytes(), "the report")
    }

    /// Returns the report as text, in the format of `lowtide store show`.
    #[pyo3(signature = (width=110))]
    fn text(&self, py: Python<'_>, width: usize) -> PyResult<String> {
        self.with_report(py, |report| report.terminal(width))
    }

    /// Returns the sentences of the verdict, the most important first.
    fn verdict(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_report(py, |report| report.verdict)
    }

    /// Returns the figures as SVG: file name and content of each.
    fn figures(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.with_report(py, |report| report.figures())
    }
}

/// Writes a file atomically. Refuses to overwrite a file whose contents would be lost. Errors call the file `what`.
#[pyfunction]
pub fn write_file(py: Python<'_>, path: PathBuf, content: &[u8], what: &str) -> PyResult<()> {
    let role = match what {
        "the report" => REPORT,
        "the export" => EXPORT,
        _ => PART,
    };
    detached(py, || Ok(Output::file(role, &path, &CommandFiles::default())?.write(content)?))
}

fn unknown(what: &str, name: &str, accepted: &str) -> Raised {
    bad_input(format!("there is no {what} `{name}`"), format!("one of {accepted}"))
}
