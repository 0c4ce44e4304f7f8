//! A running server: its connections and its queries.
//!
//! The module `instance` owns the server's process; `load`, `session` and `counters` hold the statements.

use super::errors::sql;
use super::session::TpccSession;
use super::{counters, load, schema};
use crate::network::Cut;
use crate::watchdog::{Registration, Watchdog};
use crate::{Counter, Database, OltpError, Session, network, without_password};
use lowtide_core::Seed;
use lowtide_engines::Engine;
use lowtide_engines::tpcc::{Scale, Table};
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};
use std::error::Error;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// The database that holds the tables on servers of our own.
pub(super) const DATABASE: &str = "tpcc";

/// Maximum packet size. Both sides are configured with it, so a new connection does not have to query it.
const PACKET: usize = 16 << 20;

/// The first statement of every session. It overrides the server's defaults for quoting, for values that do not fit,
/// and for autocommit.
const SESSION: &str = "SET NAMES latin1 COLLATE latin1_bin, SESSION time_zone = '+00:00', \
                       SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', SESSION autocommit = 1";

/// A running server.
pub(super) struct Server {
    opts: Opts,
    engine: Engine,
    version: String,
    /// Whether lowtide started the server, and may change its settings.
    own: bool,
    /// The connection for administration.
    conn: Mutex<WatchedConn>,
    watchdog: Watchdog,
}

/// A connection that is cut a while after an interrupt.
#[derive(Debug)]
pub(super) struct WatchedConn {
    conn: Conn,
    _registration: Option<Registration>,
}

impl Deref for WatchedConn {
    type Target = Conn;
    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for WatchedConn {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

impl std::fmt::Debug for Server {
    /// Omits the connection options, which contain the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("engine", &self.engine)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Connects, and reads the version. `own` tells whether lowtide started the server. `watchdog` cuts the
    /// connections after an interrupt.
    ///
    /// # Errors
    /// The error of the driver or the server.
    pub(super) fn new(
        opts: OptsBuilder,
        engine: Engine,
        own: bool,
        watchdog: Watchdog,
    ) -> mysql::Result<Server> {
        let opts: Opts = opts
            .max_allowed_packet(Some(PACKET))
            .init(vec![SESSION])
            .tcp_connect_timeout(Some(network::REACHED))
            .tcp_keepalive_time_ms(Some(network::SILENT.as_millis() as u32))
            .tcp_keepalive_probe_interval_secs(Some(network::AGAIN.as_secs() as u32))
            .tcp_keepalive_probe_count(Some(network::TIMES))
            .tcp_user_timeout_ms(Some(network::UNANSWERED.as_millis() as u32))
            .into();
        let mut conn = log_in(&opts, &watchdog)?;
        let said: Option<String> = conn.query_first("SELECT VERSION()")?;
        let said = said.unwrap_or_default();
        let (number, rest) = said.split_once('-').unwrap_or((&said, ""));
        let name = if rest.contains("MariaDB") { "MariaDB" } else { "MySQL" };
        let version = format!("{name} {number}, {}", schema::storage(engine));
        Ok(Server { opts, engine, version, own, conn: Mutex::new(conn), watchdog })
    }
    /// The connection options of a server of our own, which is reached by its socket.
    pub(super) fn private(socket: &Path, database: Option<&str>) -> OptsBuilder {
        OptsBuilder::new()
            .ip_or_hostname(None::<String>)
            .socket(Some(socket.to_string_lossy()))
            .user(Some("root"))
            .db_name(database)
            .prefer_socket(false)
    }
    /// Opens a new connection.
    pub(super) fn open(&self) -> Result<WatchedConn, OltpError> {
        log_in(&self.opts, &self.watchdog).map_err(sql("connecting"))
    }
    /// Returns whether lowtide started the server.
    pub(super) fn is_own(&self) -> bool {
        self.own
    }
    pub(super) fn engine(&self) -> Engine {
        self.engine
    }
    /// Runs `ask` on the connection for administration, and on a new connection if that one was lost.
    pub(super) fn with<R>(
        &self,
        what: &str,
        mut ask: impl FnMut(&mut Conn) -> mysql::Result<R>,
    ) -> Result<R, OltpError> {
        let mut conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        match ask(&mut conn) {
            Err(error) if error.is_connectivity_error() => {
                *conn = self.open()?;
                ask(&mut conn).map_err(sql(what))
            }
            other => other.map_err(sql(what)),
        }
    }
}

/// Returns whether the time limit for an answer has passed.
fn is_late(error: &mysql::Error) -> bool {
    let late = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    match error {
        mysql::Error::IoError(error) => late(error),
        mysql::Error::CodecError(error) => {
            error.source().and_then(|error| error.downcast_ref()).is_some_and(late)
        }
        _ => false,
    }
}

/// Opens a connection that is registered with the watchdog.
fn log_in(opts: &Opts, watchdog: &Watchdog) -> mysql::Result<WatchedConn> {
    let conn = log_in_in_time(opts)?;
    let _registration = watchdog.connection(Cut::by_number(conn.as_raw_fd()));
    Ok(WatchedConn { conn, _registration })
}

/// Opens a connection. Over TCP, gives up if the server does not complete the login in time.
fn log_in_in_time(opts: &Opts) -> mysql::Result<Conn> {
    if opts.get_socket().is_some() {
        return Conn::new(opts.clone());
    }
    let limited = OptsBuilder::from_opts(opts.clone()).read_timeout(Some(network::REACHED));
    let conn = Conn::new(limited).map_err(|error| match is_late(&error) {
        true => mysql::Error::IoError(network::late()),
        false => error,
    })?;
    match network::wait_without_end(conn.as_raw_fd()) {
        Ok(()) => Ok(conn),
        // The limit cannot be removed; the server answers, so a connection without a limit is safe.
        Err(_) => Conn::new(opts.clone()),
    }
}

/// Connects to a server of the user's: `mariadb://user:password@host:port/database`, or the path of a socket with
/// `%2F` for its slashes in place of the host. Its settings are not changed. The tables use InnoDB.
///
/// # Errors
/// [`OltpError`] if the address is invalid or the server does not answer. A while after `interrupt` is set the
/// connections are cut.
pub fn connect(url: &str, interrupt: &Arc<AtomicBool>) -> Result<Arc<dyn Database>, OltpError> {
    let server = Server::new(address(url)?, Engine::Mariadb, false, Watchdog::new(interrupt));
    Ok(Arc::new(server.map_err(sql(format!("connecting to {}", without_password(url))))?))
}

fn address(url: &str) -> Result<OptsBuilder, OltpError> {
    let wrong = |why: &str| {
        OltpError::Invalid(format!(
            "`{}`: {why}; accepted is mariadb://USER:PASSWORD@HOST:PORT/DATABASE, or with the path of a socket for HOST, \
             each / of it as %2F",
            without_password(url)
        ))
    };
    let rest = url.strip_prefix("mariadb://").or_else(|| url.strip_prefix("mysql://"));
    let rest = rest.ok_or_else(|| wrong("not the address of a server of MariaDB or MySQL"))?;
    let (_, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (host, database) = place.split_once('/').ok_or_else(|| wrong("names no database"))?;
    if database.is_empty() || host.is_empty() {
        return Err(wrong("names no host, or no database"));
    }
    let socket =
        host.to_ascii_lowercase().starts_with("%2f").then(|| host.replace("%2F", "/").replace("%2f", "/"));
    let plain = match &socket {
        Some(_) => rest.replacen(host, "localhost", 1),
        None => rest.to_owned(),
    };
    let opts = Opts::from_url(&format!("mysql://{plain}")).map_err(|error| wrong(&error.to_string()))?;
    Ok(OptsBuilder::from_opts(opts).socket(socket).prefer_socket(false))
}

impl Database for Server {
    fn version(&self) -> &str {
        &self.version
    }
    fn session(&self) -> Result<Box<dyn Session>, OltpError> {
        Ok(Box::new(TpccSession::new(self.open()?, self.engine)?))
    }
    fn most_sessions(&self) -> Result<Option<u32>, OltpError> {
        // One connection is kept for administration.
        let most = self.number("SELECT CAST(@@GLOBAL.max_connections AS SIGNED)")? - 1;
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
        let value: Option<Option<i64>> = self.with(query, |conn| {
            let row: Option<mysql::Row> = conn.query_first(query)?;
            Ok(row.map(|row| row.get_opt::<i64, _>(0).and_then(Result::ok)))
        })?;
        let none = |message: &str| OltpError::Sql { what: query.to_owned(), message: message.to_owned() };
        value.ok_or_else(|| none("there is no row"))?.ok_or_else(|| none("the answer is not a whole number"))
    }
    fn numbers(&self, query: &str) -> Result<Vec<Vec<i64>>, OltpError> {
        let rows: Vec<mysql::Row> = self.with(query, |conn| conn.query(query))?;
        let number = |row: &mysql::Row, column| match row.get_opt::<Option<i64>, _>(column) {
            Some(Ok(value)) => Ok(value.unwrap_or(0)),
            _ => Err(OltpError::Sql {
                what: query.to_owned(),
                message: "there is something else than whole numbers".to_owned(),
            }),
        };
        rows.iter().map(|row| (0..row.len()).map(|column| number(row, column)).collect()).collect()
    }
    fn damage(&self) -> Result<Vec<String>, OltpError> {
        let names = Table::ALL.map(Table::name).join(", ");
        let check = format!("CHECK TABLE {names} EXTENDED");
        let rows: Vec<(String, String, String, String)> = self.with(&check, |conn| conn.query(&check))?;
        let bad = rows.into_iter().filter(|(_, _, kind, text)| kind != "status" || text != "OK");
        Ok(bad.map(|(table, _, kind, text)| format!("{table}: {kind}: {text}")).collect())
    }
    fn execute(&self, statement: &str) -> Result<(), OltpError> {
        self.with(statement, |conn| conn.query_drop(statement))
    }
    fn counters(&self) -> Result<Vec<Counter>, OltpError> {
        self.with("reading counters", counters::read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_a_host_or_a_socket() {
        let opts: Opts = address("mariadb://me:se%40cret@db.example:3307/tpcc").expect("an address").into();
        assert_eq!((opts.get_tcp_port(), opts.get_db_name()), (3307, Some("tpcc")));
        assert_eq!((opts.get_user(), opts.get_pass()), (Some("me"), Some("se@cret")));
        assert_eq!(opts.get_ip_or_hostname(), "db.example");
        let opts: Opts = address("mysql://me@%2Frun%2Fmysqld.sock/tpcc").expect("an address").into();
        assert_eq!(opts.get_socket(), Some("/run/mysqld.sock"));
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said_without_its_password() {
        for url in [
            "postgres://a:secret@b/c",
            "mariadb://a:secret@b",
            "mariadb://a:secret@/c",
            "mysql://a:secret@b:x/c",
            "mysql://a@b/c?password=secret&nothing=1",
        ] {
            let error = address(url).map(|_| ()).expect_err(url).to_string();
            assert!(!error.contains("secret") && error.contains("accepted is"), "{error}");
        }
    }
}
