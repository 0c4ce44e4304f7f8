//! The schema and how a connection is set up.

use super::StoreError;
use lowtide_files::application::{APPLICATION_ID, application};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::path::Path;
use std::time::Duration;

const VERSION: i32 = GAPS;
/// The format that has gaps.
pub(super) const GAPS: i32 = 4;
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

/// What format 4 added: when lowtide itself did not run.
const TABLES_OF_GAPS: &str = "
CREATE TABLE gap (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, at_ns INTEGER NOT NULL, length_ns INTEGER NOT NULL, cause TEXT NOT NULL,
  PRIMARY KEY (campaign, cell, at_ns)) WITHOUT ROWID;
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
            "{TABLES} {TABLES_OF_DATABASES} {TABLES_OF_CURVES} {TABLES_OF_GAPS} PRAGMA application_id = {APPLICATION_ID};"
        )),
        Some(VERSION) => None,
        Some(CURVES) => Some(TABLES_OF_GAPS.to_owned()),
        Some(DATABASES) => Some(format!("{TABLES_OF_CURVES} {TABLES_OF_GAPS}")),
        Some(_) => Some(format!("{TABLES_OF_DATABASES} {TABLES_OF_CURVES} {TABLES_OF_GAPS}")),
    };
    if let Some(tables) = tables {
        let make = format!("BEGIN; {tables} PRAGMA user_version = {VERSION}; COMMIT;");
        connection.execute_batch(&make).map_err(&fail)?;
    }
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(&fail)?;
    connection.execute_batch("PRAGMA synchronous = NORMAL;").map_err(&fail)
}

/// An empty database with every table that a store may have.
pub(super) fn reference() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    let baselines = super::baseline::TABLE;
    let tables = format!("{TABLES} {TABLES_OF_DATABASES} {TABLES_OF_CURVES} {TABLES_OF_GAPS} {baselines};");
    connection.execute_batch(&tables)?;
    Ok(connection)
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
    // A store may be anybody's file: nothing that is written in its schema is run.
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(setting, on).map_err(fail)?;
    }
    let application = application(connection).map_err(fail)?;
    let version = version(connection).map_err(fail)?;
    let tables: i32 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(fail)?;
    match (application, version, tables) {
        (APPLICATION_ID, OLDEST..=VERSION, _) => Ok(Some(version)),
        (APPLICATION_ID, later, _) => Err(not_a_store(&format!("it has format {later}, this one {VERSION}"))),
        (0, 0, 0) => Ok(None),
        _ => Err(not_a_store("it is a database of something else")),
    }
}
