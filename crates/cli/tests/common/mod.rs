//! What the tests of the command share: a directory of its own for each, the command run inside it, and an
//! experiment on a simulated drive that takes a few hundredths of a second.

// Every test file is a program of its own and uses a part of this.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Two independent cells on a small drive, too short for a steady state.
pub const TINY: &str = r#"name = "tiny"
title = "A tiny experiment"

[target]
device = "intel-320-160gb"

[before-each-cell]
purge = "secure-erase"
fill = "sequential"

[workload]
pattern = "random-write"
block = "16KiB"
duration = "40min"
interval = "1min"

[sweep]
file_size = ["40GiB", "60GiB"]
"#;

/// Reads, which settle at once.
pub const READS: &str = r#"name = "reads"
target.device = "intel-320-160gb"

[before-each-cell]
purge = "secure-erase"
fill = "sequential"

[workload]
pattern = "random-read"
block = "4KiB"
threads = 4
file_size = "20GiB"
duration = "40min"
interval = "30s"
"#;

/// The share of the drive that the tests use.
pub const SCALE: [&str; 2] = ["--scale", "1/256"];

/// A directory of its own, in which the command runs.
pub struct Lab {
    directory: TempDir,
}

impl Lab {
    /// A directory that holds `tiny.toml` and `reads.toml`.
    pub fn new() -> Lab {
        let lab = Lab { directory: tempfile::tempdir().expect("a temporary directory can be made") };
        lab.write("tiny.toml", TINY);
        lab.write("reads.toml", READS);
        lab
    }

    /// A path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).expect("the directory can be written");
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names in the directory, sorted.
    pub fn names(&self) -> Vec<String> {
        names(self.directory.path())
    }

    /// The command, to be run in the directory.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lowtide"));
        command.args(arguments).current_dir(self.directory.path()).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the command to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("lowtide starts")
    }

    /// Runs the command, which ends well; what it prints to standard output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.ends(arguments, 0).0
    }

    /// Runs the command, which ends with `code`; what it prints to standard output and to standard error.
    pub fn ends(&self, arguments: &[&str], code: i32) -> (String, String) {
        let (found, out, err) = told(&self.run(arguments));
        assert_eq!(found, Some(code), "lowtide {}\n{out}\n{err}", arguments.join(" "));
        assert!(!err.contains("panicked"), "lowtide {}\n{err}", arguments.join(" "));
        (out, err)
    }

    /// Runs the command, which ends with `code` and leaves the directory as it was; the error, in one line.
    pub fn refuses(&self, arguments: &[&str], code: i32) -> String {
        let before = self.names();
        let (out, err) = self.ends(arguments, code);
        assert_eq!(out, "", "lowtide {}: something on standard output", arguments.join(" "));
        assert_eq!(self.names(), before, "lowtide {}: left something behind\n{err}", arguments.join(" "));
        err
    }

    /// Both exports of the last campaign of a store.
    pub fn exports(&self, store: &str) -> (String, String) {
        let export = |format| self.ok(&["store", "export", "--store", store, "--format", format]);
        (export("csv"), export("json"))
    }
}

/// The names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory can be read");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<String> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Exit code, standard output, standard error.
pub fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("lowtide prints UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// An error as one line, without the marks and breaks of its drawing.
pub fn flat(error: &str) -> String {
    let lines = error.lines().map(|line| line.trim().trim_start_matches(['×', '│']).trim());
    // A word that is broken at a hyphen or a slash has no space there.
    lines.fold(String::new(), |whole, line| match whole.ends_with(['-', '/']) {
        true => whole + line,
        false => whole + " " + line,
    })
}

/// Asserts that `text` holds every one of `wanted`.
pub fn assert_says(text: &str, wanted: &[&str]) {
    let flat = flat(text);
    for wanted in wanted {
        assert!(flat.contains(wanted), "`{wanted}` is not in:\n{text}");
    }
}

/// Ends a child that a failed test leaves behind.
pub struct Running(pub Child);

impl Running {
    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(process, signal).expect("the child can be signalled");
    }

    /// Whether it has ended.
    pub fn ended(&mut self) -> bool {
        self.0.try_wait().expect("the child can be waited for").is_some()
    }

    /// Waits for it; its exit code, `None` where a signal ended it.
    pub fn wait(&mut self) -> Option<i32> {
        self.0.wait().expect("the child can be waited for").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks every few milliseconds whether something is so, until it is or the child has ended; whether it is.
pub fn wait_until(child: &mut Running, mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        if is_so() {
            return true;
        }
        if child.ended() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    panic!("nothing happened for a minute");
}

/// How many cells of a store are done, and how many others have rows; nothing while there is no store yet.
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
