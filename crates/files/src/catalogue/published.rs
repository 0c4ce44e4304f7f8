//! Published numbers: what others measured, each with its source.
//!
//! Not here: tables that are not studies of a device under load (`device_params`, `lifetime`, `nand_timings`):
//! their columns differ, and nothing is compared with them.

use super::{CatalogueError, files};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// One published number, with every column of its table. Columns that hold ranges or notes stay text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The study: `e02`.
    #[serde(default)]
    pub study: String,
    /// The row, from 1; the heading does not count.
    #[serde(default)]
    pub line: u32,
    /// The device measured.
    pub device: String,
    /// Its capacity in GB, as sold.
    pub drive_capacity_gb: Option<f64>,
    /// What was run.
    pub workload: String,
    /// Block size in KiB, where the source says.
    pub block_kib: Option<f64>,
    /// Threads, where the source says.
    pub threads: Option<u32>,
    /// File size in GiB: a number, or a range such as `>50` or `10->20`.
    pub file_size_gib: String,
    /// Share of the device in use, in percent.
    pub util_pct: Option<f64>,
    /// Which run, in the source's words.
    pub run: String,
    /// What was measured.
    pub metric: String,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Under which conditions.
    pub condition: String,
    /// How the source states it: `table`, `text`, `text_approx`, `text_bound` and so on.
    pub kind: String,
    /// The source.
    pub source: String,
}

/// One study: a table of published numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// `e02`.
    pub id: &'static str,
    /// Its path in the project: `published/e02_intel320_random_write_xfs.csv`.
    pub path: &'static str,
    /// Its rows; row 1 is `rows[0]`.
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

/// The study with this id: `e02`.
pub fn study(id: &str) -> Result<&'static Study, CatalogueError> {
    let found = studies().iter().find(|study| study.id == id);
    found.ok_or_else(|| CatalogueError::unknown("study", id, studies().iter().map(|study| study.id)))
}

/// `e02_intel320_random_write_xfs` → `e02`; other tables are not studies.
fn id(name: &'static str) -> Option<&'static str> {
    let (id, _) = name.split_once('_')?;
    let number = id.strip_prefix('e')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(id)
}

/// The rows of a compiled-in table, which a test has read once: a fault in one is ours.
fn rows(id: &str, text: &str) -> Vec<Published> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let row = |(at, row): (usize, Result<Published, csv::Error>)| {
        let row = row.unwrap_or_else(|fault| panic!("row {} of {id}: {fault}", at + 1));
        Published { study: id.to_owned(), line: at as u32 + 1, ..row }
    };
    reader.deserialize().enumerate().map(row).collect()
}
