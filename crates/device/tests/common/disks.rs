//! Disks for tests: the disks of the device files, and one with as few features as possible.
#![allow(dead_code, missing_docs)]

use lowtide_core::Seed;
use lowtide_device::SimulatedDisk;
use lowtide_device::disk::DiskSpec;
use lowtide_device::disk::spec::{Queue, Scheduler};

pub const FILES: [(&str, &str); 4] = [
    ("raptor-10k-150gb", include_str!("../../../../devices/raptor-10k-150gb.toml")),
    ("sas-15k-73gb", include_str!("../../../../devices/sas-15k-73gb.toml")),
    ("scsi-15k-300gb", include_str!("../../../../devices/scsi-15k-300gb.toml")),
    ("sata-7k2-1tb", include_str!("../../../../devices/sata-7k2-1tb.toml")),
];
pub const BLOCK: u64 = 16 << 10;

pub fn file(text: &str) -> DiskSpec {
    let mut table: toml::Table = toml::from_str(text).expect("TOML");
    table.remove("disk").expect("a disk").try_into().expect("a disk's description")
}

/// The 15 000 rpm SAS disk without read-ahead and write cache, with the scheduler `fifo`.
pub fn plain() -> DiskSpec {
    let mut spec = file(FILES[1].1);
    spec.read_ahead = None;
    spec.write_cache = None;
    spec.queue = queue(Scheduler::Fifo, 64);
    spec
}

pub fn queue(scheduler: Scheduler, depth: u32) -> Queue {
    Queue { scheduler, depth, aging: None }
}

pub fn disk(spec: &DiskSpec, seed: u64) -> SimulatedDisk {
    SimulatedDisk::new(spec, Seed::new(seed)).expect("valid")
}
