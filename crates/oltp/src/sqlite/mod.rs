//! SQLite, within lowtide: nothing to install, and one file.
//!
//! ```text
//!   terminals ─► Session ─┬─ New-Order, Payment, Delivery ──► the writer: one connection, in turns, its cache the buffer pool
//!                         └─ Order-Status, Stock-Level ─────► a connection of the session that reads
//! ```
//!
//! SQLite lets one connection write at a time, and a connection forgets its cached pages when another has written. So one
//! connection writes for all sessions, in the order in which they ask: its cache stays, and nobody is turned away busy.
//! Settings are those of that connection. Not here: other ways to share a file.

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

/// The file's name.
const NAME: &str = "tpcc.db";

/// Opens the database in `places.data`, making it where there is none.
///
/// # Errors
/// [`OltpError`] where a setting is none of SQLite's, or the file cannot be used.
pub fn start(places: &Places, settings: &Settings) -> Result<Box<dyn Instance>, OltpError> {
    let database = Sqlite::open(&places.data.join(NAME), None, settings)?;
    running(database, pragmas::ignored(Some(places), settings))
}

/// Opens the database of a filesystem of SQLite that was registered under the name `vfs`, making it where there is none.
/// One connection has it to itself, and serves all sessions; nothing is synced after a load but by [`Instance::stop`].
///
/// # Errors
/// [`OltpError`] where a setting is none of SQLite's, or the file cannot be used.
pub fn start_in(vfs: &str, settings: &Settings) -> Result<Box<dyn Instance>, OltpError> {
    let database = Sqlite::open(Path::new(NAME), Some(vfs), settings)?;
    running(database, pragmas::ignored(None, settings))
}

/// Opens the database in `places.data` as [`start_in`] does: one connection, without shared memory, which would be a file that is
/// mapped beside it.
///
/// # Errors
/// [`OltpError`] where a setting is none of SQLite's, or the file cannot be used.
pub fn start_alone(places: &Places, settings: &Settings) -> Result<Box<dyn Instance>, OltpError> {
    let database = Sqlite::open(&places.data.join(NAME), Some("unix"), settings)?;
    running(database, pragmas::ignored(Some(places), settings))
}

fn running(database: Sqlite, ignored: Vec<String>) -> Result<Box<dyn Instance>, OltpError> {
    let settings = database.settings()?;
    Ok(Box::new(Running { database: Arc::new(database), settings, ignored }))
}

/// A database that is open.
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
