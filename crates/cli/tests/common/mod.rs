//! Helpers for the tests of the command: a temporary directory for each test, the command run inside it, and short
//! experiments on a simulated drive.

// Every test file is a separate program and uses a part of this module.
#![allow(dead_code, unused_imports, unused_macros)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Two independent cells on a small drive, too short for a steady state.
pub const TINY: &str = include_str!("../data/tiny.toml");

/// Reads, which settle at once.
pub const READS: &str = include_str!("../data/reads.toml");

/// A simulated block device of 512 MiB that answers in a tenth of a millisecond.
pub const VOLUME: &str = "name = \"volume\"\ntitle = \"A volume\"\n[volume]\ncapacity = \"512MiB\"\niops = 100_000\n\
                          throughput = \"1GiB\"\nio-size = \"256KiB\"\nlatency = \"100us\"\nlatency-spread = \"0us\"\n";

/// Arguments of the command: one string that is split at white space, or a list of words that may contain any.
pub trait Words {
    fn words(&self) -> Vec<&str>;
}

impl Words for str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Words for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

impl<W: AsRef<str>> Words for [W] {
    fn words(&self) -> Vec<&str> {
        self.iter().map(AsRef::as_ref).collect()
    }
}

impl<W: AsRef<str>, const N: usize> Words for [W; N] {
    fn words(&self) -> Vec<&str> {
        self.as_slice().words()
    }
}

impl<W: AsRef<str>> Words for Vec<W> {
    fn words(&self) -> Vec<&str> {
        self.as_slice().words()
    }
}

/// A temporary directory, in which the command runs.
pub struct Lab {
    directory: TempDir,
}

impl Lab {
    /// A directory that holds `tiny.toml` and `reads.toml`.
    pub fn new() -> Lab {
        Lab::with(&[])
    }

    /// A directory that also holds these files.
    pub fn with(files: &[(&str, &str)]) -> Lab {
        let lab = Lab { directory: tempfile::tempdir().expect("a temporary directory can be made") };
        for (name, text) in [("tiny.toml", TINY), ("reads.toml", READS)].iter().chain(files) {
            lab.write(name, text);
        }
        lab
    }

    /// A path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A path in the directory, as an argument.
    pub fn argument(&self, name: &str) -> String {
        plain(&self.path(name)).to_owned()
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).expect("the directory can be written");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn read_bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn make_directory(&self, name: &str) {
        std::fs::create_dir(self.path(name)).expect("a directory can be made");
    }

    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// The names in the directory, sorted.
    pub fn names(&self) -> Vec<String> {
        names(self.directory.path())
    }

    /// The command with these arguments, to be run in the directory.
    pub fn command(&self, arguments: &(impl Words + ?Sized)) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lowtide"));
        command.args(arguments.words()).current_dir(self.directory.path()).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the command.
    pub fn start(&self, arguments: &(impl Words + ?Sized)) -> Running {
        Running::start(&mut self.command(arguments))
    }

    /// Runs the command to its end.
    pub fn run(&self, arguments: &(impl Words + ?Sized)) -> Output {
        self.command(arguments).output().expect("lowtide starts")
    }

    /// Runs the command, which succeeds; returns its standard output.
    pub fn ok(&self, arguments: &(impl Words + ?Sized)) -> String {
        self.ends(arguments, 0).0
    }

    /// Runs the command, which succeeds and prints all of `wanted`; returns its standard output.
    pub fn prints(&self, arguments: &(impl Words + ?Sized), wanted: &[&str]) -> String {
        let out = self.ok(arguments);
        assert_says(&out, wanted);
        out
    }

    /// Runs the command with `--format json`; it succeeds and prints one JSON value.
    pub fn json(&self, arguments: &(impl Words + ?Sized)) -> Value {
        json(&self.ok(&[&arguments.words()[..], &["--format", "json"]].concat()))
    }

    /// Runs the command, which ends with `code`; returns its standard output and standard error.
    pub fn ends(&self, arguments: &(impl Words + ?Sized), code: i32) -> (String, String) {
        let line = arguments.words().join(" ");
        let (found, out, err) = decoded(&self.run(arguments));
        assert_eq!(found, Some(code), "lowtide {line}\n{out}\n{err}");
        assert!(!err.contains("panicked"), "lowtide {line}\n{err}");
        (out, err)
    }

    /// Runs the command, which ends with `code`, prints nothing to standard output, leaves the directory as it was
    /// and reports all of `says`; returns its standard error.
    pub fn refuses(&self, arguments: &(impl Words + ?Sized), code: i32, says: &[&str]) -> String {
        let line = arguments.words().join(" ");
        let before = self.names();
        let (out, err) = self.ends(arguments, code);
        assert_eq!(out, "", "lowtide {line}: something on standard output");
        assert_eq!(self.names(), before, "lowtide {line}: left something behind\n{err}");
        assert_says(&err, says);
        err
    }

    /// Both exports of the last campaign of a store: CSV and JSON.
    pub fn exports(&self, store: &str) -> (String, String) {
        let export = |format| self.ok(&format!("store export --store {store} --format {format}"));
        (export("csv"), export("json"))
    }
}

/// Parses JSON that lowtide or another program printed.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A path as text.
pub fn plain(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

/// The text of an experiment on a simulated drive that is purged and filled before each cell; `workload` follows
/// `[workload]`.
macro_rules! experiment {
    ($name:literal, $purge:literal, $workload:literal) => {
        concat!(
            "name = \"",
            $name,
            "\"\ntarget.device = \"intel-320-160gb\"\n[before-each-cell]\npurge = \"",
            $purge,
            "\"\nfill = \"sequential\"\n[workload]\n",
            $workload
        )
    };
}
pub(crate) use experiment;

/// The names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory can be read");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<String> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A memory figure of a process in KiB: `VmRSS` (resident) or `VmHWM` (peak resident). `None` after its end.
pub fn memory_kib(process: u32, key: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// The rows of an exported CSV, each by the names of its columns.
pub fn rows(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    reader.deserialize().map(|row| row.expect("a row of CSV")).collect()
}

/// The exit code, standard output and standard error of a process.
pub fn decoded(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("lowtide prints UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// An error on one line, without its frame and line breaks.
pub fn flat(error: &str) -> String {
    let lines = error.lines().map(|line| line.trim().trim_start_matches(['×', '│']).trim());
    // A word that is broken at a hyphen or a slash has no space there.
    lines.fold(String::new(), |whole, line| match whole.ends_with(['-', '/']) {
        true => whole + line,
        false => whole + " " + line,
    })
}

/// Asserts that `text`, without line breaks, contains all of `wanted`.
pub fn assert_says(text: &str, wanted: &[&str]) {
    let flat = flat(text);
    for wanted in wanted {
        assert!(flat.contains(wanted), "`{wanted}` is not in:\n{text}");
    }
}

/// A child process, killed when dropped.
pub struct Running(pub Child);

impl Running {
    pub fn start(command: &mut Command) -> Running {
        let program = command.get_program().to_string_lossy().into_owned();
        Running(command.spawn().unwrap_or_else(|error| panic!("{program} does not start: {error}")))
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(process, signal).expect("the child can be signalled");
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("the child can be waited for").is_some()
    }

    /// Waits until the child ends; returns its exit code, or `None` if a signal ended it.
    pub fn wait(&mut self) -> Option<i32> {
        self.0.wait().expect("the child can be waited for").code()
    }

    /// Sends SIGINT, after which the child ends with code 130.
    pub fn interrupt(&mut self) {
        self.signal(rustix::process::Signal::INT);
        assert_eq!(self.wait(), Some(130));
    }

    /// Reads the child's standard error to its end.
    pub fn error(&mut self) -> String {
        let mut text = String::new();
        let pipe = self.0.stderr.as_mut().expect("standard error is a pipe");
        pipe.read_to_string(&mut text).expect("lowtide prints UTF-8");
        text
    }

    /// Waits until `is_true` returns true; panics if the child ends before.
    pub fn reaches(&mut self, what: &str, is_true: impl FnMut() -> bool) {
        assert!(wait_until(self, is_true), "it ended before: {what}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until `is_true` returns true or the child has ended; returns the last value of `is_true`.
pub fn wait_until(child: &mut Running, mut is_true: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        if is_true() {
            return true;
        }
        if child.has_ended() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    panic!("nothing happened for a minute");
}

/// The number of cells of a store that are done, and of other cells that have rows; zeros if there is no store yet.
pub fn done_and_begun(store: &Path) -> (u32, u32) {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let count = |query: &str| {
        let connection = rusqlite::Connection::open_with_flags(store, flags).ok()?;
        connection.query_row(query, [], |row| row.get(0)).ok()
    };
    let done = count("SELECT count(*) FROM cell WHERE status = 'done'").unwrap_or(0);
    let begun =
        "SELECT count(DISTINCT cell) FROM interval JOIN cell USING (campaign, cell) WHERE status <> 'done'";
    (done, count(begun).unwrap_or(0))
}
