//! TPC-C on PostgreSQL: a server of our own, or a server of the user's.
//!
//! All tables are in the schema `lowtide`, so the tables of a user's server are never touched.
//!
//! # Not handled
//! Replicas, and servers that require TLS.

mod address;
mod connection;
mod counters;
mod error;
mod instance;
mod load;
mod parameters;
mod programs;
mod schema;
mod session;
pub(crate) mod shared_memory;
mod statements;

use crate::watchdog::Watchdog;
use crate::{Counter, Database, Instance, OltpError, Places, Session, without_password};
use address::Address;
use connection::Connection;
use error::{PgError, unexpected};
use lowtide_core::Seed;
use lowtide_engines::Settings;
use lowtide_engines::tpcc::Scale;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Creates a cluster in `places` if there is none, and starts its server.
///
/// # Errors
/// [`OltpError`] if PostgreSQL is not installed, a setting is unknown to it, a directory cannot be used, or the
/// server does not start. A server that does not answer is killed a while after `interrupt` is set.
pub fn start(
    settings: &Settings,
    places: &Places,
    interrupt: &Arc<AtomicBool>,
) -> Result<Box<dyn Instance>, OltpError> {
    Ok(Box::new(instance::start(settings, places, interrupt)?))
}

/// Connects to a server of the user's: `postgresql://user:password@host:port/database`.
///
/// # Errors
/// [`OltpError`] if the address is invalid or no server answers. A while after `interrupt` is set the connections are
/// cut.
pub fn connect(url: &str, interrupt: &Arc<AtomicBool>) -> Result<Arc<dyn Database>, OltpError> {
    let postgres = Postgres::open(Address::parse(url)?, 0, Watchdog::new(interrupt));
    let postgres = postgres.map_err(|error| match error {
        OltpError::Sql { message, .. } => {
            OltpError::Sql { what: format!("connecting to {}", without_password(url)), message }
        }
        other => other,
    });
    Ok(Arc::new(postgres?))
}

/// Settings that are read back in addition to those that the user gave.
const TELLING: &str = "'shared_buffers', 'synchronous_commit', 'fsync', 'wal_sync_method', 'full_page_writes', \
    'effective_io_concurrency', 'max_wal_size', 'min_wal_size', 'checkpoint_timeout', 'checkpoint_completion_target', \
    'bgwriter_delay', 'bgwriter_lru_maxpages', 'wal_buffers', 'wal_compression', 'autovacuum', 'data_checksums', \
    'io_method', 'debug_io_direct', 'huge_pages', 'block_size'";

/// A running server.
struct Postgres {
    address: Address,
    version: String,
    /// Number of tablespaces for the tables; 0 is the default tablespace.
    tablespaces: u32,
    /// The session for everything but transactions and loads, opened on demand.
    admin: Mutex<Option<Connection>>,
    watchdog: Watchdog,
}

impl Postgres {
    fn open(address: Address, tablespaces: u32, watchdog: Watchdog) -> Result<Postgres, OltpError> {
        let (version, admin) = (String::new(), Mutex::new(None));
        let mut it = Postgres { address, version, tablespaces, admin, watchdog };
        let rows = it.admin("asking for its version", |admin| admin.simple("SHOW server_version"))?;
        let version = rows.into_iter().flatten().flatten().next().unwrap_or_default();
        it.version = format!("PostgreSQL {version}");
        Ok(it)
    }

    fn connection(&self) -> Result<Connection, PgError> {
        Connection::open(&self.address, schema::NAME, &self.watchdog)
    }

    /// Runs `act` in the admin session, and in a new session if that one was lost meanwhile.
    fn admin<T>(
        &self,
        what: &str,
        act: impl Fn(&mut Connection) -> Result<T, PgError>,
    ) -> Result<T, OltpError> {
        let mut kept = self.admin.lock().unwrap_or_else(PoisonError::into_inner);
        let old = kept.take().map(|mut connection| (act(&mut connection), connection));
        let (result, connection) = match old {
            Some((Err(lost @ PgError::Lost(_)), _)) => match self.connection() {
                Ok(mut connection) => (act(&mut connection), connection),
                // The loss of the first session is more informative than the failure to open a second one.
                Err(_) => return Err(lost.sql(what)),
            },
            Some(done) => done,
            None => {
                let mut connection = self.connection().map_err(|error| error.sql(what))?;
                (act(&mut connection), connection)
            }
        };
        if !matches!(result, Err(PgError::Lost(_))) {
            *kept = Some(connection);
        }
        result.map_err(|error| error.sql(what))
    }

    /// Checks that the server allows tablespaces within the data directory.
    fn check_tablespaces(&self) -> Result<(), OltpError> {
        let query = "SELECT name FROM pg_settings WHERE name = 'allow_in_place_tablespaces'";
        if self.admin("asking for tablespaces", |admin| admin.simple(query))?.is_empty() {
            let why = "data_files: PostgreSQL before 15 has no tablespaces within the data directory";
            return Err(OltpError::Invalid(format!("{why} (this is {})", self.version)));
        }
        Ok(())
    }

    /// Closes the admin session.
    fn close(&self) {
        *self.admin.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The settings that the user gave and those in [`TELLING`], with their units.
    fn running_settings(&self) -> Result<Vec<(String, String)>, OltpError> {
        let query = format!(
            "SELECT name, current_setting(name) FROM pg_settings
             WHERE source = 'command line' OR name IN ({TELLING}) ORDER BY name"
        );
        let rows = self.admin("reading its settings", |admin| admin.simple(&query))?;
        let pair = |row: Vec<Option<String>>| {
            let mut columns = row.into_iter().map(Option::unwrap_or_default);
            Some((columns.next()?, columns.next()?))
        };
        Ok(rows.into_iter().filter_map(pair).collect())
    }
}

impl Database for Postgres {
    fn version(&self) -> &str {
        &self.version
    }
    fn session(&self) -> Result<Box<dyn Session>, OltpError> {
        let failed = |error: PgError| error.sql("opening a session");
        let connection = self.connection().map_err(failed)?;
        Ok(Box::new(session::Terminal::new(connection).map_err(failed)?))
    }
    fn most_sessions(&self) -> Result<Option<u32>, OltpError> {
        // One session is kept for administration.
        let most = self.number("SELECT current_setting('max_connections')")? - 1;
        Ok(Some(u32::try_from(most).unwrap_or(0)))
    }
    fn load(
        &self,
        scale: &Scale,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<(), OltpError> {
        load::load(self, scale, seed, interrupt, progress)
    }
    fn number(&self, query: &str) -> Result<i64, OltpError> {
        self.admin(query, |admin| {
            let rows = admin.simple(query)?;
            // Read as text, because PostgreSQL's sum of integers is a decimal number.
            let value = rows.into_iter().next().and_then(|row| row.into_iter().next()?);
            value.and_then(|value| value.parse().ok()).ok_or_else(|| unexpected("not a whole number"))
        })
    }
    fn numbers(&self, query: &str) -> Result<Vec<Vec<i64>>, OltpError> {
        self.admin(query, |admin| {
            let number = |value: Option<String>| match value {
                None => Ok(0),
                Some(value) => value.parse().map_err(|_| unexpected("something else than whole numbers")),
            };
            let rows = admin.simple(query)?;
            rows.into_iter().map(|row| row.into_iter().map(number).collect()).collect()
        })
    }
    fn damage(&self) -> Result<Vec<String>, OltpError> {
        if self.number("SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'")? == 0 {
            return Ok(Vec::new());
        }
        // Not in the schema of the tables, which the next load drops.
        self.execute("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public")?;
        // The function reports damage by an error.
        let check = format!(
            "SELECT count(*) FROM (SELECT public.bt_index_check(oid, true) FROM pg_class
             WHERE relkind = 'i' AND relnamespace = '{}'::regnamespace) checked",
            schema::NAME
        );
        match self.number(&check) {
            Ok(0) => Ok(vec!["the database has no indexes".to_owned()]),
            Ok(_) => Ok(Vec::new()),
            Err(OltpError::Sql { message, .. }) => Ok(vec![message]),
            Err(error) => Err(error),
        }
    }
    fn execute(&self, statement: &str) -> Result<(), OltpError> {
        self.admin(statement, |admin| admin.simple(statement).map(drop))
    }
    fn counters(&self) -> Result<Vec<Counter>, OltpError> {
        self.admin("reading its counters", counters::read)
    }
}
