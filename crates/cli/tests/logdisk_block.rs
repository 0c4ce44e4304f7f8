//! Log disks on block devices, and as block devices: what is destroyed only by name, what is in use, what survives a killed
//! server and a drive without power, and what is told meanwhile.
//!
//! Where the machine has no loop devices or FUSE, a test says that it was skipped; with `LOWTIDE_REQUIRE_REAL=1` it fails. Leaves
//! out databases on them (`logdisk_power`).

mod common;

#[path = "common/attached.rs"]
mod attached;
#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use attached::{Attached, can_attach};
use common::{Lab, Running, assert_says};
use loopback::{Loop, run};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A figure of an answer in JSON.
fn figure(text: &str, key: &str) -> Value {
    let all: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    all[key].clone()
}

fn stat(lab: &Lab, target: &str) -> String {
    lab.ok(&["logdisk", "stat", target, "--format", "json"])
}

/// Writes a file that is durable when this returns.
fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A log disk that is served at a unix socket beside the test.
fn serve(lab: &Lab, target: &str) -> Running {
    let arguments = ["logdisk", "serve", target, "--unix", "log.sock"];
    let mut child = Running(lab.command(&arguments).spawn().expect("lowtide starts"));
    let lines = BufReader::new(child.0.stderr.take().expect("a pipe")).lines();
    let mut said = Vec::new();
    for line in lines {
        said.push(line.expect("UTF-8"));
        if said.last().is_some_and(|line| line.starts_with("serving at ")) {
            return child;
        }
    }
    panic!("it does not serve: {said:?}");
}

#[test]
fn a_device_becomes_a_log_disk_only_when_its_serial_is_typed() {
    let Some(disk) = Loop::new(128, &[]) else { return };
    let lab = Lab::new();
    let node = disk.node.to_str().expect("plain");
    let (serial, before) = (disk.serial(), disk.checksum());
    let format =
        |more: &[&'static str]| [&["logdisk", "format", node, "--segment", "1MiB"][..], more].concat();
    let error = lab.refuses(&format(&[]), 3);
    assert_says(&error, &["everything on it will be lost", &format!("--destroy '{serial}'")]);
    assert_says(&lab.refuses(&format(&["--overwrite"]), 3), &["--destroy"]);
    assert_says(&lab.refuses(&format(&["--destroy", "another"]), 3), &["`--destroy another` was typed"]);
    assert_says(
        &lab.refuses(&format(&["--size", "64MiB"]), 2),
        &["block device, whose size cannot be chosen"],
    );
    let error = lab.refuses(&["logdisk", "serve", node, "--unix", "log.sock"], 1);
    assert_says(&error, &["not a log disk"]);
    assert_eq!(disk.checksum(), before, "nothing was written");
    let all = ["logdisk", "format", node, "--segment", "1MiB", "--destroy", &serial];
    lab.ok(&all);
    assert_eq!(figure(&stat(&lab, node), "closed_in_order"), true);
    // Another one is not made over it in passing.
    assert_says(&lab.refuses(&all, 3), &["holds a log disk already", "--force-signature"]);
    lab.ok(&[&all[..], &["--force-signature"]].concat());
    for verb in ["check", "scrub"] {
        assert_eq!(figure(&lab.ok(&["logdisk", verb, node, "--format", "json"]), "good"), true, "{verb}");
    }
    let error = lab.refuses(&["logdisk", "format", "file.log", "--size", "64MiB", "--destroy", &serial], 2);
    assert_says(&error, &["file.log is a file, which has no serial"]);
}

#[test]
fn what_a_device_carries_is_told_and_wiped_only_by_force() {
    let Some(disk) = Loop::new(128, &[]) else { return };
    let lab = Lab::new();
    let node = disk.node.to_str().expect("plain");
    run("mkfs.btrfs", &["-q", node]);
    let (serial, before) = (disk.serial(), disk.checksum());
    let all = ["logdisk", "format", node, "--segment", "1MiB", "--destroy", &serial];
    assert_says(&lab.refuses(&all, 3), &["it carries a signature of btrfs"]);
    // A size that cannot be is told before anything is lost.
    let odd = ["--segment", "1000", "--force-signature"];
    lab.refuses(&[&["logdisk", "format", node, "--destroy", &serial], &odd[..]].concat(), 2);
    assert_eq!(disk.checksum(), before, "nothing was written");
    lab.ok(&[&all[..], &["--force-signature"]].concat());
    assert_eq!(run("wipefs", &["--no-act", node]), "", "nobody takes it for what it was");
}

#[test]
fn a_device_is_held_while_it_is_served_and_not_opened_while_it_is_in_use() {
    let Some(disk) = Loop::new(128, &[]) else { return };
    let lab = Lab::new();
    let node = disk.node.to_str().expect("plain");
    let serial = disk.serial();
    run("mkfs.ext4", &["-q", node]);
    let at = lab.path("mnt");
    fs::create_dir(&at).expect("made");
    let at = at.to_str().expect("plain");
    run("mount", &[node, at]);
    let force = ["logdisk", "format", node, "--destroy", &serial, "--force-signature"];
    let errors = [lab.refuses(&force, 3), lab.refuses(&["logdisk", "serve", node, "--unix", "log.sock"], 3)];
    run("umount", &[at]);
    errors.iter().for_each(|error| assert_says(error, &["is mounted at"]));
    lab.ok(&["logdisk", "format", node, "--segment", "1MiB", "--destroy", &serial, "--force-signature"]);
    let mut served = serve(&lab, node);
    let alone = OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::EXCL.bits() as i32).open(node);
    assert_eq!(alone.expect_err("it is held").kind(), std::io::ErrorKind::ResourceBusy);
    for verb in ["check", "scrub"] {
        assert_says(&lab.refuses(&["logdisk", verb, node], 3), &["is in use"]);
    }
    assert_says(&lab.refuses(&force, 3), &["open in lowtide"]);
    assert_says(&lab.refuses(&["logdisk", "serve", node, "--unix", "other.sock"], 3), &["is in use"]);
    let figures = stat(&lab, node);
    assert_eq!(
        (figure(&figures, "name"), figure(&figures, "blocks_written")),
        (served_name(node).into(), 0.into())
    );
    served.signal(Signal::TERM);
    assert_eq!(served.wait(), Some(0));
    assert_eq!(figure(&stat(&lab, node), "name"), Value::Null, "nobody serves it any more");
}

fn served_name(node: &str) -> String {
    Path::new(node).file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn an_attached_log_disk_carries_a_filesystem_and_says_how_it_is() {
    if !can_attach() {
        return;
    }
    let lab = Lab::new();
    let log = Attached::new(&lab, "log");
    let (name, at) = (log.name.as_str(), lab.path("mnt"));
    let at = at.to_str().expect("plain");
    lab.ok(&["logdisk", "format", "disk.log", "--size", "256MiB", "--segment", "1MiB"]);
    let attach = ["logdisk", "attach", "disk.log", "--name", name];
    let told = lab.ok(&[&attach[..], &["--mkfs", "ext4", "--mount", at, "-o", "noatime"]].concat());
    assert_says(&told, &["/dev/loop", at, &format!("lowtide drive detach {name}")]);
    assert_eq!(
        log.listed()["device"],
        lab.path("disk.log").canonicalize().expect("there").to_str().expect("plain")
    );
    let data: Vec<u8> = (0..24u32 << 20).map(|n| (n >> 12) as u8 ^ n as u8).collect();
    write_synced(&lab.path("mnt/large"), &data).expect("written");
    for target in [name, "disk.log"] {
        let figures = stat(&lab, target);
        assert_eq!(figure(&figures, "name"), name, "{target}");
        assert!(figure(&figures, "blocks_written").as_u64() > Some(6144), "{figures}");
        assert!(figure(&figures, "live_bytes").as_u64() > Some(24 << 20), "{figures}");
        assert!(figure(&figures, "write_amplification").as_f64() > Some(1.0), "{figures}");
    }
    let plain = lab.ok(&["drive", "stat", name]);
    assert_says(&plain, &["free_segments", "blocks_unreadable"]);
    assert_says(&lab.ends(&["drive", "powercut", name], 1).1, &["a log disk takes no orders"]);
    // What is trimmed is not live any more.
    let live = |text: &str| figure(text, "live_bytes").as_u64().expect("a number");
    let before = live(&stat(&lab, name));
    fs::remove_file(lab.path("mnt/large")).expect("removed");
    // What was removed is free when the filesystem's log says so.
    run("sync", &["--file-system", at]);
    run("fstrim", &[at]);
    let after = live(&stat(&lab, name));
    assert!(after + (20 << 20) < before, "{before} and then {after}");
    write_synced(&lab.path("mnt/kept"), &data[..3 << 20]).expect("written");
    let (_, said) = lab.ends(&["drive", "detach", at], 0);
    assert_says(&said, &[&format!("{name} is detached"), &format!("{name}: closed in order")]);
    let figures = stat(&lab, "disk.log");
    assert_eq!((figure(&figures, "closed_in_order"), figure(&figures, "name")), (true.into(), Value::Null));
    let error = lab.refuses(&[&attach[..], &["--mkfs", "ext4"]].concat(), 3);
    assert_says(&error, &["disk.log holds", "which ext4 on it would destroy"]);
    lab.ok(&[&attach[..], &["--mount", at]].concat());
    assert!(fs::read(lab.path("mnt/kept")).expect("read") == data[..3 << 20]);
    // A killed server: requests fail, and what was synced is there.
    write_synced(&lab.path("mnt/synced"), b"before the kill").expect("written");
    kill_process(log.process(), Signal::KILL).expect("killed");
    assert!(write_synced(&lab.path("mnt/late"), b"late").is_err(), "nobody answers any more");
    lab.ok(&["drive", "detach", name]);
    let checked = lab.ok(&["logdisk", "check", "disk.log", "--format", "json"]);
    assert_eq!((figure(&checked, "good"), figure(&checked, "closed_in_order")), (true.into(), false.into()));
    lab.ok(&[&attach[..], &["--mount", at, "--map-memory", "64KiB"]].concat());
    assert_eq!(lab.read("mnt/synced"), "before the kill");
    lab.ok(&["drive", "detach", name]);
}

#[test]
fn what_cannot_be_attached_is_told_and_leaves_nothing() {
    if !can_attach() {
        return;
    }
    let lab = Lab::new();
    let log = Attached::new(&lab, "log");
    assert_says(&lab.refuses(&["logdisk", "attach", "none.log"], 1), &["none.log", "No such file"]);
    lab.write("notes.txt", vec![1; 1 << 20]);
    let error = lab.refuses(&["logdisk", "attach", "notes.txt", "--name", &log.name], 1);
    assert_says(&error, &["not a log disk"]);
    lab.ok(&["logdisk", "format", "disk.log", "--size", "64MiB", "--segment", "1MiB"]);
    lab.ok(&["logdisk", "attach", "disk.log", "--name", &log.name]);
    let error = lab.refuses(&["logdisk", "attach", "disk.log", "--name", "another"], 3);
    assert_says(&error, &["disk.log is in use"]);
    let error = lab.refuses(&["logdisk", "format", "disk.log", "--overwrite"], 3);
    assert_says(&error, &["disk.log is in use"]);
    lab.ok(&["drive", "detach", &log.name]);
}

/// A log disk on a simulated drive whose power is cut: errors, not silence, and afterwards what was synced.
#[test]
fn a_medium_without_power_is_an_error_above_and_not_the_end() {
    if !can_attach() {
        return;
    }
    let lab = Lab::new();
    // What is made last is dropped first.
    let drive = Attached::new(&lab, "drive");
    let log = Attached::new(&lab, "log");
    let device =
        ["drive", "attach", "intel-320-160gb", "--scale", "1/256", "--no-delay", "--cache", "volatile"];
    lab.ok(&[&device[..], &["--name", &drive.name]].concat());
    let node = drive.node();
    let serial = drive.path("/disk");
    lab.ok(&["logdisk", "format", &node, "--segment", "1MiB", "--destroy", serial.to_str().expect("plain")]);
    let at = lab.path("mnt");
    let attach = ["logdisk", "attach", &node, "--name", &log.name, "--mount", at.to_str().expect("plain")];
    lab.ok(&[&attach[..], &["--mkfs", "xfs"]].concat());
    // Its drive is in use as long as it is attached.
    assert_says(&lab.refuses(&["drive", "detach", &drive.name], 3), &["is in use by"]);
    write_synced(&lab.path("mnt/kept"), &vec![7; 5 << 20]).expect("written");
    // A read that fails below fails above, and the next one does not.
    let past_the_page_cache = ["if=mnt/kept", "of=/dev/null", "bs=1M", "iflag=direct", "status=none"];
    let reads = || {
        let mut dd = std::process::Command::new("dd");
        dd.args(past_the_page_cache).current_dir(lab.path("")).output().expect("dd").status.success()
    };
    lab.ok(&["drive", "fail", &drive.name, "--read-errors", "all"]);
    assert!(!reads());
    lab.ok(&["drive", "fail", &drive.name]);
    assert!(reads());
    lab.ok(&["drive", "powercut", &drive.name, "--stay-off"]);
    assert!(write_synced(&lab.path("mnt/late"), b"late").is_err(), "an error comes");
    let (_, said) = lab.ends(&["drive", "detach", &log.name, "--force"], 0);
    assert_says(&said, &["error: it was not closed in order"]);
    lab.ok(&["drive", "power-on", &drive.name]);
    lab.ok(&["drive", "attach", "--again", &drive.name]);
    let node = drive.node();
    let checked = lab.ok(&["logdisk", "check", &node, "--format", "json"]);
    assert_eq!((figure(&checked, "good"), figure(&checked, "closed_in_order")), (true.into(), false.into()));
    lab.ok(&attach);
    assert!(fs::read(lab.path("mnt/kept")).expect("read") == vec![7; 5 << 20]);
    lab.ok(&["drive", "detach", &log.name]);
    lab.ok(&["drive", "detach", &drive.name]);
}
