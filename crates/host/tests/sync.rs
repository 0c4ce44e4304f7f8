//! Durable writes on both engines. The kernel's own counter shows how many flushes reached the device.
#![allow(clippy::print_stdout)]

mod common;

use common::loopback::Loop;
use common::{each_engine, load, run_all, workload};
use lowtide_core::workload::{Access, Sync};
use lowtide_core::{Bytes, Workload};
use lowtide_host::block::{Claim, Consent, Disk};

/// Number of flushes that a device has completed (field 16 of its `stat`, Documentation/block/stat.rst of the
/// kernel).
fn flushes(disk: &Loop) -> u64 {
    let name = disk.node.file_name().expect("a node").to_string_lossy().into_owned();
    let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).expect("counters");
    text.split_whitespace().nth(15).and_then(|field| field.parse().ok()).expect("the kernel counts flushes")
}

#[test]
fn every_durable_write_is_flushed_and_no_other() {
    each_engine(|engine| {
        let Some(disk) = Loop::new(64, &[]) else { return };
        let found = Disk::find(&disk.node).expect("a device");
        let planned = found.identity.clone();
        let consent = Consent { serial: Some(disk.serial()), force_signature: false, planned };
        let claim = Claim::take(&found, consent).expect("taken");
        let data = claim.data(Bytes::mib(16)).expect("data");
        for (sync, depth) in [(Sync::None, 1), (Sync::Flush, 1), (Sync::Flush, 4), (Sync::Fua, 1)] {
            let workload = Workload { sync, ..workload(0.0, Access::Random, 1, depth) };
            let before = flushes(&disk);
            let mut load = load(&data, &workload, engine, 60_000);
            load.requests = Some(200);
            let (summary, intervals) = run_all(&load);
            let summary = summary.expect("ran");
            let flushed = flushes(&disk) - before;
            println!("{engine} {sync:?} depth {depth}: {} writes, {flushed} flushes", summary.completed);
            assert_eq!(summary.errors, 0);
            let writes: u64 = intervals.iter().map(|interval| interval.writes).sum();
            assert_eq!(writes, summary.completed);
            match (sync, depth) {
                (Sync::None, _) => assert_eq!(flushed, 0),
                // The kernel merges concurrent flushes.
                (_, 1) => assert!(flushed >= 200, "{flushed} flushes"),
                _ => assert!(flushed >= 50, "{flushed} flushes"),
            }
        }
    });
}
