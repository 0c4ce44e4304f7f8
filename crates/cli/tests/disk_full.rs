//! A full disk under the store, the report or the data: the error says so, and what was committed is kept.
//!
//! A small tmpfs plays the disk. Only root may mount one: elsewhere these tests say that they were skipped.

mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use common::{Lab, SCALE, assert_says, names};
use std::path::Path;
use std::process::Command;

/// A tmpfs of its own, gone with the value.
struct Disk<'a> {
    at: &'a Path,
}

impl<'a> Disk<'a> {
    /// Mounts one at a new directory; `None` where that is not allowed.
    fn mount(at: &'a Path, size: &str) -> Option<Self> {
        std::fs::create_dir(at).expect("a directory can be made");
        let mounted = mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], at);
        if !mounted {
            loopback::skipped("a tmpfs cannot be mounted here");
        }
        mounted.then_some(Disk { at })
    }

    fn remount(&self, options: &str) {
        assert!(mount(&["-o", &format!("remount,{options}")], self.at), "remount with {options}");
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.at).status();
    }
}

fn mount(options: &[&str], at: &Path) -> bool {
    let output = Command::new("mount").args(options).arg(at).output();
    output.is_ok_and(|output| output.status.success())
}

/// Enough rows to fill a small disk.
const LARGE: [&str; 6] = ["--set", "duration=150min", "--set", "interval=10s", "--jobs", "1"];

#[test]
fn a_full_disk_under_the_store_keeps_what_was_committed_and_resumes() {
    let lab = Lab::new();
    let at = lab.path("disk");
    let Some(disk) = Disk::mount(&at, "640k") else { return };
    let [scale, share] = SCALE;
    let run = |store| [&["run", "./tiny.toml", scale, share, "--store", store], &LARGE[..]].concat();
    let (out, error) = lab.ends(&run("disk/a.db"), 1);
    assert_says(&error, &["the store disk/a.db cannot be used: ", "make room and run again with `--resume`"]);
    assert_eq!(out, "");
    let (kept, _) = lab.exports("disk/a.db");

    disk.remount("size=64m");
    let mut resume = run("disk/a.db");
    resume.push("--resume");
    lab.ends(&resume, 0);
    lab.ends(&run("whole.db"), 0);
    assert!(
        lab.exports("disk/a.db") == lab.exports("whole.db"),
        "a resumed campaign has the rows of an unbroken one"
    );
    let (whole, _) = lab.exports("whole.db");
    assert!(
        kept.lines().all(|line| whole.lines().any(|other| other == line)),
        "what was committed is right:\n{kept}"
    );
}

#[test]
fn a_report_that_finds_no_room_leaves_the_measurements_in_the_store() {
    let lab = Lab::new();
    let at = lab.path("disk");
    let Some(disk) = Disk::mount(&at, "8k") else { return };
    let [scale, share] = SCALE;
    let (_, error) = lab.ends(&["run", "./tiny.toml", scale, share, "--report", "disk/report.html"], 1);
    assert_says(&error, &["disk/report.html cannot be written", "the measurements are in the store"]);
    assert_eq!(names(disk.at), Vec::<String>::new(), "half a report is no report");
    assert_eq!(lab.exports("lowtide.db").0.lines().count(), 1 + 2 * 40);
    let (_, error) = lab.ends(&["store", "export", "-o", "disk/all.csv"], 1);
    assert_says(&error, &["disk/all.csv cannot be written"]);
    assert_eq!(names(disk.at), Vec::<String>::new(), "half an export is no export");
    for (verb, name) in [(&["report"][..], "report.html"), (&["store", "export"], "all.csv")] {
        lab.write(&format!("disk/{name}"), "old");
        lab.ends(&[verb, &["-o", &format!("disk/{name}")]].concat(), 1);
        assert_eq!(
            (names(disk.at), lab.read(&format!("disk/{name}"))),
            (vec![name.to_owned()], "old".to_owned())
        );
        std::fs::remove_file(disk.at.join(name)).expect("removed");
    }
}

#[test]
fn data_that_finds_no_room_is_refused_up_front() {
    let lab = Lab::new();
    let at = lab.path("disk");
    let Some(disk) = Disk::mount(&at, "1m") else { return };
    let sizes = ["--set", "file_size=8MiB", "--set", "duration=1s", "--set", "interval=100ms"];
    let error = lab.refuses(&[&["run", "./tiny.toml", "--target", "dir:disk"], &sizes[..]].concat(), 1);
    assert_says(&error, &["disk needs 8.0 MiB free, but its filesystem has 1.0 MiB left"]);
    assert_eq!(names(disk.at), Vec::<String>::new());
}

#[test]
fn a_store_on_a_read_only_filesystem_can_be_read() {
    let lab = Lab::new();
    let at = lab.path("disk");
    let Some(disk) = Disk::mount(&at, "8m") else { return };
    let [scale, share] = SCALE;
    let run = ["run", "./tiny.toml", scale, share, "--store", "disk/a#1.db"];
    lab.ok(&run);
    let before = lab.exports("disk/a#1.db");
    disk.remount("ro");
    assert!(lab.exports("disk/a#1.db") == before);
    assert!(lab.ok(&["store", "show", "--store", "disk/a#1.db"]).contains("tiny"));
    assert_says(&lab.refuses(&run, 2), &["the store disk/a#1.db cannot be used", "may you write there?"]);
    let report = [&run[..4], &["--report", "disk/report.html"]].concat();
    let error = lab.refuses(&report, 2);
    assert_says(&error, &["disk/report.html cannot be written: ", "Read-only file system"]);
    assert_says(
        &lab.refuses(&[&run[..5], &["disk/b.db"]].concat(), 2),
        &["the store disk/b.db cannot be used"],
    );
}
