//! Tests of optional parts of flash drives (SLC cache, log units, host translation layer) and of fragmentation.
//!
//! Expected rates are computed from the times in the description.

mod common;

use common::{fill, overwrite, plain};
use lowtide_core::rng::below;
use lowtide_core::{BlockDevice, Bytes, Nanos, Op, Request, Seed, VirtualTime};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::FlashSpec;
use lowtide_device::flash::spec::*;
use proptest::prelude::*;

const SEED: Seed = Seed::new(31);

fn near(what: &str, is: f64, should: f64, tolerance: f64) {
    assert!((is / should - 1.0).abs() < tolerance, "{what}: {is}, expected {should}");
}

/// A TLC drive with eight dies, 48 KiB per program, and 512 blocks of 768 KiB. Of its 384 MiB, 200 or 240 are
/// exposed.
fn tlc(when_full: WhenFull, size: u64, dynamic: f64) -> FlashSpec {
    let mut spec = plain(512, 192, 0.5, Policy::Greedy);
    (spec.nand.dies, spec.nand.channels) = (8, 8);
    (spec.nand.page, spec.nand.pages_per_block) = (Bytes::kib(48), 16);
    (spec.nand.program, spec.nand.channel_rate) = (Nanos::from_micros(960), Bytes::new(4_000_000_000));
    spec.controller.link_rate = Bytes::new(40_000_000_000);
    spec.controller.latency = Nanos::ZERO;
    spec.gc.concurrency = 8;
    spec.capacity = Bytes::mib(if size > 0 { 200 } else { 240 });
    spec.slc_cache = Some(SlcCache {
        size: Bytes::mib(size),
        dynamic,
        bits_per_cell: 3,
        read: Nanos::from_micros(20),
        program: Nanos::from_micros(80),
        when_full,
        fold_after: Some(Nanos::from_millis(100)),
    });
    spec
}

fn drive(spec: &FlashSpec) -> SimulatedSsd {
    SimulatedSsd::new(spec, SEED).expect("the description is valid")
}

/// Writes `bytes` from `offset` in order. Returns the rate in bytes per nanosecond and the instant of the end.
fn stream(
    drive: &mut SimulatedSsd,
    now: VirtualTime,
    offset: u64,
    bytes: u64,
    chunk: u64,
) -> (f64, VirtualTime) {
    let mut at = now;
    for n in 0..bytes / chunk {
        at = drive.submit(at, &Request::write(offset + n * chunk, chunk)).at;
    }
    (bytes as f64 / at.since(now).get() as f64, at)
}

#[test]
fn a_burst_goes_at_the_speed_of_one_bit_per_cell_then_falls_off_a_cliff_and_recovers_when_idle() {
    let (slc, dense) = (8.0 * 16384.0 / 80_000.0, 8.0 * 49152.0 / 960_000.0);
    let mut drive = drive(&tlc(WhenFull::Direct, 32, 0.0));
    let (burst, now) = stream(&mut drive, VirtualTime::START, 0, 30 << 20, 1 << 20);
    near("burst", burst, slc, 0.08);
    let (_, now) = stream(&mut drive, now, 30 << 20, 10 << 20, 1 << 20);
    let (after, now) = stream(&mut drive, now, 40 << 20, 60 << 20, 1 << 20);
    near("after the cliff", after, dense, 0.05);
    drive.check_invariants();
    let before = drive.counters();
    let now = now + Nanos::from_secs(10);
    drive.idle_until(now);
    drive.check_invariants();
    let folded = drive.counters().nand_written_bytes - before.nand_written_bytes;
    assert!((28 << 20..=32 << 20).contains(&folded), "{folded} bytes were folded");
    let (again, _) = stream(&mut drive, now, 100 << 20, 28 << 20, 1 << 20);
    near("burst after idle", again, slc, 0.08);
}

#[test]
fn a_cache_that_folds_when_full_writes_everything_twice() {
    let mut drive = drive(&tlc(WhenFull::Fold, 32, 0.0));
    let (_, now) = stream(&mut drive, VirtualTime::START, 0, 40 << 20, 1 << 20);
    let before = drive.counters();
    let (rate, _) = stream(&mut drive, now, 40 << 20, 120 << 20, 1 << 20);
    let after = drive.counters();
    // An upper bound for 48 KiB: three one-bit programs, three reads, a dense program and a share of an erasure. Dies
    // are idle while a write waits for a block.
    let most = 8.0 * 49152.0 / (3.0 * (80_000.0 + 20_000.0) + 960_000.0 + 48.0 / 256.0 * 2e6);
    assert!(rate < 1.05 * most && rate > 0.3 * most, "{rate} of at most {most}");
    near("write amplification", after.write_amplification_since(&before).expect("written"), 2.0, 0.05);
    drive.check_invariants();
}

#[test]
fn the_dynamic_part_shrinks_as_the_drive_fills() {
    let burst_of = |filled: u64| {
        let mut drive = drive(&tlc(WhenFull::Direct, 0, 0.6));
        let (_, now) = stream(&mut drive, VirtualTime::START, 0, filled << 20, 1 << 20);
        let now = now + Nanos::from_secs(20);
        drive.idle_until(now);
        let (fast, mut at, mut n) = (1.2, now, 0);
        while n < 60 {
            let (rate, end) = stream(&mut drive, at, n << 21, 2 << 20, 1 << 20);
            if n > 1 && rate < fast {
                break;
            }
            (at, n) = (end, n + 1);
        }
        drive.check_invariants();
        n
    };
    let (empty, filled) = (burst_of(0), burst_of(200));
    assert!(
        empty > 2 * filled && filled >= 1,
        "{empty} × 2 MiB while empty, {filled} with 200 of 240 MiB in use"
    );
}

#[test]
fn a_coarsely_mapped_drive_streams_at_full_speed_and_merges_at_random() {
    let mut spec = plain(1024, 64, 0.8, Policy::Greedy);
    (spec.nand.dies, spec.nand.channels, spec.gc.concurrency) = (4, 4, 4);
    spec.log_units = Some(LogUnits { unit: Bytes::mib(1), open: 4 });
    let mut drive = drive(&spec);
    let die = 4.0 * 4096.0 / (200_000.0 + 4096.0);
    let (fresh, now) = stream(&mut drive, VirtualTime::START, 0, 100 << 20, 16 << 10);
    near("sequential, 16 KiB", fresh, die, 0.05);
    let before = drive.counters();
    let (again, now) = stream(&mut drive, now, 0, 100 << 20, 16 << 10);
    // Each block written requires the erasure of a block.
    let erasing = 4.0 * 4096.0 / (200_000.0 + 4096.0 + 2e6 / 64.0);
    near("sequential again", again, erasing, 0.05);
    assert_eq!(
        drive.counters().gc_moved_bytes,
        before.gc_moved_bytes,
        "whole units are switched, not copied"
    );
    let mut rng = SEED.part("offsets", 0).stream();
    let mut random = |drive: &mut SimulatedSsd, now| {
        (0..200)
            .fold(now, |now, _| drive.submit(now, &Request::write(below(&mut rng, 6400) << 14, 16 << 10)).at)
    };
    let begin = random(&mut drive, now);
    let before = drive.counters();
    let now = random(&mut drive, begin);
    let after = drive.counters();
    let each_ns = now.since(begin).get() as f64 / 200.0;
    // The merge copies 256 pages on four dies, each within its die. Each die erases a block of the unit and a block
    // of its log.
    near("a random write", each_ns, 64.0 * 250_000.0 + 2.0 * 2e6, 0.05);
    near("write amplification", after.write_amplification_since(&before).expect("written"), 65.0, 0.1);
    drive.check_invariants();
}

/// Symptom: a full drive was three times as slow as a half-empty one, and both slowed down over time. Cause: blocks
/// held pieces of several units, so the collector moved live data, and units gathered on few dies. Fix: each unit has
/// blocks of its own on its dies.
#[test]
fn what_merges_leave_holds_nothing_so_a_full_drive_is_as_fast_as_a_half_empty_one() {
    // Writes to open units merge nothing, and a half-empty drive has more such writes. The time is therefore taken
    // per merged byte.
    let ns_per_byte = |unit: Bytes, share: u64| {
        let mut spec = plain(1024, 64, 0.9, Policy::Greedy);
        (spec.nand.dies, spec.nand.channels, spec.gc.concurrency) = (4, 4, 4);
        spec.log_units = Some(LogUnits { unit, open: 4 });
        let mut drive = drive(&spec);
        let used = drive.capacity().get() / 100 * share / unit.get() * unit.get();
        let (_, mut now) = stream(&mut drive, VirtualTime::START, 0, used, 256 << 10);
        let mut rng = SEED.part("offsets", share).stream();
        let (mut begin, mut before) = (now, drive.counters());
        for n in 0..1200 {
            if n == 600 {
                (begin, before) = (now, drive.counters());
            }
            let offset = below(&mut rng, used >> 12) << 12;
            now = drive.submit(now, &Request::write(offset, 4096)).at;
        }
        drive.check_invariants();
        let after = drive.counters();
        let moved = after.gc_moved_bytes - before.gc_moved_bytes;
        assert!(moved <= 600 * unit.get(), "{moved} bytes are moved for 600 writes, with units of {unit}");
        assert!(after.erases > before.erases + 600, "it cleans");
        now.since(begin).get() as f64 / moved as f64
    };
    for unit in [Bytes::kib(256), Bytes::kib(512), Bytes::kib(768), Bytes::mib(1), Bytes::mib(3)] {
        near(&format!("{unit}, a full drive"), ns_per_byte(unit, 97), ns_per_byte(unit, 40), 0.03);
    }
}

#[test]
fn writes_that_go_on_where_they_ended_copy_only_the_rest_of_their_unit() {
    let mut spec = plain(256, 64, 0.8, Policy::Greedy);
    spec.log_units = Some(LogUnits { unit: Bytes::mib(1), open: 1 });
    let mut drive = drive(&spec);
    let now = fill(&mut drive, VirtualTime::START);
    let moved = |drive: &SimulatedSsd| drive.counters().gc_moved_bytes >> 12;
    let (_, now) = stream(&mut drive, now, 0, 192 << 12, 16 << 10);
    let before = moved(&drive);
    let now = drive.submit(now, &Request::write(8 << 20, 4096)).at;
    assert_eq!(moved(&drive) - before, 64, "partial merge: a quarter of 256 units");
    let now = drive.submit(now, &Request::write((8 << 20) + (9 << 12), 4096)).at;
    let before = moved(&drive);
    drive.submit(now, &Request::write(0, 4096));
    assert_eq!(moved(&drive) - before, 256, "full merge: the log was not in order");
}

#[test]
fn a_layer_on_the_host_counts_its_time_and_memory() {
    let mut spec = plain(128, 64, 0.8, Policy::Greedy);
    let without = drive(&spec);
    assert_eq!((without.host_memory(), without.counters().host_cpu_ns), (Bytes::ZERO, 0));
    spec.host_ftl = Some(HostFtl {
        cpu_per_request: Nanos::from_micros(5),
        cpu_per_unit: Nanos::new(300),
        cpu_per_moved_unit: Nanos::new(700),
        bytes_per_entry: Bytes::new(16),
    });
    let mut drive = drive(&spec);
    assert_eq!(drive.host_memory().get(), drive.capacity().get() / 4096 * 16);
    let now = drive.submit(VirtualTime::START, &Request::write(0, 16 << 10)).at;
    let now = drive.submit(now, &Request::read(0, 4096)).at;
    let now = drive.submit(now, &Request::flush()).at;
    assert_eq!(drive.counters().host_cpu_ns, 3 * 5000 + 5 * 300);
    let now = fill(&mut drive, now);
    let before = drive.counters();
    overwrite(&mut drive, 64 << 20, SEED, now);
    let after = drive.counters();
    let (writes, moved) = (
        (after.host_written_bytes - before.host_written_bytes) >> 12,
        (after.gc_moved_bytes - before.gc_moved_bytes) >> 12,
    );
    assert!(moved > 0);
    assert_eq!(after.host_cpu_ns - before.host_cpu_ns, writes * 5300 + moved * 700);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_lost_with_a_cache_or_with_logs(
        kind in 0..4u32, size in 0..9u64, dynamic in 0.0..0.9f64, fold: bool, protected: bool, dies in 1..6u32,
        concurrency in 1..4u32, bits in 2..4u32, tight in 0..24u64, steps in prop::collection::vec((0.0..1.0f64, 1..300u64, 0..40u32), 50..400),
        seed: u64,
    ) {
        let mut spec = plain(160, 192, 0.5, Policy::DChoices(3));
        (spec.nand.dies, spec.nand.channels, spec.gc.concurrency) = (dies, 2, concurrency);
        (spec.nand.page, spec.nand.pages_per_block) = (Bytes::kib(24), 32);
        spec.write_buffer = WriteBuffer { size: Bytes::kib(512), protected, honours_flush: true };
        spec.gc.idle = Some(Idle { after: Nanos::from_millis(1), until: 0.2 });
        spec.capacity = Bytes::kib(768) * (100 + tight);
        if kind == 3 {
            // Covers rows of a single block, rows with a block on each die, and units of several rows.
            (spec.nand.page, spec.nand.pages_per_block) = (Bytes::kib(4), 64);
            spec.log_units = Some(LogUnits { unit: Bytes::kib(256) * (1 + size), open: dies });
        } else {
            let when_full = if fold { WhenFull::Fold } else { WhenFull::Direct };
            let after = Some(Nanos::from_millis(2));
            let (dynamic, size) = (if kind == 0 { 0.0 } else { dynamic }, if kind == 1 { 0 } else { size });
            spec.slc_cache = Some(SlcCache {
                size: Bytes::kib(768) * size, dynamic, bits_per_cell: bits, read: Nanos::from_micros(20),
                program: Nanos::from_micros(80), when_full, fold_after: after,
            });
        }
        let Ok(mut drive) = SimulatedSsd::new(&spec, Seed::new(seed)) else { return Ok(()) };
        let mut now = fill(&mut drive, VirtualTime::START);
        let units = drive.capacity().get() >> 12;
        let mut mapped = vec![true; units as usize];
        let mut cut = false;
        for (at, count, what) in steps {
            let first = (at * (units - 1) as f64) as u64;
            let count = count.min(units - first);
            let range = first as usize..(first + count) as usize;
            let op = match what {
                0 => { drive.power_cut(now); cut |= !protected; continue }
                1 => { now = now + Nanos::from_secs(1); drive.idle_until(now); continue }
                2 => { drive.secure_erase(); mapped.fill(false); cut = false; continue }
                3..6 => { mapped[range].fill(false); Op::Trim }
                6..8 => Op::Flush,
                8..12 => Op::Read,
                _ => { mapped[range].fill(true); Op::Write { fua: what < 15 } }
            };
            let completion = drive.submit(now, &Request { op, offset: first << 12, length: count << 12 });
            prop_assert_eq!(&completion.status, &Ok(()));
            now = completion.at;
        }
        // Each random write merges a unit of up to 576 pages, so these drives get fewer writes.
        let share = if kind == 3 { 8 } else { 1 };
        let now = overwrite(&mut drive, spec.capacity.get() / share, Seed::new(seed), now);
        drive.check_invariants();
        fill(&mut drive, now);
        drive.check_invariants();
        let _ = cut;
        for unit in 0..units {
            prop_assert!(drive.is_mapped(Bytes::kib(4) * unit) || !protected, "unit {} was written", unit);
        }
    }
}

#[test]
fn numbers_without_sense_are_refused_by_name() {
    type Change = fn(&mut FlashSpec);
    fn slc(spec: &mut FlashSpec) -> &mut SlcCache {
        spec.slc_cache.as_mut().expect("it has one")
    }
    fn host(spec: &mut FlashSpec) -> &mut HostFtl {
        spec.host_ftl.get_or_insert(HostFtl {
            cpu_per_request: Nanos::ZERO,
            cpu_per_unit: Nanos::ZERO,
            cpu_per_moved_unit: Nanos::ZERO,
            bytes_per_entry: Bytes::ZERO,
        })
    }
    fn logs(spec: &mut FlashSpec) -> &mut LogUnits {
        spec.slc_cache = None;
        (spec.nand.page, spec.nand.pages_per_block) = (Bytes::kib(4), 192);
        spec.log_units.get_or_insert(LogUnits { unit: Bytes::kib(768) * 8, open: 4 })
    }
    let cases: [(&str, Change); 22] = [
        ("slc-cache.bits-per-cell", |spec| slc(spec).bits_per_cell = 0),
        ("slc-cache.bits-per-cell", |spec| slc(spec).bits_per_cell = 5),
        ("slc-cache.size", |spec| slc(spec).size = Bytes::gib(1)),
        ("slc-cache.size", |spec| slc(spec).size = Bytes::ZERO),
        ("nand.raw", |spec| slc(spec).size = Bytes::mib(60)),
        ("slc-cache.dynamic", |spec| slc(spec).dynamic = f64::NAN),
        ("slc-cache.dynamic", |spec| slc(spec).dynamic = 0.95),
        ("slc-cache.read", |spec| slc(spec).read = Nanos::new(u64::MAX)),
        ("slc-cache.program", |spec| slc(spec).program = Nanos::new(u64::MAX)),
        ("slc-cache.fold-after", |spec| slc(spec).fold_after = Some(Nanos::new(u64::MAX))),
        ("log-units.unit", |spec| logs(spec).unit = Bytes::kib(768) * 5 / 2),
        ("log-units.unit", |spec| logs(spec).unit = Bytes::kib(384)),
        ("log-units.unit", |spec| logs(spec).unit = Bytes::gib(3)),
        ("log-units.unit", |spec| logs(spec).unit = Bytes::ZERO),
        ("map.unit", |spec| {
            logs(spec).unit = Bytes::kib(768);
            (spec.nand.page, spec.nand.pages_per_block) = (Bytes::kib(48), 16);
        }),
        ("log-units.open", |spec| logs(spec).open = 0),
        ("log-units.open", |spec| logs(spec).open = u32::MAX),
        // Thirty units of eight blocks take 240 of the 512 blocks. The data needs the other 272.
        ("log-units.open", |spec| logs(spec).open = 29),
        ("log-units", |spec| spec.log_units = Some(LogUnits { unit: Bytes::mib(1), open: 4 })),
        ("host-ftl.cpu-per-request", |spec| host(spec).cpu_per_request = Nanos::new(u64::MAX)),
        ("host-ftl.cpu-per-moved-unit", |spec| host(spec).cpu_per_moved_unit = Nanos::new(u64::MAX)),
        ("host-ftl.bytes-per-entry", |spec| host(spec).bytes_per_entry = Bytes::gib(1)),
    ];
    for (key, change) in cases {
        let mut spec = tlc(WhenFull::Direct, 8, 0.0);
        spec.validate().expect("valid before the change");
        change(&mut spec);
        assert_eq!(spec.validate().expect_err(key).key, key);
    }
}
