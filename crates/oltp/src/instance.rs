//! A database of our own: made in a directory, started, stopped.
//!
//! Not here: what each server needs for that (its engine's module), and copies of loaded data (`snapshot`).

use crate::named::Named;
use crate::{Database, OltpError, without_password};
use lowtide_engines::{Engine, Settings};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

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
    /// What its log has marked as an error since it was up, and which log that is: a server may complain and live on.
    fn complaint(&self) -> Option<(String, PathBuf)> {
        None
    }
    /// Ends it in order: everything is in its files.
    ///
    /// # Errors
    /// [`OltpError`] where it does not end.
    fn stop(self: Box<Self>) -> Result<(), OltpError>;
}

/// How often servers are looked at after something failed, and how long to wait between: it may be seen before a server has
/// quite ended.
const LOOKS: u32 = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Why something failed on these instances: that a server ended by itself, or what its log says, tells more than what was
/// `seen` from outside.
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

/// Starts a database of our own, made anew where its directory is empty. A while after `interrupt` is set a server that does
/// not answer is killed.
///
/// # Errors
/// [`OltpError`] where its programs are missing, or it does not start: then with the line of its log that says why.
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

/// Connects to a server that somebody else runs: `mariadb://user:password@host/database`, `postgresql://…`. Its settings
/// stay as they are; what fails there names its address, without the password. A while after `interrupt` is set connections
/// are cut.
///
/// # Errors
/// [`OltpError`] where the address is not one, or nobody answers there.
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
