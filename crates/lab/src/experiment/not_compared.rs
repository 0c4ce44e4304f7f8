//! `[[not-compared]]`: published numbers without a comparison, and the reason.
//!
//! `tests::catalogue` checks that every published row is compared or has a reason.

use super::comparison::{row, study};
use super::read::Table;
use super::schema;
use lowtide_files::catalogue::Published;

/// Rows of a study that are not compared, for one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct NotCompared {
    /// The rows.
    pub rows: Vec<&'static Published>,
    /// The reason.
    pub why: String,
}

/// Reads the reasons.
pub(super) fn read(tables: Vec<Table<'_>>) -> Vec<NotCompared> {
    tables.iter().filter_map(|table| one(table)).collect()
}

fn one(table: &Table<'_>) -> Option<NotCompared> {
    table.only(&schema::NOT_COMPARED);
    let study = study(table);
    let lines = table.require("lines", "[1, 2]");
    let why = table.require_text("why", "\"…\"");
    let (lines, help) = (lines?, "a list of rows, such as `[1, 2]`");
    let rows: Option<Vec<_>> = match lines.elements() {
        None => lines.refuse("not a list of rows", help),
        Some(all) if all.is_empty() => lines.refuse("no row at all", help),
        Some(all) => all.iter().map(|line| row(line, study?)).collect(),
    };
    Some(NotCompared { rows: rows?, why: why? })
}
