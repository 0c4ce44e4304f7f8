//! Starting and stopping lowtide's own databases, and connecting to external ones.
//!
//! The steps of each server are in its engine's module. Copies of loaded data are made in `snapshot`.

use crate::named::Named;
use crate::{Database, OltpError, without_password};
use lowtide_engines::{Engine, Settings};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Directories of an instance. They exist, and are empty before the first start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Data directory, on the target.
    pub data: PathBuf,
    /// Directory of the redo log or WAL, if it is not in the data directory.
    pub log: Option<PathBuf>,
    /// Directory of sockets, configuration and server log: a short path, not on the target.
    pub run: PathBuf,
}

/// A running database. Dropping it ends the server without a clean shutdown. A server never outlives lowtide.
pub trait Instance: Send {
    /// Interface for queries and sessions.
    fn database(&self) -> Arc<dyn Database>;
    /// Process number of the server; `None` if the database runs within lowtide.
    fn process(&self) -> Option<u32>;
    /// Current settings, by their names in the engine.
    fn settings(&self) -> &[(String, String)];
    /// Requested settings that the engine does not support, one line each with the reason.
    fn ignored(&self) -> &[String];
    /// Checks that the server still runs.
    ///
    /// # Errors
    /// [`OltpError::Server`], with the most informative line of its log, if the server has ended.
    fn check(&mut self) -> Result<(), OltpError>;
    /// The first line that the server marked as an error since it came up, and the path of its log. The server
    /// may still run.
    fn complaint(&self) -> Option<(String, PathBuf)> {
        None
    }
    /// Shuts the database down cleanly, with all data in its files.
    ///
    /// # Errors
    /// [`OltpError`] if the database does not stop.
    fn stop(self: Box<Self>) -> Result<(), OltpError>;
}

/// Number of checks of the servers after a failure, and the pause between them. A failure may be noticed
/// shortly before the server's process has ended.
const LOOKS: u32 = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Returns the cause of a failure on these instances. The end of a server, or an error in its log, explains
/// more than the error `seen` by the client.
pub fn why(instances: &mut [Box<dyn Instance>], seen: OltpError) -> OltpError {
    let plain = matches!(seen, OltpError::Interrupted | OltpError::Invalid(_) | OltpError::Server { .. });
    let servers = || instances.iter().any(|instance| instance.process().is_some());
    if plain || !servers() {
        return seen;
    }
    for _ in 0..LOOKS {
        if let Some(ended) = instances.iter_mut().find_map(|instance| instance.check().err()) {
            return ended;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    match instances.iter().find_map(|instance| instance.complaint()) {
        Some((line, log)) => OltpError::Told { seen: Box::new(seen), line, log },
        None => seen,
    }
}

/// Starts one of lowtide's own databases; an empty directory is initialised first. A server that does not
/// answer is killed some seconds after `interrupt` is set.
///
/// # Errors
/// [`OltpError`] if its programs are missing or it does not start. In the second case the error quotes the
/// server's log.
pub fn start(
    settings: &Settings,
    places: &Places,
    interrupt: &Arc<AtomicBool>,
) -> Result<Box<dyn Instance>, OltpError> {
    match settings.engine {
        Engine::Sqlite => crate::sqlite::start(places, settings),
        Engine::Postgresql => crate::postgres::start(settings, places, interrupt),
        Engine::Mariadb | Engine::MariadbAria | Engine::MariadbMyisam => {
            crate::mariadb::start(settings, places, interrupt)
        }
        Engine::InnodbModel | Engine::MyisamModel => {
            let name = settings.engine.name();
            Err(OltpError::Invalid(format!("{name} is a model in virtual time: there is nothing to start")))
        }
    }
}

/// Connects to an external server: `mariadb://user:password@host/database`, `postgresql://…`. Its settings are
/// not changed. Errors name its address without the password. Connections are cut some seconds after
/// `interrupt` is set.
///
/// # Errors
/// [`OltpError`] if the address is invalid or the server does not answer.
pub fn connect(address: &str, interrupt: &Arc<AtomicBool>) -> Result<Arc<dyn Database>, OltpError> {
    let database = match address.split_once("://") {
        Some(("mariadb" | "mysql", _)) => crate::mariadb::connect(address, interrupt)?,
        Some(("postgresql" | "postgres", _)) => crate::postgres::connect(address, interrupt)?,
        _ => {
            return Err(OltpError::Invalid(format!(
                "`{}` is not the address of a server: it begins with mariadb:// or postgresql://",
                without_password(address)
            )));
        }
    };
    Ok(Arc::new(Named::new(database, address)))
}
