//! The schema and how a connection is set up.

use super::StoreError;
use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

/// Marks a SQLite file as a lowtide store: "lowt" in ASCII.
const APPLICATION_ID: i32 = 0x6c6f_7774;
const VERSION: i32 = CURVES;
/// The format that has device time and predicted levels.
pub(super) const CURVES: i32 = 3;
/// The format that has databases.
pub(super) const DATABASES: i32 = 2;
/// Stores of this format are read, and become newer when they are written to.
pub(super) const OLDEST: i32 = 1;

const TABLES: &str = "
CREATE TABLE campaign (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, title TEXT NOT NULL, experiment TEXT NOT NULL, target TEXT NOT NULL,
  device TEXT, seed INTEGER NOT NULL, scale INTEGER NOT NULL, version TEXT NOT NULL, started_at TEXT NOT NULL,
  command TEXT NOT NULL, plan TEXT NOT NULL);
CREATE TABLE environment (
  campaign INTEGER NOT NULL REFERENCES campaign(id), position INTEGER NOT NULL, key TEXT NOT NULL,
  value TEXT NOT NULL, PRIMARY KEY (campaign, position)) WITHOUT ROWID;
CREATE TABLE cell (
  campaign INTEGER NOT NULL REFERENCES campaign(id), cell INTEGER NOT NULL, step TEXT, factors TEXT NOT NULL,
  repetition INTEGER NOT NULL, status TEXT NOT NULL, failure TEXT, data_bytes INTEGER NOT NULL,
  capacity_bytes INTEGER NOT NULL, raw_bytes INTEGER, threads INTEGER NOT NULL, read_share REAL NOT NULL,
  written_before_bytes INTEGER, counters_before TEXT, wear TEXT, verdict TEXT,
  PRIMARY KEY (campaign, cell)) WITHOUT ROWID;
CREATE TABLE interval (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
  reads INTEGER NOT NULL, read_bytes INTEGER NOT NULL, writes INTEGER NOT NULL, write_bytes INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  read_mean_ns REAL, read_p50_ns INTEGER, read_p95_ns INTEGER, read_p99_ns INTEGER, read_p999_ns INTEGER,
  read_max_ns INTEGER, write_mean_ns REAL, write_p50_ns INTEGER, write_p95_ns INTEGER, write_p99_ns INTEGER,
  write_p999_ns INTEGER, write_max_ns INTEGER, counters TEXT,
  PRIMARY KEY (campaign, cell, start_ns)) WITHOUT ROWID;
CREATE TABLE histogram (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, start_ns INTEGER NOT NULL, op TEXT NOT NULL,
  hdr BLOB NOT NULL, PRIMARY KEY (campaign, cell, start_ns, op)) WITHOUT ROWID;
";

/// What format 2 added.
const TABLES_OF_DATABASES: &str = "
CREATE TABLE oltp (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (campaign, cell)) WITHOUT ROWID;
CREATE TABLE transactions (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, start_ns INTEGER NOT NULL, kind TEXT NOT NULL,
  committed INTEGER NOT NULL, rolled_back INTEGER NOT NULL, retries INTEGER NOT NULL,
  mean_ns REAL, p50_ns INTEGER, p95_ns INTEGER, p99_ns INTEGER, p999_ns INTEGER, max_ns INTEGER,
  PRIMARY KEY (campaign, cell, start_ns, kind)) WITHOUT ROWID;
";

/// What format 3 added: how long a device was occupied, and levels that were not measured.
const TABLES_OF_CURVES: &str = "
CREATE TABLE device_time (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, took_ns INTEGER NOT NULL, PRIMARY KEY (campaign, cell)) WITHOUT ROWID;
CREATE TABLE predicted (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, level_mib_per_s REAL NOT NULL, low_mib_per_s REAL NOT NULL,
  high_mib_per_s REAL NOT NULL, PRIMARY KEY (campaign, cell)) WITHOUT ROWID;
";

/// Sets a connection up for a store that is there.
///
/// # Errors
/// [`StoreError::NotAStore`] where the file is something else.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    match format_of(connection, path)? {
        Some(_) => Ok(()),
        None => Err(StoreError::NotAStore { path: path.to_owned(), found: "it is empty".to_owned() }),
    }
}

/// Sets a connection up for writing, and makes the tables in a new file.
///
/// # Errors
/// [`StoreError::NotAStore`] where the file is something else.
pub(super) fn prepare(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let fail = StoreError::on(path);
    let tables = match format_of(connection, path)? {
        None => Some(format!(
            "{TABLES} {TABLES_OF_DATABASES} {TABLES_OF_CURVES} PRAGMA application_id = {APPLICATION_ID};"
        )),
        Some(VERSION) => None,
        Some(DATABASES) => Some(TABLES_OF_CURVES.to_owned()),
        Some(_) => Some(format!("{TABLES_OF_DATABASES} {TABLES_OF_CURVES}")),
    };
    if let Some(tables) = tables {
        let make = format!("BEGIN; {tables} PRAGMA user_version = {VERSION}; COMMIT;");
        connection.execute_batch(&make).map_err(&fail)?;
    }
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(&fail)?;
    connection.execute_batch("PRAGMA synchronous = NORMAL;").map_err(&fail)
}

/// Whether a store has the tables of databases.
pub(super) fn knows_databases(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(version(connection)? >= DATABASES)
}

/// Whether a store has the tables of device time and of predicted levels.
pub(super) fn knows_curves(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(version(connection)? >= CURVES)
}

/// The format of a store.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// The format of the store in the file; `None` where it is empty.
fn format_of(connection: &Connection, path: &Path) -> Result<Option<i32>, StoreError> {
    let not_a_store = |found: &str| StoreError::NotAStore { path: path.to_owned(), found: found.to_owned() };
    let fail = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => not_a_store("it is not a database"),
        _ => StoreError::on(path)(error),
    };
    connection.busy_timeout(Duration::from_secs(5)).map_err(fail)?;
    let number =
        |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i32>(0));
    let (application, version) =
        (number("application_id").map_err(fail)?, number("user_version").map_err(fail)?);
    let tables: i32 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(fail)?;
    match (application, version, tables) {
        (APPLICATION_ID, OLDEST..=VERSION, _) => Ok(Some(version)),
        (APPLICATION_ID, later, _) => Err(not_a_store(&format!("it has format {later}, this one {VERSION}"))),
        (0, 0, 0) => Ok(None),
        _ => Err(not_a_store("it is a database of something else")),
    }
}
