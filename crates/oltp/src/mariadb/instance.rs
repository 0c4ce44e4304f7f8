//! A server of our own: creates its data directory, starts and stops it.
//!
//! If lowtide is root, the server runs as the user `mysql`, or `nobody` if there is none. It listens only on a socket
//! in the run directory, which nobody else can enter, and reads only the configuration file that lowtide writes
//! there. A non-empty data directory (a copy of a loaded one) is started as it is. The module `options` translates
//! the settings.

use super::errors::{is_not_up, words};
use super::options::{Known, Options, base};
use super::server::{DATABASE, Server};
use crate::server::{POLL, Process, User, find, how_it_ended, io_error, keep_private};
use crate::watchdog::Watchdog;
use crate::{Database, Instance, OltpError, Places};
use lowtide_engines::Settings;
use mysql::Conn;
use mysql::prelude::Queryable;
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Marks of errors in the log.
const MARKS: [&str; 2] = ["[ERROR]", "ERROR:"];

/// Time limit for creating a data directory and for a start: crash recovery on a slow drive takes long.
const START: Duration = Duration::from_secs(1800);

/// Time limit for a shutdown, which writes all dirty pages.
const STOP: Duration = Duration::from_secs(1800);

/// A flag that is never set: an interrupted start or shutdown would leave an incomplete directory.
static NEVER: AtomicBool = AtomicBool::new(false);

/// A hint for the installation of a server.
const HINT: &str =
    "install the package `mariadb-server` or `mysql-server`, or name the folder of its programs";

/// Variables that are read back in addition to the options that were set.
const TELLING: [&str; 12] = [
    "version",
    "version_comment",
    "innodb_page_size",
    "innodb_buffer_pool_size",
    "innodb_flush_method",
    "innodb_doublewrite",
    "innodb_flush_neighbors",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_log_file_size",
    "innodb_use_native_aio",
    "performance_schema",
];

/// A server of our own.
struct MariaDb {
    process: Process,
    server: Arc<Server>,
    settings: Vec<(String, String)>,
    ignored: Vec<String>,
}

/// Creates the data directory if it is empty, and starts the server on it.
///
/// # Errors
/// [`OltpError::Missing`] if no server is installed; [`OltpError::Server`], with the first error of its log, if it
/// does not start; [`OltpError::Invalid`] for invalid settings.
pub fn start(
    settings: &Settings,
    places: &Places,
    interrupt: &Arc<AtomicBool>,
) -> Result<Box<dyn Instance>, OltpError> {
    let program = find(settings.programs.as_deref(), &["mariadbd", "mysqld"], HINT)?;
    let user = User::of_server(&["mysql"])?;
    // The driver takes paths as UTF-8 text.
    let absolute = |path: &Path| path.canonicalize().map_err(|source| io_error(path, source));
    let places = Places {
        data: absolute(&places.data)?,
        log: places.log.as_deref().map(absolute).transpose()?,
        run: absolute(&places.run)?,
    };
    keep_private(
        user.as_ref(),
        [Some(&places.data), places.log.as_ref(), Some(&places.run)].into_iter().flatten(),
    )?;
    let watchdog = Watchdog::new(interrupt);
    let maker = Maker { program: &program, user: user.as_ref(), places: &places, watchdog };
    let known = maker.known()?;
    let options = Options::new(settings, &places, &known)?;
    let file = places.run.join("my.cnf");
    fs::write(&file, options.file()).map_err(|source| io_error(&file, source))?;
    if !places.data.join("mysql").is_dir() {
        empty(&places.data)?;
        // The next start would take an incomplete directory for a complete one.
        maker.make_directory(settings, &known).inspect_err(|_| clear(&places.data))?;
    }
    let process = maker.process(&program, &[], &places.run.join("server.log"))?;
    maker.up(process, options, settings)
}

/// The directory in the root of a new ext filesystem.
const LOST_AND_FOUND: &str = "lost+found";

fn empty(directory: &Path) -> Result<(), OltpError> {
    let mut entries = fs::read_dir(directory).map_err(|source| io_error(directory, source))?;
    match entries.find(|entry| entry.as_ref().map_or(true, |it| it.file_name() != LOST_AND_FOUND)) {
        None => Ok(()),
        Some(Err(source)) => Err(io_error(directory, source)),
        Some(Ok(_)) => Err(OltpError::Invalid(format!(
            "{} is not empty, and holds no server of MariaDB: nothing is written there",
            directory.display()
        ))),
    }
}

fn clear(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.filter(|entry| entry.file_name() != LOST_AND_FOUND).map(|entry| entry.path()) {
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

/// The inputs shared by creating and starting a server.
struct Maker<'a> {
    program: &'a Path,
    user: Option<&'a User>,
    places: &'a Places,
    watchdog: Watchdog,
}

impl Maker<'_> {
    fn process(&self, program: &Path, arguments: &[&str], log: &Path) -> Result<Process, OltpError> {
        let file = format!("--defaults-file={}", self.places.run.join("my.cnf").display());
        let own = std::iter::once(file).filter(|_| !arguments.contains(&"--no-defaults"));
        let all: Vec<String> = own.chain(arguments.iter().map(|it| (*it).to_owned())).collect();
        Process::start(program, &all, self.user, &self.places.run, log, &self.watchdog)
    }
    /// Asks the program for its options.
    fn known(&self) -> Result<Known, OltpError> {
        let log = self.places.run.join("options.txt");
        let _ = fs::remove_file(&log);
        let mut process = self.process(self.program, &["--no-defaults", "--verbose", "--help"], &log)?;
        let ended = process.wait(START, &NEVER)?;
        let known = Known::from_help(&fs::read_to_string(&log).map_err(|source| io_error(&log, source))?);
        match ended {
            Some(_) if !known.is_empty() => Ok(known),
            _ => Err(process.error("did not say which options it has", &MARKS)),
        }
    }
    /// Initialises an empty data directory. The database user `root` has no password and can connect by the socket
    /// only.
    fn make_directory(&self, settings: &Settings, known: &Known) -> Result<(), OltpError> {
        let log = self.places.run.join("install.log");
        let mut process = if known.has("initialize_insecure") {
            self.process(self.program, &["--initialize-insecure"], &log)?
        } else {
            let names = ["mariadb-install-db", "mysql_install_db"];
            let beside = settings
                .programs
                .as_deref()
                .filter(|folder| names.iter().any(|name| folder.join(name).is_file()));
            let install = find(beside, &names, HINT)?;
            let says = fs::read_to_string(&install).map_err(|source| io_error(&install, source))?;
            // Versions of the script differ; options that it does not know reach the server, which then refuses to
            // start. `--force` also allows a machine whose host name has no address, which lowtide does not need.
            let method = "--auth-root-authentication-method=normal";
            let mut arguments =
                [method, "--skip-test-db", "--skip-name-resolve", "--force"].map(str::to_owned).to_vec();
            arguments.retain(|argument| says.contains(argument.as_str()));
            arguments.extend(base(settings).map(|base| format!("--basedir={}", base.display())));
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            self.process(&install, &arguments, &log)?
        };
        match process.wait(START, &NEVER)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => {
                let what = format!(
                    "could not make the directory {}: it {}",
                    self.places.data.display(),
                    how_it_ended(status)
                );
                Err(process.error(&what, &MARKS))
            }
            None => Err(process.error(&format!("made no directory within {} s", START.as_secs()), &MARKS)),
        }
    }
    /// Waits until the server answers.
    fn up(
        &self,
        mut process: Process,
        options: Options,
        settings: &Settings,
    ) -> Result<Box<dyn Instance>, OltpError> {
        let socket = self.places.run.join("socket");
        let begin = Instant::now();
        let mut conn = loop {
            if let Some(status) = process.ended()? {
                return Err(process.error(&format!("did not start: it {}", how_it_ended(status)), &MARKS));
            }
            match Conn::new(Server::private(&socket, None)) {
                Ok(conn) => break conn,
                Err(error) if !is_not_up(&error) => {
                    return Err(
                        process.error(&format!("does not let lowtide in ({})", words(&error)), &MARKS)
                    );
                }
                Err(_) if begin.elapsed() < START => std::thread::sleep(POLL),
                Err(error) => {
                    let what = format!("did not answer within {} s ({})", START.as_secs(), words(&error));
                    return Err(process.error(&what, &MARKS));
                }
            }
        };
        process.is_up();
        let ask = |error| super::errors::sql("preparing the server")(error);
        conn.query_drop(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}")).map_err(ask)?;
        let running: Vec<(String, String)> = conn.query("SHOW GLOBAL VARIABLES").map_err(ask)?;
        let opts = Server::private(&socket, Some(DATABASE));
        let server = Server::new(opts, settings.engine, true, self.watchdog.clone()).map_err(ask)?;
        Ok(Box::new(MariaDb {
            process,
            server: Arc::new(server),
            settings: read_back(&running, &options),
            ignored: options.ignored,
        }))
    }
}

/// The server's values of the options that were set and of [`TELLING`].
fn read_back(running: &[(String, String)], options: &Options) -> Vec<(String, String)> {
    let wanted = |name: &str| TELLING.contains(&name) || options.names().any(|set| set == name);
    running.iter().filter(|(name, _)| wanted(name)).cloned().collect()
}

impl Instance for MariaDb {
    fn database(&self) -> Arc<dyn Database> {
        Arc::clone(&self.server) as Arc<dyn Database>
    }
    fn process(&self) -> Option<u32> {
        Some(self.process.id())
    }
    fn settings(&self) -> &[(String, String)] {
        &self.settings
    }
    fn ignored(&self) -> &[String] {
        &self.ignored
    }
    fn check(&mut self) -> Result<(), OltpError> {
        self.process.check(&MARKS)
    }
    fn complaint(&self) -> Option<(String, PathBuf)> {
        self.process.complaint(&MARKS)
    }
    fn stop(mut self: Box<Self>) -> Result<(), OltpError> {
        self.check()?;
        let late = format!("did not end within {} s", STOP.as_secs());
        self.process.end(Signal::TERM, STOP, &late, &MARKS)
    }
}
