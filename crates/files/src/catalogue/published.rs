//! Published measurements, each with its source.
//!
//! The tables `device_params`, `lifetime` and `nand_timings` are not read: they have other columns, and nothing is
//! compared with them.

use super::{CatalogueError, files};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// One published number, with every column of its table. Columns with ranges or notes are kept as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The id of the study: `e02`.
    #[serde(default)]
    pub study: String,
    /// The row in the table, from 1, without the heading.
    #[serde(default)]
    pub line: u32,
    /// The device measured.
    pub device: String,
    /// Nominal capacity of the device, in GB.
    pub drive_capacity_gb: Option<f64>,
    /// The workload.
    pub workload: String,
    /// Block size in KiB, if the source gives it.
    pub block_kib: Option<f64>,
    /// Number of threads, if the source gives it.
    pub threads: Option<u32>,
    /// File size in GiB: a number, or a range such as `>50` or `10->20`.
    pub file_size_gib: String,
    /// Share of the device in use, in percent.
    pub util_pct: Option<f64>,
    /// The run, in the source's words.
    pub run: String,
    /// The measured quantity.
    pub metric: String,
    /// The number.
    pub value: f64,
    /// The unit of `value`.
    pub unit: String,
    /// The conditions of the measurement.
    pub condition: String,
    /// The form in which the source gives the number: `table`, `text`, `text_approx`, `text_bound` and so on.
    pub kind: String,
    /// The source, as a citation.
    pub source: String,
}

/// One study: a table of published numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// The id: `e02`.
    pub id: &'static str,
    /// Path of the table in the project: `published/e02_intel320_random_write_xfs.csv`.
    pub path: &'static str,
    /// The rows of the table; row 1 is `rows[0]`.
    pub rows: Vec<Published>,
}

static STUDIES: LazyLock<Vec<Study>> = LazyLock::new(|| {
    let tables = files::PUBLISHED.iter().filter_map(|file| Some((id(file.name)?, file)));
    tables.map(|(id, file)| Study { id, path: file.path, rows: rows(id, file.text) }).collect()
});

/// Every study, by id.
pub fn studies() -> &'static [Study] {
    &STUDIES
}

/// Finds a study by its id: `e02`.
///
/// # Errors
/// [`CatalogueError::Unknown`] if there is no such study.
pub fn study(id: &str) -> Result<&'static Study, CatalogueError> {
    let found = studies().iter().find(|study| study.id == id);
    found.ok_or_else(|| CatalogueError::unknown("study", id, studies().iter().map(|study| study.id)))
}

/// `e02_intel320_random_write_xfs` → `e02`. `None` for tables that are not studies.
fn id(name: &'static str) -> Option<&'static str> {
    let (id, _) = name.split_once('_')?;
    let number = id.strip_prefix('e')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(id)
}

/// The rows of a compiled-in table. A test reads every table, so a faulty row is a bug and panics.
fn rows(id: &str, text: &str) -> Vec<Published> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let row = |(at, row): (usize, Result<Published, csv::Error>)| {
        let row = row.unwrap_or_else(|fault| panic!("row {} of {id}: {fault}", at + 1));
        Published { study: id.to_owned(), line: at as u32 + 1, ..row }
    };
    reader.deserialize().enumerate().map(row).collect()
}
