//! One contract, run against every device of this crate: what each promises whatever it is made of.

mod common;

use common::plain;
use lowtide_core::rng::below;
use lowtide_core::{BlockDevice, Bytes, DeviceError, Nanos, Op, Request, Seed, VirtualTime};
use lowtide_device::flash::spec::{FlashSpec, Policy};
use lowtide_device::{Partition, SimulatedSsd};

type Device = Box<dyn BlockDevice>;

fn base(policy: Policy) -> FlashSpec {
    let mut spec = plain(256, 64, 0.8, policy);
    (spec.nand.dies, spec.nand.channels, spec.gc.concurrency) = (4, 2, 2);
    spec.nand.page = Bytes::kib(16);
    spec.nand.pages_per_block = 16;
    spec
}

fn specs() -> Vec<(String, FlashSpec)> {
    let policies = [Policy::Greedy, Policy::DChoices(3), Policy::Fifo, Policy::Random, Policy::CostBenefit];
    let mut all: Vec<_> = policies.map(|policy| (format!("{policy:?}"), base(policy))).into();
    let mut add = |name: &str, change: fn(&mut FlashSpec)| {
        let mut spec = base(Policy::Random);
        change(&mut spec);
        all.push((name.to_owned(), spec));
    };
    add("map cache", |spec| spec.map.cache = Some(Bytes::kib(16)));
    add("coarse unit", |spec| {
        spec.map.unit = Bytes::kib(16);
        spec.nand.pages_per_block = 64;
        spec.nand.raw = Bytes::mib(72);
    });
    add("volatile buffer", |spec| spec.write_buffer.protected = false);
    all
}

/// Calls `body` with the name of each device, a maker of it from a seed, and whether its buffer is volatile.
fn for_each(body: impl Fn(&str, &dyn Fn(u64) -> Device, bool)) {
    for (name, spec) in specs() {
        let ssd = |seed| SimulatedSsd::new(&spec, Seed::new(seed)).expect("valid");
        let volatile = !spec.write_buffer.protected;
        body(&name, &|seed| Box::new(ssd(seed)), volatile);
        let part = |seed| {
            let whole = ssd(seed);
            let length = whole.capacity() / 2;
            Partition::new(whole, Bytes::mib(1), length.align_down(Bytes::kib(16))).expect("fits")
        };
        body(&format!("partition of {name}"), &|seed| Box::new(part(seed)), volatile);
    }
}

/// A mixed load of `count` requests from `from`; completion times.
fn load(device: &mut Device, seed: u64, count: usize, from: VirtualTime) -> Vec<VirtualTime> {
    let mut rng = Seed::new(seed).part("load", 0).stream();
    let sectors = device.capacity().get() / 512;
    let mut now = from;
    (0..count)
        .map(|n| {
            let length = (1 + below(&mut rng, 128)) * 512;
            let offset = below(&mut rng, sectors - 128) * 512;
            let request = match below(&mut rng, 10) {
                0..=5 => Request::write(offset, length),
                6 => Request { op: Op::Write { fua: true }, offset, length },
                7 => Request::read(offset, length),
                8 => Request::trim(offset, length),
                _ => Request::flush(),
            };
            let completion = device.submit(now, &request);
            assert!(completion.at >= now, "seed {seed}, request {n}: completed before it was submitted");
            assert_eq!(completion.status, Ok(()), "seed {seed}, request {n}: {request:?}");
            now = if n % 3 == 0 { now + Nanos::new(1000) } else { completion.at.max(now) };
            completion.at
        })
        .collect()
}

#[test]
fn answers_come_after_questions_and_repeat_with_the_seed() {
    for_each(|name, make, _| {
        let run = |seed| {
            let mut device = make(seed);
            let times = load(&mut device, seed, 3000, VirtualTime::START);
            (times, device.counters())
        };
        assert_eq!(run(11), run(11), "{name}, seed 11");
        assert!(run(11).1.erases > 0, "{name}, seed 11: the load reaches cleaning");
    });
}

#[test]
fn what_cannot_be_done_is_refused_and_changes_nothing() {
    for_each(|name, make, _| {
        let mut device = make(1);
        load(&mut device, 1, 200, VirtualTime::START);
        let (capacity, before) = (device.capacity().get(), device.counters());
        for op in [Op::Read, Op::Write { fua: false }, Op::Write { fua: true }, Op::Trim, Op::WriteZeroes] {
            for (offset, length) in
                [(capacity, 512), (capacity - 512, 1024), (u64::MAX - 511, 512), (0, u64::MAX)]
            {
                let completion = device.submit(VirtualTime::START, &Request { op, offset, length });
                let refused = matches!(completion.status, Err(DeviceError::OutOfRange { .. }));
                assert!(refused, "{name}: {op:?} {offset}+{length}: {:?}", completion.status);
            }
            for (offset, length) in [(1, 512), (512, 100)] {
                let completion = device.submit(VirtualTime::START, &Request { op, offset, length });
                assert!(matches!(completion.status, Err(DeviceError::Unaligned { .. })), "{name}: {op:?}");
            }
            let last = device.submit(VirtualTime::START, &Request { op, offset: capacity, length: 0 });
            assert_eq!(last.status, Ok(()), "{name}: nothing at the very end is in range");
        }
        assert_eq!(device.counters(), before, "{name}: refused and empty requests count nothing");
        let flush = Request { op: Op::Flush, offset: u64::MAX, length: u64::MAX };
        assert_eq!(device.submit(VirtualTime::START, &flush).status, Ok(()), "{name}: a flush has no range");
    });
}

#[test]
fn flush_and_fua_are_durable_and_nothing_else_need_be() {
    for_each(|name, make, volatile| {
        let write = |device: &mut Device, fua| {
            let request = Request { op: Op::Write { fua }, offset: 0, length: 16 << 10 };
            device.submit(VirtualTime::START, &request).at
        };
        let mut device = make(1);
        let acknowledged = write(&mut device, false);
        device.power_cut(acknowledged);
        let lost = device.counters().lost_bytes;
        assert_eq!(lost, if volatile { 16 << 10 } else { 0 }, "{name}: only a volatile buffer loses");

        let mut device = make(1);
        // Many dies are busy for different times when the flush comes.
        let mut last = VirtualTime::START;
        for n in 0..23 {
            last = device.submit(last, &Request::write(n * (12 << 10), 12 << 10)).at;
        }
        let durable = device.submit(last, &Request::flush()).at;
        device.power_cut(durable);
        assert_eq!(device.counters().lost_bytes, 0, "{name}: flushed");

        for length in [4u64 << 10, 80 << 10] {
            let mut device = make(1);
            device.submit(VirtualTime::START, &Request::write(1 << 20, 8 << 10));
            let fua = Request { op: Op::Write { fua: true }, offset: 0, length };
            let durable = device.submit(VirtualTime::START, &fua).at;
            device.power_cut(durable);
            assert_eq!(device.counters().lost_bytes, 0, "{name}: a forced write of {length} is durable");
        }
    });
}

#[test]
fn trimmed_ranges_cost_no_read_and_ease_cleaning() {
    for_each(|name, make, _| {
        let mut device = make(1);
        let chunk = 64 << 10;
        let mut now = device.submit(VirtualTime::START, &Request::write(0, chunk)).at;
        now = device.submit(now, &Request::flush()).at + Nanos::from_millis(100);
        let mapped = device.submit(now, &Request::read(0, chunk)).at.as_nanos() - now.as_nanos();
        now = device.submit(now + Nanos::from_millis(100), &Request::trim(0, chunk)).at;
        assert_eq!(device.counters().trimmed_bytes, chunk, "{name}");
        now = device.submit(now, &Request::trim(0, chunk)).at + Nanos::from_millis(100);
        assert_eq!(device.counters().trimmed_bytes, chunk, "{name}: nothing is trimmed twice");
        let trimmed = device.submit(now, &Request::read(0, chunk)).at.as_nanos() - now.as_nanos();
        assert!(trimmed < mapped, "{name}: {trimmed} ns trimmed, {mapped} ns mapped");
    });
}

#[test]
fn secure_erase_makes_a_drive_fresh_but_for_its_wear() {
    for_each(|name, make, _| {
        let mut device = make(1);
        let fresh = (device.counters().free_blocks, speed(&mut device, VirtualTime::START));
        let used = load(&mut device, 1, 3000, VirtualTime::START + Nanos::from_secs(100));
        let wear = device.counters().erases;
        device.secure_erase();
        let long_after = used.into_iter().max().expect("requests") + Nanos::from_secs(100);
        let again = (device.counters().free_blocks, speed(&mut device, long_after));
        assert_eq!(again, fresh, "{name}: erased blocks and time of the same writes");
        assert!(device.counters().erases >= wear && wear > 0, "{name}: wear stays");
    });
}

/// Nanoseconds that 200 writes take.
fn speed(device: &mut Device, from: VirtualTime) -> u64 {
    let end = (0..200).fold(from, |now, n| device.submit(now, &Request::write((n % 64) << 14, 16 << 10)).at);
    end.as_nanos() - from.as_nanos()
}

#[test]
fn a_partition_must_fit_and_align() {
    let drive = || SimulatedSsd::new(&base(Policy::Greedy), Seed::new(1)).expect("valid");
    let capacity = drive().capacity();
    assert!(Partition::new(drive(), Bytes::ZERO, capacity).is_ok());
    assert!(Partition::new(drive(), Bytes::new(512), capacity).is_err());
    assert!(Partition::new(drive(), Bytes::new(u64::MAX - 511), Bytes::new(1024)).is_err());
    assert!(matches!(
        Partition::new(drive(), Bytes::new(100), Bytes::mib(1)),
        Err(DeviceError::Unaligned { .. })
    ));
}
