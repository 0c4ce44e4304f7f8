//! The schema of stores, their formats, and the settings of a connection.

use super::StoreError;
use crate::experiment::untyped;
use lowtide_files::application::{APPLICATION_ID, application};
use lowtide_record::column::{Column, Known, Value as Number};
use lowtide_record::{Done, FactorLevel, Row};
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, TransactionBehavior, params, params_from_iter};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

/// The format that this version writes.
const VERSION: i32 = KINDS;
/// The first format with resolved experiments, and with the kinds of factor levels.
pub(super) const KINDS: i32 = 5;
/// The first format with gaps.
pub(super) const GAPS: i32 = 4;
/// The first format with device time and predicted levels.
pub(super) const CURVES: i32 = 3;
/// The first format with databases.
pub(super) const DATABASES: i32 = 2;
/// The oldest format that can be read. A store is upgraded when it is opened for writing.
pub(super) const OLDEST: i32 = 1;

/// The definitions of all tables. `{interval}` and `{transactions}` are placeholders for the columns of
/// [`Row::COLUMNS`] and [`Done::COLUMNS`].
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS campaign (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, title TEXT NOT NULL, experiment TEXT NOT NULL, target TEXT NOT NULL,
  device TEXT, seed INTEGER NOT NULL, scale INTEGER NOT NULL, version TEXT NOT NULL, started_at TEXT NOT NULL,
  command TEXT NOT NULL, plan TEXT NOT NULL, resolved TEXT);
CREATE TABLE IF NOT EXISTS environment (
  campaign INTEGER NOT NULL REFERENCES campaign(id), position INTEGER NOT NULL, key TEXT NOT NULL,
  value TEXT NOT NULL, PRIMARY KEY (campaign, position)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cell (
  campaign INTEGER NOT NULL REFERENCES campaign(id), cell INTEGER NOT NULL, step TEXT, factors TEXT NOT NULL,
  repetition INTEGER NOT NULL, status TEXT NOT NULL, failure TEXT, data_bytes INTEGER NOT NULL,
  capacity_bytes INTEGER NOT NULL, raw_bytes INTEGER, threads INTEGER NOT NULL, read_share REAL NOT NULL,
  written_before_bytes INTEGER, counters_before TEXT, wear TEXT, verdict TEXT,
  PRIMARY KEY (campaign, cell)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS interval (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, {interval}, counters TEXT,
  PRIMARY KEY (campaign, cell, start_ns)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS histogram (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, start_ns INTEGER NOT NULL, op TEXT NOT NULL,
  hdr BLOB NOT NULL, PRIMARY KEY (campaign, cell, start_ns, op)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS oltp (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (campaign, cell)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS transactions (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, start_ns INTEGER NOT NULL, kind TEXT NOT NULL, {transactions},
  PRIMARY KEY (campaign, cell, start_ns, kind)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS device_time (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, took_ns INTEGER NOT NULL, PRIMARY KEY (campaign, cell)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS predicted (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, level_mib_per_s REAL NOT NULL, low_mib_per_s REAL NOT NULL,
  high_mib_per_s REAL NOT NULL, PRIMARY KEY (campaign, cell)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gap (
  campaign INTEGER NOT NULL, cell INTEGER NOT NULL, at_ns INTEGER NOT NULL, length_ns INTEGER NOT NULL, cause TEXT NOT NULL,
  PRIMARY KEY (campaign, cell, at_ns)) WITHOUT ROWID;
";

/// A column of a table, in the order of `pragma_table_xinfo`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableColumn {
    pub name: String,
    pub kind: String,
    pub not_null: bool,
    pub key: i32,
    pub hidden: i32,
}

/// The columns of a table; empty if there is no such table.
pub(super) fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<TableColumn>> {
    let text = "SELECT name, type, \"notnull\", pk, hidden FROM pragma_table_xinfo(?1)";
    let of = |row: &rusqlite::Row<'_>| {
        Ok(TableColumn {
            name: row.get(0)?,
            kind: row.get(1)?,
            not_null: row.get(2)?,
            key: row.get(3)?,
            hidden: row.get(4)?,
        })
    };
    connection.prepare_cached(text)?.query_map([table], of)?.collect()
}

/// The tables of a store of this version, with their columns.
static KNOWN: LazyLock<BTreeMap<String, Vec<TableColumn>>> = LazyLock::new(|| {
    let all = reference().and_then(|store| {
        let names: Vec<String> = store
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        names.into_iter().map(|name| Ok((name.clone(), columns(&store, &name)?))).collect()
    });
    all.expect("an empty store in memory is created")
});

/// The columns of a table in a store of this version; `None` if stores have no such table.
pub(super) fn known_columns(table: &str) -> Option<&'static [TableColumn]> {
    KNOWN.get(table).map(Vec::as_slice)
}

/// The columns of a table in a store of this version.
///
/// # Panics
/// If stores have no such table.
pub(super) fn columns_of(table: &str) -> &'static [TableColumn] {
    known_columns(table).unwrap_or_else(|| panic!("stores have no table `{table}`"))
}

/// Columns added after the first format: table, column, first format with the column.
const ADDED: [(&str, &str, i32); 1] = [("campaign", "resolved", KINDS)];

/// Returns whether `own` are the columns of a table in a store of this format, in any order.
pub(super) fn fits(table: &str, own: &[TableColumn], format: i32) -> bool {
    let known = columns_of(table);
    let since = |column: &TableColumn| {
        let added = ADDED.iter().find(|(of, name, _)| (*of, *name) == (table, column.name.as_str()));
        added.map_or(OLDEST, |(_, _, since)| *since)
    };
    own.iter().all(|own| known.contains(own))
        && known.iter().all(|known| format < since(known) || own.contains(known))
}

/// The format of an open store, and the queries for its tables, determined when the store is opened. If another
/// program upgrades the store later, the new columns are visible only after the store is opened again.
#[derive(Debug)]
pub(super) struct StoreFormat {
    /// The number of the format.
    pub version: i32,
    /// The `SELECT` of all columns, by table.
    selects: BTreeMap<&'static str, String>,
}

impl StoreFormat {
    fn of(connection: &Connection) -> rusqlite::Result<StoreFormat> {
        let select = |table: &'static String| Ok((table.as_str(), select(connection, table)?));
        let selects = KNOWN.keys().map(select).collect::<rusqlite::Result<_>>()?;
        Ok(StoreFormat { version: version(connection)?, selects })
    }

    /// The `SELECT` of all columns of a table in the order of [`columns_of`], ending with `FROM` and the table.
    /// Columns that an older store lacks are NULL or zero.
    ///
    /// # Panics
    /// If stores have no such table.
    pub fn select(&self, table: &str) -> &str {
        &self.selects[table]
    }

    /// Converts the factors of a cell to the current format.
    pub fn factors(&self, stored: String) -> String {
        if self.version < KINDS { with_kinds(&stored) } else { stored }
    }
}

fn select(connection: &Connection, table: &str) -> rusqlite::Result<String> {
    let own = columns(connection, table)?;
    let one = |column: &TableColumn| match column.kind.as_str() {
        _ if own.iter().any(|it| it.name == column.name) => column.name.clone(),
        "TEXT" => format!("NULL AS {}", column.name),
        _ => format!("0 AS {}", column.name),
    };
    let list: Vec<String> = columns_of(table).iter().map(one).collect();
    Ok(format!("SELECT {} FROM {table}", list.join(", ")))
}

/// Inserts a row whose values are in the order of [`columns_of`].
pub(super) fn insert(connection: &Connection, table: &str, values: &[Value]) -> rusqlite::Result<()> {
    let names: Vec<&str> = columns_of(table).iter().map(|column| column.name.as_str()).collect();
    let places = vec!["?"; values.len()].join(", ");
    let text = format!("INSERT INTO {table} ({}) VALUES ({places})", names.join(", "));
    connection.prepare_cached(&text)?.execute(params_from_iter(values)).map(drop)
}

/// SQL definitions of columns. Latencies are nullable: an interval may have no completions.
fn in_sql<R>(columns: &[Column<R>]) -> String {
    let one = |column: &Column<R>| {
        let kind = match column.value {
            Number::Whole { .. } => "INTEGER",
            Number::Real { .. } => "REAL",
        };
        let not_null = if column.known == Known::AfterCompletion { "" } else { " NOT NULL" };
        format!("{} {kind}{not_null}", column.stored)
    };
    columns.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn tables() -> String {
    TABLES.replace("{interval}", &in_sql(Row::COLUMNS)).replace("{transactions}", &in_sql(Done::COLUMNS))
}

/// Prepares a connection for reading an existing store.
///
/// # Errors
/// [`StoreError::NotAStore`] if the file is not a store.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<StoreFormat, StoreError> {
    secure(connection).map_err(|error| unreadable(path, error))?;
    match format_of(connection, path)? {
        Some(_) => StoreFormat::of(connection).map_err(StoreError::on(path)),
        None => Err(not_a_store(path, "it is empty")),
    }
}

/// Prepares a connection for writing, and creates the tables or upgrades the store if necessary.
///
/// # Errors
/// [`StoreError::NotAStore`] if the file is neither empty nor a store.
pub(super) fn prepare(connection: &Connection, path: &Path) -> Result<StoreFormat, StoreError> {
    let fail = StoreError::on(path);
    secure(connection).map_err(|error| unreadable(path, error))?;
    let is_current = format_of(connection, path)? == Some(VERSION);
    if !is_current || !lacking(connection).map_err(&fail)?.is_empty() {
        // Another program may have upgraded the store: the format is read again under the lock.
        let transaction =
            Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(&fail)?;
        let format = format_of(&transaction, path)?;
        migrate(&transaction, format).and_then(|()| transaction.commit()).map_err(&fail)?;
    }
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(&fail)?;
    connection.execute_batch("PRAGMA synchronous = NORMAL;").map_err(&fail)?;
    StoreFormat::of(connection).map_err(fail)
}

/// Tables that later formats may extend.
const GROWING: [&str; 3] = ["campaign", "interval", "transactions"];

/// Columns that the tables of a store lack.
fn lacking(connection: &Connection) -> rusqlite::Result<Vec<(&'static str, &'static TableColumn)>> {
    let mut lacking = Vec::new();
    for table in GROWING {
        let own = columns(connection, table)?;
        let is_new = |column: &&TableColumn| own.iter().all(|it| it.name != column.name);
        lacking.extend(columns_of(table).iter().filter(is_new).map(|column| (table, column)));
    }
    Ok(lacking)
}

/// Upgrades an empty file or a store of an older format, in the open transaction.
pub(super) fn migrate(connection: &Connection, from: Option<i32>) -> rusqlite::Result<()> {
    connection.execute_batch(&tables())?;
    for (table, TableColumn { name, kind, not_null, .. }) in lacking(connection)? {
        let not_null = if *not_null { " NOT NULL" } else { "" };
        let default = if kind == "TEXT" { "NULL" } else { "0" };
        let add = format!("ALTER TABLE {table} ADD COLUMN {name} {kind}{not_null} DEFAULT {default}");
        connection.execute_batch(&add)?;
    }
    if from.is_some_and(|format| format < KINDS) {
        let text = "SELECT campaign, cell, factors FROM cell WHERE typeof(factors) = 'text'";
        let mut cells = connection.prepare(text)?;
        let all = cells.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let all: Vec<(i64, i64, String)> = all?.collect::<rusqlite::Result<_>>()?;
        let mut update =
            connection.prepare("UPDATE cell SET factors = ?3 WHERE campaign = ?1 AND cell = ?2")?;
        for (campaign, cell, factors) in all {
            update.execute(params![campaign, cell, with_kinds(&factors)])?;
        }
    }
    let format = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};");
    connection.execute_batch(&format)
}

/// Converts the factors of a cell from an older format to format [`KINDS`]. Invalid factors are not changed; reading
/// them reports the damage.
fn with_kinds(factors: &str) -> String {
    let Ok(pairs) = serde_json::from_str::<Vec<(String, String)>>(factors) else { return factors.to_owned() };
    let factors: Vec<FactorLevel> = pairs.into_iter().map(|(name, level)| untyped(&name, level)).collect();
    serde_json::to_string(&factors).expect("factors serialise")
}

/// An empty database with all tables that a store may have.
fn reference() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(&format!("{} {};", tables(), super::baseline::TABLE))?;
    Ok(connection)
}

/// The format of a store.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Sets a timeout for locks, and disables triggers and views: a store may come from an untrusted source.
fn secure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(5))?;
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(setting, on)?;
    }
    Ok(())
}

fn not_a_store(path: &Path, found: &str) -> StoreError {
    StoreError::NotAStore { path: path.to_owned(), found: found.to_owned() }
}

/// The error for a file that SQLite cannot read.
fn unreadable(path: &Path, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => not_a_store(path, "it is not a database"),
        _ => StoreError::on(path)(error),
    }
}

/// The format of a store; `None` if the file is empty.
fn format_of(connection: &Connection, path: &Path) -> Result<Option<i32>, StoreError> {
    let fail = |error| unreadable(path, error);
    let application = application(connection).map_err(fail)?;
    let version = version(connection).map_err(fail)?;
    let tables: i32 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(fail)?;
    match (application, version, tables) {
        (APPLICATION_ID, OLDEST..=VERSION, _) => Ok(Some(version)),
        (APPLICATION_ID, later, _) => Err(not_a_store(
            path,
            &format!("it has format {later}, and this version writes format {VERSION}"),
        )),
        (0, 0, 0) => Ok(None),
        _ => Err(not_a_store(path, "it is a database of another program")),
    }
}
