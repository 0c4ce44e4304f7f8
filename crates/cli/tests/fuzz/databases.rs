//! Mutations of stores: by SQL statements, after which SQLite still reads them, or of their bytes.

use super::mutate::{Random, edge};
use rusqlite::Connection;
use std::path::Path;

/// Changes a store in place.
pub fn change(path: &Path, random: &mut Random) {
    if random.one_in(12) {
        return;
    }
    if !random.one_in(3) {
        for _ in 0..1 + random.below(4) {
            // A statement that SQLite rejects changes nothing.
            let _ = by_statement(path, random);
        }
    }
    if random.one_in(2) {
        in_bytes(path, random);
    }
}

fn by_statement(path: &Path, random: &mut Random) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON",
    )?;
    let names = |query: &str| -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare(query)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect()
    };
    let tables = names("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")?;
    let Some(table) = tables.get(random.below(tables.len())) else { return Ok(()) };
    let columns = names(&format!("SELECT name FROM pragma_table_info('{table}')"))?;
    let Some(column) = columns.get(random.below(columns.len())) else { return Ok(()) };
    let some = match random.below(3) {
        0 => String::new(),
        1 => format!("WHERE rowid = (SELECT max(rowid) FROM \"{table}\")"),
        _ => format!("WHERE rowid % 7 = {}", random.below(7)),
    };
    let statement = match random.below(12) {
        0 => format!("DELETE FROM \"{table}\" {some}"),
        1 => format!("DROP TABLE \"{table}\""),
        2 => format!("ALTER TABLE \"{table}\" DROP COLUMN \"{column}\""),
        3 => format!("ALTER TABLE \"{table}\" RENAME COLUMN \"{column}\" TO other"),
        4 => format!("PRAGMA user_version = {}", random.next() as i32),
        5 => format!("INSERT OR REPLACE INTO \"{table}\" SELECT * FROM \"{table}\" LIMIT 5"),
        6 => format!("UPDATE OR REPLACE \"{table}\" SET \"{column}\" = \"{column}\" + 1 {some}"),
        _ => format!("UPDATE OR REPLACE \"{table}\" SET \"{column}\" = {} {some}", value(column, random)),
    };
    connection.execute_batch(&statement)
}

fn value(column: &str, random: &mut Random) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match random.below(8) {
        0 => "NULL".to_owned(),
        1 => "x'00ff'".to_owned(),
        2 => "zeroblob(100000)".to_owned(),
        3 => format!("substr(\"{column}\", 1, length(\"{column}\") / 2)"),
        4 => quoted(&edge(random)),
        _ => {
            let values = "0 1 -1 2 9223372036854775807 -9223372036854775808 1e300 -1e300 9e999 0.5 4294967296 \
                          1e-300 'done' 'pending' '{}' '[]' 'null' '0' '18446744073709551615'";
            random.pick(&values.split(' ').collect::<Vec<_>>()).to_owned()
        }
    }
}

fn in_bytes(path: &Path, random: &mut Random) {
    let Ok(mut bytes) = std::fs::read(path) else { return };
    let page = bytes.get(16..18).map_or(4096, |size| usize::from(u16::from_be_bytes([size[0], size[1]])));
    let page = page.clamp(512, 65_536);
    for _ in 0..1 + random.below(3) {
        let (pages, at) = (bytes.len() / page, random.below(bytes.len()));
        match random.below(7) {
            0 => bytes.truncate(at),
            1 => bytes.truncate(random.below(pages) * page),
            2 if pages > 1 => {
                // One page overwrites another.
                let (from, to) = (random.below(pages) * page, random.below(pages) * page);
                bytes.copy_within(from..from + page, to);
            }
            3 if pages > 0 => {
                let from = random.below(pages) * page;
                bytes[from..from + page].fill(0);
            }
            4 if bytes.len() > 100 => bytes[random.below(100)] = random.next() as u8,
            5 => bytes.extend(std::iter::repeat_n(random.next() as u8, random.below(8192))),
            _ if !bytes.is_empty() => {
                for _ in 0..1 + random.below(20) {
                    let at = random.below(bytes.len());
                    bytes[at] = random.next() as u8;
                }
            }
            _ => {}
        }
    }
    std::fs::write(path, bytes).expect("the directory can be written");
}
