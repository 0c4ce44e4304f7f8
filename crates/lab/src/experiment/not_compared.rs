//! `[[not-compared]]`: published numbers that nothing is put beside, and why.
//!
//! Not here: which rows need an excuse; a test of the catalogue sees that none lacks one.

use super::comparison::{row, study};
use super::error::Problems;
use super::read::Table;
use super::schema;
use lowtide_files::catalogue::Published;

/// Rows of a study that are not compared, for one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct NotCompared {
    /// The rows.
    pub rows: Vec<&'static Published>,
    /// Why nothing is put beside them.
    pub why: String,
}

/// Reads the excuses.
pub(super) fn read(tables: Vec<Table<'_>>, problems: &mut Problems<'_>) -> Vec<NotCompared> {
    tables.iter().filter_map(|table| one(table, problems)).collect()
}

fn one(table: &Table<'_>, problems: &mut Problems<'_>) -> Option<NotCompared> {
    table.only(&schema::NOT_COMPARED, problems);
    let study = study(table, problems);
    let lines = table.require("lines", "[1, 2]", problems);
    let why = table.require("why", "\"…\"", problems).and_then(|entry| entry.text("\"…\"", problems));
    let lines = lines?;
    let rows: Option<Vec<_>> = match lines.elements() {
        None => lines.refuse("not a list of rows", "a list of rows, such as `[1, 2]`", problems),
        Some(all) if all.is_empty() => {
            lines.refuse("no row at all", "a list of rows, such as `[1, 2]`", problems)
        }
        Some(all) => all.iter().map(|line| row(line, study?, problems)).collect(),
    };
    Some(NotCompared { rows: rows?, why: why? })
}
