//! Tests of cloud volumes against the closed form of the token bucket and the provider's table of burst durations.

use lowtide_core::rng::below;
use lowtide_core::{BlockDevice, Bytes, DeviceError, Nanos, Request, Seed, VirtualTime};
use lowtide_device::Volume;
use lowtide_device::volume::spec::{Burst, VolumeSpec};

/// A gp2 volume by the rules of the user guide, but without latency.
fn gp2(gib: u64) -> VolumeSpec {
    let iops = (3 * gib).clamp(100, 16_000);
    VolumeSpec {
        capacity: Bytes::gib(gib),
        iops,
        burst: (iops < 3000).then_some(Burst { iops: 3000, credits: 5_400_000 }),
        throughput: Some(Bytes::mib(if gib <= 170 { 128 } else { 250 })),
        io_size: Bytes::kib(256),
        latency: Nanos::ZERO,
        latency_spread: Nanos::ZERO,
    }
}

fn volume(spec: &VolumeSpec) -> Volume {
    Volume::new(spec, Seed::new(1)).expect("valid")
}

/// Reads continuously from `from` until `until`. Returns the number of completed requests and the last completion.
fn saturate(volume: &mut Volume, from: VirtualTime, length: u64, until: VirtualTime) -> (u64, VirtualTime) {
    let (mut now, mut count) = (from, 0);
    while now < until {
        now = volume.submit(now, &Request::read(0, length)).at;
        count += 1;
    }
    (count, now)
}

fn after(seconds: u64) -> VirtualTime {
    VirtualTime::START + Nanos::from_secs(seconds)
}

#[test]
fn a_burst_lasts_as_long_as_the_user_guide_says() {
    // Volume size, baseline IOPS, burst duration and refill time, from the table in the Amazon EC2 user guide.
    for (gib, iops, burst_s, refill_s) in
        [(33, 100, 1862, 54_000), (100, 300, 2000, 18_000), (750, 2250, 7200, 2400)]
    {
        let mut volume = volume(&gp2(gib));
        let (count, mut now) = saturate(&mut volume, VirtualTime::START, 4096, after(burst_s - 1));
        assert!(
            (count as f64 / (burst_s - 1) as f64 - 3000.0).abs() < 1.0,
            "{gib} GiB: {count} while it bursts"
        );
        assert!(volume.credits(now) > 0.0);
        (_, now) = saturate(&mut volume, now, 4096, after(burst_s + 1));
        assert!(volume.credits(now) < 10.0, "{gib} GiB: {} credits are left", volume.credits(now));
        let (count, end) = saturate(&mut volume, now, 4096, now + Nanos::from_secs(100));
        assert!(
            (count as f64 / 100.0 / iops as f64 - 1.0).abs() < 0.02,
            "{gib} GiB: {count} after the burst"
        );
        let almost = volume.credits(end + Nanos::from_secs(refill_s - 1));
        assert!(almost < 5_400_000.0, "{gib} GiB: {almost}");
        assert_eq!(volume.credits(end + Nanos::from_secs(refill_s + 1)), 5_400_000.0, "{gib} GiB");
    }
}

#[test]
fn idle_time_brings_back_a_burst_of_its_own_length_times_the_base() {
    let mut volume = volume(&gp2(100));
    let (_, now) = saturate(&mut volume, VirtualTime::START, 4096, after(2100));
    volume.secure_erase();
    assert!(volume.credits(now) < 10.0, "erasing brings no credits");
    // Credits accumulate for 900 s at 300 per second. They cover a burst of 270 000 / 2700 = 100 s.
    let again = now + Nanos::from_secs(900);
    let (count, end) = saturate(&mut volume, again, 4096, again + Nanos::from_secs(99));
    assert!((count as f64 / 99.0 - 3000.0).abs() < 2.0, "{count}");
    let (count, _) = saturate(&mut volume, end + Nanos::from_secs(2), 4096, end + Nanos::from_secs(102));
    assert!(count < 35_000, "{count} once they are gone");
}

#[test]
fn large_requests_meet_the_limit_of_bytes_and_count_more_than_once() {
    let mut at_bytes = volume(&gp2(100));
    let (count, now) = saturate(&mut at_bytes, VirtualTime::START, 256 << 10, after(10));
    let mib_per_s = count as f64 / 4.0 / now.since(VirtualTime::START).as_secs_f64();
    assert!((mib_per_s - 128.0).abs() < 0.5, "{mib_per_s} MiB/s");
    let unlimited = VolumeSpec { throughput: None, ..gp2(1000) };
    let (count, _) = saturate(&mut volume(&unlimited), VirtualTime::START, (256 << 10) + 512, after(10));
    assert!((count as f64 / 10.0 - 1500.0).abs() < 2.0, "two each: {count}");
}

#[test]
fn latency_is_spread_and_repeats_with_the_seed() {
    let spec = VolumeSpec { latency: Nanos::new(500), latency_spread: Nanos::new(300), ..gp2(5400) };
    let run = |seed| {
        let mut volume = Volume::new(&spec, Seed::new(seed)).expect("valid");
        let mut rng = Seed::new(seed).part("load", 0).stream();
        let one = |n: u64| {
            let now = after(n);
            volume.submit(now, &Request::write(below(&mut rng, 1000) * 4096, 4096)).at.since(now).get()
        };
        (1..2000).map(one).collect::<Vec<u64>>()
    };
    let (first, turn) = (run(7), 1_000_000_000 / 16_000);
    assert_eq!(first, run(7), "seed 7");
    assert_ne!(first, run(8));
    assert!(first.iter().all(|ns| (turn + 500..turn + 801).contains(ns)), "seed 7: {:?}", first.iter().max());
    let mean = first.iter().sum::<u64>() as f64 / first.len() as f64;
    assert!((mean - (turn + 650) as f64).abs() < 10.0, "seed 7: {mean}");
}

#[test]
fn what_cannot_be_done_is_refused() {
    let mut volume = volume(&gp2(1));
    let end = volume.capacity().get();
    let refused = |volume: &mut Volume, request| volume.submit(VirtualTime::START, &request).status;
    assert!(matches!(refused(&mut volume, Request::read(end, 512)), Err(DeviceError::OutOfRange { .. })));
    assert!(matches!(refused(&mut volume, Request::write(1, 512)), Err(DeviceError::Unaligned { .. })));
    assert_eq!(refused(&mut volume, Request::read(end, 0)), Ok(()));
    assert_eq!(volume.counters(), lowtide_core::Counters::default());
    let slow = VolumeSpec { burst: Some(Burst { iops: 10, credits: 1 }), ..gp2(1) };
    assert_eq!(slow.validate().expect_err("below the base").key, "burst.iops");
}
