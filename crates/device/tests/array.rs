//! Arrays: throughput and latency against closed forms. Members that queue neither lose nor repeat requests.

mod common;
#[path = "common/queueing.rs"]
mod queueing;
#[path = "common/server.rs"]
mod server;

use lowtide_core::{BlockDevice, Bytes, Nanos, Request, Seed, VirtualTime};
use lowtide_device::array::spec::{ArrayParameters, Level, MirrorRead, WriteCacheSpec};
use lowtide_device::array::{Array, ArraySpec};
use lowtide_device::flash::spec::Policy;
use lowtide_device::{AnyDevice, DeviceSpec};
use proptest::prelude::*;
use queueing::{Queueing, drive};
use server::{Server, closed, us};

const MIB: u64 = 1 << 20;

fn parameters(level: Level) -> ArrayParameters {
    ArrayParameters {
        level,
        chunk: Bytes::kib(64),
        mirror_read: MirrorRead::ShorterQueue,
        latency: Nanos::ZERO,
        request: Nanos::ZERO,
        link_rate: None,
        write_cache: None,
    }
}

fn array(parameters: ArrayParameters, members: Vec<AnyDevice>) -> Array {
    Array::of(&ArraySpec { parameters, members: Vec::new() }, members).expect("fits")
}

/// An array of `count` servers that take 100 µs a request.
fn servers(parameters: ArrayParameters, count: usize) -> Array {
    array(parameters, (0..count).map(|_| Box::new(Server::new(64 * MIB, us(100))) as AnyDevice).collect())
}

/// Histograms keep three digits.
fn assert_near(mean_ns: f64, expected_us: f64) {
    assert!((mean_ns / 1000.0 / expected_us - 1.0).abs() < 0.002, "{mean_ns} ns, {expected_us} µs expected");
}

#[test]
fn a_stripe_multiplies_throughput_and_keeps_latency() {
    for count in [1, 2, 4, 8] {
        let one = closed(&mut servers(parameters(Level::Stripe), count), 1.0, 1, 1);
        assert!((one.iops - 10_000.0).abs() < 100.0, "{count}: {one:?}");
        assert_near(one.mean_ns, 100.0);
        let many = closed(&mut servers(parameters(Level::Stripe), count), 1.0, 16 * count as u32, 1);
        // With random addresses, some members are occasionally idle. A closed network of c exponential servers and N
        // customers reaches N / (N + c - 1) of the full throughput. Constant service reaches slightly more.
        let least = 16.0 / 17.0 * 10_000.0 * count as f64;
        assert!(many.iops > least && many.iops <= 10_000.0 * count as f64 * 1.001, "{count}: {many:?}");
    }
}

#[test]
fn latency_and_controller_add_up() {
    let with = ArrayParameters {
        latency: Nanos::new(us(7)),
        request: Nanos::new(us(3)),
        ..parameters(Level::Stripe)
    };
    let one = closed(&mut servers(with.clone(), 2), 1.0, 1, 1);
    assert_near(one.mean_ns, 110.0);
    // The controller is the bottleneck: it serves 333 333 requests per second, and 80 members could serve 800 000.
    let many = closed(&mut servers(with, 80), 1.0, 1024, 1);
    assert!((many.iops / 333_333.0 - 1.0).abs() < 0.01, "{many:?}");
}

#[test]
fn a_shared_link_limits_and_a_free_one_adds_its_transfer() {
    for read_share in [0.0, 1.0, 0.5] {
        let with = ArrayParameters { link_rate: Some(Bytes::new(163_840_000)), ..parameters(Level::Stripe) };
        // The link transfers 16 KiB in 100 µs. The transfer of a read overlaps with its member's work; that of a write
        // precedes it.
        let one = closed(&mut servers(with.clone(), 4), read_share, 1, 1);
        if read_share != 0.5 {
            assert_near(one.mean_ns, 200.0 - 100.0 * read_share);
        }
        let many = closed(&mut servers(with, 4), read_share, 32, 1);
        assert!((many.iops / 10_000.0 - 1.0).abs() < 0.01, "reads {read_share}: {many:?}");
        // If the link is slower than the members, a read takes as long as its transfer.
        let slow = ArrayParameters { link_rate: Some(Bytes::new(40_960_000)), ..parameters(Level::Stripe) };
        let one = closed(&mut servers(slow, 4), read_share, 1, 1);
        if read_share != 0.5 {
            assert_near(one.mean_ns, 500.0 - 100.0 * read_share);
        }
    }
}

#[test]
fn random_arrivals_wait_for_the_controller_as_in_m_d_1() {
    // With so many members, requests wait for the controller only: one server with constant service time S. The mean
    // wait is ρS / 2(1 - ρ) (Pollaczek and Khinchine).
    let seed = 5;
    for load in [0.3, 0.6, 0.8] {
        let with = ArrayParameters { request: Nanos::new(us(10)), ..parameters(Level::Stripe) };
        let mean = server::open(&mut servers(with, 1000), load * 100_000.0, seed);
        let wait = mean - us(110) as f64;
        let members = 0.01 * load / 2.0 * us(100) as f64;
        let expected = load * us(10) as f64 / (2.0 * (1.0 - load)) + members;
        assert!(
            (wait / expected - 1.0).abs() < 0.15,
            "seed {seed}, load {load}: {wait} ns, {expected} expected"
        );
    }
}

#[test]
fn mirrors_write_everywhere_and_read_anywhere() {
    for (level, count) in [(Level::Mirror, 2), (Level::Mirror, 3), (Level::StripeOfMirrors, 8)] {
        let copies = if level == Level::Mirror { count as u64 } else { 2 };
        let mut written = servers(parameters(level), count);
        let writes = closed(&mut written, 0.0, 64, 1);
        let requests = (written.counters().host_written_bytes / (16 << 10)) as f64;
        assert!(
            (requests / (writes.operations as f64 + 64.0) / copies as f64 - 1.0).abs() < 0.01,
            "{level:?}"
        );
        let each = 10_000.0 * count as f64;
        assert!(writes.iops <= each / copies as f64 * 1.001 && writes.iops > each / copies as f64 * 0.9);
        for choice in [MirrorRead::Alternate, MirrorRead::ShorterQueue, MirrorRead::ByStripe] {
            let with = ArrayParameters { mirror_read: choice, ..parameters(level) };
            let reads = closed(&mut servers(with, count), 1.0, 64, 1);
            assert!(reads.iops > 0.85 * each, "{level:?} {count} {choice:?}: {reads:?}");
        }
        let with = ArrayParameters { mirror_read: MirrorRead::Primary, ..parameters(level) };
        let reads = closed(&mut servers(with, count), 1.0, 64, 1);
        assert!(reads.iops <= each / copies as f64 * 1.001, "{level:?}: only the first of each: {reads:?}");
    }
}

#[test]
fn the_shorter_queue_is_shorter() {
    let read = |choice| {
        let with = ArrayParameters { mirror_read: choice, ..parameters(Level::Mirror) };
        server::open(&mut servers(with, 2), 14_000.0, 3)
    };
    let (shorter, stripe) = (read(MirrorRead::ShorterQueue), read(MirrorRead::ByStripe));
    assert!(shorter < 0.8 * stripe, "seed 3: {shorter} ns with the shorter queue, {stripe} by stripe");
}

#[test]
fn large_requests_are_one_part_a_member() {
    let mut stripe = servers(parameters(Level::Stripe), 4);
    let done = stripe.submit(VirtualTime::START, &Request::read(0, 16 * MIB));
    assert_eq!(done.at.as_nanos(), us(100), "256 chunks, four parts");
    let linear = servers(parameters(Level::Linear), 3).capacity();
    assert_eq!(linear, Bytes::mib(192));
    let mut linear = servers(parameters(Level::Linear), 3);
    linear.submit(VirtualTime::START, &Request::write(63 * MIB, 2 * MIB));
    assert_eq!(linear.counters().host_written_bytes, 2 * MIB);
}

#[test]
fn a_write_cache_answers_until_it_is_full() {
    let cache = WriteCacheSpec { size: Bytes::mib(4), latency: Nanos::new(us(2)), depth: 1 };
    let with = ArrayParameters { write_cache: Some(cache), ..parameters(Level::Stripe) };
    let mut array = servers(with, 1);
    let writes = |array: &mut Array, count: u64, from: VirtualTime, stride: u64| {
        let one = |(now, all): (VirtualTime, Vec<u64>), n| {
            let at = array.submit(now, &Request::write(n * stride, 16 << 10)).at;
            (at, [all, vec![at.since(now).get()]].concat())
        };
        (0..count).fold((from, Vec::new()), one)
    };
    // Scattered writes: each destage takes 100 µs, so the cache fills after slightly more than 256 writes. From then on,
    // each write waits for a destage.
    let (end, took) = writes(&mut array, 600, VirtualTime::START, 64 << 10);
    assert!(took[..256].iter().all(|ns| *ns == us(2)), "{took:?}");
    let settled = &took[400..];
    assert!(settled.iter().all(|ns| (us(98)..=us(102)).contains(ns)), "{settled:?}");
    // Idle time empties it.
    array.idle_until(end + Nanos::from_secs(1));
    let (end, took) = writes(&mut array, 256, end + Nanos::from_secs(1), 64 << 10);
    assert!(took.iter().all(|ns| *ns == us(2)), "{took:?}");
    // Adjacent: up to 64 in one destage, so it never fills.
    array.idle_until(end + Nanos::from_secs(1));
    let (end, took) = writes(&mut array, 1000, end + Nanos::from_secs(1), 16 << 10);
    assert!(took.iter().all(|ns| *ns == us(2)), "{took:?}");
    let read = array.submit(end, &Request::read(999 * (16 << 10), 16 << 10)).at.since(end).get();
    assert_eq!(read, us(2), "what was just written is read from the cache");
    array.idle_until(end + Nanos::from_secs(1));
    assert_eq!(array.counters().host_written_bytes, (600 + 256 + 1000) * (16 << 10), "everything once");
}

#[test]
fn members_have_seeds_of_their_own_and_faults_name_them() {
    let flash = DeviceSpec::Flash(common::plain(256, 64, 0.8, Policy::Random));
    let spec =
        ArraySpec { parameters: parameters(Level::Mirror), members: vec![flash.clone(), flash.clone()] };
    let mut array = Array::new(&spec, Seed::new(9)).expect("valid");
    let mut now = VirtualTime::START;
    for n in 0..60_000u64 {
        now = array.submit(now, &Request::write(n * 7919 % 12_000 * 4096, 4096)).at;
    }
    let erases = array.erase_counts();
    let (first, second) = erases.split_at(erases.len() / 2);
    assert!(first != second && first.iter().sum::<u32>() > 0, "seed 9: random victims differ between copies");

    let mut bad = spec.clone();
    if let DeviceSpec::Flash(flash) = &mut bad.members[1] {
        flash.nand.dies = 0;
    }
    assert_eq!(bad.validate().expect_err("no dies").key, "members[1].nand.dies");
    let odd = ArraySpec { parameters: parameters(Level::StripeOfMirrors), members: vec![flash; 3] };
    assert_eq!(odd.validate().expect_err("three").key, "members");
    assert_eq!(spec.scaled(2).capacity(), spec.members[0].scaled(2).capacity());
}

fn levels() -> impl Strategy<Value = (Level, usize)> {
    prop_oneof![
        (1usize..5).prop_map(|n| (Level::Stripe, n)),
        (1usize..4).prop_map(|n| (Level::Mirror, n)),
        (1usize..4).prop_map(|n| (Level::StripeOfMirrors, 2 * n)),
        (1usize..5).prop_map(|n| (Level::Linear, n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn members_that_queue_lose_and_repeat_nothing(
        (level, count) in levels(),
        choice in prop_oneof![
            Just(MirrorRead::Primary), Just(MirrorRead::Alternate), Just(MirrorRead::ShorterQueue), Just(MirrorRead::ByStripe)
        ],
        times in (0u64..3, 0u64..3),
        link in prop::option::of(1u64..400),
        cache in prop::option::of((64u64..512, 1u32..5)),
        seed in any::<u64>(),
    ) {
        let with = ArrayParameters {
            chunk: Bytes::kib(8),
            mirror_read: choice,
            latency: Nanos::new(times.0 * 10_000),
            request: Nanos::new(times.1 * 40_000),
            link_rate: link.map(|rate| Bytes::new(rate * 1_000_000)),
            write_cache: cache.map(|(kib, depth)| WriteCacheSpec { size: Bytes::kib(kib), latency: Nanos::new(500), depth }),
            ..parameters(level)
        };
        let make = || {
            let member = |n| Box::new(Queueing::new(MIB, Seed::new(seed).part("member", n))) as AnyDevice;
            array(with.clone(), (0..count as u64).map(member).collect())
        };
        let mut one = make();
        let seen = drive(&mut one, seed, 400);
        prop_assert!(seen.queued > 0);
        prop_assert_eq!(&drive(&mut make(), seed, 400), &seen, "the same again");
        if cache.is_none() {
            let copies = match level { Level::Mirror => count as u64, Level::StripeOfMirrors => 2, _ => 1 };
            prop_assert_eq!(one.counters().host_read_bytes, seen.read_bytes);
            prop_assert_eq!(one.counters().host_written_bytes, seen.written_bytes * copies);
        }
    }
}
