//! Output of rows: a table, JSON, CSV.
//!
//! Promises and the computation of rows are in the crate root.

use super::{Journal, Promise, Row, filesystem_name};
use lowtide_files::table as plain;
use serde::Serialize;

/// A row of JSON and CSV. The most important numbers are last.
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
    first_damage: Option<&'a str>,
    transactions_returned: u64,
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
            journal: setting.engine.has_journal_mode().then(|| setting.journal.name()),
            filesystem: filesystem_name(setting.filesystem),
            barrier: if setting.barrier { "on" } else { "off" },
            cache: setting.cache.to_string(),
            device: &row.device,
            seed: row.seed,
            promised: setting.promise().to_string(),
            kept: row.kept(),
            recovery_s_mean: row.recovery.mean_s(),
            recovery_s_max: row.recovery.longest_s(),
            oldest_lost_s: row.oldest_lost.map(|span| span.as_secs_f64()),
            first_damage: row.first_damage.as_deref(),
            transactions_returned: row.returned,
            transactions_acknowledged: row.acknowledged,
            cuts: row.cuts,
            transactions_lost: row.lost,
            corrupt: row.corrupt,
        }
    }
}

impl Journal {
    /// The name in [`Journal::NAMES`].
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, journal)| *journal == self).expect("each has a name").0
    }
}

/// JSON: an object for one row, a list for several.
pub fn json(rows: &[Row]) -> String {
    let records: Vec<Record<'_>> = rows.iter().map(Record::of).collect();
    let text = match records.as_slice() {
        [one] => serde_json::to_string_pretty(one),
        several => serde_json::to_string_pretty(several),
    };
    text.expect("words and numbers serialise") + "\n"
}

/// Comma-separated values, with the names of JSON. Absent values are empty.
pub fn csv(rows: &[Row]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        let record = Record::of(row);
        let record = Record { journal: record.journal.or(Some("")), ..record };
        writer.serialize(record).expect("every row has the same columns");
    }
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("text was written")
}

/// A table for a terminal `columns` characters wide, followed by the rows that broke their promises. The table omits
/// the number of acknowledged transactions for lack of space.
pub fn table(rows: &[Row], columns: usize) -> String {
    let head = ["engine", "writes", "on", "barrier", "cache", "cuts", "lost", "corrupt", "back in"];
    let line = |row: &Row| {
        let setting = &row.setting;
        let journal = match (setting.engine.has_journal_mode(), setting.journal) {
            (true, Journal::Rollback) => ", rollback",
            _ => "",
        };
        vec![
            setting.engine.name().to_owned(),
            format!("{}{journal}", setting.durability),
            filesystem_name(setting.filesystem).to_owned(),
            if setting.barrier { "on" } else { "off" }.to_owned(),
            setting.cache.to_string(),
            row.cuts.to_string(),
            row.lost.to_string(),
            row.corrupt.to_string(),
            row.recovery.mean_s().map_or("-".to_owned(), short),
        ]
    };
    let mut text = plain::plain(&head, &rows.iter().map(line).collect::<Vec<_>>(), columns) + "\n";
    for row in rows.iter().filter(|row| !row.kept()) {
        let what = match row.setting.promise() {
            Promise::All => "every acknowledged transaction",
            Promise::Older | Promise::Nothing => "older transactions, and no damage",
        };
        let first =
            row.first_damage.iter().map(|damage| format!("; first damage {damage}")).collect::<String>();
        text += &format!("broken: {} promises {what}{first}\n", row.setting);
    }
    text
}

/// A span of time in a few characters.
fn short(seconds: f64) -> String {
    match seconds {
        it if it < 1.0 => format!("{:.1} ms", it * 1e3),
        it => format!("{it:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Asked, Setting};
    use lowtide_core::{Filesystem, Nanos, Seed};
    use lowtide_device::power::CacheKind;
    use lowtide_engines::Durability;
    use lowtide_engines::Engine;

    fn rows() -> Vec<Row> {
        let asked = Asked {
            device: "intel-320-160gb".to_owned(),
            scale: 16,
            cuts: Some(10_000),
            seed: Seed::new(7),
            keep: None,
        };
        let setting = Setting {
            engine: Engine::Sqlite,
            durability: Durability::Full,
            journal: Journal::Wal,
            filesystem: None,
            barrier: true,
            cache: CacheKind::Protected,
        };
        let mut durable = Row { cuts: 10_000, acknowledged: 81_234, ..Row::of(&setting, &asked) };
        durable.recovery.add(Nanos::from_micros(1_500));
        durable.recovery.add(Nanos::from_micros(2_500));
        let lying =
            Setting { durability: Durability::Second, cache: CacheKind::Lying, barrier: false, ..setting };
        let (lost, corrupt, oldest_lost) = (80_001, 4_321, Some(Nanos::from_millis(20)));
        let first_damage = Some("after cut 3: told".to_owned());
        let lying = Row { setting: lying, lost, corrupt, oldest_lost, first_damage, ..durable.clone() };
        let (engine, filesystem) = (Engine::Mariadb, Some(Filesystem::Ext4));
        let broken = Setting { engine, filesystem, ..setting };
        let broken = Row { setting: broken, cuts: 50, lost: 1, ..durable.clone() };
        vec![durable, lying, broken]
    }

    #[test]
    fn a_table_fits_80_columns_and_names_broken_promises() {
        insta::assert_snapshot!(table(&rows(), 80), @r"
        engine   writes  on         barrier  cache      cuts   lost   corrupt  back in
        ──────── ─────── ────────── ──────── ────────── ────── ────── ──────── ────────
        sqlite   full    simulated  on       protected  10000  0      0        2.0 ms
        sqlite   second  simulated  off      lying      10000  80001  4321     2.0 ms
        mariadb  full    ext4       on       protected  50     1      0        2.0 ms
        broken: mariadb full on ext4, protected promises every acknowledged transaction
        ");
    }

    #[test]
    fn one_row_is_an_object_and_several_are_a_list() {
        let rows = rows();
        insta::assert_snapshot!(json(&rows[1..2]), @r#"
        {
          "engine": "sqlite",
          "durability": "second",
          "journal": "wal",
          "filesystem": "simulated",
          "barrier": "off",
          "cache": "lying",
          "device": "intel-320-160gb",
          "seed": 7,
          "promised": "nothing",
          "kept": true,
          "recovery_s_mean": 0.002,
          "recovery_s_max": 0.0025,
          "oldest_lost_s": 0.02,
          "first_damage": "after cut 3: told",
          "transactions_returned": 0,
          "transactions_acknowledged": 81234,
          "cuts": 10000,
          "transactions_lost": 80001,
          "corrupt": 4321
        }
        "#);
        let list: serde_json::Value = serde_json::from_str(&json(&rows)).expect("JSON");
        assert_eq!(list.as_array().map(Vec::len), Some(3));
        insta::assert_snapshot!(csv(&rows), @r"
        engine,durability,journal,filesystem,barrier,cache,device,seed,promised,kept,recovery_s_mean,recovery_s_max,oldest_lost_s,first_damage,transactions_returned,transactions_acknowledged,cuts,transactions_lost,corrupt
        sqlite,full,wal,simulated,on,protected,intel-320-160gb,7,all,true,0.002,0.0025,,,0,81234,10000,0,0
        sqlite,second,wal,simulated,off,lying,intel-320-160gb,7,nothing,true,0.002,0.0025,0.02,after cut 3: told,0,81234,10000,80001,4321
        mariadb,full,,ext4,on,protected,intel-320-160gb,7,all,false,0.002,0.0025,,,0,81234,50,1,0
        ");
    }
}
