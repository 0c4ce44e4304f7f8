//! A log disk whose flushed end was damaged after a kill: what `check`, `scrub`, `stat` and `repair` report,
//! and its state afterwards.

mod common;

use common::{Lab, assert_says};
use lowtide_live::logdisk::FileMedium;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::{BLOCK, Disk, LogError};
use std::fs::File;
use std::os::unix::fs::FileExt;

fn file(lab: &Lab) -> File {
    File::options().read(true).write(true).open(lab.path("disk.log")).expect("the file")
}

fn open(lab: &Lab) -> Result<Disk<FileMedium>, LogError> {
    Disk::open(FileMedium::new(file(lab), false).expect("a size"), Running::default())
}

fn block_of(lba: u32, value: u8) -> [u8; BLOCK] {
    let mut block = [value; BLOCK];
    block[..4].copy_from_slice(&lba.to_le_bytes());
    block
}

/// Formats a log disk, writes its first blocks twice with a flush after each time, and leaves it as a kill
/// does; returns where the newest data of the first and of the last of them lie.
fn killed(lab: &Lab, blocks: u32) -> (u64, u64) {
    lab.ok(&["logdisk", "format", "disk.log", "--size", "64MiB", "--segment", "1MiB"]);
    let mut disk = open(lab).expect("opened");
    for value in 1..=2 {
        (0..blocks).for_each(|lba| disk.write(lba, &block_of(lba, value)).expect("written"));
        disk.flush().expect("flushed");
    }
    drop(disk);
    let mut bytes = vec![0; 64 << 20];
    file(lab).read_exact_at(&mut bytes, 0).expect("read");
    let find = |lba| {
        let wanted = block_of(lba, 2);
        bytes.windows(64).rposition(|window| window == &wanted[..64]).expect("it was written") as u64
    };
    (find(0), find(blocks - 1))
}

fn figure(text: &str, key: &str) -> serde_json::Value {
    let all: serde_json::Value = serde_json::from_str(text).expect("JSON");
    all[key].clone()
}

#[test]
fn one_block_that_was_spoiled_is_named_by_all_that_look_and_is_an_error_and_not_older() {
    let lab = Lab::new();
    let (_, last) = killed(&lab, 12);
    for verb in ["stat", "check", "scrub"] {
        let told = lab.ok(&["logdisk", verb, "disk.log", "--format", "json"]);
        assert_eq!(figure(&told, "damaged_blocks"), 0, "{verb}");
    }
    assert_eq!(
        lab.ok(&["logdisk", "repair", "disk.log"]).lines().next().map(|line| &line[..17]),
        Some("nothing to repair")
    );
    file(&lab).write_all_at(&[99], last + 1000).expect("spoiled");
    for verb in ["stat", "check", "scrub"] {
        let (out, error) = lab.ends(&["logdisk", verb, "disk.log", "--format", "json"], 1);
        assert_says(&error, &["damaged: 1 block of the flushed end", "an error until it is written again"]);
        assert_eq!(figure(&out, "damaged_blocks"), 1, "{verb}");
    }
    let before = std::fs::read(lab.path("disk.log")).expect("read");
    let (out, _) = lab.ends(&["logdisk", "repair", "disk.log"], 1);
    assert!(out.starts_with("damaged: 1 block of the flushed end"), "{out}");
    assert_says(&out, &["nothing was changed: `--accept-old-data`"]);
    assert!(before == std::fs::read(lab.path("disk.log")).expect("read"), "nothing was changed");
    let out = lab.ok(&["logdisk", "repair", "disk.log", "--accept-old-data"]);
    assert_eq!(out, "repaired: 1 block lost\n1 block: an error until it is written again\n");
    lab.ok(&["logdisk", "stat", "disk.log"]);
    let (out, _) = lab.ends(&["logdisk", "check", "disk.log", "--format", "json"], 1);
    assert_eq!((figure(&out, "blocks_lost_before"), figure(&out, "blocks")), (1.into(), 11.into()));
    let mut disk = open(&lab).expect("opened");
    let mut block = [0; BLOCK];
    for lba in 0..11 {
        disk.read(lba, &mut block).expect("read");
        assert!(block == block_of(lba, 2), "block {lba}");
    }
    assert!(matches!(disk.read(11, &mut block), Err(LogError::Unreadable(11))));
    disk.write(11, &block_of(11, 3)).expect("written");
    disk.close().expect("closed");
    assert_eq!(figure(&lab.ok(&["logdisk", "scrub", "disk.log", "--format", "json"]), "good"), true);
}

#[test]
fn where_nobody_knows_what_was_spoiled_it_is_not_opened_until_older_data_is_accepted() {
    let lab = Lab::new();
    let (first, last) = killed(&lab, 600);
    let end = (last + 4096).next_multiple_of(4096);
    // Three segments of 1 MiB; a mark lists 248 slots, of which two are the end of a segment and the beginning of the next.
    file(&lab).write_all_at(&vec![0; (end - first) as usize], first).expect("spoiled");
    for verb in ["stat", "check", "scrub"] {
        let (out, error) = lab.ends(&["logdisk", verb, "disk.log", "--format", "json"], 1);
        assert_says(
            &error,
            &[
                "damaged: 60",
                "nothing says which that is",
                "lowtide logdisk repair disk.log --accept-old-data",
            ],
        );
        assert_eq!(figure(&out, "good"), false, "{verb}");
    }
    assert!(matches!(open(&lab), Err(LogError::Damaged(_))));
    let error = lab.refuses(&["logdisk", "serve", "disk.log", "--unix", "drive.sock"], 1);
    assert_says(&error, &["opening would return old data", "restore a copy", "--accept-old-data"]);
    let out = lab.ok(&["logdisk", "repair", "disk.log", "--accept-old-data"]);
    assert!(out.starts_with("repaired: 60"), "{out}");
    assert_says(
        &out,
        &["246 blocks: an error until it is written again", "whatever was there may read as older data"],
    );
    let (out, _) = lab.ends(&["logdisk", "check", "disk.log", "--format", "json"], 1);
    assert_eq!((figure(&out, "contradictions"), figure(&out, "blocks_lost_before")), (0.into(), 246.into()));
    let mut disk = open(&lab).expect("opened");
    let mut block = [0; BLOCK];
    disk.read(5, &mut block).expect("read");
    assert!(block == block_of(5, 1), "what was accepted");
}

/// Symptom: a full log disk showed a fill above 1. Cause: pages of the map counted, too.
#[test]
fn a_full_log_disk_is_full_and_not_more() {
    let lab = Lab::new();
    lab.ok(&["logdisk", "format", "disk.log", "--size", "64MiB", "--segment", "1MiB"]);
    let mut disk = open(&lab).expect("opened");
    (0..disk.geometry().blocks).for_each(|lba| disk.write(lba, &block_of(lba, 1)).expect("written"));
    disk.close().expect("closed");
    assert_eq!(figure(&lab.ok(&["logdisk", "stat", "disk.log", "--format", "json"]), "fill"), 1.0);
}
