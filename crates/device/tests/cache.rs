//! Tests of flash caches: times of hits and misses, dirty and durable data, hit ratios against a formula, and full
//! flash.

mod common;
#[path = "common/queueing.rs"]
mod queueing;
#[path = "common/server.rs"]
mod server;

use common::plain;
use lowtide_core::rng::{below, unit};
use lowtide_core::{BlockDevice, Bytes, Counters, Nanos, Op, Request, Seed, VirtualTime};
use lowtide_device::cache::{Cache, CacheParameters, CacheSpec, Mode};
use lowtide_device::flash::FlashSpec;
use lowtide_device::flash::spec::Policy;
use lowtide_device::{AnyDevice, DeviceSpec, SimulatedSsd};
use proptest::prelude::*;
use queueing::{Queueing, drive};
use server::{Server, us};

const MIB: u64 = 1 << 20;
const KIB16: u64 = 16 << 10;
const FLASH_US: u64 = 100;
const DISK_US: u64 = 5000;

fn parameters(mode: Mode) -> CacheParameters {
    CacheParameters {
        mode,
        line: Bytes::kib(16),
        dirty_threshold: 0.5,
        write_back_depth: 4,
        promote: true,
        bypass_sequential: None,
        latency: Nanos::new(us(1)),
    }
}

fn cache(parameters: CacheParameters, flash: AnyDevice, backing: AnyDevice) -> Cache {
    let any = || Box::new(DeviceSpec::Flash(plain(64, 64, 0.5, Policy::Greedy)));
    Cache::of(&CacheSpec { parameters, flash: any(), backing: any() }, flash, backing).expect("fits")
}

/// A cache of `lines` lines in front of 64 MiB. Both devices have constant service times.
fn servers(parameters: CacheParameters, lines: u64) -> Cache {
    let flash = Server::new(lines * parameters.line.get(), us(FLASH_US));
    cache(parameters, Box::new(flash), Box::new(Server::new(64 * MIB, us(DISK_US))))
}

/// Microseconds that a request takes on an idle cache.
fn takes(cache: &mut Cache, now: &mut VirtualTime, request: Request) -> u64 {
    *now = *now + Nanos::from_secs(1);
    cache.submit(*now, &request).at.since(*now).get() / 1000
}

#[test]
fn a_miss_takes_the_disk_and_is_promoted_and_a_hit_takes_the_flash() {
    for mode in [Mode::WriteBack, Mode::WriteThrough] {
        let (mut cache, mut now) = (servers(parameters(mode), 64), VirtualTime::START);
        assert_eq!(takes(&mut cache, &mut now, Request::read(MIB, KIB16)), DISK_US + 1, "{mode:?}");
        assert_eq!(takes(&mut cache, &mut now, Request::read(MIB, KIB16)), FLASH_US + 1, "{mode:?}");
        assert_eq!(
            takes(&mut cache, &mut now, Request::read(MIB + 512, 512)),
            FLASH_US + 1,
            "part of a line"
        );
        assert_eq!(takes(&mut cache, &mut now, Request::read(MIB, 2 * KIB16)), DISK_US + 1, "half is there");
        cache.idle_until(now + Nanos::from_millis(500));
        let traffic = cache.traffic();
        assert_eq!((traffic.promoted, traffic.read_missed), (2 * KIB16, 2 * KIB16));
        assert_eq!(traffic.read_hit, 2 * KIB16 + 512);
        // Sixty-four other lines evict it.
        for line in 0..64 {
            takes(&mut cache, &mut now, Request::read(line * KIB16, KIB16));
        }
        assert_eq!(takes(&mut cache, &mut now, Request::read(MIB, KIB16)), DISK_US + 1, "it was evicted");
        assert_eq!(cache.lines(), (64, 64, 0));
    }
    let (mut cache, mut now) =
        (servers(CacheParameters { promote: false, ..parameters(Mode::WriteBack) }, 64), VirtualTime::START);
    for _ in 0..2 {
        assert_eq!(takes(&mut cache, &mut now, Request::read(0, KIB16)), DISK_US + 1, "nothing is promoted");
    }
}

#[test]
fn write_back_answers_at_the_speed_of_flash_and_write_through_at_that_of_the_disk() {
    let mut now = VirtualTime::START;
    let mut behind = servers(parameters(Mode::WriteBack), 64);
    assert_eq!(takes(&mut behind, &mut now, Request::write(MIB, KIB16)), FLASH_US + 1);
    assert_eq!((behind.lines().2, behind.backing_counters().host_written_bytes), (1, 0));
    let mut through = servers(parameters(Mode::WriteThrough), 64);
    assert_eq!(takes(&mut through, &mut now, Request::write(MIB, KIB16)), DISK_US + 1);
    assert_eq!((through.lines().2, through.backing_counters().host_written_bytes), (0, KIB16));
    for cache in [&mut behind, &mut through] {
        assert_eq!(
            takes(cache, &mut now, Request::read(MIB, KIB16)),
            FLASH_US + 1,
            "what was written is there"
        );
        assert_eq!(cache.counters().host_written_bytes, KIB16, "as the host sees it");
        takes(cache, &mut now, Request::trim(MIB, KIB16));
        assert_eq!(takes(cache, &mut now, Request::read(MIB, KIB16)), DISK_US + 1, "trimmed");
        assert_eq!(cache.lines().2, 0);
    }
    // A write of 512 bytes goes to the disk if the cache does not hold its block, and to the flash otherwise.
    assert_eq!(takes(&mut behind, &mut now, Request::write(2 * MIB, 512)), DISK_US + 1);
    assert_eq!(takes(&mut behind, &mut now, Request::write(MIB + 1024, 512)), FLASH_US + 1);
}

#[test]
fn dirty_lines_are_written_back_under_pressure_and_writes_go_round_when_all_are_dirty() {
    let (mut cache, mut now) = (servers(parameters(Mode::WriteBack), 64), VirtualTime::START);
    for line in 0..32 {
        assert_eq!(takes(&mut cache, &mut now, Request::write(line * 2 * KIB16, KIB16)), FLASH_US + 1);
    }
    assert_eq!((cache.lines().2, cache.traffic().written_back), (32, 0), "as many as may be dirty");
    for line in 32..500 {
        let took = takes(&mut cache, &mut now, Request::write(line * 2 * KIB16, KIB16));
        assert!(took <= 2 * FLASH_US + 1, "line {line}: {took}");
    }
    cache.idle_until(now + Nanos::from_secs(1));
    assert_eq!((cache.lines().2, cache.traffic().written_back), (32, (500 - 32) * KIB16));
    // These writes are faster than the disk. Once all lines are dirty, the disk limits the rate.
    let (mut at, mut half) = (now + Nanos::from_secs(2), VirtualTime::START);
    for line in 0..1000 {
        at = cache.submit(at, &Request::write((line * 2 + 1) * KIB16, KIB16)).at;
        half = if line == 499 { at } else { half };
    }
    let mean_us = at.since(half).get() as f64 / 500.0 / 1000.0;
    assert!((mean_us / DISK_US as f64 - 1.0).abs() < 0.1, "{mean_us} µs, {:?}", cache.traffic());
    assert!(cache.traffic().written_around > 0);
}

#[test]
fn streams_are_kept_out() {
    let with = CacheParameters { bypass_sequential: Some(Bytes::kib(128)), ..parameters(Mode::WriteBack) };
    let (mut cache, mut now) = (servers(with, 64), VirtualTime::START);
    for n in 0..100 {
        takes(&mut cache, &mut now, Request::read(n * KIB16, KIB16));
        takes(&mut cache, &mut now, Request::write(32 * MIB + n * KIB16, KIB16));
    }
    // After 128 KiB, the eighth request is recognised as part of a stream.
    assert_eq!((cache.lines().1, cache.traffic().promoted), (14, 7 * KIB16));
    assert_eq!(cache.traffic().written_around, 93 * KIB16);
}

fn ssd(blocks: u64, volatile: bool) -> FlashSpec {
    let mut spec = plain(blocks, 64, 0.9, Policy::Greedy);
    spec.write_buffer.protected = !volatile;
    spec
}

#[test]
fn a_power_cut_loses_what_the_volatile_memory_of_the_flash_held_and_no_more() {
    for volatile in [false, true] {
        for mode in [Mode::WriteBack, Mode::WriteThrough] {
            let make = || -> Cache {
                let flash = SimulatedSsd::new(&ssd(64, volatile), Seed::new(1)).expect("valid");
                cache(parameters(mode), Box::new(flash), Box::new(Server::new(64 * MIB, us(DISK_US))))
            };
            let write = |cache: &mut Cache, fua| {
                let write = |now, n: u64| {
                    let request = Request { op: Op::Write { fua }, offset: n * 10 * KIB16, length: KIB16 };
                    cache.submit(now, &request).at
                };
                (0..20).fold(VirtualTime::START, write)
            };
            let what = format!("volatile {volatile}, {mode:?}");
            let mut acknowledged = make();
            let now = write(&mut acknowledged, false);
            acknowledged.power_cut(now);
            let lost = acknowledged.counters().lost_bytes;
            assert_eq!(lost > 0, volatile && mode == Mode::WriteBack, "{what}: {lost}");
            assert!(lost <= MIB, "{what}: {lost}, no more than its buffer");
            let mut flushed = make();
            let now = write(&mut flushed, false);
            let now = flushed.submit(now, &Request::flush()).at;
            flushed.power_cut(now);
            assert_eq!(flushed.counters().lost_bytes, 0, "{what}: flushed");
            let mut forced = make();
            let now = write(&mut forced, true);
            forced.power_cut(now);
            assert_eq!(forced.counters().lost_bytes, 0, "{what}: forced");
        }
    }
}

/// Hit ratio of an LRU cache with `room` for items with these access weights: the approximation of Che, Tung and Wang
/// (IEEE JSAC 20(7), 2002).
fn che(weights: &[f64], room: f64) -> f64 {
    let sum: f64 = weights.iter().sum();
    let inside = |time: f64| weights.iter().map(|weight| 1.0 - (-weight / sum * time).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e12);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if inside(middle) < room { low = middle } else { high = middle }
    }
    weights.iter().map(|weight| weight / sum * (1.0 - (-weight / sum * low).exp())).sum()
}

#[test]
fn hit_ratios_are_those_of_the_che_approximation() {
    let (items, seed) = (4096u64, 11);
    let hot_cold: Vec<f64> =
        (0..items).map(|n| if n < items / 5 { 0.8 / 819.0 } else { 0.2 / 3277.0 }).collect();
    let zipf: Vec<f64> = (1..=items).map(|rank| 1.0 / rank as f64).collect();
    for (name, weights) in [("hot and cold", hot_cold), ("Zipf", zipf)] {
        for room in [200u64, 800, 2000] {
            let mut cache = servers(parameters(Mode::WriteThrough), room);
            let mut rng = Seed::new(seed).part("load", 0).stream();
            let mut sums = Vec::new();
            weights.iter().fold(0.0, |sum, weight| {
                sums.push(sum + weight);
                sum + weight
            });
            let mut now = VirtualTime::START;
            let mut before = cache.traffic();
            for n in 0..150_000 {
                let at = unit(&mut rng) * sums[items as usize - 1];
                let item = sums.partition_point(|sum| *sum <= at) as u64 % items;
                now = cache.submit(now, &Request::read(item * KIB16, KIB16)).at;
                if n == 50_000 {
                    before = cache.traffic();
                }
            }
            let (hit, missed) = (
                cache.traffic().read_hit - before.read_hit,
                cache.traffic().read_missed - before.read_missed,
            );
            let (seen, computed) = (hit as f64 / (hit + missed) as f64, che(&weights, room as f64));
            assert!(
                (seen - computed).abs() < 0.01,
                "seed {seed}, {name}, {room}: {seen} seen, {computed} computed"
            );
        }
    }
}

/// Write amplification of a drive under random 16 KiB writes, with or without a cache in front.
fn amplification(
    device: &mut dyn BlockDevice,
    flash: &dyn Fn(&dyn BlockDevice) -> Counters,
    bytes: u64,
) -> f64 {
    let mut rng = Seed::new(3).part("load", 0).stream();
    let mut now = VirtualTime::START;
    let mut before = Counters::default();
    for n in 0..40_000 {
        now = device.submit(now, &Request::write(below(&mut rng, bytes / KIB16) * KIB16, KIB16)).at;
        if n == 20_000 {
            before = flash(device);
        }
    }
    flash(device).write_amplification_since(&before).expect("written")
}

#[test]
fn the_flash_is_full_and_cleans_more_than_one_half_used() {
    let spec = plain(512, 64, 0.9, Policy::Greedy);
    let drive = || SimulatedSsd::new(&spec, Seed::new(3)).expect("valid");
    let capacity = drive().capacity().get();
    let mut half = drive();
    let half = amplification(&mut half, &|device| device.counters(), capacity / 2);
    let mut alone = drive();
    let alone = amplification(&mut alone, &|device| device.counters(), capacity / KIB16 * KIB16);
    let backing = Server::new(8 * capacity, us(10));
    let mut cached = cache(parameters(Mode::WriteThrough), Box::new(drive()), Box::new(backing));
    let mut rng = Seed::new(3).part("load", 0).stream();
    let (mut now, mut before) = (VirtualTime::START, Counters::default());
    for n in 0..60_000 {
        let offset = below(&mut rng, 2 * capacity / KIB16) * KIB16;
        now = cached.submit(now, &Request::write(offset, KIB16)).at;
        if n == 30_000 {
            before = cached.flash_counters();
        }
    }
    let (room, held, _) = cached.lines();
    assert_eq!((room, held), ((capacity / KIB16) as u32, room), "seed 3: it is full");
    let full = cached.flash_counters().write_amplification_since(&before).expect("written");
    println!("write amplification: {half:.3} half used, {alone:.3} full, {full:.3} as a cache");
    assert!(full > half + 0.5, "seed 3: {full} as a cache, {half} half used");
    assert!((full / alone - 1.0).abs() < 0.25, "seed 3: {full} as a cache, {alone} as a full drive");
}

#[test]
fn a_description_that_does_not_fit_is_told_by_its_key() {
    let flash = || Box::new(DeviceSpec::Flash(plain(64, 64, 0.5, Policy::Greedy)));
    let good = CacheSpec { parameters: parameters(Mode::WriteBack), flash: flash(), backing: flash() };
    good.validate().expect("valid");
    type Change = fn(&mut CacheSpec);
    let bad: [(&str, Change); 7] = [
        ("line", |spec| spec.parameters.line = Bytes::kib(48)),
        ("line", |spec| spec.parameters.line = Bytes::mib(2)),
        ("dirty-threshold", |spec| spec.parameters.dirty_threshold = 1.0),
        ("dirty-threshold", |spec| spec.parameters.dirty_threshold = f64::NAN),
        ("write-back-depth", |spec| spec.parameters.write_back_depth = 0),
        ("bypass-sequential", |spec| spec.parameters.bypass_sequential = Some(Bytes::ZERO)),
        ("backing.gc.concurrency", |spec| match &mut *spec.backing {
            DeviceSpec::Flash(flash) => flash.gc.concurrency = 0,
            _ => unreachable!("it is flash"),
        }),
    ];
    for (key, change) in bad {
        let mut spec = good.clone();
        change(&mut spec);
        assert_eq!(spec.validate().expect_err(key).key, key);
    }
    let half = good.scaled(2);
    assert!(half.flash.capacity() < good.flash.capacity() && half.capacity() < good.capacity());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn devices_that_queue_lose_and_repeat_nothing(
        seed in any::<u64>(),
        behind in any::<bool>(),
        kib in prop::sample::select(vec![4u64, 16, 64]),
        queues in 0usize..3,
        bypass in any::<bool>(),
    ) {
        let mode = if behind { Mode::WriteBack } else { Mode::WriteThrough };
        let with = CacheParameters {
            line: Bytes::kib(kib),
            bypass_sequential: bypass.then_some(Bytes::kib(24)),
            ..parameters(mode)
        };
        let make = || {
            let device = |queueing: bool, capacity, n| -> AnyDevice {
                match queueing {
                    true => Box::new(Queueing::new(capacity, Seed::new(seed).part("member", n))),
                    false => Box::new(Server::new(capacity, us(200))),
                }
            };
            cache(with.clone(), device(queues != 1, MIB, 0), device(queues != 0, 4 * MIB, 1))
        };
        let mut one = make();
        let seen = drive(&mut one, seed, 600);
        prop_assert_eq!(&drive(&mut make(), seed, 600), &seen, "the same again");
        prop_assert_eq!(one.counters().host_read_bytes, seen.read_bytes);
        prop_assert_eq!(one.counters().host_written_bytes, seen.written_bytes);
        // When idle, the cache settles with the permitted number of dirty lines.
        one.idle_until(VirtualTime::START + Nanos::from_secs(1000));
        let (room, _, dirty) = one.lines();
        prop_assert!(dirty <= room / 2, "{dirty} of {room} are dirty");
        prop_assert!(one.next_done().is_none());
        one.secure_erase();
        prop_assert_eq!(one.lines(), (room, 0, 0));
    }
}
