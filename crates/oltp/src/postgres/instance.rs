//! Lowtide's own PostgreSQL server: making its cluster, starting it, watching it and stopping it.
//!
//! Only users who can enter the directory of its socket can connect. The cluster has the locale C, so text is
//! compared byte by byte. An existing cluster is started as it is; after a crash the server first recovers it.
//!
//! The settings are in `parameters`.

use super::Postgres;
use super::address::{Address, PORT, socket};
use super::parameters::Parameters;
use super::programs;
use super::schema::BY_SIZE;
use super::shared_memory;
use crate::server::{POLL, Process, User, how_it_ended, io_error, keep_private};
use crate::watchdog::Watchdog;
use crate::{Database, Instance, OltpError, Places};
use lowtide_engines::Settings;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Superuser of a new cluster.
pub(super) const USER: &str = "lowtide";

/// Users that may run the server if lowtide is root.
const OWNERS: [&str; 1] = ["postgres"];

/// Maximum length of a unix socket's path in bytes.
const LONGEST_SOCKET: usize = 107;

/// Time limit for starting and stopping. Crash recovery of a large WAL takes long on a slow drive, and so does
/// writing all dirty pages at shutdown.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Time limit of an immediate shutdown.
const AT_ONCE: Duration = Duration::from_secs(8);

/// Beginnings of the most informative log lines while the server starts.
const MARKS: [&str; 3] = ["initdb: error:", "PANIC:", "FATAL:"];

/// The same after the start, when `FATAL:` may concern only one session.
const MARKS_LATER: [&str; 3] = ["PANIC:", "was terminated by signal", "No space left on device"];

/// A server started by lowtide.
pub(super) struct Server {
    process: Process,
    /// Dropped after the process, so that it can remove the shared memory of a killed server.
    _memory: shared_memory::Noted,
    database: Arc<Postgres>,
    settings: Vec<(String, String)>,
    ignored: Vec<String>,
}

/// Starts the server on the cluster in `places`, and makes the cluster if it does not exist.
///
/// # Errors
/// [`OltpError`] if PostgreSQL is not installed, a setting is invalid, a directory cannot be used, or the
/// server does not start. In the last case the error quotes the server's log.
pub(super) fn start(
    settings: &Settings,
    places: &Places,
    interrupt: &Arc<AtomicBool>,
) -> Result<Server, OltpError> {
    let programs = programs::find(settings)?;
    let known = programs::parameters(&programs)?;
    let tablespaces = match settings.data_files {
        Some(0) => {
            return Err(OltpError::Invalid("data_files = 0: tables need at least one tablespace".to_owned()));
        }
        Some(count) if count as usize > BY_SIZE.len() => {
            let why =
                format!("data_files = {count}: there are {0} tables to spread, so 1 to {0}", BY_SIZE.len());
            return Err(OltpError::Invalid(why));
        }
        count => count.unwrap_or(0),
    };
    let places = &absolute(places)?;
    let parameters = Parameters::new(settings, &known, &places.run)?;
    check_socket(&places.run)?;
    let user = User::of_server(&OWNERS)?;
    keep_private(
        user.as_ref(),
        [Some(&places.data), places.log.as_ref(), Some(&places.run)].into_iter().flatten(),
    )?;
    let watchdog = Watchdog::new(interrupt);
    let launch = Launch { programs, user, run: places.run.clone(), watchdog };
    if !places.data.join("PG_VERSION").exists() {
        make(&launch, places)?;
    }
    link_log(places)?;
    let mut arguments = vec!["-D".to_owned(), shown(&places.data)?];
    for (name, value) in &parameters.set {
        arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
    }
    let mut process = launch.start("postgres", &arguments)?;
    until_ready(&mut process, &places.data)?;
    let _memory = shared_memory::note(&places.run, &places.data, process.id())?;
    process.is_up();
    let database =
        Arc::new(Postgres::open(Address::local(&places.run), tablespaces, launch.watchdog.clone())?);
    if tablespaces > 0 {
        database.check_tablespaces()?;
    }
    let settings = database.running_settings()?;
    Ok(Server { process, _memory, database, settings, ignored: parameters.ignored })
}

/// Parameters for starting PostgreSQL's programs.
struct Launch {
    programs: PathBuf,
    user: Option<User>,
    run: PathBuf,
    watchdog: Watchdog,
}

impl Launch {
    fn start(&self, program: &str, arguments: &[String]) -> Result<Process, OltpError> {
        let log = self.run.join("postgres.log");
        let (program, user) = (self.programs.join(program), self.user.as_ref());
        Process::start(&program, arguments, user, &self.run, &log, &self.watchdog)
    }
}

/// Makes the cluster and syncs its files to the device.
fn make(launch: &Launch, places: &Places) -> Result<(), OltpError> {
    let mut arguments = vec![
        "--no-sync".to_owned(),
        "--no-instructions".to_owned(),
        "--encoding=UTF8".to_owned(),
        "--no-locale".to_owned(),
        "--auth-local=trust".to_owned(),
        "--auth-host=reject".to_owned(),
        format!("--username={USER}"),
        format!("--pgdata={}", shown(&places.data)?),
    ];
    if let Some(log) = &places.log {
        arguments.push(format!("--waldir={}", shown(log)?));
    }
    let mut process = launch.start("initdb", &arguments)?;
    let status = process.wait(PATIENCE, &AtomicBool::new(false))?;
    let status = status.ok_or_else(|| process.error("did not end within an hour", &MARKS))?;
    if !status.success() {
        return Err(process.error(&how_it_ended(status), &MARKS));
    }
    for directory in [Some(&places.data), places.log.as_ref()].into_iter().flatten() {
        let failed = |source| io_error(directory, source);
        let file = std::fs::File::open(directory).map_err(failed)?;
        rustix::fs::syncfs(&file).map_err(|error| failed(error.into()))?;
    }
    Ok(())
}

/// Waits until `postmaster.pid` shows that the server accepts sessions.
fn until_ready(process: &mut Process, data: &Path) -> Result<(), OltpError> {
    let begin = Instant::now();
    let file = data.join("postmaster.pid");
    let own = process.id().to_string();
    loop {
        if process.ended()?.is_some() {
            return Err(process.error("did not start", &MARKS));
        }
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let mut lines = text.lines().map(str::trim);
        // The first line is the process number and the eighth the state. A file of an earlier run has another
        // number.
        if lines.next() == Some(&own) && lines.nth(6) == Some("ready") {
            return Ok(());
        }
        if begin.elapsed() > PATIENCE {
            return Err(process.error("was not ready within an hour", &MARKS));
        }
        std::thread::sleep(POLL);
    }
}

/// Absolute paths, because the server runs in another directory.
fn absolute(places: &Places) -> Result<Places, OltpError> {
    let whole = |path: &PathBuf| path.canonicalize().map_err(|source| io_error(path, source));
    Ok(Places {
        data: whole(&places.data)?,
        log: places.log.as_ref().map(whole).transpose()?,
        run: whole(&places.run)?,
    })
}

/// Points the cluster's WAL link to `places.log`. The link of a copied cluster still leads to the WAL of the
/// original.
fn link_log(places: &Places) -> Result<(), OltpError> {
    let link = places.data.join("pg_wal");
    let (data, there) = (places.data.display(), std::fs::read_link(&link).ok());
    match (&places.log, there) {
        (None, None) => Ok(()),
        (Some(log), Some(there)) if *log == there => Ok(()),
        (Some(log), Some(_)) => std::fs::remove_file(&link)
            .and_then(|()| std::os::unix::fs::symlink(log, &link))
            .map_err(|source| io_error(&link, source)),
        (Some(log), None) => Err(OltpError::Invalid(format!(
            "the cluster in {data} has its log within, and not in {}, where it was looked for",
            log.display()
        ))),
        (None, Some(there)) => Err(OltpError::Invalid(format!(
            "the cluster in {data} has its log in {}, and no place was named for it",
            there.display()
        ))),
    }
}

fn check_socket(run: &Path) -> Result<(), OltpError> {
    let path: PathBuf = socket(run, PORT);
    let length = path.as_os_str().len();
    if length > LONGEST_SOCKET {
        return Err(OltpError::Invalid(format!(
            "{}: the path of a socket has at most {LONGEST_SOCKET} bytes, and this has {length}; choose a shorter directory",
            path.display()
        )));
    }
    Ok(())
}

fn shown(path: &Path) -> Result<String, OltpError> {
    let shown = path.to_str().map(str::to_owned);
    shown.ok_or_else(|| OltpError::Invalid(format!("{}: the path is not UTF-8", path.display())))
}

impl Instance for Server {
    fn database(&self) -> Arc<dyn Database> {
        Arc::clone(&self.database) as Arc<dyn Database>
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
        self.process.check(&MARKS_LATER)
    }
    fn complaint(&self) -> Option<(String, PathBuf)> {
        self.process.complaint(&MARKS_LATER)
    }
    fn stop(mut self: Box<Self>) -> Result<(), OltpError> {
        self.check()?;
        self.database.close();
        // Fast shutdown: the server ends its sessions and makes a checkpoint.
        self.process.end(Signal::INT, PATIENCE, "did not stop within an hour", &MARKS_LATER)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Immediate shutdown: the server ends its children. If it were killed, they would notice its death only
        // later.
        self.process.ask(Signal::QUIT);
        let _ = self.process.wait(AT_ONCE, &AtomicBool::new(false));
    }
}
