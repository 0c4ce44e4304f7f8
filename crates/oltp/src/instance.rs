//! A database of our own: made in a directory, started, stopped.
//!
//! Leaves out what each server needs for that (its engine's module), and copies of loaded data (`snapshot`).

use crate::{Database, Engine, OltpError, Settings};
use std::path::PathBuf;
use std::sync::Arc;

/// Where an instance lies. Directories exist and are empty before the first start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Its data, on the target.
    pub data: PathBuf,
    /// Its log of changes (redo, WAL), where that lies elsewhere than the data.
    pub log: Option<PathBuf>,
    /// Sockets, the configuration, the server's own log: a short path that is not on the target.
    pub run: PathBuf,
}

/// A database that runs. Dropping it ends it the hard way; a server also ends when lowtide does.
pub trait Instance: Send {
    /// What to ask.
    fn database(&self) -> Arc<dyn Database>;
    /// The server's process; `None` where the database is within lowtide.
    fn process(&self) -> Option<u32>;
    /// The settings it runs with, as it calls them.
    fn settings(&self) -> &[(String, String)];
    /// What was asked for and it has no word for, a line for each.
    fn ignored(&self) -> &[String];
    /// Whether it still runs.
    ///
    /// # Errors
    /// [`OltpError::Server`] where it ended by itself, with the line of its log that says why.
    fn check(&mut self) -> Result<(), OltpError>;
    /// Ends it in order: everything is in its files.
    ///
    /// # Errors
    /// [`OltpError`] where it does not end.
    fn stop(self: Box<Self>) -> Result<(), OltpError>;
}

/// Starts a database of our own, made anew where its directory is empty.
///
/// # Errors
/// [`OltpError`] where its programs are missing, or it does not start: then with the line of its log that says why.
pub fn start(settings: &Settings, places: &Places) -> Result<Box<dyn Instance>, OltpError> {
    match settings.engine {
        Engine::Sqlite => crate::sqlite::start(places, settings),
        Engine::Postgresql => crate::postgres::start(settings, places),
        Engine::Mariadb | Engine::MariadbAria | Engine::MariadbMyisam => {
            crate::mariadb::start(settings, places)
        }
    }
}

/// Connects to a server that somebody else runs: `mariadb://user:password@host/database`, `postgresql://…`. Its settings
/// stay as they are.
///
/// # Errors
/// [`OltpError`] where the address is not one, or nobody answers there.
pub fn connect(address: &str) -> Result<Arc<dyn Database>, OltpError> {
    match address.split_once("://") {
        Some(("mariadb" | "mysql", _)) => crate::mariadb::connect(address),
        Some(("postgresql" | "postgres", _)) => crate::postgres::connect(address),
        _ => Err(OltpError::Invalid(format!(
            "`{address}` is not the address of a server: it begins with mariadb:// or postgresql://"
        ))),
    }
}
