//! The process of a server of our own: finds the program, starts it under its own user, watches it and ends it.
//!
//! A server never outlives lowtide. `setpriv` of util-linux drops root and asks the kernel to kill the server when
//! the thread that started it ends. So a dedicated thread starts the server, and lives as long as the [`Process`].
//! The module of each engine chooses the options and checks that the server is up.

use crate::OltpError;
use crate::watchdog::{Registration, Server, Watchdog};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval at which a process is checked for its end.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Maximum bytes of a log that are searched for its most informative line.
const LOG_READ: u64 = 4 << 20;

/// Folders, besides those of `PATH`, in which packages install servers.
const FOLDERS: [&str; 5] = ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/sbin", "/usr/local/bin"];

/// Finds the first of `names` in `programs`, or else in `PATH` and [`FOLDERS`]. `hint` tells how to install it.
///
/// # Errors
/// [`OltpError::Missing`] if there is none.
pub(crate) fn find(programs: Option<&Path>, names: &[&str], hint: &str) -> Result<PathBuf, OltpError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = match programs {
        Some(folder) => vec![folder.to_owned()],
        None => std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from)).collect(),
    };
    let all = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = all.into_iter().find(|path| {
        fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0)
    });
    found.ok_or_else(|| OltpError::Missing {
        program: names.join("` or `"),
        hint: match programs {
            Some(folder) => format!("it is not in {}", folder.display()),
            None => hint.to_owned(),
        },
    })
}

/// The user that a server runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    name: String,
    uid: u32,
    gid: u32,
}

impl User {
    /// If lowtide is root, the first of `names` that this machine has, or else `nobody`: servers refuse to run as
    /// root. `None` if lowtide is not root: the server then runs as the same user.
    ///
    /// # Errors
    /// [`OltpError`] if the machine has none of these users.
    pub(crate) fn of_server(names: &[&str]) -> Result<Option<User>, OltpError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let path = Path::new("/etc/passwd");
        let users = fs::read_to_string(path).map_err(|source| io_error(path, source))?;
        let found = names.iter().chain(&["nobody"]).find_map(|name| User::in_list(&users, name));
        let none = || {
            format!(
                "a server may not run as root, and there is neither a user `{}` nor `nobody`",
                names.join("`, `")
            )
        };
        found.map(Some).ok_or_else(|| OltpError::Invalid(none()))
    }
    /// Finds the user `name` in `/etc/passwd`, whose lines are `name:password:uid:gid:…`.
    fn in_list(users: &str, name: &str) -> Option<User> {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(str::parse);
        match (numbers.next()?, numbers.next()?) {
            (Ok(uid), Ok(gid)) => Some(User { name: name.to_owned(), uid, gid }),
            _ => None,
        }
    }
    /// Changes the owner of a directory to this user.
    ///
    /// # Errors
    /// [`OltpError`] if the owner cannot be changed or the user cannot reach the directory.
    pub(crate) fn give(&self, directory: &Path) -> Result<(), OltpError> {
        let (uid, gid) = (rustix::fs::Uid::from_raw(self.uid), rustix::fs::Gid::from_raw(self.gid));
        rustix::fs::chown(directory, Some(uid), Some(gid))
            .map_err(|error| io_error(directory, error.into()))?;
        self.reaches(directory)
    }
    /// Checks that the user can reach the directory.
    fn reaches(&self, directory: &Path) -> Result<(), OltpError> {
        let directory = directory.canonicalize().map_err(|source| io_error(directory, source))?;
        for folder in directory.ancestors() {
            let metadata = fs::metadata(folder).map_err(|source| io_error(folder, source))?;
            let bit = match (metadata.uid() == self.uid, metadata.gid() == self.gid) {
                (true, _) => 0o100,
                (_, true) => 0o010,
                _ => 0o001,
            };
            if metadata.mode() & bit == 0 {
                return Err(OltpError::Invalid(format!(
                    "{} is closed to the user `{}`, as whom the server runs: `chmod o+x {0}`, or choose another place than {}",
                    folder.display(),
                    self.name,
                    directory.display(),
                )));
            }
        }
        Ok(())
    }
}

/// Gives directories to `user`, if any, and closes them to everybody else: a server of our own requires no
/// password of users who can reach its socket.
///
/// # Errors
/// [`OltpError`] if a directory cannot be given away or closed, or the user cannot reach it.
pub(crate) fn keep_private<'a>(
    user: Option<&User>,
    directories: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), OltpError> {
    for directory in directories {
        if let Some(user) = user {
            user.give(directory)?;
        }
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(directory, closed).map_err(|source| io_error(directory, source))?;
    }
    Ok(())
}

/// A process that ends with lowtide; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Process {
    /// Name of the program, for errors.
    name: String,
    child: Child,
    log: PathBuf,
    /// Length of the log at the start of the process; earlier lines are from another run.
    log_begin: u64,
    /// Length of the log when the server came up. Earlier warnings were harmless.
    log_up: u64,
    /// Kills the process a while after an interrupt.
    _registration: Registration,
    /// Dropping it ends the thread that started the child.
    _keep: mpsc::Sender<()>,
    _keeper: JoinHandle<()>,
}

impl Process {
    /// Starts `program` and appends its output to `log`. `watchdog` kills the process a while after an interrupt.
    ///
    /// # Errors
    /// [`OltpError`] if `program` or `setpriv` cannot be started.
    pub(crate) fn start(
        program: &Path,
        arguments: &[String],
        user: Option<&User>,
        folder: &Path,
        log: &Path,
        watchdog: &Watchdog,
    ) -> Result<Process, OltpError> {
        let setpriv = find(None, &["setpriv"], "it comes with the package `util-linux`")?;
        let output = OpenOptions::new().create(true).append(true).open(log);
        let output = output.map_err(|source| io_error(log, source))?;
        let log_begin = output.metadata().map_err(|source| io_error(log, source))?.len();
        if let Some(user) = user {
            let (uid, gid) = (rustix::fs::Uid::from_raw(user.uid), rustix::fs::Gid::from_raw(user.gid));
            rustix::fs::fchown(&output, Some(uid), Some(gid)).map_err(|error| io_error(log, error.into()))?;
        }
        let mut command = Command::new(setpriv);
        command.args(["--pdeathsig", "KILL"]);
        if let Some(user) = user {
            command
                .args([format!("--reuid={}", user.uid), format!("--regid={}", user.gid)])
                .arg("--clear-groups");
        }
        command.arg("--").arg(program).args(arguments).current_dir(folder);
        for (name, _) in std::env::vars_os().filter(|(name, _)| speaks_to_servers(name)) {
            command.env_remove(name);
        }
        // A process group of its own: Ctrl-C in the terminal reaches lowtide only, which then shuts the server down.
        command.process_group(0).stdin(Stdio::null());
        let copy = output.try_clone().map_err(|source| io_error(log, source))?;
        command.stdout(copy).stderr(output);
        let (child, _keep, _keeper) = spawn(command).map_err(|source| io_error(program, source))?;
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let _registration = watchdog.server(Server::of(child.id()));
        let (log, log_up) = (log.to_owned(), log_begin);
        Ok(Process { name, child, log, log_begin, log_up, _registration, _keep, _keeper })
    }
    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
    /// Marks the server as up: errors logged from now on explain later failures.
    pub(crate) fn is_up(&mut self) {
        self.log_up = fs::metadata(&self.log).map_or(self.log_begin, |log| log.len());
    }
    /// The first line with one of `marks` that was logged since the server came up, and the path of the log.
    pub(crate) fn complaint(&self, marks: &[&str]) -> Option<(String, PathBuf)> {
        let text = tail(&self.log, self.log_up).ok()?;
        Some((marked_line(&text, marks)?.to_owned(), self.log.clone()))
    }
    /// The exit status; `None` while the process runs.
    ///
    /// # Errors
    /// [`OltpError`] if the kernel cannot report the status.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, OltpError> {
        self.child.try_wait().map_err(|source| io_error(&self.log, source))
    }
    /// Sends `signal` to the process.
    pub(crate) fn ask(&mut self, signal: rustix::process::Signal) {
        // The kernel does not reuse a process id before the process is waited for.
        if let Ok(None) = self.child.try_wait() {
            let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal);
        }
    }
    /// Waits up to `limit` for the process to end; `None` if it still runs.
    ///
    /// # Errors
    /// [`OltpError`] if the kernel cannot report the status or `interrupt` is set.
    pub(crate) fn wait(
        &mut self,
        limit: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Option<ExitStatus>, OltpError> {
        let begin = Instant::now();
        loop {
            match self.ended()? {
                None if interrupt.load(Ordering::Relaxed) => return Err(OltpError::Interrupted),
                None if begin.elapsed() < limit => std::thread::sleep(POLL),
                ended => return Ok(ended),
            }
        }
    }
    /// Checks that the process still runs.
    ///
    /// # Errors
    /// [`OltpError::Server`] if it ended by itself.
    pub(crate) fn check(&mut self, marks: &[&str]) -> Result<(), OltpError> {
        match self.ended()? {
            Some(status) => Err(self.error(&how_it_ended(status), marks)),
            None => Ok(()),
        }
    }
    /// Asks the process to shut down and waits for its end. `late` is the error text if it still runs after `limit`.
    ///
    /// # Errors
    /// [`OltpError::Server`] if it ends with a failure or does not end.
    pub(crate) fn end(
        &mut self,
        signal: rustix::process::Signal,
        limit: Duration,
        late: &str,
        marks: &[&str],
    ) -> Result<(), OltpError> {
        self.ask(signal);
        match self.wait(limit, &AtomicBool::new(false))? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.error(&how_it_ended(status), marks)),
            None => Err(self.error(late, marks)),
        }
    }
    /// The error for a process that failed, with the most informative line of its log: the first with one of `marks`
    /// since the server came up, else the first such line before, else the last line.
    pub(crate) fn error(&self, what: &str, marks: &[&str]) -> OltpError {
        let since_begin = || telling_line(&tail(&self.log, self.log_begin).unwrap_or_default(), marks);
        OltpError::Server {
            server: self.name.clone(),
            what: what.to_owned(),
            line: self.complaint(marks).map_or_else(since_begin, |(line, _)| line),
            log: self.log.clone(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            Server::of(self.child.id()).kill();
        }
        let _ = self.child.wait();
    }
}

/// Returns whether an environment variable configures a server or its clients. Such variables are removed: a server
/// of ours takes its settings from its arguments and its own file only.
fn speaks_to_servers(name: &OsStr) -> bool {
    ["PG", "MYSQL", "MARIADB"].iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
}

/// Describes an exit status for an error message.
pub(crate) fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (_, Some(signal)) => format!("was killed by signal {signal}"),
        _ => "ended".to_owned(),
    }
}

/// Starts a child from a thread that lives until the sender is dropped: the kernel kills a child when the *thread*
/// that made it ends.
fn spawn(mut command: Command) -> io::Result<(Child, mpsc::Sender<()>, JoinHandle<()>)> {
    let (keep, until) = mpsc::channel::<()>();
    let (tell, hear) = mpsc::channel();
    let keeper = std::thread::Builder::new().name("server".to_owned()).spawn(move || {
        if tell.send(command.spawn()).is_ok() {
            let _ = until.recv();
        }
    })?;
    let child = hear.recv().map_err(io::Error::other)??;
    Ok((child, keep, keeper))
}

/// Reads a log from offset `begin`. Of a long log only the first [`LOG_READ`] bytes are read, because the first error
/// is near the beginning.
fn tail(log: &Path, begin: u64) -> io::Result<String> {
    let mut file = File::open(log)?;
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(LOG_READ).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first line with one of `marks`, from the mark on.
fn marked_line<'a>(log: &'a str, marks: &[&str]) -> Option<&'a str> {
    log.lines().find_map(|line| marks.iter().find_map(|mark| Some(line[line.find(mark)?..].trim_end())))
}

/// The first line with one of `marks`, from the mark on; if there is none, the last non-empty line.
fn telling_line(log: &str, marks: &[&str]) -> String {
    let last = || log.lines().rev().find(|line| !line.trim().is_empty());
    marked_line(log, marks)
        .or_else(last)
        .map_or_else(|| "its log says nothing".to_owned(), |line| line.trim().to_owned())
}

/// The error for a file or directory that could not be used.
pub(crate) fn io_error(path: &Path, source: io::Error) -> OltpError {
    OltpError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_first_error_of_a_log_says_more_than_the_last_line() {
        let log = "2026-01-01 0:00:00 0 [Note] Starting\n2026-01-01 0:00:00 0 [ERROR] unknown variable 'x=1'\n\
                   2026-01-01 0:00:00 0 [ERROR] Aborting\n\n";
        assert_eq!(telling_line(log, &["[ERROR]"]), "[ERROR] unknown variable 'x=1'");
        assert_eq!(telling_line(log, &["FATAL:"]), "2026-01-01 0:00:00 0 [ERROR] Aborting");
        assert_eq!(telling_line("", &["[ERROR]"]), "its log says nothing");
    }

    #[test]
    fn users_are_found_by_their_whole_name() {
        let users = "mysqlx:x:1:2::/:/bin/false\nmysql:x:104:113:MySQL:/nonexistent:/bin/false\nbad:x:a:b\n";
        assert_eq!(User::in_list(users, "mysql"), Some(User { name: "mysql".into(), uid: 104, gid: 113 }));
        assert_eq!(User::in_list(users, "bad"), None);
        assert_eq!(User::in_list(users, "nobody"), None);
    }

    #[test]
    fn a_process_ends_and_its_log_is_read_from_where_it_began() {
        let folder = tempfile::tempdir().expect("a directory");
        let log = folder.path().join("log");
        fs::write(&log, "ERROR of another run\n").expect("written");
        let arguments = ["-c".to_owned(), "echo ERROR of this run; exit 3".to_owned()];
        let (program, watchdog) = (Path::new("/bin/sh"), Watchdog::new(&Arc::default()));
        let start = Process::start(program, &arguments, None, folder.path(), &log, &watchdog);
        let mut process = start.expect("started");
        let status =
            process.wait(Duration::from_secs(60), &AtomicBool::new(false)).expect("waited").expect("ended");
        assert_eq!(how_it_ended(status), "ended with exit status 3");
        let error = process.error("did not start", &["ERROR"]).to_string();
        assert!(error.contains("sh did not start: ERROR of this run ("), "{error}");
    }

    #[test]
    fn a_process_that_is_dropped_is_killed() {
        let folder = tempfile::tempdir().expect("a directory");
        let log = folder.path().join("log");
        let (program, watchdog) = (Path::new("/bin/sleep"), Watchdog::new(&Arc::default()));
        let start = Process::start(program, &["600".to_owned()], None, folder.path(), &log, &watchdog);
        let mut process = start.expect("started");
        let id = process.id();
        assert_eq!(process.ended().expect("asked"), None);
        drop(process);
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }
}
