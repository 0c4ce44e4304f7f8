//! A full disk under the store, the report or the data: the error names the cause, and committed rows are kept.
//!
//! The disk is a small tmpfs. Only root may mount one; for other users the tests are skipped.

mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use common::{Lab, assert_says, names};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tmpfs, unmounted when dropped.
struct Disk {
    at: PathBuf,
}

impl Disk {
    /// A directory with a tmpfs mounted at `disk`; `None` if mounting is not allowed.
    fn mount(size: &str) -> Option<(Lab, Disk)> {
        let lab = Lab::new();
        lab.make_directory("disk");
        let disk = Disk { at: lab.path("disk") };
        if !mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], &disk.at) {
            loopback::skipped("a tmpfs cannot be mounted here");
            return None;
        }
        Some((lab, disk))
    }

    fn remount(&self, options: &str) {
        assert!(mount(&["-o", &format!("remount,{options}")], &self.at), "remount with {options}");
    }

    fn assert_empty(&self) {
        assert_eq!(names(&self.at), Vec::<String>::new(), "an incomplete file is left");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).stderr(std::process::Stdio::null()).status();
    }
}

fn mount(options: &[&str], at: &Path) -> bool {
    let output = Command::new("mount").args(options).arg(at).output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn a_full_disk_under_the_store_keeps_what_was_committed_and_resumes() {
    let Some((lab, disk)) = Disk::mount("640k") else { return };
    // Enough rows to fill the disk.
    let run = |store| {
        format!(
            "run ./tiny.toml --scale 1/256 --set duration=150min --set interval=10s --jobs 1 --store {store}"
        )
    };
    let (out, error) = lab.ends(&run("disk/a.db"), 1);
    assert_says(&error, &["the store disk/a.db cannot be used: ", "make room and run again with `--resume`"]);
    assert_eq!(out, "");
    let (kept, _) = lab.exports("disk/a.db");

    disk.remount("size=64m");
    lab.ok(&(run("disk/a.db") + " --resume"));
    lab.ok(&run("whole.db"));
    let whole = lab.exports("whole.db");
    assert!(lab.exports("disk/a.db") == whole, "a resumed campaign has the rows of an uninterrupted one");
    let is_right = |line| whole.0.lines().any(|other| other == line);
    assert!(kept.lines().all(is_right), "committed rows are right:\n{kept}");
}

#[test]
fn a_report_that_does_not_fit_leaves_the_measurements_in_the_store() {
    let Some((lab, disk)) = Disk::mount("8k") else { return };
    let (_, error) = lab.ends("run ./tiny.toml --scale 1/256 --report disk/report.html", 1);
    assert_says(&error, &["disk/report.html cannot be written", "the measurements are in the store"]);
    disk.assert_empty();
    assert_eq!(lab.exports("lowtide.db").0.lines().count(), 1 + 2 * 40);
    let (_, error) = lab.ends("store export -o disk/all.csv", 1);
    assert_says(&error, &["disk/all.csv cannot be written"]);
    disk.assert_empty();
    for (verb, name) in [("report", "report.html"), ("store export", "all.csv")] {
        let path = format!("disk/{name}");
        lab.write(&path, "old");
        lab.ends(&format!("{verb} -o {path}"), 1);
        assert_eq!((names(&disk.at), lab.read(&path)), (vec![name.to_owned()], "old".to_owned()));
        lab.remove(&path);
    }
}

#[test]
fn data_that_does_not_fit_is_refused_in_advance() {
    let Some((lab, disk)) = Disk::mount("1m") else { return };
    let run = "run ./tiny.toml --target dir:disk --set file_size=8MiB --set duration=1s --set interval=100ms";
    lab.refuses(run, 1, &["disk needs 8.0 MiB free, but its filesystem has 1.0 MiB left"]);
    disk.assert_empty();
}

#[test]
fn a_store_on_a_read_only_filesystem_can_be_read() {
    let Some((lab, disk)) = Disk::mount("8m") else { return };
    let run = "run ./tiny.toml --scale 1/256 --store disk/a#1.db";
    lab.ok(run);
    let before = lab.exports("disk/a#1.db");
    disk.remount("ro");
    assert!(lab.exports("disk/a#1.db") == before);
    assert!(lab.ok("store show --store disk/a#1.db").contains("tiny"));
    for (output, says) in [
        ("--store disk/a#1.db", ["the store disk/a#1.db cannot be used", "may you write there?"]),
        ("--store disk/b.db", ["the store disk/b.db cannot be used", ""]),
        ("--report disk/report.html", ["disk/report.html cannot be written: ", "Read-only file system"]),
    ] {
        lab.refuses(&format!("run ./tiny.toml --scale 1/256 {output}"), 2, &says);
    }
}
