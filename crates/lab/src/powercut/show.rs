//! Rows for people and for programs: a table, JSON, CSV.
//!
//! Leaves out what is promised, and how rows come about.

use super::{Filesystem, Journal, Row};
use crate::table as plain;
use lowtide_oltp::Engine;
use serde::Serialize;

/// A row as programs read it; what counts most stands last.
#[derive(Serialize)]
struct Record<'a> {
    engine: &'static str,
    durability: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<&'static str>,
    filesystem: &'static str,
    barrier: &'static str,
    cache: String,
    device: &'a str,
    seed: u64,
    promised: String,
    kept: bool,
    recovery_s_mean: Option<f64>,
    recovery_s_max: Option<f64>,
    oldest_lost_s: Option<f64>,
    transactions_acknowledged: u64,
    cuts: u64,
    transactions_lost: u64,
    corrupt: u64,
}

impl<'a> Record<'a> {
    fn of(row: &'a Row) -> Record<'a> {
        let setting = &row.setting;
        Record {
            engine: setting.engine.name(),
            durability: setting.durability.name(),
            journal: (setting.engine == Engine::Sqlite).then(|| setting.journal.name()),
            filesystem: setting.filesystem.name(),
            barrier: if setting.barrier { "on" } else { "off" },
            cache: setting.cache.to_string(),
            device: &row.device,
            seed: row.seed,
            promised: setting.promise().to_string(),
            kept: row.kept(),
            recovery_s_mean: row.recovery.mean_s(),
            recovery_s_max: row.recovery.longest_s(),
            oldest_lost_s: row.oldest_lost.map(|span| span.as_secs_f64()),
            transactions_acknowledged: row.acknowledged,
            cuts: row.cuts,
            transactions_lost: row.lost,
            corrupt: row.corrupt,
        }
    }
}

impl Journal {
    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, journal)| *journal == self).expect("each has a name").0
    }
}

impl Filesystem {
    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, filesystem)| *filesystem == self).expect("each has a name").0
    }
}

/// JSON: an object of one row, a list of several.
pub fn json(rows: &[Row]) -> String {
    let records: Vec<Record<'_>> = rows.iter().map(Record::of).collect();
    let text = match records.as_slice() {
        [one] => serde_json::to_string_pretty(one),
        several => serde_json::to_string_pretty(several),
    };
    text.expect("words and numbers serialise") + "\n"
}

/// Comma-separated values, with the names of JSON; nothing where there is none.
pub fn csv(rows: &[Row]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        let journal = Some(row.setting.journal.name()).filter(|_| row.setting.engine == Engine::Sqlite);
        let record = Record { journal: Some(journal.unwrap_or("")), ..Record::of(row) };
        writer.serialize(record).expect("every row has the same columns");
    }
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("text was written")
}

/// A table for a terminal of so many columns.
pub fn table(rows: &[Row], columns: usize) -> String {
    let head =
        ["engine", "writes", "on", "cache", "cuts", "commits", "lost", "corrupt", "recovery", "promised"];
    let line = |row: &Row| {
        let setting = &row.setting;
        let journal = match (setting.engine, setting.journal) {
            (Engine::Sqlite, Journal::Rollback) => ", rollback",
            _ => "",
        };
        let barrier = if setting.barrier { "" } else { ", no barrier" };
        vec![
            setting.engine.name().to_owned(),
            format!("{}{journal}", setting.durability),
            format!("{}{barrier}", setting.filesystem.name()),
            setting.cache.to_string(),
            row.cuts.to_string(),
            row.acknowledged.to_string(),
            row.lost.to_string(),
            row.corrupt.to_string(),
            row.recovery.mean_s().map_or("-".to_owned(), short),
            format!("{}{}", setting.promise(), if row.kept() { "" } else { ": broken" }),
        ]
    };
    plain::plain(&head, &rows.iter().map(line).collect::<Vec<_>>(), columns)
}

/// A span in few characters.
fn short(seconds: f64) -> String {
    match seconds {
        it if it < 1.0 => format!("{:.1} ms", it * 1e3),
        it => format!("{it:.1} s"),
    }
}
