//! Coverage tests of the intervals of comparisons, with a thousand seeded trials of each kind.
//!
//! A 95 % interval is expected to miss the true value in 50 of 1000 trials; three standard deviations allow 30 to 70.
//! The module `tests` checks the coverage of levels of series.

use super::batch::Batches;
use super::shapes::normal;
use super::{Estimate, Level, Ratio, geometric_mean, holm};
use lowtide_core::rng::{Rng, unit};
use lowtide_core::{Latency, Nanos, Seed};

const TRIALS: u64 = 1000;

/// The number of trials whose interval covers `truth`.
fn covered(name: &str, truth: f64, trial: impl Fn(&mut Rng) -> Ratio) -> u64 {
    let covers = |seed: u64| {
        let found = trial(&mut Seed::new(seed).part(name, 0).stream());
        u64::from(!found.below(truth) && !found.above(truth))
    };
    let count = (1..=TRIALS).map(covers).sum();
    println!("{name}: {count} of {TRIALS} intervals cover {truth} (seeds 1 to {TRIALS})");
    count
}

fn repeated(rng: &mut Rng, mean: f64, deviation: f64, count: u32) -> Level {
    let values: Vec<f64> = (0..count).map(|_| mean + deviation * normal(rng)).collect();
    let middle = values.iter().sum::<f64>() / f64::from(count);
    Level::of_repetitions(middle, &values).expect("two or more")
}

/// The level of a series with correlation `phi` between neighbours, computed by batch means.
fn batched(rng: &mut Rng, mean: f64, deviation: f64, phi: f64) -> Level {
    let mut last = normal(rng);
    let mut next = || {
        last = phi * last + (1.0 - phi * phi).sqrt() * normal(rng);
        mean + deviation * last
    };
    let values: Vec<f64> = (0..600).map(|_| next()).collect();
    let batches = Batches::of(&values).expect("600 values");
    Level::from(&Estimate {
        mean: batches.mean(),
        half_width: batches.half_width(),
        from_ns: 0,
        to_ns: 1,
        batches: batches.means.len() as u32,
    })
}

/// A percentile of exponential latencies with mean 1 ms, over 20 parts.
fn percentile(rng: &mut Rng, percent: f64, scale: f64) -> Level {
    let (mut whole, mut parts) = (Latency::default(), Vec::new());
    for _ in 0..20 {
        let mut part = Latency::default();
        for _ in 0..1000 {
            part.record(Nanos::new((-(1.0 - unit(rng)).ln() * 1e6 * scale) as u64));
        }
        parts.push(part.percentile(percent).get() as f64);
        whole.merge(&part);
    }
    Level::of_parts(whole.percentile(percent).get() as f64, &parts).expect("20 parts")
}

#[test]
fn ninety_five_percent_of_the_intervals_cover_the_truth() {
    let fair = 930..=975;
    let three = covered("three repetitions", 1.25, |rng| {
        Ratio::of(&repeated(rng, 50.0, 1.0, 3), &repeated(rng, 40.0, 0.8, 3)).expect("bounded")
    });
    let uneven = covered("five and three repetitions, one wide", 0.8, |rng| {
        Ratio::of(&repeated(rng, 40.0, 4.0, 5), &repeated(rng, 50.0, 1.0, 3)).expect("bounded")
    });
    let batches = covered("correlated batches", 1.1, |rng| {
        Ratio::of(&batched(rng, 110.0, 8.0, 0.6), &batched(rng, 100.0, 3.0, 0.3)).expect("bounded")
    });
    let median = covered("medians", 1.2, |rng| {
        Ratio::of(&percentile(rng, 50.0, 1.2), &percentile(rng, 50.0, 1.0)).expect("bounded")
    });
    let tail = covered("99th percentiles", 1.2, |rng| {
        Ratio::of(&percentile(rng, 99.0, 1.2), &percentile(rng, 99.0, 1.0)).expect("bounded")
    });
    let mean = covered("geometric means", 1.1, |rng| {
        let mut one = || Ratio::of(&repeated(rng, 110.0, 3.0, 4), &repeated(rng, 100.0, 3.0, 4));
        let ratios: Vec<Ratio> = (0..6).map(|_| one().expect("bounded")).collect();
        geometric_mean(&ratios).expect("six")
    });
    let pairs = covered("pairs on a machine that drifts", 0.97, |rng| {
        let machine: Vec<f64> = (0..6).map(|n| 100.0 - 8.0 * f64::from(n)).collect();
        // The speed of the machine cancels in the ratio of a pair.
        let mut pair = |machine: f64| (machine * 0.97 * (0.01 * normal(rng)).exp()) / machine;
        let ratios: Vec<f64> = machine.into_iter().map(&mut pair).collect();
        let whole = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
        Ratio::of_pairs(whole, &ratios).expect("six pairs")
    });
    for count in [three, uneven, batches, median, tail, mean, pairs] {
        assert!(fair.contains(&count), "{count} of {TRIALS}, see above");
    }
}

#[test]
fn twenty_comparisons_of_equal_levels_seldom_find_a_difference() {
    let family = |seed: u64| {
        let mut rng = Seed::new(seed).part("family", 0).stream();
        let mut one = || Ratio::of(&repeated(&mut rng, 50.0, 1.0, 5), &repeated(&mut rng, 50.0, 1.0, 5));
        let all: Vec<f64> = (0..20).map(|_| one().expect("bounded").probability(1.0)).collect();
        let found = |probabilities: &[f64]| probabilities.iter().any(|it| *it < 0.05);
        (found(&all), found(&holm(&all)))
    };
    let families: Vec<(bool, bool)> = (1..=TRIALS).map(family).collect();
    let plain = families.iter().filter(|(plain, _)| *plain).count();
    let corrected = families.iter().filter(|(_, corrected)| *corrected).count();
    println!(
        "of {TRIALS} families of 20 equal pairs, {plain} show a difference, {corrected} after Holm (seeds 1 to {TRIALS})"
    );
    // Expected are 1 − 0.95^20 = 64 % without correction, and at most 5 % with Holm's.
    assert!((550..720).contains(&plain) && corrected <= 65, "{plain} {corrected}");
}
