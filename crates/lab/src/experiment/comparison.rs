//! `[[published]]`: published numbers, and the measured numbers to compare with them.
//!
//! The comparison is in crate `lowtide-report`.

use super::finding::{self, Finding};
use super::read::{Entry, Table};
use super::schema;
use super::step::Step;
use super::unit::Unit;
use super::words::words;
use lowtide_files::catalogue::{self, Published, Study};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

words! {
    /// The direction of a one-sided published number.
    Bound, "bound";
    /// The measured number is at least the published one.
    AtLeast = "at-least",
    /// The measured number is at most the published one.
    AtMost = "at-most",
}

/// One comparison with a published number.
///
/// If several cells are selected, a bound must hold for every cell, `stable-by` is the latest of all cells, and every
/// other measure is the mean of all cells. A form other than `value` is computed from these means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The published row.
    pub published: Cow<'static, Published>,
    /// The measured number.
    pub finding: Finding,
    /// The unit of the published row.
    pub unit: Unit,
    /// The direction of a one-sided number.
    pub bound: Option<Bound>,
    /// A note for the reader; may be empty.
    pub note: String,
}

/// Reads the comparisons. A selection without cells is accepted, because `--set` may change the sweep.
pub(super) fn read(tables: Vec<Table<'_>>, steps: &[Step]) -> Vec<Comparison> {
    tables.iter().filter_map(|table| one(table, steps)).collect()
}

fn one(table: &Table<'_>, steps: &[Step]) -> Option<Comparison> {
    table.only(&schema::PUBLISHED);
    let line = table.require("line", "1");
    let study = study(table);
    let line = line.and_then(|line| Some((row(&line, study?)?, line)));
    let finding = finding::read(table, steps);
    let unit = line.as_ref().zip(finding.as_ref());
    let unit = unit.map(|((row, line), finding)| finding::unit(&row.unit, finding, line));
    let bound = table.optional("bound", Entry::word);
    let note = table.optional("note", |entry| entry.string("\"…\""));
    Some(Comparison {
        published: Cow::Borrowed(line?.0),
        finding: finding?,
        unit: unit??,
        bound: bound?,
        note: note?.unwrap_or_default(),
    })
}

/// The study named by the key `study`.
pub(super) fn study(table: &Table<'_>) -> Option<&'static Study> {
    let entry = table.require("study", "\"e02\"")?;
    match catalogue::study(&entry.text("\"e02\"")?) {
        Ok(study) => Some(study),
        Err(unknown) => entry.refuse(&unknown, unknown.accepted()),
    }
}

/// The row of a study with the number at `entry`, counted from 1.
pub(super) fn row(entry: &Entry<'_>, study: &'static Study) -> Option<&'static Published> {
    let line = entry.count()? as usize;
    study.rows.get(line - 1).or_else(|| {
        let fault = format!("{} has no row {line}", study.path);
        let help = format!("a row from 1 to {}; the heading does not count", study.rows.len());
        entry.refuse(fault, help)
    })
}
