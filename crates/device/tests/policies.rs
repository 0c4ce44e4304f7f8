//! Tests of cleaning policies against each other, of wear, and of scaled-down drives.

mod common;

use common::{fill, overwrite, plain};
use lowtide_core::workload::{Distribution, Zone};
use lowtide_core::{
    BlockDevice, Bytes, Control, Extents, Interval, Nanos, Seed, VirtualTime, Workload, virtual_load,
};
use lowtide_device::SimulatedSsd;
use lowtide_device::flash::spec::{FlashSpec, Policy};

/// Write amplification over `measured` drive writes, after a warm-up of `warm` drive writes.
fn settled(spec: &FlashSpec, distribution: Distribution, warm: u64, measured: u64, seed: u64) -> f64 {
    let mut drive = SimulatedSsd::new(spec, Seed::new(seed)).expect("valid");
    let capacity = drive.capacity().get();
    let mut now = fill(&mut drive, VirtualTime::START);
    let mut before = drive.counters();
    for (n, bytes) in [warm * capacity, measured * capacity].into_iter().enumerate() {
        before = drive.counters();
        let workload = Workload {
            distribution: distribution.clone(),
            threads: 4,
            ..Workload::random_write(Bytes::kib(4))
        };
        let mut written = 0;
        let each = &mut |interval: Interval| {
            written += interval.write_bytes;
            if written >= bytes { Control::Stop } else { Control::Continue }
        };
        let (whole, seed) = (Extents::whole(capacity), Seed::new(seed).part("load", n as u64));
        now = virtual_load::run(&mut drive, &whole, &workload, seed, now, Nanos::from_millis(20), each)
            .expect("in range");
    }
    drive.counters().write_amplification_since(&before).expect("wrote")
}

#[test]
fn better_informed_choices_move_less() {
    let seed = 4;
    let of = |policy| settled(&plain(512, 64, 0.85, policy), Distribution::Uniform, 2, 3, seed);
    let all = [Policy::Greedy, Policy::DChoices(10), Policy::DChoices(2), Policy::Random].map(of);
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: {all:?}");
    let fifo = of(Policy::Fifo);
    assert!(all[0] < fifo && fifo < all[3], "seed {seed}: greedy {}, FIFO {fifo}, random {}", all[0], all[3]);
}

#[test]
fn cost_benefit_beats_greedy_where_some_data_is_hot() {
    let seed = 5;
    let hot = Distribution::hot_cold(Zone { data: 0.1, access: 0.9 });
    let of = |policy| settled(&plain(512, 64, 0.85, policy), hot.clone(), 4, 4, seed);
    let (greedy, cost_benefit) = (of(Policy::Greedy), of(Policy::CostBenefit));
    println!("greedy {greedy:.3}, cost-benefit {cost_benefit:.3}");
    assert!(cost_benefit < 0.95 * greedy, "seed {seed}: greedy {greedy}, cost-benefit {cost_benefit}");
}

#[test]
fn wear_adds_up_and_is_even_under_uniform_writes() {
    let seed = 6;
    let spec = plain(256, 64, 0.8, Policy::Greedy);
    let mut drive = SimulatedSsd::new(&spec, Seed::new(seed)).expect("valid");
    let now = fill(&mut drive, VirtualTime::START);
    let bytes = drive.capacity().get() * 20;
    overwrite(&mut drive, bytes, Seed::new(seed), now);
    let erases = drive.erase_counts();
    let sum: u64 = erases.iter().map(|&n| u64::from(n)).sum();
    assert_eq!(sum, drive.counters().erases, "seed {seed}");
    let mean = sum as f64 / erases.len() as f64;
    let variance = erases.iter().map(|&n| (f64::from(n) - mean).powi(2)).sum::<f64>() / erases.len() as f64;
    assert!(variance.sqrt() < 0.15 * mean, "seed {seed}: mean {mean}, deviation {}", variance.sqrt());
}

#[test]
fn often_erased_drives_wear_evenly() {
    let mut drive = SimulatedSsd::new(&plain(64, 64, 0.8, Policy::Greedy), Seed::new(1)).expect("valid");
    for _ in 0..64 {
        (0..8).for_each(|n| {
            drive.submit(VirtualTime::START, &lowtide_core::Request::write(n << 18, 1 << 18));
        });
        drive.secure_erase();
    }
    let erases = drive.erase_counts();
    let (least, most) = (erases.iter().min(), erases.iter().max());
    assert!(most.expect("blocks") - least.expect("blocks") <= 1, "from {least:?} to {most:?}");
}

#[test]
fn a_smaller_drive_settles_where_the_full_size_one_does() {
    let seed = 8;
    // With many open blocks and a large pool, dividing every parameter by the scale factor would give a wrong result.
    let mut random = plain(8192, 64, 0.85, Policy::Random);
    (random.nand.dies, random.gc.concurrency, random.gc.set_point) = (16, 8, 0.02);
    random.capacity = Bytes::kib(256) * 6800;
    let greedy = FlashSpec {
        gc: lowtide_device::flash::spec::Gc { policy: Policy::Greedy, ..random.gc.clone() },
        ..random.clone()
    };
    for full in [random, greedy] {
        let small = full.scaled(16);
        let mean = (0..4).map(|n| settled(&small, Distribution::Uniform, 1, 3, seed + n)).sum::<f64>() / 4.0;
        let whole = settled(&full, Distribution::Uniform, 1, 1, seed);
        println!("{:?}: full size {whole:.3}, a sixteenth {mean:.3}", full.gc.policy);
        assert!((mean / whole - 1.0).abs() < 0.03, "seed {seed}, {:?}: {whole} and {mean}", full.gc.policy);
    }
}
