//! `lowtide_core::rest` returns the instant at which background work ends, and no earlier instant.

mod common;
#[path = "common/disks.rs"]
mod disks;

use common::plain;
use lowtide_core::rng::below;
use lowtide_core::{BlockDevice, Bytes, Nanos, Request, Seed, VirtualTime, rest};
use lowtide_device::SimulatedSsd;
use lowtide_device::array::spec::{ArrayParameters, Level, MirrorRead, WriteCacheSpec};
use lowtide_device::array::{Array, ArraySpec};
use lowtide_device::disk::spec::WriteCache;
use lowtide_device::flash::spec::Policy;

const SEED: Seed = Seed::new(5);
const LONG: Nanos = Nanos::from_secs(3600);
const BLOCK: u64 = 4096;

/// Writes random blocks one at a time. Returns the instant of the last acknowledgement.
fn write(device: &mut dyn BlockDevice, writes: u64) -> VirtualTime {
    let blocks = device.capacity().get() / BLOCK;
    let mut rng = SEED.part("writes", 0).stream();
    (0..writes).fold(VirtualTime::START, |now, _| {
        device.submit(now, &Request::write(below(&mut rng, blocks) * BLOCK, BLOCK)).at
    })
}

#[test]
fn a_buffer_is_on_flash_after_the_programs_it_holds() {
    let spec = plain(256, 64, 0.8, Policy::Greedy);
    let mut drive = SimulatedSsd::new(&spec, SEED).expect("valid");
    // One die, and one page per map unit: 100 programs of 200 µs run one after another. Requests arrive about every 2 µs.
    let now = write(&mut drive, 100);
    let rested = rest(&mut drive, now, LONG);
    assert!(now.as_nanos() < 1_000_000, "the buffer takes them: {now:?}");
    assert!((20_000_000..20_100_000).contains(&rested.as_nanos()), "{rested:?}");
    assert_eq!(rest(&mut drive, rested, LONG), rested);
    assert_eq!(rest(&mut drive, rested + LONG, LONG), rested + LONG, "it rests already");
}

#[test]
fn a_disk_has_written_its_cache() {
    let mut spec = disks::plain();
    spec.write_cache = Some(WriteCache { size: Bytes::mib(8), honours_flush: true });
    let mut disk = disks::disk(&spec, SEED.get());
    let now = write(&mut disk, 200);
    let rested = rest(&mut disk, now, LONG);
    // At 15 000 revolutions per minute a revolution takes 4 ms, so a write waits 2 ms on average.
    assert!(rested.since(now) > Nanos::from_millis(200), "{:?}", rested.since(now));
    let flushed = disk.submit(rested, &Request::flush()).at;
    assert!(
        flushed.since(rested) < Nanos::from_millis(1),
        "nothing is left to flush: {:?}",
        flushed.since(rested)
    );
}

#[test]
fn an_array_has_emptied_its_cache_onto_its_members() {
    let parameters = ArrayParameters {
        level: Level::Stripe,
        chunk: Bytes::kib(64),
        mirror_read: MirrorRead::ShorterQueue,
        latency: Nanos::ZERO,
        request: Nanos::ZERO,
        link_rate: None,
        write_cache: Some(WriteCacheSpec { size: Bytes::mib(64), latency: Nanos::from_micros(10), depth: 4 }),
    };
    let members = (0..2).map(|n| Box::new(disks::disk(&disks::plain(), n)) as _).collect();
    let mut array = Array::of(&ArraySpec { parameters, members: Vec::new() }, members).expect("fits");
    let now = write(&mut array, 500);
    assert!(array.counters().host_written_bytes < 500 * BLOCK, "the cache holds some");
    let short = rest(&mut array, now, Nanos::from_micros(100));
    assert_eq!(short, now + Nanos::from_micros(100), "no longer than it is allowed");
    let rested = rest(&mut array, short, LONG);
    assert_eq!(array.counters().host_written_bytes, 500 * BLOCK);
    // Two disks with 250 writes each, which wait half a revolution on average.
    assert!(rested.since(now) > Nanos::from_millis(500), "{:?}", rested.since(now));
}
