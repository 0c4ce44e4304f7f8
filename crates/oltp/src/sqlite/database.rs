//! The database file, the writer, and their counters.
//!
//! SQLite's cache counters need unsafe code and are therefore not read. The counters here are the times that
//! sessions wait for the writer and for commits, and the sizes of the files.

use super::error::sql;
use super::session::SqliteSession;
use super::{load, pragmas};
use crate::{Counter, CounterUnit, Database, OltpError, Session};
use lowtide_core::Seed;
use lowtide_engines::Settings;
use lowtide_engines::tpcc::Scale;
use parking_lot::{FairMutex, FairMutexGuard};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Capacity of a connection's cache of prepared statements. It exceeds the number of statements.
const STATEMENTS: usize = 96;

/// A SQLite database.
pub(super) struct Sqlite {
    shared: Arc<Shared>,
    version: String,
    settings: Settings,
}

/// State that the sessions share.
pub(super) struct Shared {
    path: PathBuf,
    /// VFS of a file with a single connection; `None` for SQLite's default VFS.
    vfs: Option<String>,
    /// `None` after closing. The lock serves waiters in the order of their requests.
    writer: FairMutex<Option<Connection>>,
    pub(super) counts: Counts,
}

/// Counters of all sessions.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) waited_ns: AtomicU64,
    pub(super) committing_ns: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) rollbacks: AtomicU64,
}

impl Counts {
    /// Adds the time since `began`.
    pub(super) fn add_since(sum: &AtomicU64, began: Instant) {
        sum.fetch_add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Shared {
    /// Waits for the writer; the guard holds `None` if the database is closed.
    pub(super) fn writer(&self) -> FairMutexGuard<'_, Option<Connection>> {
        let asked = Instant::now();
        let writer = self.writer.lock();
        Counts::add_since(&self.counts.waited_ns, asked);
        writer
    }
    fn with<T>(
        &self,
        what: &str,
        ask: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, OltpError> {
        ask(self.writer.lock().as_mut().ok_or_else(closed)?).map_err(sql(what))
    }
}

fn closed() -> OltpError {
    OltpError::Invalid("the database is closed".to_owned())
}

impl Sqlite {
    /// Opens or makes the file, on the SQLite VFS registered as `vfs` if one is given.
    pub(super) fn open(path: &Path, vfs: Option<&str>, settings: &Settings) -> Result<Self, OltpError> {
        let writer = connect(path, vfs)?;
        if vfs.is_some() {
            pragmas::alone(&writer, settings)?;
        }
        pragmas::apply(&writer, settings)?;
        let shared = Shared {
            path: path.to_owned(),
            vfs: vfs.map(str::to_owned),
            writer: FairMutex::new(Some(writer)),
            counts: Counts::default(),
        };
        let version = format!("SQLite {}", rusqlite::version());
        Ok(Sqlite { shared: Arc::new(shared), version, settings: settings.clone() })
    }
    /// Current settings of the writer.
    pub(super) fn settings(&self) -> Result<Vec<(String, String)>, OltpError> {
        pragmas::shown(self.shared.writer.lock().as_ref().ok_or_else(closed)?, &self.settings)
    }
    /// Checkpoints the WAL and closes the writer. Remaining sessions can read but not write.
    pub(super) fn close(&self) -> Result<(), OltpError> {
        let Some(writer) = self.shared.writer.lock().take() else { return Ok(()) };
        let ended = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        ended.map_err(sql("the last checkpoint"))?;
        writer.close().map_err(|(_, error)| sql("closing the database")(error))
    }
    /// Size in bytes of the database file with `ending` appended to its name; 0 if there is no such file.
    fn size(&self, ending: &str) -> f64 {
        let mut path = self.shared.path.clone().into_os_string();
        path.push(ending);
        std::fs::metadata(path).map_or(0.0, |found| found.len() as f64)
    }
}

fn connect(path: &Path, vfs: Option<&str>) -> Result<Connection, OltpError> {
    let opened = match vfs {
        None => Connection::open(path),
        Some(vfs) => {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            Connection::open_with_flags_and_vfs(path, flags, vfs)
        }
    };
    let connection = opened.map_err(sql(format!("opening {}", path.display())))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

impl Database for Sqlite {
    fn version(&self) -> &str {
        &self.version
    }

    fn session(&self) -> Result<Box<dyn Session>, OltpError> {
        let reader = match &self.shared.vfs {
            // On a VFS of its own, a single connection holds the file.
            Some(_) => None,
            None => {
                let reader = connect(&self.shared.path, None)?;
                reader.pragma_update(None, "query_only", true).map_err(sql("opening a session"))?;
                Some(reader)
            }
        };
        Ok(Box::new(SqliteSession::new(self.shared.clone(), reader)))
    }

    fn load(
        &self,
        scale: &Scale,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<(), OltpError> {
        let mut guard = self.shared.writer.lock();
        let writer = guard.as_mut().ok_or_else(closed)?;
        let loaded = load::load(writer, scale, seed, interrupt, progress);
        // On a full disk the WAL cannot be made either; the load's error, which is the cause, takes precedence.
        let applied = pragmas::apply(writer, &self.settings);
        loaded.and(applied)?;
        if self.shared.vfs.is_some() {
            return Ok(());
        }
        let path = &self.shared.path;
        let synced = std::fs::File::open(path).and_then(|file| file.sync_all());
        synced.map_err(|source| OltpError::Io { path: path.clone(), source })
    }

    fn number(&self, query: &str) -> Result<i64, OltpError> {
        self.shared.with(query, |writer| writer.prepare_cached(query)?.query_row([], |row| row.get(0)))
    }

    fn numbers(&self, query: &str) -> Result<Vec<Vec<i64>>, OltpError> {
        self.shared.with(query, |writer| {
            let mut statement = writer.prepare_cached(query)?;
            let columns = statement.column_count();
            let number = |row: &rusqlite::Row<'_>, column| match row.get_ref(column)? {
                ValueRef::Null => Ok(0),
                _ => row.get(column),
            };
            let rows =
                statement.query_map([], |row| (0..columns).map(|column| number(row, column)).collect())?;
            rows.collect()
        })
    }

    fn damage(&self) -> Result<Vec<String>, OltpError> {
        self.shared.with("PRAGMA integrity_check", |writer| {
            let mut statement = writer.prepare("PRAGMA integrity_check")?;
            let lines: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            Ok(lines.into_iter().filter(|line| line != "ok").collect())
        })
    }

    fn execute(&self, statement: &str) -> Result<(), OltpError> {
        self.shared.with(statement, |writer| writer.execute_batch(statement))
    }

    fn counters(&self) -> Result<Vec<Counter>, OltpError> {
        let counts = &self.shared.counts;
        let counted = |name: &str, unit, count: &AtomicU64| Counter {
            from: "writer",
            name: name.to_owned(),
            unit,
            value: count.load(Ordering::Relaxed) as f64,
        };
        let file = |name: &str, ending| Counter {
            from: "files",
            name: name.to_owned(),
            unit: CounterUnit::Level,
            value: self.size(ending),
        };
        Ok(vec![
            counted("turn_wait_time", CounterUnit::Nanoseconds, &counts.waited_ns),
            counted("commit_time", CounterUnit::Nanoseconds, &counts.committing_ns),
            counted("commits", CounterUnit::Count, &counts.commits),
            counted("rollbacks", CounterUnit::Count, &counts.rollbacks),
            file("database_bytes", ""),
            file("wal_bytes", "-wal"),
        ])
    }
}
