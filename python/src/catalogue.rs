//! The catalogue as tables: the devices, experiments and published numbers included in lowtide.
//!
//! The tables name the files of the catalogue but do not contain them.

use crate::campaign::column;
use crate::errors::detached;
use crate::table::Table;
use lowtide_files::catalogue::{self, Published};
use lowtide_files::device::{self, Class, Device};
use lowtide_lab::experiment::Experiment;
use lowtide_report::frame::{Column, Frame, Values};
use pyo3::prelude::*;
use std::sync::Arc;

fn words(name: &str, doc: &str, values: impl Iterator<Item = Option<String>>) -> Column {
    column(name, doc, Values::Text(values.map(|text| text.map(Arc::from)).collect()))
}

/// Returns a table of the simulated devices.
#[pyfunction]
pub fn devices(py: Python<'_>) -> PyResult<Table> {
    detached(py, || {
        let all: Vec<&Device> = device::catalogue().iter().map(|listed| &listed.device).collect();
        let text = |name, doc, of: fn(&Device) -> String| words(name, doc, all.iter().map(|it| Some(of(it))));
        let kind = |it: &Device| match it.spec.is_rotational() {
            _ if it.spec.flash().is_some() => "flash",
            true => "rotational",
            false => "other",
        };
        let bytes = all.iter().map(|it| i64::try_from(it.spec.capacity().get()).ok()).collect();
        let capacity = column("capacity_bytes", "what the host may address", Values::Whole(bytes));
        let prices = all.iter().map(|it| it.price_usd).collect();
        let years = all.iter().map(|it| it.year.map(i64::from)).collect();
        let year = column("year", "when it came out", Values::Whole(years));
        let price = column("price_usd", "what it cost when it was new", Values::Real(prices));
        Ok(Table::new(Frame {
            columns: vec![
                text("name", "what it is called by", |it| it.name.clone()),
                text("title", "maker, model, year", |it| it.title.clone()),
                words(
                    "kind",
                    "`flash`: a flash drive; `rotational`: a disk, or something that keeps data on disks; `other`",
                    all.iter().map(|it| Some(kind(it).to_owned())),
                ),
                Column { unit: "B", ..capacity },
                Column { unit: "USD", ..price },
                text("class", "its class in `lowtide devices`", |it| Class::of(it).title().to_owned()),
                year,
            ],
        }))
    })
}

/// Returns a table of the experiments.
#[pyfunction]
pub fn experiments(py: Python<'_>) -> PyResult<Table> {
    detached(py, || {
        let read = |entry: &catalogue::Entry| {
            let experiment = Experiment::parse(entry.path, entry.text, &[]);
            (entry.name, experiment.expect("the catalogue's files are valid"))
        };
        let all: Vec<_> = catalogue::experiments().iter().map(read).collect();
        Ok(Table::new(Frame {
            columns: vec![
                words("name", "what it is called by", all.iter().map(|(name, _)| Some((*name).to_owned()))),
                words("title", "a line for people", all.iter().map(|(_, it)| Some(it.title.clone()))),
                words("target", "what it runs on", all.iter().map(|(_, it)| Some(it.target.to_string()))),
                words("question", "what it asks", all.iter().map(|(_, it)| it.question.clone())),
                words("source", "where it was published", all.iter().map(|(_, it)| it.source.clone())),
            ],
        }))
    })
}

/// Returns a table of the numbers of a published study, each with its source.
#[pyfunction]
pub fn published(py: Python<'_>, study: String) -> PyResult<Table> {
    detached(py, || {
        let rows = &catalogue::study(&study)?.rows;
        let text = |name, doc, of: fn(&Published) -> &str| {
            words(name, doc, rows.iter().map(|row| Some(of(row).to_owned()).filter(|text| !text.is_empty())))
        };
        let real = |name, unit, doc, of: fn(&Published) -> Option<f64>| {
            let values = Values::Real(rows.iter().map(of).collect());
            Column { unit, ..column(name, doc, values) }
        };
        let lines = Values::Whole(rows.iter().map(|row| Some(row.line.into())).collect());
        Ok(Table::new(Frame {
            columns: vec![
                column("line", "the row of the study, from 1", lines),
                text("device", "what was measured", |row| &row.device),
                text("workload", "what was run", |row| &row.workload),
                real("block_kib", "KiB", "bytes of a request", |row| row.block_kib),
                real("threads", "", "threads, where the source says", |row| row.threads.map(f64::from)),
                text("file_size_gib", "data in GiB: a number, or a range", |row| &row.file_size_gib),
                real("utilisation", "", "share of the device in use", |row| {
                    row.util_pct.map(|it| it / 100.0)
                }),
                text("metric", "what was measured", |row| &row.metric),
                real("value", "", "the number", |row| Some(row.value)),
                text("unit", "its unit", |row| &row.unit),
                text("condition", "under which conditions", |row| &row.condition),
                text("source", "who published it", |row| &row.source),
            ],
        }))
    })
}
