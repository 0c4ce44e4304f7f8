//! Tests of faults: each affects the right requests and no others.

mod common;
#[path = "common/disks.rs"]
mod disks;
#[path = "common/queueing.rs"]
mod queueing;

use common::plain;
use lowtide_core::rng::below;
use lowtide_core::virtual_load;
use lowtide_core::{
    BlockDevice, Bytes, Completion, Control, DeviceError, Extents, Nanos, Op, Request, Seed, VirtualTime,
    Workload,
};
use lowtide_device::array::{Array, ArraySpec};
use lowtide_device::fault::{EndOfLife, Errors, Fault, Faults, REFUSAL, Slow};
use lowtide_device::flash::spec::Policy;
use lowtide_device::{AnyDevice, DeviceSpec};
use queueing::{Queueing, drive};

fn flash() -> AnyDevice {
    DeviceSpec::Flash(plain(64, 64, 0.7, Policy::Greedy)).build(Seed::new(1)).expect("fits")
}

/// A stripe of three queueing devices.
fn stripe(seed: u64) -> AnyDevice {
    let parameters = toml::from_str("level = 'stripe'\nlatency = '1us'\nrequest = '1us'").expect("an array");
    let member = |n| Box::new(Queueing::new(1 << 20, Seed::new(seed).part("member", n))) as AnyDevice;
    let spec = ArraySpec { parameters, members: Vec::new() };
    Box::new(Array::of(&spec, (0..3).map(member).collect()).expect("fits"))
}

fn at(ns: u64) -> VirtualTime {
    VirtualTime::from_nanos(ns)
}

fn faulty(faults: Faults) -> Fault<AnyDevice> {
    let mut device = Fault::new(flash(), Seed::new(2));
    device.set(faults).expect("they make sense");
    device
}

/// Runs mixed requests one after another, far enough apart for the device to be idle, and returns their completions.
fn run(device: &mut dyn BlockDevice, seed: u64, count: usize) -> Vec<(Request, VirtualTime, Completion)> {
    let mut rng = Seed::new(seed).part("requests", 0).stream();
    let (blocks, mut now) = (device.capacity().get() / 4096, VirtualTime::START);
    let one = |_| {
        let offset = below(&mut rng, blocks) * 4096;
        let request = match below(&mut rng, 4) {
            0 => Request::flush(),
            1 => Request::write(offset, 4096),
            _ => Request::read(offset, 4096),
        };
        let (since, completion) = (now, device.submit(now, &request));
        now = completion.at + Nanos::from_millis(10);
        (request, since, completion)
    };
    (0..count).map(one).collect()
}

#[test]
fn without_faults_nothing_changes() {
    let (mut bare, mut filtered) = (flash(), Fault::new(flash(), Seed::new(2)));
    assert_eq!(run(&mut bare, 3, 500), run(&mut filtered, 3, 500));
    let queued = |device: &mut dyn BlockDevice| drive(device, 4, 2000);
    let mut filtered = Fault::new(stripe(5), Seed::new(2));
    assert_eq!(queued(&mut stripe(5)), queued(&mut filtered));
}

#[test]
fn errors_hit_their_range_and_their_share() {
    let half = Errors { from: Bytes::mib(2), to: Some(Bytes::mib(6)), share: 0.5 };
    let mut device = faulty(Faults { read_errors: Some(half), ..Faults::default() });
    let (mut inside, mut failed) = (0u32, 0u32);
    let (bare, seen) = (run(&mut flash(), 6, 4000), run(&mut device, 6, 4000));
    for ((request, _, plain), (_, _, completion)) in bare.into_iter().zip(seen) {
        assert_eq!(plain.at, completion.at, "a read that fails takes its time: {request:?}");
        let Request { op, offset, length } = request;
        let hit = op == Op::Read && (half.from.get()..half.to.map_or(0, Bytes::get)).contains(&offset);
        inside += u32::from(hit);
        match completion.status {
            Ok(()) => {}
            Err(error) => {
                assert!(hit && error == DeviceError::ReadFailed { offset, length }, "{request:?}: {error}");
                failed += 1;
            }
        }
    }
    // The count is binomial. The tolerance is five standard deviations.
    let (mean, deviation) = (f64::from(inside) / 2.0, (f64::from(inside) / 4.0).sqrt());
    assert!((f64::from(failed) - mean).abs() < 5.0 * deviation, "{failed} of {inside}");
}

#[test]
fn a_write_that_fails_changes_nothing() {
    let mut device = faulty(Faults { write_errors: Some(Errors::default()), ..Faults::default() });
    let before = device.counters();
    let completion = device.submit(at(5), &Request::write(8192, 4096));
    let error = DeviceError::WriteFailed { offset: 8192, length: 4096 };
    assert_eq!(error.to_string(), "bytes 8192..12288 cannot be written: the medium has an error there");
    assert_eq!(completion, Completion { at: at(5) + REFUSAL, status: Err(error) });
    assert_eq!(device.counters(), before);
    assert_eq!(device.submit(at(200_000), &Request::read(8192, 4096)).status, Ok(()));
    // A request that is invalid on any device reports that error first.
    let far = device.submit(at(200_001), &Request::write(1 << 60, 4096)).status;
    assert!(matches!(far, Err(DeviceError::OutOfRange { .. })), "{far:?}");
    device.set(Faults::default()).expect("none is fine");
    assert_eq!(device.submit(at(400_000), &Request::write(8192, 4096)).status, Ok(()));
}

#[test]
fn slow_requests_take_what_was_asked_until_it_ends() {
    let end = Nanos::from_secs(20);
    let slow = Slow {
        factor: 3.0,
        added: Nanos::from_millis(7),
        share: 0.25,
        until: Some(VirtualTime::START + end),
    };
    let mut device = faulty(Faults { slow: Some(slow), ..Faults::default() });
    let (mut asked, mut slowed) = (0u32, 0u32);
    // The device is idle between requests, so each takes as long as on a device without faults.
    let mut bare = flash();
    for (request, since, completion) in run(&mut device, 7, 4000) {
        let took = bare.submit(since, &request).at.since(since);
        let takes = completion.at.since(since);
        if since >= VirtualTime::START + end {
            assert_eq!(takes, took, "{request:?} at {since:?}");
            continue;
        }
        asked += 1;
        if takes != took {
            assert_eq!(takes, took * 3 + slow.added, "{request:?} at {since:?}");
            slowed += 1;
        }
    }
    assert!(asked > 1000 && asked < 3900, "{asked}");
    let (mean, deviation) = (f64::from(asked) * 0.25, (f64::from(asked) * 0.1875).sqrt());
    assert!((f64::from(slowed) - mean).abs() < 5.0 * deviation, "{slowed} of {asked}");
}

/// Slow requests keep the contract of queueing devices, which `drive` checks.
#[test]
fn slow_requests_of_a_device_that_queues_come_in_order() {
    for seed in 0..20 {
        let mut device = Fault::new(stripe(seed), Seed::new(seed));
        let slow = Slow { added: Nanos::from_millis(2), share: 0.5, ..Slow::default() };
        device.set(Faults { slow: Some(slow), ..Faults::default() }).expect("it makes sense");
        let seen = drive(&mut device, seed, 2000);
        assert!(seen.queued > 500, "seed {seed}");
    }
}

#[test]
fn a_worn_out_device_is_read_and_not_written() {
    let worn = Faults { end_of_life: Some(EndOfLife::Worn { cycles: 3 }), ..Faults::default() };
    let mut device = faulty(worn);
    let (blocks, mut now) = (device.erase_counts().len() as u64, VirtualTime::START);
    let mut rng = Seed::new(9).stream();
    let units = device.capacity().get() / 4096;
    let refused = loop {
        let completion = device.submit(now, &Request::write(below(&mut rng, units) * 4096, 4096));
        now = completion.at;
        if let Err(error) = completion.status {
            break error;
        }
        assert!(device.counters().erases <= 3 * blocks + 8, "it should have worn out");
    };
    assert_eq!(refused, DeviceError::WornOut);
    assert!(device.counters().erases >= 3 * blocks && device.is_worn_out());
    assert_eq!(device.submit(now, &Request::trim(0, 4096)).status, Err(DeviceError::WornOut));
    assert_eq!(device.submit(now, &Request::read(0, 4096)).status, Ok(()));
    assert_eq!(device.submit(now, &Request::flush()).status, Ok(()));
    device.set(Faults { end_of_life: Some(EndOfLife::Now), ..worn }).expect("fine");
    assert_eq!(device.submit(now, &Request::write(0, 4096)).status, Err(DeviceError::WornOut));
}

/// A failed load leaves nothing in the queue for a later load.
#[test]
fn a_load_ends_with_the_error_and_another_can_follow() {
    let disk = DeviceSpec::Disk(disks::plain().scaled(100)).build(Seed::new(1)).expect("fits");
    let mut device = Fault::new(disk, Seed::new(2));
    let errors = Some(Errors { share: 0.05, ..Errors::default() });
    device.set(Faults { read_errors: errors, write_errors: errors, ..Faults::default() }).expect("fine");
    let extents = Extents::whole(device.capacity().get());
    let workload = Workload { threads: 16, read_share: 0.5, ..Workload::random_write(Bytes::kib(16)) };
    let load = |device: &mut Fault<AnyDevice>, start| {
        let second = Nanos::from_secs(1);
        virtual_load::run(device, &extents, &workload, Seed::new(3), start, second, &mut |_| Control::Stop)
    };
    let error = load(&mut device, VirtualTime::START).expect_err("one in twenty fails");
    assert!(matches!(error, DeviceError::ReadFailed { .. } | DeviceError::WriteFailed { .. }), "{error}");
    assert_eq!(device.next_done(), None, "nothing is left in the queue");
    device.set(Faults::default()).expect("none is fine");
    load(&mut device, VirtualTime::START + Nanos::from_secs(9)).expect("it has no faults any more");
}

#[test]
fn numbers_without_sense_are_told() {
    let told = |faults: Faults| {
        let mut device = Fault::new(flash(), Seed::new(2));
        let error = device.set(faults).expect_err("makes no sense").to_string();
        assert_eq!(device.faults(), Faults::default(), "nothing was set");
        error
    };
    let none = Faults::default();
    let errors = Errors { share: 1.5, ..Errors::default() };
    assert_eq!(
        told(Faults { read_errors: Some(errors), ..none }),
        "read-errors.share: 1.5 is not a share from 0 to 1"
    );
    let errors = Errors { from: Bytes::kib(8), to: Some(Bytes::kib(4)), ..Errors::default() };
    assert_eq!(
        told(Faults { write_errors: Some(errors), ..none }),
        "write-errors.to: 4KiB is not beyond `from`, 8KiB"
    );
    let slow = Slow { factor: f64::NAN, ..Slow::default() };
    assert_eq!(told(Faults { slow: Some(slow), ..none }), "slow.factor: NaN is not from 1 to 1000000");
}
