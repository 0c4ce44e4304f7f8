//! A database of our own: created in a directory, started, stopped.
//!
//! The modules of the engines hold the steps for each server; the module `snapshot` copies loaded data.

use crate::named::Named;
use crate::{Database, OltpError, without_password};
use lowtide_engines::{Engine, Settings};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The directories of an instance. They exist, and are empty before the first start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The data directory, on the target.
    pub data: PathBuf,
    /// The directory of the redo log or WAL, if separate from the data.
    pub log: Option<PathBuf>,
    /// Directory for sockets, the configuration and the server's log: a short path that is not on the target.
    pub run: PathBuf,
}

/// A running database. Dropping it kills the server; the server also ends when lowtide ends.
pub trait Instance: Send {
    /// The interface to the database.
    fn database(&self) -> Arc<dyn Database>;
    /// The server's process id; `None` if the database runs within lowtide.
    fn process(&self) -> Option<u32>;
    /// The settings in effect, under the server's names.
    fn settings(&self) -> &[(String, String)];
    /// The requested settings that the engine does not support, one line each.
    fn ignored(&self) -> &[String];
    /// Checks that the database still runs.
    ///
    /// # Errors
    /// [`OltpError::Server`] if it ended by itself, with the line of its log that tells the reason.
    fn check(&mut self) -> Result<(), OltpError>;
    /// The first error logged since the server came up, and the path of the log. A server may log an error and keep
    /// running.
    fn complaint(&self) -> Option<(String, PathBuf)> {
        None
    }
    /// Shuts the database down after it has written everything to its files.
    ///
    /// # Errors
    /// [`OltpError`] if it does not end.
    fn stop(self: Box<Self>) -> Result<(), OltpError>;
}

/// Checks of the servers after a failure, and the pause between them: a client may see a failure before the server
/// has ended.
const LOOKS: u32 = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Returns the most informative error for a failure on these instances. The end of a server, or a line of its log,
/// tells more than `seen`, the error on the client's side.
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

/// Starts a database of our own, and creates it if its directory is empty. A server that does not answer is killed a
/// while after `interrupt` is set.
///
/// # Errors
/// [`OltpError`] if programs are missing or the database does not start, with the line of its log that tells the
/// reason.
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

/// Connects to a server of the user's: `mariadb://user:password@host/database`, `postgresql://…`. Its settings are
/// not changed. Errors name the address without the password. A while after `interrupt` is set the connections are
/// cut.
///
/// # Errors
/// [`OltpError`] if the address is invalid or no server answers there.
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
