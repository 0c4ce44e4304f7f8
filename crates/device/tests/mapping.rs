//! Tests of the flash translation layer against a plain map over random histories, and with extreme valid
//! descriptions.

mod common;

use common::plain;
use lowtide_core::{BlockDevice, Bytes, Nanos, Op, Request, Seed, VirtualTime};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::spec::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Write { at: f64, units: u64, fua: bool },
    Trim { at: f64, units: u64 },
    Read { at: f64, units: u64 },
    Flush,
    Idle,
    PowerCut,
    SecureErase,
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0.0..1.0f64;
    prop_oneof![
        40 => (at.clone(), 1..400u64, prop::bool::weighted(0.1)).prop_map(|(at, units, fua)| Step::Write { at, units, fua }),
        6 => (at.clone(), 1..200u64).prop_map(|(at, units)| Step::Trim { at, units }),
        6 => (at, 1..40u64).prop_map(|(at, units)| Step::Read { at, units }),
        3 => Just(Step::Flush),
        2 => Just(Step::Idle),
        1 => Just(Step::PowerCut),
        1 => prop::bool::weighted(0.2).prop_map(|erase| if erase { Step::SecureErase } else { Step::Flush }),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let all = [Policy::Greedy, Policy::DChoices(2), Policy::Fifo, Policy::Random, Policy::CostBenefit];
    prop::sample::select(all.to_vec())
}

fn spec(
    policy: Policy,
    dies: u32,
    concurrency: u32,
    page_units: u64,
    protected: bool,
    late: bool,
) -> FlashSpec {
    let mut spec = plain(96, 64, 1.0, policy);
    (spec.nand.dies, spec.nand.channels, spec.gc.concurrency) = (dies, 2, concurrency);
    spec.nand.page = Bytes::kib(4) * page_units;
    spec.nand.pages_per_block = 64 / page_units as u32;
    spec.write_buffer = WriteBuffer { size: Bytes::kib(512), protected, honours_flush: true };
    spec.gc.catch_up = late.then_some(CatchUp { start: 0.0, until: 0.2, pace: 3.0 });
    spec.gc.idle = Some(Idle { after: Nanos::from_millis(1), until: 0.3 });
    spec.capacity = Bytes::kib(4) * (52 * 64);
    spec
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_lost_or_kept_that_should_not_be(
        policy in policy(), dies in 1..6u32, concurrency in 1..6u32, page_units in prop::sample::select(vec![1u64, 4, 64]),
        protected: bool, late: bool, steps in prop::collection::vec(step(), 50..600), seed: u64,
    ) {
        let spec = spec(policy, dies, concurrency, page_units, protected, late);
        let mut drive = SimulatedSsd::new(&spec, Seed::new(seed)).expect("valid");
        let units = drive.capacity().get() >> 12;
        let mut mapped = vec![false; units as usize];
        let mut now = VirtualTime::START;
        let mut cut = false;
        for (n, step) in steps.into_iter().enumerate() {
            let span = |at: f64, wanted: u64| {
                let first = (at * (units - 1) as f64) as u64;
                (first, wanted.min(units - first))
            };
            let (op, first, count) = match step {
                Step::Write { at, units, fua } => { let (first, count) = span(at, units); (Op::Write { fua }, first, count) }
                Step::Trim { at, units } => { let (first, count) = span(at, units); (Op::Trim, first, count) }
                Step::Read { at, units } => { let (first, count) = span(at, units); (Op::Read, first, count) }
                Step::Flush => (Op::Flush, 0, 0),
                Step::Idle => { now = now + Nanos::from_secs(1); drive.idle_until(now); continue }
                Step::PowerCut => {
                    let lost = drive.counters().lost_bytes;
                    drive.power_cut(now);
                    let lost = drive.counters().lost_bytes - lost;
                    prop_assert!(!protected || lost == 0);
                    cut |= lost > 0;
                    continue
                }
                Step::SecureErase => { drive.secure_erase(); mapped.fill(false); cut = false; continue }
            };
            let completion = drive.submit(now, &Request { op, offset: first << 12, length: count << 12 });
            prop_assert_eq!(&completion.status, &Ok(()));
            now = completion.at;
            match op {
                Op::Write { .. } => mapped[first as usize..(first + count) as usize].fill(true),
                Op::Trim => mapped[first as usize..(first + count) as usize].fill(false),
                _ => {}
            }
            if n % 50 == 0 { drive.check_invariants(); }
        }
        drive.check_invariants();
        for (unit, &expected) in mapped.iter().enumerate() {
            let is = drive.is_mapped(Bytes::kib(4) * unit as u64);
            prop_assert!(is == expected || (cut && !is), "unit {} is mapped: {}", unit, is);
        }
    }

    /// Every valid description can be filled and overwritten without a panic or a lost block.
    #[test]
    fn whatever_validates_runs(
        policy in policy(), blocks in 1..120u64, dies in 0..12u32, channels in 0..9u32, concurrency in 0..12u32,
        page_units in prop::sample::select(vec![1u64, 2, 3, 64]), pages in prop::sample::select(vec![1u32, 32, 64]),
        fill in 0.0..1.1f64, set_point in prop_oneof![Just(0.0), 0.0..0.6f64], buffer in 0..4_000_000u64, extra in 0..4096u64, seed: u64,
    ) {
        let mut spec = plain(96, 64, 1.0, policy);
        (spec.nand.dies, spec.nand.channels, spec.gc.concurrency) = (dies, channels, concurrency);
        (spec.nand.page, spec.nand.pages_per_block) = (Bytes::kib(4) * page_units, pages);
        spec.nand.raw = spec.block_bytes() * blocks + Bytes::new(extra);
        let capacity = (spec.nand.raw.get() as f64 * fill) as u64;
        (spec.capacity, spec.gc.set_point, spec.write_buffer.size) = (Bytes::new(capacity), set_point, Bytes::new(buffer));
        for spec in [spec.scaled(2), spec] {
            let Ok(mut drive) = SimulatedSsd::new(&spec, Seed::new(seed)) else { continue };
            let now = common::fill(&mut drive, VirtualTime::START);
            common::overwrite(&mut drive, capacity * 2, Seed::new(seed), now);
            drive.check_invariants();
        }
    }
}

#[test]
fn numbers_without_sense_are_refused_by_name() {
    type Change = fn(&mut FlashSpec);
    let cases: [(&str, Change); 14] = [
        ("map.page", |spec| spec.map.page = Bytes::ZERO),
        ("map.page", |spec| spec.map.page = Bytes::gib(16)),
        ("nand.page", |spec| spec.nand.page = Bytes::new(1 << 63)),
        ("gc.concurrency", |spec| spec.gc.concurrency = u32::MAX),
        ("nand.dies", |spec| spec.nand.dies = u32::MAX),
        ("capacity", |spec| spec.capacity = Bytes::ZERO),
        ("capacity", |spec| spec.capacity = Bytes::new((1 << 44) + 4096)),
        ("write-buffer.size", |spec| spec.write_buffer.size = Bytes::gib(1 << 20)),
        ("gc.policy", |spec| spec.gc.policy = Policy::DChoices(u32::MAX)),
        ("gc.catch-up.pace", |spec| {
            spec.gc.catch_up = Some(CatchUp { start: 0.0, until: 0.2, pace: f64::NAN })
        }),
        ("gc.set-point", |spec| spec.gc.set_point = f64::NAN),
        ("nand.program", |spec| spec.nand.program = Nanos::new(u64::MAX)),
        ("nand.channel-rate", |spec| spec.nand.channel_rate = Bytes::new(1)),
        ("nand.raw", |spec| spec.gc.set_point = 0.45),
    ];
    for (key, change) in cases {
        let mut spec = plain(96, 64, 0.9, Policy::Greedy);
        spec.validate().expect("valid before the change");
        change(&mut spec);
        assert_eq!(spec.validate().expect_err(key).key, key);
        assert_eq!(spec.scaled(4).nand.raw, spec.nand.raw, "{key}: what is not valid is not scaled");
    }
}
