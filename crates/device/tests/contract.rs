//! The contract of block devices, tested on every device of this crate.

mod common;
#[path = "common/disks.rs"]
mod disks;

use common::plain;
use lowtide_core::rng::below;
use lowtide_core::{BlockDevice, Bytes, DeviceError, Nanos, Op, Request, Seed, VirtualTime};
use lowtide_device::array::ArraySpec;
use lowtide_device::array::spec::{ArrayParameters, Level, MirrorRead};
use lowtide_device::cache::{CacheParameters, CacheSpec, Mode};
use lowtide_device::flash::spec::{FlashSpec, Policy};
use lowtide_device::log::{LogParameters, LogSpec};
use lowtide_device::volume::VolumeSpec;
use lowtide_device::{DeviceSpec, Partition, SimulatedSsd};

type Device = Box<dyn BlockDevice>;

/// Properties of a device beyond the contract.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// A power cut loses acknowledged writes.
    volatile: bool,
    /// The device erases blocks, and trimmed data affects its counters.
    nand: bool,
    /// The trimmed device holds the data. In a flash cache, the other device may hold the data instead.
    trims: bool,
    /// Service time does not depend on the instant of a request, unlike disk rotation and volume credits.
    timeless: bool,
}

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

/// Devices made of other devices, and devices without NAND.
fn composites() -> Vec<(&'static str, DeviceSpec, Kind)> {
    let flash = |blocks, volatile: bool| {
        let mut spec = FlashSpec { nand: base(Policy::Greedy).nand, ..base(Policy::Greedy) };
        spec.nand.raw = Bytes::kib(256) * blocks;
        spec.capacity = (spec.nand.raw * 6 / 10).align_down(Bytes::mib(1));
        spec.write_buffer.protected = !volatile;
        DeviceSpec::Flash(spec)
    };
    let array = |level, members: Vec<DeviceSpec>| {
        let parameters = ArrayParameters {
            level,
            chunk: Bytes::kib(64),
            mirror_read: MirrorRead::Alternate,
            latency: Nanos::from_micros(5),
            request: Nanos::from_micros(2),
            link_rate: Some(Bytes::new(2_000_000_000)),
            write_cache: None,
        };
        DeviceSpec::Array(ArraySpec { parameters, members })
    };
    let cache = |mode, volatile, backing: &DeviceSpec| {
        let parameters = CacheParameters {
            mode,
            line: Bytes::kib(16),
            dirty_threshold: 0.5,
            write_back_depth: 4,
            promote: true,
            bypass_sequential: None,
            latency: Nanos::from_micros(2),
        };
        let (flash, backing) = (Box::new(flash(96, volatile)), Box::new(backing.clone()));
        DeviceSpec::Cache(CacheSpec { parameters, flash, backing })
    };
    let log = |over: DeviceSpec| {
        let parameters =
            LogParameters { segment: Bytes::mib(1), reserve: 0.1, latency: Nanos::from_micros(2) };
        DeviceSpec::Log(LogSpec { parameters, over: Box::new(over) })
    };
    let disk = |seed: u64| {
        let mut spec = disks::plain().scaled(64);
        spec.capacity = spec.capacity / (1 + seed % 2);
        DeviceSpec::Disk(spec)
    };
    let volume = DeviceSpec::Volume(VolumeSpec {
        capacity: Bytes::mib(64),
        iops: 3000,
        burst: None,
        throughput: Some(Bytes::mib(125)),
        io_size: Bytes::kib(256),
        latency: Nanos::from_micros(500),
        latency_spread: Nanos::from_micros(300),
    });
    let drive = Kind { volatile: false, nand: true, trims: true, timeless: true };
    let plain = Kind { volatile: false, nand: false, trims: false, timeless: false };
    let kept = Kind { trims: false, ..drive };
    let before_disks = Kind { timeless: false, ..kept };
    let of_disks = array(Level::Stripe, vec![disk(0), disk(0)]);
    vec![
        ("stripe", array(Level::Stripe, vec![flash(80, false), flash(80, false)]), drive),
        (
            "mirror",
            array(Level::Mirror, vec![flash(96, false), flash(96, false)]),
            Kind { trims: false, ..drive },
        ),
        (
            "volatile stripe",
            array(Level::Stripe, vec![flash(80, true), flash(80, true)]),
            Kind { volatile: true, ..drive },
        ),
        ("linear", array(Level::Linear, vec![flash(64, false), flash(64, false)]), drive),
        ("stripe of disks", of_disks.clone(), plain),
        ("volume", volume, plain),
        ("log", log(flash(400, false)), Kind { volatile: true, ..kept }),
        ("log over a volatile drive", log(flash(400, true)), Kind { volatile: true, ..kept }),
        ("log over disks", log(of_disks.clone()), Kind { volatile: true, ..plain }),
        ("write-through", cache(Mode::WriteThrough, false, &flash(192, false)), drive),
        ("write-back", cache(Mode::WriteBack, false, &flash(192, false)), kept),
        (
            "write-back, volatile",
            cache(Mode::WriteBack, true, &flash(192, false)),
            Kind { volatile: true, ..kept },
        ),
        ("write-through before disks", cache(Mode::WriteThrough, true, &of_disks), before_disks),
        ("write-back before disks", cache(Mode::WriteBack, false, &of_disks), before_disks),
    ]
}

/// Calls `body` with the name, a constructor and the properties of each device.
fn for_each(body: impl Fn(&str, &dyn Fn(u64) -> Device, Kind)) {
    for (name, spec) in specs() {
        let ssd = |seed| SimulatedSsd::new(&spec, Seed::new(seed)).expect("valid");
        let kind = Kind { volatile: !spec.write_buffer.protected, nand: true, trims: true, timeless: true };
        body(&name, &|seed| Box::new(ssd(seed)), kind);
        let part = |seed| {
            let whole = ssd(seed);
            let length = whole.capacity() / 2;
            Partition::new(whole, Bytes::mib(1), length.align_down(Bytes::kib(16))).expect("fits")
        };
        body(&format!("partition of {name}"), &|seed| Box::new(part(seed)), kind);
    }
    for (name, spec, kind) in composites() {
        body(
            name,
            &|seed| spec.build(Seed::new(seed)).unwrap_or_else(|error| panic!("{name}: {error}")),
            kind,
        );
    }
}

/// Runs a mixed load of `count` requests from the instant `from`. Returns the completions.
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
    for_each(|name, make, kind| {
        let run = |seed| {
            let mut device = make(seed);
            let times = load(&mut device, seed, 3000, VirtualTime::START);
            (times, device.counters())
        };
        assert_eq!(run(11), run(11), "{name}, seed 11");
        assert!(run(11).1.erases > 0 || !kind.nand, "{name}, seed 11: the load reaches cleaning");
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
    for_each(|name, make, kind| {
        let write = |device: &mut Device, fua| {
            let request = Request { op: Op::Write { fua }, offset: 0, length: 16 << 10 };
            device.submit(VirtualTime::START, &request).at
        };
        let mut device = make(1);
        let acknowledged = write(&mut device, false);
        device.power_cut(acknowledged);
        let lost = device.counters().lost_bytes;
        assert_eq!(lost, if kind.volatile { 16 << 10 } else { 0 }, "{name}: only a volatile buffer loses");

        let mut device = make(1);
        // When the flush arrives, the dies are busy for different lengths of time.
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
    for_each(|name, make, kind| {
        if !kind.trims {
            return;
        }
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
    for_each(|name, make, kind| {
        let speed = |device: &mut Device, from| if kind.timeless { speed(device, from) } else { 0 };
        let mut device = make(1);
        let fresh = (device.counters().free_blocks, speed(&mut device, VirtualTime::START));
        let used = load(&mut device, 1, 3000, VirtualTime::START + Nanos::from_secs(100));
        let wear = device.counters().erases;
        device.secure_erase();
        let long_after = used.into_iter().max().expect("requests") + Nanos::from_secs(100);
        let again = (device.counters().free_blocks, speed(&mut device, long_after));
        assert_eq!(again, fresh, "{name}: erased blocks and time of the same writes");
        assert!(device.counters().erases >= wear && (wear > 0 || !kind.nand), "{name}: wear stays");
    });
}

/// Duration of 200 writes in nanoseconds.
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
