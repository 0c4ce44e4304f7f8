//! Databases from the outside: a campaign on each engine, and what happens when a server does not start, its disk is full, it
//! or lowtide is killed: the error says why, what was measured is kept, nothing stays behind.
//!
//! Where a server is missing, its test says that it was skipped; with `LOWTIDE_REQUIRE_REAL=1` it fails. No number depends on
//! how fast the machine is.

mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use common::{Lab, Running, assert_says, done_and_begun, told, wait_until};
use loopback::skipped;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

/// A short load of two terminals on one warehouse.
const QUICK: &str = "name = 'quick'\n[target]\ndirectory = 'here'\n[oltp]\nwarehouses = 1\nterminals = 2\n\
                     buffer_pool = '32MiB'\nlog_size = '64MiB'\nduration = '3s'\ninterval = '500ms'\n";

/// A directory with `quick.toml`, in which everything happens; servers may go there.
struct Place(Lab);

impl Place {
    fn new() -> Place {
        let lab = Lab::new();
        fs::set_permissions(lab.path(""), Permissions::from_mode(0o755)).expect("it is ours");
        for directory in ["here", "tmp"] {
            fs::create_dir(lab.path(directory)).expect("made");
            fs::set_permissions(lab.path(directory), Permissions::from_mode(0o755)).expect("it is ours");
        }
        lab.write("quick.toml", QUICK);
        Place(lab)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let arguments = [&["run", "quick.toml", "--seed", "7"], arguments].concat();
        let mut command = self.0.command(&arguments);
        command.env("TMPDIR", self.0.path("tmp"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("lowtide starts")
    }

    /// A run on an engine whose cell has begun.
    fn begun(&self, engine: &str, duration: &str) -> Running {
        let arguments = ["--set", &format!("engine={engine}"), "--set", &format!("duration={duration}")];
        let mut running = Running(self.command(&arguments).spawn().expect("lowtide starts"));
        assert!(wait_until(&mut running, || done_and_begun(&self.store()).1 == 1), "it ended");
        running
    }

    /// Kills a run, and waits until its servers have ended, too.
    fn kill(&self, mut running: Running) {
        running.signal(Signal::KILL);
        running.wait();
        let mut patience = Running(Command::new("sleep").arg("50").spawn().expect("sleep"));
        assert!(wait_until(&mut patience, || servers(&self.0.path("")).is_empty()), "a server lives on");
    }

    /// Nothing lies where databases and their servers were, and no server runs there.
    fn is_empty(&self) {
        for directory in ["here", "tmp"] {
            assert_eq!(common::names(&self.0.path(directory)), Vec::<String>::new(), "{directory}");
        }
        assert_eq!(servers(&self.0.path("")), Vec::<i32>::new(), "servers");
    }

    fn store(&self) -> std::path::PathBuf {
        self.0.path("lowtide.db")
    }
}

/// Whether filesystems can be mounted here; says so where they cannot.
fn can_mount() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("mounting needs root");
    }
    root
}

/// Whether simulated drives can be attached here; says so where they cannot.
fn can_attach() -> bool {
    let opens = |node: &&str| OpenOptions::new().read(true).write(true).open(node).is_ok();
    if let Some(node) = ["/dev/fuse", "/dev/loop-control"].iter().find(|node| !opens(node)) {
        skipped(&format!("{node} cannot be opened"));
        return false;
    }
    can_mount()
}

/// Processes of database servers that were told of a directory.
fn servers(directory: &Path) -> Vec<i32> {
    let directory = directory.to_str().expect("plain").trim_end_matches('/');
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

/// Whether the programs of an engine are here.
fn possible(engine: &str) -> bool {
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
fn each_engine_measures_keeps_its_data_whole_and_leaves_nothing() {
    for engine in ["sqlite", "mariadb", "mariadb-aria", "mariadb-myisam", "postgresql"] {
        if !possible(engine) {
            continue;
        }
        let place = Place::new();
        let engine_is = format!("engine={engine}");
        let output = place.run(&["--set", &engine_is, "--format", "json"]);
        let (code, out, err) = told(&output);
        assert_eq!(code, Some(0), "{engine}\n{out}\n{err}");
        place.is_empty();
        let campaign: serde_json::Value =
            serde_json::from_str(&place.0.ok(&["store", "export", "--format", "json"])).expect("JSON");
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
fn a_server_that_is_killed_ends_its_cell_with_its_rows_kept() {
    for engine in ["mariadb", "postgresql"] {
        if !possible(engine) {
            continue;
        }
        let place = Place::new();
        let engine_is = format!("engine={engine}");
        let child = place.command(&["--set", &engine_is, "--set", "duration=60s"]).spawn();
        let mut running = Running(child.expect("lowtide starts"));
        assert!(wait_until(&mut running, || done_and_begun(&place.store()).1 == 1), "{engine}: it ended");
        let server = *servers(&place.0.path("")).first().expect("a server");
        kill_process(Pid::from_raw(server).expect("above 0"), Signal::KILL).expect("it is ours");
        assert_eq!(running.wait(), Some(1), "{engine}");
        let mut err = String::new();
        std::io::Read::read_to_string(running.0.stderr.as_mut().expect("piped"), &mut err).expect("UTF-8");
        assert_says(&err, &["killed by signal 9"]);
        place.is_empty();
        assert_eq!(done_and_begun(&place.store()), (0, 1), "{engine}: rows are kept");
    }
}

/// Whether there is a file of that name below a directory.
fn is_below(directory: &Path, name: &str) -> bool {
    let mut entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name() == name || is_below(&entry.path(), name))
}

#[test]
fn a_server_that_is_killed_while_it_is_loaded_is_named() {
    if !possible("mariadb") {
        return;
    }
    let place = Place::new();
    let child = place.command(&["--set", "engine=mariadb", "--set", "warehouses=8"]).spawn();
    let mut running = Running(child.expect("lowtide starts"));
    let begun = || is_below(&place.0.path("here"), "order_line.ibd");
    assert!(wait_until(&mut running, begun), "it ended");
    let server = *servers(&place.0.path("")).first().expect("a server");
    kill_process(Pid::from_raw(server).expect("above 0"), Signal::KILL).expect("it is ours");
    assert_eq!(running.wait(), Some(1));
    let mut err = String::new();
    std::io::Read::read_to_string(running.0.stderr.as_mut().expect("piped"), &mut err).expect("UTF-8");
    assert_says(&err, &["mariadbd was killed by signal 9: ", "server.log"]);
    place.is_empty();
}

#[test]
fn a_server_that_does_not_start_says_why() {
    for (engine, option, said) in [
        ("mariadb", "innodb_page_size", "Unknown suffix 'n'"),
        ("postgresql", "shared_buffers", "shared_buffers"),
    ] {
        if !possible(engine) {
            continue;
        }
        let place = Place::new();
        place.0.write(
            "quick.toml",
            format!("{QUICK}engine = '{engine}'\noptions = {{ {option} = 'nonsense' }}\n"),
        );
        let (code, _, err) = told(&place.run(&[]));
        assert_eq!(code, Some(1), "{engine}: {err}");
        assert_says(&err, &[said]);
        place.is_empty();
    }
}

#[test]
fn a_full_disk_is_told_and_nothing_is_left_on_it() {
    if !can_mount() {
        return;
    }
    for engine in ["sqlite", "mariadb", "postgresql"] {
        if !possible(engine) {
            continue;
        }
        let place = Place::new();
        let here = place.0.path("here");
        // There is room to begin with, and none any more once rows come.
        let mount = ["-t", "tmpfs", "-o", "size=1200m,mode=755", "none", here.to_str().expect("plain")];
        loopback::run("mount", &mount);
        let engine_is = format!("engine={engine}");
        let child = place.command(&["--set", &engine_is, "--set", "duration=60s"]).spawn();
        let mut running = Running(child.expect("lowtide starts"));
        let began = wait_until(&mut running, || done_and_begun(&place.store()).1 == 1);
        if began {
            // What is free is taken.
            let _ = Command::new("fallocate").arg("-l").arg("1200m").arg(here.join("hog")).status();
            let _ = Command::new("dd")
                .arg("if=/dev/zero")
                .arg(format!("of={}", here.join("hog2").display()))
                .output();
        }
        let code = running.wait();
        let _ = fs::remove_file(here.join("hog"));
        let _ = fs::remove_file(here.join("hog2"));
        let names = common::names(&here);
        loopback::run("umount", &[here.to_str().expect("plain")]);
        let mut err = String::new();
        std::io::Read::read_to_string(running.0.stderr.as_mut().expect("piped"), &mut err).expect("UTF-8");
        assert_eq!(code, Some(1), "{engine}: {err}");
        let full = ["full", "No space left", "no space", "free there"];
        assert!(full.iter().any(|word| err.contains(word)), "{engine}: {err}");
        assert_eq!(names, Vec::<String>::new(), "{engine}");
        place.is_empty();
    }
}

#[test]
fn a_killed_lowtide_takes_its_servers_along_and_the_next_one_cleans_up() {
    if !possible("mariadb") {
        return;
    }
    let place = Place::new();
    let running = place.begun("mariadb", "60s");
    place.kill(running);
    let (code, _, err) = told(&place.run(&["--set", "engine=mariadb"]));
    assert_eq!(code, Some(0), "{err}");
    place.is_empty();
}

/// System V segments and files in /dev/shm that servers of PostgreSQL made, as the kernel lists them.
fn shared_memory() -> (BTreeSet<String>, BTreeSet<String>) {
    let listed = fs::read_to_string("/proc/sysvipc/shm").expect("Linux");
    let ids = listed.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned));
    let files = common::names(Path::new("/dev/shm")).into_iter();
    (ids.collect(), files.filter(|name| name.starts_with("PostgreSQL.")).collect())
}

/// Numbers of the System V segments and names of the files in /dev/shm that a server has mapped.
fn memory_of(server: i32) -> (BTreeSet<String>, BTreeSet<String>) {
    let maps = fs::read_to_string(format!("/proc/{server}/maps")).expect("it runs");
    let of_server = |line: &str, begin: &str| line.find(begin).map(|at| line[at + begin.len()..].to_owned());
    let files = maps.lines().filter_map(|line| of_server(line, "/dev/shm/")).collect();
    let segments = maps
        .lines()
        .filter(|line| line.contains("/SYSV"))
        .filter_map(|line| line.split_whitespace().nth(4).map(str::to_owned))
        .collect();
    (segments, files)
}

/// Symptom: each killed run on PostgreSQL left a System V segment and two files in /dev/shm for ever. Cause: only its
/// directories were removed, and a server that never starts again does not remove its memory. Fix: it is noted in them.
#[test]
fn shared_memory_of_a_killed_server_goes_with_its_directory() {
    if !possible("postgresql") {
        return;
    }
    let place = Place::new();
    let running = place.begun("postgresql", "60s");
    // Others may run servers at the same time: only what this one has mapped counts.
    let server = servers(&place.0.path(""))[0];
    let (segments, files) = memory_of(server);
    assert!(!files.is_empty() && !segments.is_empty(), "{files:?} {segments:?}");
    place.kill(running);
    let (left_segments, left_files) = shared_memory();
    assert!(segments.is_subset(&left_segments) && files.is_subset(&left_files), "nothing was left to remove");
    let (code, _, err) = told(&place.run(&["--set", "engine=postgresql"]));
    assert_eq!(code, Some(0), "{err}");
    let (left_segments, left_files) = shared_memory();
    assert!(segments.is_disjoint(&left_segments), "segments {segments:?} are left");
    assert!(files.is_disjoint(&left_files), "files {files:?} are left");
    place.is_empty();
}

/// Symptom: lowtide waited for a server that was frozen, and ended only when it was killed. Cause: an interrupt cut the
/// connections of terminals, but not the one for questions, and servers had an hour to end in order. Fix: the watchdog.
#[test]
fn a_frozen_server_does_not_hold_up_ctrl_c() {
    for engine in ["mariadb", "postgresql"] {
        if !possible(engine) {
            continue;
        }
        let place = Place::new();
        let mut running = place.begun(engine, "600s");
        let server = servers(&place.0.path(""))[0];
        let (segments, files) = memory_of(server);
        let frozen: Vec<i32> = [server].into_iter().chain(children(server)).collect();
        for process in &frozen {
            let process = Pid::from_raw(*process).expect("a number");
            kill_process(process, Signal::STOP).expect("it runs");
        }
        let begin = Instant::now();
        running.signal(Signal::INT);
        assert_eq!(running.wait(), Some(130), "{engine}");
        println!("{engine}: ended {:.1} s after Ctrl-C", begin.elapsed().as_secs_f64());
        place.is_empty();
        for process in frozen {
            let program = fs::read_link(format!("/proc/{process}/exe"));
            assert!(program.is_err(), "{engine}: process {process} lives on: {program:?}");
        }
        let (left_segments, left_files) = shared_memory();
        assert!(segments.is_disjoint(&left_segments), "segments {segments:?} of a server we killed are left");
        assert!(files.is_disjoint(&left_files), "files {files:?} of a server we killed are left");
    }
}

/// The children of a process.
fn children(parent: i32) -> Vec<i32> {
    let listed = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn ctrl_c_ends_servers_and_resume_goes_on() {
    let place = Place::new();
    place.0.write("quick.toml", QUICK.replace("terminals = 2\n", ""));
    let arguments = ["--set", "sweep.terminals=[1, 2]"];
    let child = place.command(&arguments).spawn();
    let mut running = Running(child.expect("lowtide starts"));
    assert!(wait_until(&mut running, || done_and_begun(&place.store()) == (1, 1)), "it ended");
    running.signal(Signal::INT);
    assert_eq!(running.wait(), Some(130));
    place.is_empty();
    let (code, _, err) = told(&place.run(&[&arguments[..], &["--resume"]].concat()));
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(done_and_begun(&place.store()), (2, 0));
    place.is_empty();
    // Nothing is left to do, and nothing is left by that.
    let (code, _, err) = told(&place.run(&[&arguments[..], &["--resume"]].concat()));
    assert_eq!(code, Some(0), "{err}");
    place.is_empty();
}

/// Symptom: an empty directory stayed in `log-directory` after each run, with the log of one that was killed for ever; and a
/// mistyped one was made. Cause: only the logs in it were removed, and all of its path was made. Fix: it is a directory of
/// ours like the others, in one that has to be there.
#[test]
fn a_directory_for_logs_is_left_as_it_was_and_none_is_made() {
    let place = Place::new();
    let text = format!("{QUICK}log-directory = 'logs'\n").replace("'3s'", "'1s'");
    place.0.write("quick.toml", &text);
    let (code, _, err) = told(&place.run(&[]));
    assert_ne!(code, Some(0), "{err}");
    assert_says(&err, &["logs"]);
    assert!(!place.0.path("logs").exists() && !place.store().exists(), "nothing is made where it is missing");
    place.is_empty();
    fs::create_dir(place.0.path("logs")).expect("made");
    fs::set_permissions(place.0.path("logs"), Permissions::from_mode(0o755)).expect("it is ours");
    // The user's own, whatever it is called.
    fs::create_dir(place.0.path("logs/lowtide-oltp-4194303")).expect("made");
    let engine = if possible("postgresql") { "engine=postgresql" } else { "engine=sqlite" };
    let (code, _, err) = told(&place.run(&["--set", engine]));
    assert_eq!(code, Some(0), "{err}");
    place.is_empty();
    assert_eq!(common::names(&place.0.path("logs")), ["lowtide-oltp-4194303"]);
}

/// Symptom: the cells after a resumed one were measured on a new drive. Fix: they are refused.
#[test]
fn a_resumed_cell_does_not_go_on_from_a_new_drive() {
    if !can_attach() {
        return;
    }
    let place = Place::new();
    let text = QUICK.replace("directory = 'here'", "device = 'intel-x25-e-32gb'");
    let before = "[before-each-cell]\nlayout = { filesystem = 'xfs' }\n[oltp]\n";
    place.0.write("quick.toml", text.replace("[oltp]\n", before).replace("terminals = 2\n", ""));
    let arguments = ["--set", "sweep.terminals=[1, 2]"];
    let child = place.command(&arguments).spawn();
    let mut running = Running(child.expect("lowtide starts"));
    assert!(wait_until(&mut running, || done_and_begun(&place.store()) == (1, 1)), "it ended");
    running.signal(Signal::INT);
    assert_eq!(running.wait(), Some(130));
    let (code, _, err) = told(&place.run(&[&arguments[..], &["--resume"]].concat()));
    assert_eq!(code, Some(1), "{err}");
    assert_says(&err, &["the history it goes on from is not known", "intel-x25-e-32gb"]);
    assert_eq!(done_and_begun(&place.store()), (1, 0), "nothing was measured on a new drive");
    place.is_empty();
}

#[test]
fn a_database_on_simulated_drives_sees_their_history_and_leaves_no_mount() {
    if !can_attach() {
        return;
    }
    let engine = if possible("mariadb") { "mariadb" } else { "sqlite" };
    let place = Place::new();
    let text = QUICK.replace("directory = 'here'", "device = ['intel-x25-e-32gb', 'raptor-10k-150gb']");
    let text =
        text.replace("warehouses = 1", "warehouses = 16").replace("'3s'", "'48s'").replace("'500ms'", "'8s'");
    let text = text.replace("'32MiB'", "'128MiB'").replace("'64MiB'", "'128MiB'");
    let before = "[before-each-cell]\npurge = 'secure-erase'\nlayout = { filesystem = 'xfs' }\n[oltp]\n";
    place.0.write("quick.toml", format!("{}engine = '{engine}'\n", text.replace("[oltp]\n", before)));
    let (code, out, err) = told(&place.run(&["--scale", "1/16"]));
    assert_eq!(code, Some(0), "{out}\n{err}");
    place.is_empty();
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("Linux");
    let own = format!("-{}-", std::process::id());
    assert!(!mounts.contains(&own), "{mounts}");
    let campaign: serde_json::Value =
        serde_json::from_str(&place.0.ok(&["store", "export", "--format", "json"])).expect("JSON");
    for cell in campaign["cells"].as_array().expect("a list") {
        let wrote =
            cell["intervals"].as_array().expect("a list").iter().map(|row| row["write_bytes"].as_u64());
        assert!(wrote.flatten().sum::<u64>() > 1 << 20, "the drive was asked: {cell}");
    }
    let flash = &campaign["cells"][0];
    assert!(flash["written_before_bytes"].as_u64() > Some(50 << 20), "{}", flash["written_before_bytes"]);
}

/// Symptom: `written_before` of a block device was that of its own copy, as if no cell had been before. Cause: copies and rows
/// were not counted. Fix: they are.
#[test]
fn a_block_device_counts_what_the_cells_before_wrote() {
    if !can_mount() {
        return;
    }
    let Some(disk) = loopback::Loop::new(2048, &[]) else { return };
    let place = Place::new();
    let steps = "[before-each-cell]\nlayout = { filesystem = 'ext4' }\n[oltp]\n";
    let text = QUICK.replace("[oltp]\n", steps).replace("'3s'", "'2s'");
    place.0.write(
        "quick.toml",
        format!("{text}[[step]]\nname = 'once'\npurge-before = 'trim'\nrepeat = {{ times = 2 }}\n"),
    );
    let target = format!("block:{}", disk.node.display());
    let (code, _, err) = told(&place.run(&["--target", &target, "--destroy", &disk.serial()]));
    assert_eq!(code, Some(0), "{err}");
    place.is_empty();
    let campaign: serde_json::Value =
        serde_json::from_str(&place.0.ok(&["store", "export", "--format", "json"])).expect("JSON");
    let cell = |index: usize| &campaign["cells"][index];
    let before = |index: usize| cell(index)["written_before_bytes"].as_u64().expect("known since the purge");
    let rows = cell(0)["intervals"].as_array().expect("a list");
    let wrote: u64 = rows.iter().filter_map(|row| row["write_bytes"].as_u64()).sum();
    assert!(wrote > 0 && before(0) > 50 << 20, "{wrote} {}", before(0));
    // The copy of each, and what was written between.
    assert_eq!(before(1), 2 * before(0) + wrote);
}
