//! `lowtide logdisk serve` with other programs as clients: their writes survive a kill, and damaged blocks read as
//! errors.

use crate::common::{Lab, assert_says, json};
use crate::copies::{assert_copied, image};
use crate::served::{Served, ok, qemu_io, real};
use std::os::unix::fs::FileExt;

const SERVE: &str = "logdisk serve disk.log --unix drive.sock";

fn format(lab: &Lab) {
    lab.ok("logdisk format disk.log --size 128MiB --segment 1MiB");
}

#[test]
fn a_copy_survives_a_kill_and_an_orderly_end() {
    let lab = Lab::new();
    let image = image(&lab);
    format(&lab);
    let mut served = Served::by(&lab, SERVE);
    let uri = served.uri("disk");
    if ok(&lab, "nbdcopy", &format!("--flush image {uri}")).is_none() {
        return;
    }
    served.kill();
    let checked = lab.json("logdisk check disk.log");
    assert_eq!((&checked["good"], &checked["closed_in_order"]), (&true.into(), &false.into()));
    std::fs::remove_file(lab.path("drive.sock")).ok();
    let served = Served::by(&lab, SERVE);
    ok(&lab, "nbdcopy", &format!("{uri} copy"));
    assert_copied(&lab, "copy", &image, "after a kill");
    // So many overwrites force the log disk to clean.
    for n in 1..=6 {
        qemu_io(&lab, &uri, &[&format!("write -P {n} 64M 8M")]);
        ok(&lab, "nbdcopy", &format!("--flush image {uri}"));
    }
    qemu_io(&lab, &uri, &["read -P 6 64M 8M", "discard 64M 8M", "read -P 0 64M 8M"]);
    served.ends_well();
    let scrubbed = lab.json("logdisk scrub disk.log");
    assert_eq!((&scrubbed["good"], &scrubbed["closed_in_order"]), (&true.into(), &true.into()));
    lab.remove("copy");
    let served = Served::by(&lab, &format!("{SERVE} --read-only"));
    ok(&lab, "nbdcopy", &format!("{uri} copy"));
    assert_copied(&lab, "copy", &image, "after an end");
    served.ends_well();
}

#[test]
fn data_survive_an_enlargement_and_the_new_space_is_usable() {
    let lab = Lab::new();
    format(&lab);
    let served = Served::by(&lab, SERVE);
    let uri = served.uri("disk");
    if qemu_io(&lab, &uri, &["write -P 9 0 16M"]).is_none() {
        return;
    }
    lab.refuses("logdisk resize disk.log --size 1GiB", 3, &["is in use"]);
    served.ends_well();
    lab.refuses("logdisk resize disk.log --size 64MiB", 2, &["a log disk can only grow"]);
    lab.refuses("logdisk resize disk.log --size 1TiB", 2, &["this log disk can grow to about"]);
    assert_eq!(std::fs::metadata(lab.path("disk.log")).expect("the file").len(), 128 << 20, "as it was");
    lab.ok("logdisk resize disk.log --size 1GiB --reserve 0.2");
    let checked = lab.json("logdisk check disk.log");
    assert_eq!(checked["good"], true);
    let served = Served::by(&lab, SERVE);
    let commands = ["read -P 9 0 16M", "write -P 10 600M 16M", "read -P 10 600M 16M", "read -P 0 16M 16M"];
    qemu_io(&lab, &uri, &commands);
    served.ends_well();
}

#[test]
fn fio_verifies_random_writes_of_many_sizes() {
    let lab = Lab::new();
    format(&lab);
    let served = Served::by(&lab, SERVE);
    let job = format!(
        "--name=log --ioengine=nbd --rw=randwrite --bsrange=512-64k --size=64m --io_size=300m \
         --verify=crc32c --verify_fatal=1 --fsync=32 --iodepth=8 --randseed=7 --norandommap=0 --uri={}",
        served.uri("disk")
    );
    if ok(&lab, "fio", &job).is_some() {
        served.ends_well();
        let checked = lab.json("logdisk scrub disk.log");
        assert_eq!(checked["good"], true);
    }
}

#[test]
fn a_damaged_block_reads_as_an_error_and_its_neighbours_do_not() {
    let lab = Lab::new();
    format(&lab);
    let served = Served::by(&lab, SERVE);
    let uri = served.uri("disk");
    if qemu_io(&lab, &uri, &["write -P 171 40960 4096", "write -P 5 45056 4096"]).is_none() {
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
    file.write_all_at(&[170], at as u64 + 500).expect("damaged");
    let (out, error) = lab.ends("logdisk scrub disk.log --format json", 1);
    assert_says(&error, &["error: block 10: its checksum is wrong"]);
    assert_eq!(json(&out)["blocks_unreadable"], 1);
    let mut served = Served::by(&lab, SERVE);
    let read = real(&lab, "qemu-io", &["-f", "raw", "-c", "read 40960 4096", &uri]).expect("it is there");
    assert!(String::from_utf8_lossy(&read.stdout).contains("Input/output error"), "{read:?}");
    qemu_io(&lab, &uri, &["read -P 5 45056 4096", "read -P 0 36864 4096"]);
    let (code, error) = served.end();
    assert_eq!(code, Some(0));
    assert_says(&error, &["the first failed request: block 10 cannot be read", "1 unreadable"]);
}

#[test]
fn a_file_with_contents_or_in_use_is_refused() {
    let lab = Lab::new();
    lab.write("notes.txt", "not to be lost");
    lab.refuses(
        "logdisk format notes.txt --size 128MiB",
        3,
        &["notes.txt exists and is not empty", "--overwrite"],
    );
    assert_eq!(lab.read("notes.txt"), "not to be lost");
    lab.refuses("logdisk format none.log", 2, &["there is no file none.log", "--size"]);
    lab.refuses("logdisk format small.log --size 8MiB", 2, &["8388608 bytes are too few"]);
    assert!(!lab.path("small.log").exists(), "nothing is left");
    lab.refuses("logdisk stat notes.txt", 1, &["not a log disk"]);
    format(&lab);
    let served = Served::by(&lab, SERVE);
    for verb in ["check", "scrub"] {
        lab.refuses(&format!("logdisk {verb} disk.log"), 3, &["disk.log is in use"]);
    }
    // `stat` asks the server.
    let live = lab.json("logdisk stat disk.log");
    assert_eq!((&live["name"], &live["blocks_written"]), (&"disk".into(), &0.into()));
    lab.refuses("logdisk format disk.log --overwrite", 3, &["disk.log is in use"]);
    served.ends_well();
    assert_eq!(lab.json("logdisk stat disk.log")["fill"], 0.0);
}

#[test]
fn the_estimated_gain_falls_with_the_fill() {
    let lab = Lab::new();
    let advice = lab.json("logdisk advise --bare 80 --sequential 80MB");
    let rows = advice.as_array().expect("rows");
    let gains: Vec<f64> = rows.iter().map(|row| row["gain"].as_f64().expect("a number")).collect();
    assert_eq!(gains.len(), 10);
    assert!(gains.windows(2).all(|pair| pair[0] > pair[1]) && gains[4] > 100.0, "{gains:?}");
}
