//! A directory or a file of this machine as the target: the campaign has rows, and its test files are removed.

mod common;

use common::{Lab, done_and_begun, names, rows};
use rustix::process::Signal;

/// The command of a short `disk-quick` on 4 MiB.
fn quick(target: &str, duration: &str) -> String {
    format!(
        "run disk-quick --target {target} --set pattern=random-write --set file_size=4MiB --set threads=2 \
         --set interval=50ms --set duration={duration}"
    )
}

/// Runs the short `disk-quick`; returns the exported rows.
fn measured(lab: &Lab, target: &str) -> String {
    let answer = lab.json(&quick(target, "600ms"));
    assert!(answer.is_object(), "{answer}");
    lab.ok("store export --format csv")
}

/// Bytes written in all intervals of an exported CSV.
fn written(csv: &str) -> u64 {
    let rows = rows(csv);
    rows.iter().map(|row| row["write_bytes"].parse::<u64>().expect("bytes")).sum()
}

#[test]
fn a_directory_is_measured_and_left_as_it_was() {
    let lab = Lab::new();
    lab.make_directory("disk");
    lab.write("disk/precious", "mine");
    let csv = measured(&lab, "dir:disk");
    assert!(csv.lines().count() > 5 && written(&csv) > 0, "{csv}");
    assert_eq!(names(&lab.path("disk")), ["precious"]);
    assert_eq!(lab.read("disk/precious"), "mine");
}

#[test]
fn a_file_is_measured_and_removed() {
    let lab = Lab::new();
    let csv = measured(&lab, "file:data");
    assert!(csv.lines().count() > 5 && written(&csv) > 0, "{csv}");
    assert!(!lab.path("data").exists());
}

/// Starts a long measurement in `disk` and ends it with a signal once it has rows; returns its exit code.
fn broken_off(lab: &Lab, signal: Signal) -> Option<i32> {
    lab.make_directory("disk");
    let mut child = lab.start(&quick("dir:disk", "1h"));
    let store = lab.path("lowtide.db");
    child.reaches("rows", || done_and_begun(&store).1 > 0);
    assert!(!names(&lab.path("disk")).is_empty(), "there is a test file");
    child.signal(signal);
    child.wait()
}

#[test]
fn an_interrupt_removes_the_test_files() {
    let lab = Lab::new();
    assert_eq!(broken_off(&lab, Signal::INT), Some(130));
    assert_eq!(names(&lab.path("disk")), Vec::<String>::new());
    assert!(written(&lab.ok("store export")) > 0, "measured rows are kept");
}

#[test]
fn the_next_run_removes_the_test_files_of_a_killed_one() {
    let lab = Lab::new();
    assert_eq!(broken_off(&lab, Signal::KILL), None);
    assert!(written(&measured(&lab, "dir:disk")) > 0);
    assert_eq!(names(&lab.path("disk")), Vec::<String>::new());
}
