//! Log disks on block devices, and attached as block devices: protection of existing data and of devices in use, and
//! recovery after a killed server and after a power cut below.
//!
//! Without loop devices or FUSE a test is skipped; with `LOWTIDE_REQUIRE_REAL=1` it fails. `logdisk_power` tests
//! databases on log disks.

mod common;

#[path = "common/attached.rs"]
mod attached;
#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use attached::{Attached, can_attach};
use common::{Lab, Running, assert_says, plain};
use loopback::{Loop, run};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

fn stat(lab: &Lab, target: &str) -> Value {
    lab.json(&format!("logdisk stat {target}"))
}

/// Writes a file and syncs it.
fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Serves a log disk at a unix socket.
fn serve(lab: &Lab, target: &str) -> Running {
    let mut child = lab.start(&format!("logdisk serve {target} --unix log.sock"));
    let lines = BufReader::new(child.0.stderr.take().expect("a pipe")).lines();
    let mut text = Vec::new();
    for line in lines {
        text.push(line.expect("UTF-8"));
        if text.last().is_some_and(|line| line.starts_with("serving at ")) {
            return child;
        }
    }
    panic!("it does not serve: {text:?}");
}

#[test]
fn a_device_becomes_a_log_disk_only_when_its_serial_is_typed() {
    let Some(disk) = Loop::new(128, &[]) else { return };
    let lab = Lab::new();
    let node = plain(&disk.node);
    let (serial, before) = (disk.serial(), disk.checksum());
    let format = |more: &str| format!("logdisk format {node} --segment 1MiB {more}");
    lab.refuses(&format(""), 3, &["everything on it will be lost", &format!("--destroy '{serial}'")]);
    lab.refuses(&format("--overwrite"), 3, &["--destroy"]);
    lab.refuses(&format("--destroy another"), 3, &["`--destroy another` was typed"]);
    lab.refuses(&format("--size 64MiB"), 2, &["block device, whose size cannot be chosen"]);
    lab.refuses(&format!("logdisk serve {node} --unix log.sock"), 1, &["not a log disk"]);
    assert_eq!(disk.checksum(), before, "nothing was written");
    let destroy = format(&format!("--destroy {serial}"));
    lab.ok(&destroy);
    assert_eq!(stat(&lab, node)["closed_in_order"], true);
    // A log disk is protected like any other data.
    lab.refuses(&destroy, 3, &["holds a log disk already", "--force-signature"]);
    lab.ok(&format!("{destroy} --force-signature"));
    for verb in ["check", "scrub"] {
        assert_eq!(lab.json(&format!("logdisk {verb} {node}"))["good"], true, "{verb}");
    }
    let on_a_file = format!("logdisk format file.log --size 64MiB --destroy {serial}");
    lab.refuses(&on_a_file, 2, &["file.log is a file, which has no serial"]);
}

#[test]
fn a_filesystem_on_a_device_is_named_and_wiped_only_by_force() {
    let Some(disk) = Loop::new(128, &[]) else { return };
    let lab = Lab::new();
    let node = plain(&disk.node);
    run("mkfs.btrfs", &["-q", node]);
    let before = disk.checksum();
    let format = format!("logdisk format {node} --destroy {}", disk.serial());
    lab.refuses(&format!("{format} --segment 1MiB"), 3, &["it carries a signature of btrfs"]);
    // An invalid size is refused before anything is lost.
    lab.refuses(&format!("{format} --segment 1000 --force-signature"), 2, &[]);
    assert_eq!(disk.checksum(), before, "nothing was written");
    lab.ok(&format!("{format} --segment 1MiB --force-signature"));
    assert_eq!(run("wipefs", &["--no-act", node]), "", "the old signature is left");
}

#[test]
fn a_device_is_held_while_it_is_served_and_refused_while_it_is_in_use() {
    let Some(disk) = Loop::new(128, &[]) else { return };
    let lab = Lab::new();
    let node = plain(&disk.node);
    let serial = disk.serial();
    run("mkfs.ext4", &["-q", node]);
    lab.make_directory("mnt");
    let at = &lab.argument("mnt");
    run("mount", &[node, at]);
    let force = format!("logdisk format {node} --segment 1MiB --destroy {serial} --force-signature");
    let errors =
        [lab.refuses(&force, 3, &[]), lab.refuses(&format!("logdisk serve {node} --unix log.sock"), 3, &[])];
    run("umount", &[at]);
    errors.iter().for_each(|error| assert_says(error, &["is mounted at"]));
    lab.ok(&force);
    let mut served = serve(&lab, node);
    let alone = OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::EXCL.bits() as i32).open(node);
    assert_eq!(alone.expect_err("it is held").kind(), std::io::ErrorKind::ResourceBusy);
    for verb in ["check", "scrub"] {
        lab.refuses(&format!("logdisk {verb} {node}"), 3, &["is in use"]);
    }
    lab.refuses(&force, 3, &["open in lowtide"]);
    lab.refuses(&format!("logdisk serve {node} --unix other.sock"), 3, &["is in use"]);
    let figures = stat(&lab, node);
    assert_eq!((&figures["name"], &figures["blocks_written"]), (&served_name(node).into(), &0.into()));
    served.signal(Signal::TERM);
    assert_eq!(served.wait(), Some(0));
    assert_eq!(stat(&lab, node)["name"], Value::Null, "the server has ended");
}

fn served_name(node: &str) -> String {
    Path::new(node).file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn an_attached_log_disk_carries_a_filesystem_and_reports_its_state() {
    if !can_attach() {
        return;
    }
    let lab = Lab::new();
    let log = Attached::new(&lab, "log");
    let (name, at) = (log.name.as_str(), &lab.argument("mnt"));
    lab.ok("logdisk format disk.log --size 256MiB --segment 1MiB");
    let attach = format!("logdisk attach disk.log --name {name}");
    let detach = format!("drive detach {name}");
    let says = ["/dev/loop", at, &format!("lowtide {detach}")];
    lab.prints(&format!("{attach} --mkfs ext4 --mount {at} -o noatime"), &says);
    assert_eq!(log.listed()["device"], plain(&lab.path("disk.log").canonicalize().expect("there")));
    let data: Vec<u8> = (0..24u32 << 20).map(|n| (n >> 12) as u8 ^ n as u8).collect();
    write_synced(&lab.path("mnt/large"), &data).expect("written");
    for target in [name, "disk.log"] {
        let figures = stat(&lab, target);
        assert_eq!(figures["name"], name, "{target}");
        assert!(figures["blocks_written"].as_u64() > Some(6144), "{figures}");
        assert!(figures["live_bytes"].as_u64() > Some(24 << 20), "{figures}");
        assert!(figures["write_amplification"].as_f64() > Some(1.0), "{figures}");
    }
    lab.prints(&format!("drive stat {name}"), &["free_segments", "blocks_unreadable"]);
    assert_says(&lab.ends(&format!("drive powercut {name}"), 1).1, &["a log disk takes no orders"]);
    let live = || stat(&lab, name)["live_bytes"].as_u64().expect("a number");
    let before = live();
    lab.remove("mnt/large");
    // The removal has to reach the filesystem's log before the blocks can be trimmed.
    run("sync", &["--file-system", at]);
    run("fstrim", &[at]);
    let after = live();
    assert!(after + (20 << 20) < before, "{before} and then {after}");
    write_synced(&lab.path("mnt/kept"), &data[..3 << 20]).expect("written");
    let (_, text) = lab.ends(&format!("drive detach {at}"), 0);
    assert_says(&text, &[&format!("{name} is detached"), &format!("{name}: closed in order")]);
    let figures = stat(&lab, "disk.log");
    assert_eq!((&figures["closed_in_order"], &figures["name"]), (&true.into(), &Value::Null));
    let says = ["disk.log holds", "which ext4 on it would destroy"];
    lab.refuses(&format!("{attach} --mkfs ext4"), 3, &says);
    lab.ok(&format!("{attach} --mount {at}"));
    assert!(lab.read_bytes("mnt/kept") == data[..3 << 20]);
    // After a kill of the server, requests fail and synced data survive.
    write_synced(&lab.path("mnt/synced"), b"before the kill").expect("written");
    kill_process(log.process(), Signal::KILL).expect("killed");
    assert!(write_synced(&lab.path("mnt/late"), b"late").is_err(), "no server answers");
    lab.ok(&detach);
    let checked = lab.json("logdisk check disk.log");
    assert_eq!((&checked["good"], &checked["closed_in_order"]), (&true.into(), &false.into()));
    lab.ok(&format!("{attach} --mount {at} --map-memory 64KiB"));
    assert_eq!(lab.read("mnt/synced"), "before the kill");
    lab.ok(&detach);
}

#[test]
fn a_refused_attachment_leaves_nothing() {
    if !can_attach() {
        return;
    }
    let lab = Lab::new();
    let log = Attached::new(&lab, "log");
    lab.refuses("logdisk attach none.log", 1, &["none.log", "No such file"]);
    lab.write("notes.txt", vec![1; 1 << 20]);
    lab.refuses(&format!("logdisk attach notes.txt --name {}", log.name), 1, &["not a log disk"]);
    lab.ok("logdisk format disk.log --size 64MiB --segment 1MiB");
    lab.ok(&format!("logdisk attach disk.log --name {}", log.name));
    lab.refuses("logdisk attach disk.log --name another", 3, &["disk.log is in use"]);
    lab.refuses("logdisk format disk.log --overwrite", 3, &["disk.log is in use"]);
    lab.ok(&format!("drive detach {}", log.name));
}

/// A power cut of the simulated drive below a log disk: requests fail, and synced data survive.
#[test]
fn after_a_power_cut_below_requests_fail_and_synced_data_survive() {
    if !can_attach() {
        return;
    }
    let lab = Lab::new();
    // Dropped in reverse order: the log disk is detached before its drive.
    let drive = Attached::new(&lab, "drive");
    let log = Attached::new(&lab, "log");
    let device = "drive attach intel-320-160gb --scale 1/256 --no-delay --cache volatile";
    lab.ok(&format!("{device} --name {}", drive.name));
    let (node, serial) = (drive.node(), drive.path("/disk"));
    lab.ok(&format!("logdisk format {node} --segment 1MiB --destroy {}", serial.display()));
    let attach = format!("logdisk attach {node} --name {} --mount {}", log.name, lab.argument("mnt"));
    lab.ok(&format!("{attach} --mkfs xfs"));
    // An attached log disk uses its drive.
    lab.refuses(&format!("drive detach {}", drive.name), 3, &["is in use by"]);
    write_synced(&lab.path("mnt/kept"), &vec![7; 5 << 20]).expect("written");
    // A read error of the drive is a read error of the log disk until the drive's error ends.
    let reads = || {
        let mut dd = std::process::Command::new("dd");
        dd.args(["if=mnt/kept", "of=/dev/null", "bs=1M", "iflag=direct", "status=none"]);
        dd.current_dir(lab.path("")).output().expect("dd runs").status.success()
    };
    lab.ok(&format!("drive fail {} --read-errors all", drive.name));
    assert!(!reads());
    lab.ok(&format!("drive fail {}", drive.name));
    assert!(reads());
    lab.ok(&format!("drive powercut {} --stay-off", drive.name));
    assert!(write_synced(&lab.path("mnt/late"), b"late").is_err(), "no power");
    let (_, text) = lab.ends(&format!("drive detach {} --force", log.name), 0);
    assert_says(&text, &["error: not closed in order"]);
    lab.ok(&format!("drive power-on {}", drive.name));
    lab.ok(&format!("drive attach --again {}", drive.name));
    let node = drive.node();
    let checked = lab.json(&format!("logdisk check {node}"));
    assert_eq!((&checked["good"], &checked["closed_in_order"]), (&true.into(), &false.into()));
    lab.ok(&attach);
    assert!(lab.read_bytes("mnt/kept") == vec![7; 5 << 20]);
    lab.ok(&format!("drive detach {}", log.name));
    lab.ok(&format!("drive detach {}", drive.name));
}
