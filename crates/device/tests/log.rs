//! Tests of the log layer as a simulated device: it equals the log of `lowtide_logdisk`, and its write counters are
//! separate from the drive's.

mod common;

use common::plain;
use lowtide_core::rng::below;
use lowtide_core::{BlockDevice, Bytes, Nanos, Request, Seed, VirtualTime};
use lowtide_device::DeviceSpec;
use lowtide_device::flash::spec::Policy;
use lowtide_device::log::{LogParameters, LogSpec};
use lowtide_logdisk::closed_form::by_age;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::{LogDevice, Options};

const BLOCK: u64 = 4096;

fn flash() -> DeviceSpec {
    let mut spec = plain(1024, 64, 0.9, Policy::Greedy);
    (spec.nand.dies, spec.nand.channels, spec.gc.concurrency) = (4, 2, 2);
    DeviceSpec::Flash(spec)
}

fn spec(over: DeviceSpec) -> LogSpec {
    let parameters = LogParameters { segment: Bytes::mib(1), reserve: 0.1, latency: Nanos::from_micros(2) };
    LogSpec { parameters, over: Box::new(over) }
}

/// Writes the first `blocks` blocks in order and then at random. Returns the last completion.
fn written(device: &mut dyn BlockDevice, blocks: u64, times: u64, from: VirtualTime) -> VirtualTime {
    let mut rng = Seed::new(5).part("addresses", 0).stream();
    let random = (0..times * blocks).map(|_| below(&mut rng, blocks));
    (0..blocks).chain(random).fold(from, |now, block| {
        let completion = device.submit(now, &Request::write(block * BLOCK, BLOCK));
        assert_eq!(completion.status, Ok(()), "block {block}");
        completion.at
    })
}

#[test]
fn it_is_the_log_of_the_log_disk() {
    let (spec, seed) = (spec(flash()), Seed::new(3));
    let mut described = DeviceSpec::Log(spec.clone()).build(seed).expect("it fits");
    let over = flash().build(seed.part("over", 0)).expect("it fits");
    let options = Options { segment: 1 << 20, reserve: 0.1 };
    // A smaller log writes checkpoints more often.
    let running = Running { checkpoint_slots: spec.capacity().get() / 24 / BLOCK, ..Running::default() };
    let log = LogDevice::new(over, options, running).expect("it fits");
    let mut alone = log.with_latency(Nanos::from_micros(2));
    assert_eq!((described.capacity(), spec.capacity()), (alone.capacity(), alone.capacity()));
    assert_eq!(described.host_memory(), DeviceSpec::Log(spec).host_memory());
    let blocks = alone.capacity().get() / BLOCK * 3 / 4;
    let start = VirtualTime::START;
    assert_eq!(written(&mut described, blocks, 3, start), written(&mut alone, blocks, 3, start));
    assert_eq!(described.counters(), alone.counters());
    assert!(alone.log_counters().moved_blocks > blocks, "it cleans");
}

#[test]
fn what_it_writes_is_counted_beside_what_the_drive_writes() {
    let spec = spec(flash());
    let mut device = DeviceSpec::Log(spec.clone()).build(Seed::new(1)).expect("it fits");
    let blocks = device.capacity().get() / BLOCK;
    let fill = 0.8;
    let half = (blocks as f64 * fill) as u64;
    let now = written(&mut device, half, 4, VirtualTime::START);
    let before = device.counters();
    written(&mut device, half, 2, now);
    let after = device.counters();
    assert_eq!(after.host_written_bytes - before.host_written_bytes, 3 * half * BLOCK, "what the host wrote");
    let layer = after.layer_amplification_since(&before).expect("there is a layer");
    let both = after.write_amplification_since(&before).expect("there is NAND");
    // One third of these writes is in order. Write amplification is the same as for random writes, because the blocks
    // of a segment still become invalid at random.
    let expected = by_age(spec.live_share(fill).expect("there can be one"));
    assert!((layer / expected - 1.0).abs() < 0.12, "{layer} blocks for a block, closed form {expected}");
    assert!(both > layer && both < layer * 1.3, "{both}: headers, summaries, and what the drive moves");
    assert_eq!(after.gc_moved_bytes, device.counters().gc_moved_bytes, "that of the drive");
}

#[test]
fn a_smaller_one_is_the_same_layer_on_a_smaller_drive() {
    let whole = DeviceSpec::Log(spec(flash()));
    let half = whole.scaled(2);
    half.validate().expect("half of it fits");
    let ratio = whole.capacity().get() as f64 / half.capacity().get() as f64;
    assert!((2.0..2.3).contains(&ratio), "{ratio}: segments that are kept free do not shrink");
    let tiny = spec(DeviceSpec::Flash(plain(128, 64, 0.9, Policy::Greedy)));
    let error = tiny.validate().expect_err("too few segments");
    assert_eq!(error.key, "over");
    assert!(error.message.contains("is too small: with segments of 1MiB a log needs"), "{error}");
    assert_eq!(tiny.capacity(), Bytes::ZERO);
}

#[test]
fn a_log_may_lie_on_a_log() {
    let mut device =
        DeviceSpec::Log(spec(DeviceSpec::Log(spec(flash())))).build(Seed::new(1)).expect("it fits");
    let blocks = device.capacity().get() / BLOCK / 2;
    written(&mut device, blocks, 1, VirtualTime::START);
    let counters = device.counters();
    assert_eq!(counters.host_written_bytes, 2 * blocks * BLOCK);
    assert!(counters.layer_amplification_since(&Default::default()).expect("it writes") < 1.5, "its own");
}
