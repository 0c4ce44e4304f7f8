//! SQLite within lowtide: one file, and no server to install.
//!
//! ```text
//!   terminals ─► Session ─┬─ New-Order, Payment, Delivery ──► the writer: one connection; its cache is the buffer pool
//!                         └─ Order-Status, Stock-Level ─────► the session's own connection for reading
//! ```
//!
//! SQLite allows one writing connection at a time, and a write invalidates the page caches of other
//! connections. One connection therefore writes for all sessions, in the order of their requests. It keeps its
//! cache, and no session gets a busy error. The settings apply to this connection.

mod database;
mod error;
mod load;
mod pragmas;
mod session;
mod transactions;

use lowtide_engines::Settings;

use crate::{Database, Instance, OltpError, Places};
use database::Sqlite;
use std::path::Path;
use std::sync::Arc;

/// Name of the database file.
const NAME: &str = "tpcc.db";

/// Opens the database in `places.data`, or makes it.
///
/// # Errors
/// [`OltpError`] if SQLite does not have a setting, or if the file cannot be used.
pub fn start(places: &Places, settings: &Settings) -> Result<Box<dyn Instance>, OltpError> {
    let database = Sqlite::open(&places.data.join(NAME), None, settings)?;
    running(database, pragmas::ignored(Some(places), settings))
}

/// Opens or makes the database on the SQLite VFS registered as `vfs`. A single connection holds the file and
/// serves all sessions. A load does not sync the file; only [`Instance::stop`] does.
///
/// # Errors
/// [`OltpError`] if SQLite does not have a setting, or if the file cannot be used.
pub fn start_in(vfs: &str, settings: &Settings) -> Result<Box<dyn Instance>, OltpError> {
    let database = Sqlite::open(Path::new(NAME), Some(vfs), settings)?;
    running(database, pragmas::ignored(None, settings))
}

/// Opens the database in `places.data` with a single connection, as [`start_in`] does. It needs no shared
/// memory, which SQLite would keep in a mapped file next to the database.
///
/// # Errors
/// [`OltpError`] if SQLite does not have a setting, or if the file cannot be used.
pub fn start_alone(places: &Places, settings: &Settings) -> Result<Box<dyn Instance>, OltpError> {
    let database = Sqlite::open(&places.data.join(NAME), Some("unix"), settings)?;
    running(database, pragmas::ignored(Some(places), settings))
}

fn running(database: Sqlite, ignored: Vec<String>) -> Result<Box<dyn Instance>, OltpError> {
    let settings = database.settings()?;
    Ok(Box::new(Running { database: Arc::new(database), settings, ignored }))
}

/// An open database.
struct Running {
    database: Arc<Sqlite>,
    settings: Vec<(String, String)>,
    ignored: Vec<String>,
}

impl Instance for Running {
    fn database(&self) -> Arc<dyn Database> {
        self.database.clone()
    }
    fn process(&self) -> Option<u32> {
        None
    }
    fn settings(&self) -> &[(String, String)] {
        &self.settings
    }
    fn ignored(&self) -> &[String] {
        &self.ignored
    }
    fn check(&mut self) -> Result<(), OltpError> {
        Ok(())
    }
    fn stop(self: Box<Self>) -> Result<(), OltpError> {
        self.database.close()
    }
}
