//! A directory and a file of this machine as the target: something is measured, and the test files are gone afterwards.

mod common;

use common::{Lab, Running, done_and_begun, names, wait_until};
use rustix::process::Signal;

/// `disk-quick`, a second long on 4 MiB.
const QUICK: [&str; 10] = [
    "--set",
    "pattern=random-write",
    "--set",
    "file_size=4MiB",
    "--set",
    "threads=2",
    "--set",
    "interval=50ms",
    "--set",
    "duration=600ms",
];

fn quick(lab: &Lab, target: &str) -> String {
    let answer =
        lab.ok(&[&["run", "disk-quick", "--target", target, "--format", "json"], &QUICK[..]].concat());
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("one JSON object");
    assert!(answer.is_object(), "{answer}");
    lab.ok(&["store", "export", "--format", "csv"])
}

/// Bytes written in all intervals of an export.
fn written(csv: &str) -> u64 {
    let column = csv.lines().next().and_then(|head| head.split(',').position(|name| name == "write_bytes"));
    let column = column.expect("there is a column `write_bytes`");
    csv.lines()
        .skip(1)
        .map(|line| line.split(',').nth(column).expect("a value").parse::<u64>().expect("bytes"))
        .sum()
}

#[test]
fn a_directory_is_measured_and_left_as_it_was() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("disk")).expect("a directory can be made");
    std::fs::write(lab.path("disk/precious"), "mine").expect("a file can be written");
    let csv = quick(&lab, "dir:disk");
    assert!(csv.lines().count() > 5 && written(&csv) > 0, "{csv}");
    assert_eq!(names(&lab.path("disk")), ["precious"]);
    assert_eq!(lab.read("disk/precious"), "mine");
}

#[test]
fn a_file_is_measured_and_gone() {
    let lab = Lab::new();
    let csv = quick(&lab, "file:data");
    assert!(csv.lines().count() > 5 && written(&csv) > 0, "{csv}");
    assert!(!lab.path("data").exists());
}

/// Starts a long measurement in `disk` and ends it by a signal once it has rows.
fn broken_off(lab: &Lab, signal: Signal) -> Option<i32> {
    std::fs::create_dir(lab.path("disk")).expect("a directory can be made");
    let mut arguments = [&["run", "disk-quick", "--target", "dir:disk"], &QUICK[..8]].concat();
    arguments.extend(["--set", "duration=1h"]);
    let mut child = Running(lab.command(&arguments).spawn().expect("lowtide starts"));
    let store = lab.path("lowtide.db");
    assert!(wait_until(&mut child, || done_and_begun(&store).1 > 0), "it is running");
    assert!(!names(&lab.path("disk")).is_empty(), "there is a test file");
    child.signal(signal);
    child.wait()
}

#[test]
fn an_interrupt_removes_the_test_files() {
    let lab = Lab::new();
    assert_eq!(broken_off(&lab, Signal::INT), Some(130));
    assert_eq!(names(&lab.path("disk")), Vec::<String>::new());
    assert!(written(&lab.ok(&["store", "export"])) > 0, "what was measured is kept");
}

#[test]
fn the_next_run_takes_over_what_a_killed_one_left() {
    let lab = Lab::new();
    assert_eq!(broken_off(&lab, Signal::KILL), None);
    let left = names(&lab.path("disk"));
    assert!(written(&quick(&lab, "dir:disk")) > 0);
    assert!(names(&lab.path("disk")).len() <= left.len(), "nothing is added to {left:?}");
}

#[test]
fn what_a_killed_run_left_is_gone_after_the_next() {
    let lab = Lab::new();
    assert_eq!(broken_off(&lab, Signal::KILL), None);
    assert!(written(&quick(&lab, "dir:disk")) > 0);
    assert_eq!(names(&lab.path("disk")), Vec::<String>::new());
}
