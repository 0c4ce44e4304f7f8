//! `lowtide logdisk` met by real clients: what they wrote is there, also after a kill; what is spoiled is an error.

use crate::common::{Lab, assert_says};
use crate::copies::{assert_copied, image};
use crate::served::{Served, ok, real};
use std::os::unix::fs::FileExt;

const SERVE: [&str; 5] = ["logdisk", "serve", "disk.log", "--unix", "drive.sock"];

fn format(lab: &Lab) {
    lab.ok(&["logdisk", "format", "disk.log", "--size", "128MiB", "--segment", "1MiB"]);
}

/// A figure that `stat`, `check` or `scrub` tells.
fn figure(text: &str, key: &str) -> serde_json::Value {
    let all: serde_json::Value = serde_json::from_str(text).expect("JSON");
    all[key].clone()
}

#[test]
fn what_was_copied_is_there_after_a_kill_and_after_an_end() {
    let lab = Lab::new();
    let image = image(&lab);
    format(&lab);
    let mut served = Served::start_plain(&lab, &SERVE);
    let uri = served.uri("disk");
    if ok(&lab, "nbdcopy", &["--flush", "image", &uri]).is_none() {
        return;
    }
    served.kill();
    let checked = lab.ok(&["logdisk", "check", "disk.log", "--format", "json"]);
    assert_eq!((figure(&checked, "good"), figure(&checked, "closed_in_order")), (true.into(), false.into()));
    std::fs::remove_file(lab.path("drive.sock")).ok();
    let served = Served::start_plain(&lab, &SERVE);
    ok(&lab, "nbdcopy", &[&uri, "copy"]);
    assert_copied(&lab, "copy", &image, "after a kill");
    // Over and over, so that the cleaner has to do with it, and something else beside.
    for n in 0..6 {
        ok(&lab, "qemu-io", &["-f", "raw", "-c", &format!("write -P {} 64M 8M", n + 1), &uri]);
        ok(&lab, "nbdcopy", &["--flush", "image", &uri]);
    }
    ok(
        &lab,
        "qemu-io",
        &["-f", "raw", "-c", "read -P 6 64M 8M", "-c", "discard 64M 8M", "-c", "read -P 0 64M 8M", &uri],
    );
    served.ends_well();
    let scrubbed = lab.ok(&["logdisk", "scrub", "disk.log", "--format", "json"]);
    assert_eq!((figure(&scrubbed, "good"), figure(&scrubbed, "closed_in_order")), (true.into(), true.into()));
    std::fs::remove_file(lab.path("copy")).expect("removed");
    let served = Served::start_plain(&lab, &[&SERVE[..], &["--read-only"]].concat());
    ok(&lab, "nbdcopy", &[&uri, "copy"]);
    assert_copied(&lab, "copy", &image, "after an end");
    served.ends_well();
}

#[test]
fn what_was_written_is_there_after_the_disk_became_larger_and_more_can_be() {
    let lab = Lab::new();
    format(&lab);
    let served = Served::start_plain(&lab, &SERVE);
    let uri = served.uri("disk");
    let qemu_io = |commands: &[&str]| {
        let commands: Vec<&str> = commands.iter().flat_map(|command| ["-c", command]).collect();
        ok(&lab, "qemu-io", &[&["-f", "raw"], &commands[..], &[&uri]].concat())
    };
    if qemu_io(&["write -P 9 0 16M"]).is_none() {
        return;
    }
    let (_, error) = lab.ends(&["logdisk", "resize", "disk.log", "--size", "1GiB"], 3);
    assert_says(&error, &["is in use"]);
    served.ends_well();
    let (_, error) = lab.ends(&["logdisk", "resize", "disk.log", "--size", "64MiB"], 2);
    assert_says(&error, &["a log disk can only grow"]);
    let (_, error) = lab.ends(&["logdisk", "resize", "disk.log", "--size", "1TiB"], 2);
    assert_says(&error, &["it can grow to about"]);
    assert_eq!(std::fs::metadata(lab.path("disk.log")).expect("the file").len(), 128 << 20, "as it was");
    lab.ok(&["logdisk", "resize", "disk.log", "--size", "1GiB", "--reserve", "0.2"]);
    let checked = lab.ok(&["logdisk", "check", "disk.log", "--format", "json"]);
    assert_eq!(figure(&checked, "good"), true);
    let served = Served::start_plain(&lab, &SERVE);
    qemu_io(&["read -P 9 0 16M", "write -P 10 600M 16M", "read -P 10 600M 16M", "read -P 0 16M 16M"]);
    served.ends_well();
}

#[test]
fn fio_finds_what_it_wrote_at_random_in_pieces_of_many_sizes() {
    let lab = Lab::new();
    format(&lab);
    let served = Served::start_plain(&lab, &SERVE);
    let uri = format!("--uri={}", served.uri("disk"));
    let job = [
        "--name=log",
        "--ioengine=nbd",
        "--rw=randwrite",
        "--bsrange=512-64k",
        "--size=64m",
        "--io_size=300m",
    ];
    let more = [
        "--verify=crc32c",
        "--verify_fatal=1",
        "--fsync=32",
        "--iodepth=8",
        "--randseed=7",
        "--norandommap=0",
        &uri,
    ];
    if ok(&lab, "fio", &[&job[..], &more].concat()).is_some() {
        served.ends_well();
        let checked = lab.ok(&["logdisk", "scrub", "disk.log", "--format", "json"]);
        assert_eq!(figure(&checked, "good"), true);
    }
}

#[test]
fn a_spoiled_block_is_an_error_and_its_neighbours_are_not() {
    let lab = Lab::new();
    format(&lab);
    let served = Served::start_plain(&lab, &SERVE);
    let uri = served.uri("disk");
    if ok(
        &lab,
        "qemu-io",
        &["-f", "raw", "-c", "write -P 171 40960 4096", "-c", "write -P 5 45056 4096", &uri],
    )
    .is_none()
    {
        return;
    }
    served.ends_well();
    let file = std::fs::File::options().read(true).write(true).open(lab.path("disk.log")).expect("the file");
    let mut bytes = vec![0; 128 << 20];
    file.read_exact_at(&mut bytes, 0).expect("read");
    let at = bytes
        .windows(1000)
        .position(|window| window.iter().all(|&byte| byte == 171))
        .expect("it was written");
    file.write_all_at(&[170], at as u64 + 500).expect("spoiled");
    let (out, error) = lab.ends(&["logdisk", "scrub", "disk.log", "--format", "json"], 1);
    assert_says(&error, &["error: block 10: its checksum does not fit"]);
    assert_eq!(figure(&out, "blocks_unreadable"), 1);
    let mut served = Served::start_plain(&lab, &SERVE);
    let read = real(&lab, "qemu-io", &["-f", "raw", "-c", "read 40960 4096", &uri]).expect("it is there");
    assert!(String::from_utf8_lossy(&read.stdout).contains("Input/output error"), "{read:?}");
    ok(&lab, "qemu-io", &["-f", "raw", "-c", "read -P 5 45056 4096", "-c", "read -P 0 36864 4096", &uri]);
    let (code, said) = served.end();
    assert_eq!(code, Some(0));
    assert_says(&said, &["a request failed first with: block 10 cannot be read", "1 unreadable"]);
}

#[test]
fn a_file_that_holds_something_or_is_in_use_is_refused() {
    let lab = Lab::new();
    lab.write("notes.txt", "not to be lost");
    let error = lab.refuses(&["logdisk", "format", "notes.txt", "--size", "128MiB"], 3);
    assert_says(&error, &["notes.txt exists and is not empty", "--overwrite"]);
    assert_eq!(lab.read("notes.txt"), "not to be lost");
    let error = lab.refuses(&["logdisk", "format", "none.log"], 2);
    assert_says(&error, &["there is no file none.log", "--size"]);
    let error = lab.refuses(&["logdisk", "format", "small.log", "--size", "8MiB"], 2);
    assert_says(&error, &["8388608 bytes are too few"]);
    assert!(!lab.path("small.log").exists(), "nothing is left");
    let error = lab.refuses(&["logdisk", "stat", "notes.txt"], 1);
    assert_says(&error, &["not a log disk"]);
    format(&lab);
    let served = Served::start_plain(&lab, &SERVE);
    for verb in ["check", "scrub"] {
        assert_says(&lab.refuses(&["logdisk", verb, "disk.log"], 3), &["disk.log is in use"]);
    }
    // Who serves it says how it is.
    let live = lab.ok(&["logdisk", "stat", "disk.log", "--format", "json"]);
    assert_eq!((figure(&live, "name"), figure(&live, "blocks_written")), ("disk".into(), 0.into()));
    let error = lab.refuses(&["logdisk", "format", "disk.log", "--overwrite"], 3);
    assert_says(&error, &["disk.log is in use"]);
    served.ends_well();
    assert_eq!(figure(&lab.ok(&["logdisk", "stat", "disk.log", "--format", "json"]), "fill"), 0.0);
}

#[test]
fn advice_grows_smaller_the_fuller_the_disk() {
    let lab = Lab::new();
    let advice = lab.ok(&["logdisk", "advise", "--bare", "80", "--sequential", "80MB", "--format", "json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&advice).expect("JSON");
    let gains: Vec<f64> = rows.iter().map(|row| row["gain"].as_f64().expect("a number")).collect();
    assert_eq!(gains.len(), 10);
    assert!(gains.windows(2).all(|pair| pair[0] > pair[1]) && gains[4] > 100.0, "{gains:?}");
}
