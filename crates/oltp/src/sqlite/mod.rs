//! SQLite, which runs within lowtide: one file, nothing to install.
//!
//! ```text
//!   terminals ─► Session ─┬─ New-Order, Payment, Delivery ──► the writer: one shared connection
//!                         └─ Order-Status, Stock-Level ─────► the session's own read connection
//! ```
//!
//! SQLite has one writer at a time, and a connection drops its cached pages after another connection has written. So
//! one connection writes for all sessions in the order of their requests: its cache stays valid, and no session gets
//! `SQLITE_BUSY`. The settings, including the buffer pool, apply to that connection.

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

/// Opens the database in `places.data`, and creates it if there is none.
///
/// # Errors
/// [`OltpError`] if SQLite does not know a setting or the file cannot be used.
pub fn start(places: &Places, settings: &Settings) -> Result<Box<dyn Instance>, OltpError> {
    let database = Sqlite::open(&places.data.join(NAME), None, settings)?;
    running(database, pragmas::ignored(Some(places), settings))
}

/// Opens the database in the registered SQLite VFS named `vfs`, and creates it if there is none. One connection
/// serves all sessions and has the file to itself. After a load, only [`Instance::stop`] syncs the file.
///
/// # Errors
/// [`OltpError`] if SQLite does not know a setting or the file cannot be used.
pub fn start_in(vfs: &str, settings: &Settings) -> Result<Box<dyn Instance>, OltpError> {
    let database = Sqlite::open(Path::new(NAME), Some(vfs), settings)?;
    running(database, pragmas::ignored(None, settings))
}

/// Opens the database in `places.data` as [`start_in`] does: with one connection and without shared memory, which
/// would be a memory-mapped file next to the database.
///
/// # Errors
/// [`OltpError`] if SQLite does not know a setting or the file cannot be used.
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
