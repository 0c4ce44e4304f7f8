//! Campaigns on databases: each engine, and failures of servers, disks and lowtide itself. The error names the cause,
//! measured rows are kept, and no process, file or mount is left behind.
//!
//! If a server is missing, its test is skipped; with `LOWTIDE_REQUIRE_REAL=1` it fails. No number depends on the
//! speed of the machine.

#[path = "common/attached.rs"]
mod attached;
mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use attached::{can_attach, can_mount};
use common::{Lab, Running, Words, assert_says, decoded, done_and_begun, plain};
use loopback::skipped;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A short load of two terminals on one warehouse.
const QUICK: &str = "name = 'quick'\n[target]\ndirectory = 'here'\n[oltp]\nwarehouses = 1\nterminals = 2\n\
                     buffer_pool = '32MiB'\nlog_size = '64MiB'\nduration = '3s'\ninterval = '500ms'\n";

/// A directory with `quick.toml`, the databases (`here`) and their temporary files (`tmp`). Servers that run as
/// another user may enter it.
struct Bench(Lab);

impl Bench {
    fn new() -> Bench {
        Bench::with(QUICK)
    }

    fn with(experiment: &str) -> Bench {
        let bench = Bench(Lab::with(&[("quick.toml", experiment)]));
        bench.open("");
        for directory in ["here", "tmp"] {
            bench.0.make_directory(directory);
            bench.open(directory);
        }
        bench
    }

    /// Lets other users enter a directory.
    fn open(&self, directory: &str) {
        fs::set_permissions(self.0.path(directory), Permissions::from_mode(0o755)).expect("it is ours");
    }

    fn command(&self, more: &(impl Words + ?Sized)) -> Command {
        let mut command =
            self.0.command(&[&["run", "quick.toml", "--seed", "7"], &more.words()[..]].concat());
        command.env("TMPDIR", self.0.path("tmp"));
        command
    }

    /// Runs the command to its end, and checks its exit code and that no file or process remains; returns standard
    /// error.
    fn ends(&self, more: &(impl Words + ?Sized), code: i32) -> String {
        let (found, out, err) = decoded(&self.command(more).output().expect("lowtide starts"));
        assert_eq!(found, Some(code), "{}\n{out}\n{err}", more.words().join(" "));
        self.assert_empty();
        err
    }

    /// Starts a run on an engine, and waits until its cell has begun.
    fn begun(&self, engine: &str, duration: &str) -> Running {
        let more = format!("--set engine={engine} --set duration={duration}");
        let mut running = Running::start(&mut self.command(&more));
        running.reaches("its cell begins", || done_and_begun(&self.store()).1 == 1);
        running
    }

    /// Interrupts a run whose first of two cells is done and whose second has begun.
    fn interrupted_in_the_second_cell(&self, more: &(impl Words + ?Sized)) {
        let mut running = Running::start(&mut self.command(more));
        running.reaches("the second cell", || done_and_begun(&self.store()) == (1, 1));
        running.interrupt();
        self.assert_empty();
    }

    /// Kills a run, and waits until its servers have ended.
    fn kill(&self, mut running: Running) {
        running.signal(Signal::KILL);
        running.wait();
        let mut limit = Running::start(Command::new("sleep").arg("50"));
        limit.reaches("all servers end", || self.servers().is_empty());
    }

    /// Kills the server of a run, so that the run fails; returns standard error.
    fn fails_without_its_server(&self, mut running: Running) -> String {
        kill_process(Pid::from_raw(self.servers()[0]).expect("above 0"), Signal::KILL).expect("it is ours");
        assert_eq!(running.wait(), Some(1));
        self.assert_empty();
        running.error()
    }

    /// Asserts that no file of a database or server remains, and that no server runs.
    fn assert_empty(&self) {
        for directory in ["here", "tmp"] {
            assert_eq!(common::names(&self.0.path(directory)), Vec::<String>::new(), "{directory}");
        }
        assert_eq!(self.servers(), Vec::<i32>::new(), "servers");
    }

    fn store(&self) -> std::path::PathBuf {
        self.0.path("lowtide.db")
    }

    fn servers(&self) -> Vec<i32> {
        servers(&self.0.path(""))
    }
}

/// Processes of database servers with a directory in their command line.
fn servers(directory: &Path) -> Vec<i32> {
    let directory = plain(directory).trim_end_matches('/');
    let processes = fs::read_dir("/proc").expect("Linux").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let of = |number: &i32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        let program = line.split('\0').next().unwrap_or_default();
        let server = ["mariadbd", "mysqld", "postgres"].iter().any(|name| program.ends_with(name));
        server && line.contains(directory)
    };
    numbers.filter(of).collect()
}

/// Returns whether the programs of an engine are installed; reports a skipped test if not.
fn is_installed(engine: &str) -> bool {
    let there = match engine {
        "sqlite" => true,
        "postgresql" => {
            fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut versions| versions.next().is_some())
        }
        _ => Path::new("/usr/sbin/mariadbd").exists(),
    };
    if !there {
        skipped(&format!("no server of {engine}"));
    }
    there
}

#[test]
fn each_engine_keeps_its_data_consistent_and_leaves_nothing() {
    let engines = ["sqlite", "mariadb", "mariadb-aria", "mariadb-myisam", "postgresql"];
    for engine in engines.into_iter().filter(|engine| is_installed(engine)) {
        let bench = Bench::new();
        bench.ends(&format!("--set engine={engine} --format json"), 0);
        let campaign = bench.0.json("store export");
        let cell = &campaign["cells"][0];
        let oltp = &cell["oltp"];
        let conditions = oltp["conditions"].as_array().expect("a list");
        assert_eq!(conditions.len(), 14, "{engine}: {oltp}");
        for condition in conditions {
            let broken = (condition["before"].as_i64(), condition["after"].as_i64());
            assert_eq!(broken, (Some(0), Some(0)), "{engine}: {condition}");
        }
        assert!(oltp["said"]["transactions"].as_u64() > Some(10), "{engine}: {oltp}");
        assert_eq!(cell["intervals"].as_array().map(Vec::len), Some(6), "{engine}");
    }
}

#[test]
fn a_killed_server_ends_its_cell_whose_rows_are_kept() {
    for engine in ["mariadb", "postgresql"].into_iter().filter(|engine| is_installed(engine)) {
        let bench = Bench::new();
        let err = bench.fails_without_its_server(bench.begun(engine, "60s"));
        assert_says(&err, &["killed by signal 9"]);
        assert_eq!(done_and_begun(&bench.store()), (0, 1), "{engine}: rows are kept");
    }
}

/// Returns whether a directory or one below contains a file of that name.
fn is_below(directory: &Path, name: &str) -> bool {
    let mut entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name() == name || is_below(&entry.path(), name))
}

#[test]
fn a_server_that_is_killed_while_it_is_loaded_is_named() {
    if !is_installed("mariadb") {
        return;
    }
    let bench = Bench::new();
    let mut running = Running::start(&mut bench.command("--set engine=mariadb --set warehouses=8"));
    running.reaches("loading", || is_below(&bench.0.path("here"), "order_line.ibd"));
    let err = bench.fails_without_its_server(running);
    assert_says(&err, &["mariadbd was killed by signal 9: ", "server.log"]);
}

#[test]
fn a_server_that_does_not_start_is_reported_with_the_reason() {
    for (engine, option, says) in [
        ("mariadb", "innodb_page_size", "Unknown suffix 'n'"),
        ("postgresql", "shared_buffers", "shared_buffers"),
    ] {
        if !is_installed(engine) {
            continue;
        }
        let bench =
            Bench::with(&format!("{QUICK}engine = '{engine}'\noptions = {{ {option} = 'nonsense' }}\n"));
        assert_says(&bench.ends("", 1), &[says]);
    }
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_left_on_it() {
    if !can_mount() {
        return;
    }
    for engine in ["sqlite", "mariadb", "postgresql"].into_iter().filter(|engine| is_installed(engine)) {
        let bench = Bench::new();
        let here = bench.0.path("here");
        // The database fits; the disk is filled once the cell has rows.
        loopback::run("mount", &["-t", "tmpfs", "-o", "size=1200m,mode=755", "none", plain(&here)]);
        let more = format!("--set engine={engine} --set duration=60s");
        let mut running = Running::start(&mut bench.command(&more));
        let (one, two) = (here.join("filler-1"), here.join("filler-2"));
        if common::wait_until(&mut running, || done_and_begun(&bench.store()).1 == 1) {
            let _ = Command::new("fallocate").arg("-l").arg("1200m").arg(&one).status();
            let _ = Command::new("dd").arg("if=/dev/zero").arg(format!("of={}", two.display())).output();
        }
        let code = running.wait();
        for filler in [one, two] {
            let _ = fs::remove_file(filler);
        }
        let names = common::names(&here);
        loopback::run("umount", &[plain(&here)]);
        let err = running.error();
        assert_eq!(code, Some(1), "{engine}: {err}");
        let full = ["full", "No space left", "no space", "free there"];
        assert!(full.iter().any(|word| err.contains(word)), "{engine}: {err}");
        assert_eq!(names, Vec::<String>::new(), "{engine}");
        bench.assert_empty();
    }
}

#[test]
fn servers_of_a_killed_lowtide_end_and_the_next_run_cleans_up() {
    if !is_installed("mariadb") {
        return;
    }
    let bench = Bench::new();
    bench.kill(bench.begun("mariadb", "60s"));
    bench.ends("--set engine=mariadb", 0);
}

/// Shared memory: numbers of System V segments, and names of files in /dev/shm.
#[derive(Debug)]
struct SharedMemory {
    segments: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl SharedMemory {
    /// The shared memory of this machine.
    fn all() -> SharedMemory {
        let listed = fs::read_to_string("/proc/sysvipc/shm").expect("Linux");
        let word = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
        let files = common::names(Path::new("/dev/shm")).into_iter().collect();
        SharedMemory { segments: listed.lines().skip(1).filter_map(word).collect(), files }
    }

    /// The shared memory that a process has mapped.
    fn of(process: i32) -> SharedMemory {
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).expect("it runs");
        let file = |line: &str| line.split_once("/dev/shm/").map(|(_, name)| name.to_owned());
        let segments = maps.lines().filter(|line| line.contains("/SYSV"));
        let number = |line: &str| line.split_whitespace().nth(4).map(str::to_owned);
        SharedMemory {
            segments: segments.filter_map(number).collect(),
            files: maps.lines().filter_map(file).collect(),
        }
    }

    fn assert_removed(&self) {
        let left = SharedMemory::all();
        let is_removed = self.segments.is_disjoint(&left.segments) && self.files.is_disjoint(&left.files);
        assert!(is_removed, "some of {self:?} is left");
    }
}

/// Symptom: each killed run on PostgreSQL left a System V segment and two files in /dev/shm behind. Cause: only its
/// directories were removed, and a server that never starts again does not remove its memory. Fix: a file in the
/// directories records the memory.
#[test]
fn shared_memory_of_a_killed_server_is_removed_with_its_directory() {
    if !is_installed("postgresql") {
        return;
    }
    let bench = Bench::new();
    let running = bench.begun("postgresql", "60s");
    // Other programs may run servers at the same time: only the memory of this server counts.
    let mapped = SharedMemory::of(bench.servers()[0]);
    assert!(!mapped.files.is_empty() && !mapped.segments.is_empty(), "{mapped:?}");
    bench.kill(running);
    let left = SharedMemory::all();
    let is_left = mapped.segments.is_subset(&left.segments) && mapped.files.is_subset(&left.files);
    assert!(is_left, "the kill left nothing to remove");
    bench.ends("--set engine=postgresql", 0);
    mapped.assert_removed();
}

/// Symptom: lowtide waited for a frozen server, and ended only when it was killed. Cause: an interrupt cut the
/// connections of terminals, but not the connection for queries, and servers had an hour to shut down. Fix: the
/// watchdog.
#[test]
fn a_frozen_server_does_not_delay_ctrl_c() {
    for engine in ["mariadb", "postgresql"].into_iter().filter(|engine| is_installed(engine)) {
        let bench = Bench::new();
        let mut running = bench.begun(engine, "600s");
        let server = bench.servers()[0];
        let mapped = SharedMemory::of(server);
        let frozen: Vec<i32> = [server].into_iter().chain(children(server)).collect();
        for process in &frozen {
            let process = Pid::from_raw(*process).expect("a number");
            kill_process(process, Signal::STOP).expect("it runs");
        }
        let begin = Instant::now();
        running.interrupt();
        println!("{engine}: ended {:.1} s after Ctrl-C", begin.elapsed().as_secs_f64());
        bench.assert_empty();
        for process in frozen {
            let program = fs::read_link(format!("/proc/{process}/exe"));
            assert!(program.is_err(), "{engine}: process {process} lives on: {program:?}");
        }
        mapped.assert_removed();
    }
}

/// The children of a process.
fn children(parent: i32) -> Vec<i32> {
    let listed = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn ctrl_c_ends_servers_and_the_campaign_resumes() {
    let bench = Bench::with(&QUICK.replace("terminals = 2\n", ""));
    let sweep = ["--set", "sweep.terminals=[1, 2]"];
    bench.interrupted_in_the_second_cell(&sweep);
    // The second resume has nothing to do.
    for _ in 0..2 {
        bench.ends(&[&sweep[..], &["--resume"]].concat(), 0);
        assert_eq!(done_and_begun(&bench.store()), (2, 0));
    }
}

/// Symptom: each run left an empty directory in `log-directory`, a killed run left its log behind, and a mistyped
/// `log-directory` was created. Cause: only the logs were removed, and all missing directories of the path were
/// created. Fix: lowtide makes and removes its own directory inside `log-directory`, which must exist.
#[test]
fn a_directory_for_logs_is_left_as_it_was_and_never_made() {
    let bench = Bench::with(&format!("{QUICK}log-directory = 'logs'\n").replace("'3s'", "'1s'"));
    let (code, _, err) = decoded(&bench.command("").output().expect("lowtide starts"));
    assert_ne!(code, Some(0), "{err}");
    assert_says(&err, &["logs"]);
    assert!(!bench.0.path("logs").exists() && !bench.store().exists(), "something was made");
    bench.assert_empty();
    bench.0.make_directory("logs");
    bench.open("logs");
    // A directory of the user with a name like lowtide's own.
    bench.0.make_directory("logs/lowtide-oltp-4194303");
    let engine = if is_installed("postgresql") { "postgresql" } else { "sqlite" };
    bench.ends(&format!("--set engine={engine}"), 0);
    assert_eq!(common::names(&bench.0.path("logs")), ["lowtide-oltp-4194303"]);
}

/// Symptom: after a resume, cells were measured on a new drive. Fix: such a resume is refused.
#[test]
fn a_resumed_cell_does_not_continue_on_a_new_drive() {
    if !can_attach() {
        return;
    }
    let text = QUICK.replace("directory = 'here'", "device = 'intel-x25-e-32gb'");
    let before = "[before-each-cell]\nlayout = { filesystem = 'xfs' }\n[oltp]\n";
    let bench = Bench::with(&text.replace("[oltp]\n", before).replace("terminals = 2\n", ""));
    let sweep = ["--set", "sweep.terminals=[1, 2]"];
    bench.interrupted_in_the_second_cell(&sweep);
    let err = bench.ends(&[&sweep[..], &["--resume"]].concat(), 1);
    assert_says(&err, &["the history of intel-x25-e-32gb is unknown"]);
    assert_eq!(done_and_begun(&bench.store()), (1, 0), "nothing was measured on a new drive");
}

#[test]
fn a_database_on_simulated_drives_sees_their_history_and_leaves_no_mount() {
    if !can_attach() {
        return;
    }
    let engine = if is_installed("mariadb") { "mariadb" } else { "sqlite" };
    let text = QUICK.replace("directory = 'here'", "device = ['intel-x25-e-32gb', 'raptor-10k-150gb']");
    let text =
        text.replace("warehouses = 1", "warehouses = 16").replace("'3s'", "'48s'").replace("'500ms'", "'8s'");
    let text = text.replace("'32MiB'", "'128MiB'").replace("'64MiB'", "'128MiB'");
    let before = "[before-each-cell]\npurge = 'secure-erase'\nlayout = { filesystem = 'xfs' }\n[oltp]\n";
    let bench = Bench::with(&format!("{}engine = '{engine}'\n", text.replace("[oltp]\n", before)));
    bench.ends("--scale 1/16", 0);
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("Linux");
    let own = format!("-{}-", std::process::id());
    assert!(!mounts.contains(&own), "{mounts}");
    let campaign = bench.0.json("store export");
    for cell in campaign["cells"].as_array().expect("a list") {
        let wrote =
            cell["intervals"].as_array().expect("a list").iter().map(|row| row["write_bytes"].as_u64());
        assert!(wrote.flatten().sum::<u64>() > 1 << 20, "the drive was asked: {cell}");
    }
    let flash = &campaign["cells"][0];
    assert!(flash["written_before_bytes"].as_u64() > Some(50 << 20), "{}", flash["written_before_bytes"]);
}

/// Symptom: `written_before` of a cell on a block device counted only the cell's own copy of the database. Cause: the
/// copies and writes of earlier cells were not counted. Fix: both are counted.
#[test]
fn a_block_device_counts_what_the_cells_before_wrote() {
    if !can_mount() {
        return;
    }
    let Some(disk) = loopback::Loop::new(2048, &[]) else { return };
    let steps = "[before-each-cell]\nlayout = { filesystem = 'ext4' }\n[oltp]\n";
    let text = QUICK.replace("[oltp]\n", steps).replace("'3s'", "'2s'");
    let step = "[[step]]\nname = 'once'\npurge-before = 'trim'\nrepeat = { times = 2 }\n";
    let bench = Bench::with(&(text + step));
    bench.ends(&format!("--target block:{} --destroy {}", disk.node.display(), disk.serial()), 0);
    let campaign = bench.0.json("store export");
    let cell = |index: usize| &campaign["cells"][index];
    let before = |index: usize| cell(index)["written_before_bytes"].as_u64().expect("known since the purge");
    let rows = cell(0)["intervals"].as_array().expect("a list");
    let wrote: u64 = rows.iter().filter_map(|row| row["write_bytes"].as_u64()).sum();
    assert!(wrote > 0 && before(0) > 50 << 20, "{wrote} {}", before(0));
    // Each cell writes one copy, and the first cell wrote `wrote` bytes in addition.
    assert_eq!(before(1), 2 * before(0) + wrote);
}
