//! Tests of flash timing against the equations of `docs/models/flash.md`.

mod common;

use common::{fill, intel_320, overwrite, plain};
use lowtide_core::{
    BlockDevice, Bytes, Control, Extents, Interval, Nanos, Request, Seed, VirtualTime, Workload, virtual_load,
};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::FlashSpec;
use lowtide_device::flash::spec::*;

const SEED: Seed = Seed::new(3);

/// A drive with eight dies on four channels and 16 KiB pages. Controller and link are too fast to matter.
fn wide() -> FlashSpec {
    let mut spec = plain(512, 64, 0.8, Policy::Greedy);
    (spec.nand.dies, spec.nand.channels, spec.nand.page, spec.nand.pages_per_block) =
        (8, 4, Bytes::kib(16), 16);
    spec.controller.request = Nanos::ZERO;
    (spec.nand.channel_rate, spec.controller.link_rate) =
        (Bytes::new(4_000_000_000), Bytes::new(40_000_000_000));
    spec.capacity = Bytes::mib(96);
    spec
}

fn drive(spec: &FlashSpec) -> SimulatedSsd {
    SimulatedSsd::new(spec, SEED).expect("valid")
}

/// Runs a workload over the entire drive for `intervals` intervals of `ms` milliseconds.
fn run(
    drive: &mut SimulatedSsd,
    workload: &Workload,
    now: VirtualTime,
    ms: u64,
    intervals: usize,
) -> Vec<Interval> {
    let extents = Extents::whole(drive.capacity().get());
    let mut all = Vec::new();
    let each = &mut |interval| {
        all.push(interval);
        if all.len() == intervals { Control::Stop } else { Control::Continue }
    };
    virtual_load::run(drive, &extents, workload, SEED, now, Nanos::from_millis(ms), each).expect("in range");
    all
}

fn near(what: &str, is: f64, expected: f64, tolerance: f64) {
    assert!(
        (is / expected - 1.0).abs() < tolerance,
        "{what}: {is}, expected {expected} ± {}%",
        tolerance * 100.0
    );
}

#[test]
fn a_write_takes_latency_request_units_and_link() {
    let mut spec = wide();
    spec.controller.latency = Nanos::from_micros(40);
    spec.controller.request = Nanos::from_micros(15);
    spec.controller.write_request = Nanos::from_micros(7);
    spec.controller.write_unit = Nanos::from_micros(24);
    for (units, micros) in [(1, 40 + 15 + 7 + 24), (4, 40 + 15 + 7 + 4 * 24)] {
        let done = drive(&spec).submit(VirtualTime::START, &Request::write(0, units << 12)).at;
        assert_eq!(done.as_nanos(), micros * 1000);
    }
}

#[test]
fn long_sequential_writes_go_at_the_rate_of_the_dies() {
    let mut drive = drive(&wide());
    let end = fill(&mut drive, VirtualTime::START);
    let rate = drive.capacity().get() as f64 / end.as_nanos() as f64;
    // Eight dies × 16 KiB / 200 µs. At the end, 1 of the 96 MiB is still in the buffer.
    near("bytes per ns", rate, 8.0 * 16384.0 / 200_000.0, 0.02);
}

#[test]
fn reads_are_bound_by_the_die_then_by_all_dies_or_the_controller() {
    let mut drive = drive(&wide());
    let now = fill(&mut drive, VirtualTime::START) + Nanos::from_secs(1);
    let read = |depth| Workload { read_share: 1.0, depth, ..Workload::random_write(Bytes::kib(4)) };
    let per_second = |all: Vec<Interval>| all.iter().map(|interval| interval.reads).sum::<u64>() as f64 / 0.2;
    let one = per_second(run(&mut drive, &read(1), now, 100, 2));
    // tR 50 µs, transfer 1.024 µs, link 0.1 µs, latency 1 µs.
    near("one at a time", one, 1e6 / 52.126, 0.01);
    let many = per_second(run(&mut drive, &read(256), now + Nanos::from_secs(1), 100, 2));
    near("eight dies", many, 8.0 * 1e6 / 50.0, 0.03);

    let mut spec = wide();
    spec.controller.read_unit = Nanos::from_micros(10);
    let mut slow = self::drive(&spec);
    let now = fill(&mut slow, VirtualTime::START) + Nanos::from_secs(1);
    near("controller", per_second(run(&mut slow, &read(256), now, 100, 2)), 1e6 / 10.0, 0.01);
}

#[test]
fn the_map_is_missed_as_often_as_it_does_not_fit() {
    let mut spec = wide();
    spec.map.cache = Some(Bytes::kib(32));
    let mut drive = drive(&spec);
    // The 96 MiB are 24 576 map units on 24 pages of the table, of which 8 fit into the map cache.
    let now = fill(&mut drive, VirtualTime::START);
    let before = drive.counters();
    overwrite(&mut drive, 64 << 20, SEED, now);
    let after = drive.counters();
    let writes = (after.host_written_bytes - before.host_written_bytes) >> 12;
    near("misses", (after.map_misses - before.map_misses) as f64 / writes as f64, 1.0 - 8.0 / 24.0, 0.02);
}

#[test]
fn a_small_write_on_a_coarse_unit_waits_for_one_read_but_holds_up_nobody() {
    let mut spec = wide();
    spec.map.unit = Bytes::kib(16);
    spec.nand.pages_per_block = 64;
    spec.capacity = Bytes::mib(64);
    let mut drive = drive(&spec);
    let now = fill(&mut drive, VirtualTime::START) + Nanos::from_secs(1);
    let whole = drive.submit(now, &Request::write(0, 16 << 10)).at.as_nanos() - now.as_nanos();
    let now = now + Nanos::from_secs(1);
    let before = drive.counters();
    let part = drive.submit(now, &Request::write(1 << 20, 4 << 10)).at.as_nanos() - now.as_nanos();
    // A whole-unit write takes the latency and the link at 40 GB/s. A partial write takes the latency, tR and the
    // transfer of 16 KiB at 4 GB/s.
    assert_eq!((whole, part), (1000 + 409, 1000 + 50_000 + 4096));
    let after = drive.counters();
    assert_eq!(after.rmw_reads - before.rmw_reads, 1);
    assert_eq!(after.write_amplification_since(&before), Some(4.0));
    let now = now + Nanos::from_secs(1);
    let last = [4, 5].map(|n| drive.submit(now, &Request::write(n << 14, 4 << 10)).at)[1];
    let together = last.as_nanos() - now.as_nanos();
    assert_eq!(together, part, "merges on two dies and channels go on at the same time");
}

#[test]
fn idle_time_refills_the_pool_however_it_is_told_and_no_further_than_garbage_allows() {
    let mut spec = wide();
    spec.capacity = Bytes::mib(110);
    spec.gc.idle = Some(Idle { after: Nanos::from_millis(500), until: 0.1 });
    let mut used = drive(&spec);
    let now = fill(&mut used, VirtualTime::START);
    let now = overwrite(&mut used, 100 << 20, SEED, now);
    let before = used.counters();
    let (mut at_once, mut in_pieces) = (used.clone(), used);
    at_once.idle_until(now + Nanos::from_millis(400));
    assert_eq!(at_once.counters(), before, "not idle for long enough");
    at_once.idle_until(now + Nanos::from_secs(10));
    (1..=100).for_each(|n| in_pieces.idle_until(now + Nanos::from_millis(100 * n)));
    for drive in [at_once, in_pieces] {
        assert!(drive.counters().free_blocks >= 51, "a tenth of 512 blocks: {:?}", drive.counters());
    }
    let mut full = drive(&FlashSpec { capacity: Bytes::mib(120), ..spec });
    let now = fill(&mut full, VirtualTime::START);
    let before = full.counters();
    full.idle_until(now + Nanos::from_secs(3600));
    assert_eq!(full.counters().gc_moved_bytes, before.gc_moved_bytes, "nothing to gain, nothing moved");
}

#[test]
fn a_late_start_gives_plateau_dip_and_overshoot() {
    let scale = 64;
    let mut drive = drive(&intel_320().scaled(scale));
    let now = fill(&mut drive, VirtualTime::START);
    let workload = Workload::random_write(Bytes::kib(16));
    let all = run(&mut drive, &workload, now, 500, 240);
    let rate: Vec<f64> = all.iter().map(|interval| interval.write_bytes as f64).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (plateau, settled) = (rate[0], mean(&rate[160..]));
    let dip = rate.iter().position(|&r| r < 0.5 * settled).expect("a dip below half of the settled rate");
    let after = rate[dip..].iter().copied().fold(0.0, f64::max);
    assert!(plateau > 3.0 * settled, "plateau {plateau}, settled {settled}");
    assert!(after > 1.2 * settled, "overshoot {after}, settled {settled}");
}

#[test]
fn a_flushed_page_pays_for_cleaning_too() {
    let mut spec = wide();
    spec.write_buffer.protected = false;
    spec.gc.set_point = 0.1;
    let mut drive = drive(&spec);
    let mut now = fill(&mut drive, VirtualTime::START);
    let pool = drive.geometry().set_point_blocks;
    for n in 0..20_000u64 {
        now = drive.submit(now, &Request::write(n * 7919 % 24_000 * 4096, 4096)).at;
        now = drive.submit(now, &Request::flush()).at;
    }
    let free = drive.counters().free_blocks;
    // The eight open host blocks are replaced at about the same time.
    assert!(free + 8 >= u64::from(pool), "{free} erased blocks, set point {pool}");
}

#[test]
fn durable_means_every_page_even_on_a_slower_die() {
    let mut spec = wide();
    spec.write_buffer.protected = false;
    let busy = |spec: &FlashSpec| {
        let mut drive = drive(spec);
        drive.submit(VirtualTime::START, &Request::write(0, 8 * (16 << 10)));
        let now = VirtualTime::START + Nanos::from_secs(1);
        // Twenty reads keep the first die busy for a millisecond. The next page goes to this die, and the page after
        // it does not.
        (0..20).for_each(|_| {
            drive.submit(now, &Request::read(0, 4096));
        });
        (drive, now)
    };
    let both = 20 * 50_000 + 200_000;
    let (mut drive, now) = busy(&spec);
    let forced = Request { op: lowtide_core::Op::Write { fua: true }, offset: 1 << 20, length: 32 << 10 };
    let done = drive.submit(now, &forced).at.as_nanos() - now.as_nanos();
    assert!(done > both, "forced write: {done}");

    let (mut drive, now) = busy(&spec);
    let written = drive.submit(now, &Request::write(1 << 20, 20 << 10)).at;
    let done = drive.submit(written, &Request::flush()).at.as_nanos() - now.as_nanos();
    assert!(done > both, "flush: {done}");
}
