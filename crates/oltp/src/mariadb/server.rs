//! A server that is up: how it is reached, and what can be asked of it.
//!
//! Leaves out its process (`instance`), and what the parts of a load ask (`load`, `session`, `counters`).

use super::errors::sql;
use super::session::TpccSession;
use super::{counters, load, schema};
use crate::settings::Engine;
use crate::tpcc::Scale;
use crate::{Counter, Database, OltpError, Session};
use lowtide_core::Seed;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// The database that the tables are in, on servers of our own.
pub(super) const DATABASE: &str = "tpcc";

/// The most that crosses at once; known to both sides, so that nobody has to ask.
const PACKET: usize = 16 << 20;

/// What every session is told first, so that nothing hangs on how a server is set up: its sessions may quote otherwise, take
/// values that do not fit, or commit only when told to.
const SESSION: &str = "SET NAMES latin1 COLLATE latin1_bin, SESSION time_zone = '+00:00', \
                       SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', SESSION autocommit = 1";

/// A server that is up.
#[derive(Debug)]
pub(super) struct Server {
    opts: Opts,
    engine: Engine,
    version: String,
    /// For what is asked now and then.
    conn: Mutex<Conn>,
}

impl Server {
    /// Connects, and asks who it is.
    ///
    /// # Errors
    /// What the driver or the server says.
    pub(super) fn new(opts: OptsBuilder, engine: Engine) -> mysql::Result<Server> {
        let opts: Opts = opts.max_allowed_packet(Some(PACKET)).init(vec![SESSION]).into();
        let mut conn = Conn::new(opts.clone())?;
        let said: Option<String> = conn.query_first("SELECT VERSION()")?;
        let said = said.unwrap_or_default();
        let (number, rest) = said.split_once('-').unwrap_or((&said, ""));
        let name = if rest.contains("MariaDB") { "MariaDB" } else { "MySQL" };
        let version = format!("{name} {number}, {}", schema::storage(engine));
        Ok(Server { opts, engine, version, conn: Mutex::new(conn) })
    }
    /// The options of a server of our own: its socket, and nobody between.
    pub(super) fn private(socket: &Path, database: Option<&str>) -> OptsBuilder {
        OptsBuilder::new()
            .ip_or_hostname(None::<String>)
            .socket(Some(socket.to_string_lossy()))
            .user(Some("root"))
            .db_name(database)
            .prefer_socket(false)
    }
    /// A connection of its own.
    pub(super) fn open(&self) -> Result<Conn, OltpError> {
        Conn::new(self.opts.clone()).map_err(sql("connecting"))
    }
    pub(super) fn engine(&self) -> Engine {
        self.engine
    }
    /// Asks something on the connection that is kept for it; where that is gone, on a new one.
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

/// Connects to a server that runs already, as `mariadb://user:password@host:port/database`; `%2F` stands for the slashes
/// of a socket in place of the host. Neither the server nor its settings are lowtide's; tables are made with InnoDB.
///
/// # Errors
/// [`OltpError`] where the address cannot be read, or the server does not answer.
pub fn connect(url: &str) -> Result<Arc<dyn Database>, OltpError> {
    let opts = address(url)?;
    Ok(Arc::new(
        Server::new(opts, Engine::Mariadb)
            .map_err(sql(format!("connecting to {}", without_password(url))))?,
    ))
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

/// An address that can be shown.
fn without_password(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (user, place))) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{place}")
        }
        None => url.to_owned(),
    }
}

impl Database for Server {
    fn version(&self) -> &str {
        &self.version
    }
    fn session(&self) -> Result<Box<dyn Session>, OltpError> {
        Ok(Box::new(TpccSession::new(self.open()?, self.engine)?))
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
        ] {
            let error = address(url).map(|_| ()).expect_err(url).to_string();
            assert!(!error.contains("secret") && error.contains("accepted is"), "{error}");
        }
    }
}
