//! Synthetic campaigns of two sides: matching, pooling, pairing, judgement.

use super::*;
use crate::sample;
use lowtide_core::rng::unit;
use lowtide_core::{Bytes, Seed};
use lowtide_record::analysis::Verdict;
use lowtide_record::factors::identity;
use lowtide_record::{Campaign, Cell, FactorLevel};

/// A campaign of `sizes` × `repetitions`, with cells that settle at `level(size, repetition)` ± 1 %.
fn campaign(sizes: &[&str], repetitions: u32, level: impl Fn(usize, u32) -> f64) -> Campaign {
    campaign_of(60, sizes, repetitions, level)
}

/// A campaign of cells with `intervals` intervals.
fn campaign_of(
    intervals: u32,
    sizes: &[&str],
    repetitions: u32,
    level: impl Fn(usize, u32) -> f64,
) -> Campaign {
    let mut campaign = sample::campaign("sides", "Two sides");
    for (position, size) in sizes.iter().enumerate() {
        for repetition in 1..=repetitions {
            let cell = sample::pending(campaign.cells.len() as u32, &[("file_size", size)]);
            let cell = Cell { repetition, data: Bytes::gib(10), ..cell };
            let level = level(position, repetition);
            campaign.cells.push(sample::measured(cell, intervals, intervals / 3, |k| {
                level * (1.0 + 0.01 * f64::from(k % 3))
            }));
        }
    }
    campaign
}

fn compared(base: &Campaign, other: &Campaign, unsettled: bool, interleaved: bool) -> Comparison {
    let mut cells: Vec<Cell> = Vec::new();
    for (campaign, name) in [(base, "base"), (other, "other")] {
        cells.extend(campaign.cells.iter().cloned().map(|mut cell| {
            cell.factors.insert(0, FactorLevel::word("side", name));
            cell
        }));
    }
    assert!(cells.iter().all(|cell| identity(cell).len() == 2));
    let answers: Vec<Answer<'_>> = cells.iter().map(|cell| Answer::of(cell, 1)).collect();
    let side = |name| Side::value(&answers, &FactorLevel::word("side", name));
    Comparison::of(&side("base"), &side("other"), unsettled, interleaved)
}

fn throughput(comparison: &Comparison) -> Vec<Ratio> {
    comparison.ratios(Metric::Throughput)
}

#[test]
fn repetitions_are_the_unit_of_sampling() {
    let steady = campaign(&["1GiB"], 3, |_, _| 100.0);
    let wild = campaign(&["1GiB"], 3, |_, repetition| 80.0 + 10.0 * f64::from(repetition));
    let comparison = compared(&steady, &wild, false, false);
    assert_eq!(comparison.pairs[0].rests_on, "3 + 3 runs");
    // 90, 100 and 110 against 100: mean 100, standard error 10/√3, t(2) = 4.303.
    let ratio = throughput(&comparison)[0];
    let half = 4.303 * 0.1 / 3f64.sqrt();
    assert!(
        (ratio.ratio - 1.0).abs() < 0.01 && (ratio.high - ratio.low - 2.0 * half).abs() < 0.01,
        "{ratio:?}"
    );
    // A single run shows no variation between runs, so its interval is narrow.
    let single =
        compared(&campaign(&["1GiB"], 1, |_, _| 100.0), &campaign(&["1GiB"], 1, |_, _| 90.0), false, false);
    assert_eq!(single.pairs[0].rests_on, "batches");
    assert!(throughput(&single)[0].below(0.95));
    let mixed = compared(&steady, &campaign(&["1GiB"], 1, |_, _| 90.0), false, false);
    assert_eq!(mixed.pairs[0].rests_on, "3 runs, batches");
}

#[test]
fn interleaving_removes_drift() {
    let machine = |repetition: u32| 100.0 - 7.0 * f64::from(repetition);
    let base = campaign(&["1GiB", "2GiB"], 5, |_, repetition| machine(repetition));
    let other = campaign(&["1GiB", "2GiB"], 5, |_, repetition| {
        machine(repetition) * (0.97 + 0.002 * f64::from(repetition % 2))
    });
    let apart = compared(&base, &other, false, false);
    let in_turns = compared(&base, &other, false, true);
    assert_eq!(in_turns.pairs[0].rests_on, "5 pairs");
    assert!(throughput(&apart).iter().all(|ratio| !ratio.below(1.0)), "{apart:?}");
    assert!(throughput(&in_turns).iter().all(|ratio| ratio.below(0.98) && ratio.above(0.96)), "{in_turns:?}");
    // Latency is inversely proportional to throughput, so its pairs are equally precise.
    let latency = in_turns.ratios(Metric::named("latency_p99").expect("there is one"));
    assert!(latency.iter().all(|ratio| ratio.above(1.02) && ratio.below(1.04)), "{latency:?}");
}

#[test]
fn points_without_a_match_are_listed() {
    let base = campaign(&["1GiB", "2GiB"], 1, |_, _| 100.0);
    let other = campaign(&["2GiB", "4GiB", "8GiB"], 1, |_, _| 100.0);
    let comparison = compared(&base, &other, false, false);
    assert_eq!(comparison.pairs.len(), 1);
    let alone: Vec<Vec<String>> = comparison.alone.iter().map(|it| it.iter().map(label).collect()).collect();
    assert_eq!(alone, [vec!["1GiB"], vec!["4GiB", "8GiB"]]);
}

#[test]
fn unsettled_cells_are_compared_only_on_request() {
    let mut base = campaign(&["1GiB"], 1, |_, _| 100.0);
    base.cells[0].verdict = Some(Verdict::NoSteadyState { reason: "too short".to_owned() });
    let other = campaign(&["1GiB"], 1, |_, _| 50.0);
    let refused = compared(&base, &other, false, false);
    let finding = refused.pairs[0].of(Metric::Throughput);
    assert_eq!((finding.base, finding.ratio.is_err()), (Err(Missing::NoSteadyState), true));
    let judged = "throughput < 0.9".parse::<Threshold>().expect("valid").judge(&refused);
    assert_eq!((judged.outcome, judged.reason.as_deref()), (Outcome::NotJudged, Some("no steady state")));
    let ratio = throughput(&compared(&base, &other, true, false))[0];
    assert!((ratio.ratio - 0.5).abs() < 0.01 && ratio.below(0.55), "{ratio:?}");
}

#[test]
fn percentiles_of_too_few_operations_have_no_interval() {
    let base = campaign(&["1GiB"], 1, |_, _| 100.0);
    let comparison = compared(&base, &base, false, false);
    let ratio = |name| comparison.pairs[0].of(Metric::named(name).expect("a metric")).ratio;
    // 400 operations per interval and two intervals per part: 8 of 800 operations exceed the 99th percentile.
    assert!(ratio("latency_p99").is_ok());
    assert_eq!(ratio("latency_p999").expect_err("less than one operation"), Missing::Few);
    assert_eq!(ratio("read_latency_p50").expect_err("it only writes"), Missing::Nothing);
    // Histograms have three digits, so even the ratio of equal histograms has an interval.
    let equal = ratio("latency_p50").expect("there is one");
    assert!(equal.low <= 0.999 && equal.high >= 1.001, "{equal:?}");
}

#[test]
fn limits_are_crossed_only_with_certainty() {
    let base = campaign(&["1GiB", "2GiB", "4GiB"], 1, |_, _| 100.0);
    let other = campaign(&["1GiB", "2GiB", "4GiB"], 1, |position, _| [100.0, 95.0, 80.0][position]);
    let comparison = compared(&base, &other, false, false);
    let judge = |text: &str| text.parse::<Threshold>().expect("valid").judge(&comparison);
    let counts = |it: &Judged| (it.outcome, it.crossed, it.undecided, it.kept);
    assert_eq!(counts(&judge("throughput < 0.7")), (Outcome::Kept, 0, 0, 3));
    assert_eq!(counts(&judge("throughput < 0.95")), (Outcome::Crossed, 1, 1, 1));
    assert_eq!(judge("throughput < 0.95").worst.expect("one").0, "4GiB");
    assert_eq!(counts(&judge("throughput > 1.004")), (Outcome::Undecided, 0, 1, 2));
    assert_eq!(counts(&judge("throughput < 0.95 overall")), (Outcome::Crossed, 1, 0, 0));
    assert_eq!(counts(&judge("throughput < 0.8 overall")), (Outcome::Kept, 0, 0, 1));
    assert_eq!(counts(&judge("latency_p99 > 1.1")), (Outcome::Crossed, 1, 0, 2));
}

#[test]
fn equal_sides_rarely_differ_and_a_tenth_is_always_detected() {
    const SEEDS: u64 = 100;
    let (mut differ, mut found) = (0, 0);
    for seed in 1..=SEEDS {
        // Repetitions are the unit of sampling, so short ones are enough.
        let noisy = |name: &str, level: f64| {
            let seed = Seed::new(seed).part(name, 0);
            campaign_of(1, &["1GiB", "2GiB", "4GiB"], 4, |position, repetition| {
                let mut rng = seed.part("cell", position as u64 * 10 + u64::from(repetition)).stream();
                // The sum of three uniform numbers is nearly normal, with standard deviation 1/2.
                let noise: f64 = (0..3).map(|_| unit(&mut rng) - 0.5).sum();
                level * (1.0 + 0.02 * noise)
            })
        };
        let any = |comparison: &Comparison| {
            comparison.pairs.iter().filter(|pair| pair.of(Metric::Throughput).significant()).count()
        };
        differ += usize::from(any(&compared(&noisy("a", 50.0), &noisy("b", 50.0), false, false)) > 0);
        found += any(&compared(&noisy("a", 50.0), &noisy("b", 45.0), false, false));
    }
    assert!(differ <= 12, "{differ} of {SEEDS} comparisons of equals differ");
    assert!(found >= 295, "{found} of 300 cells that are 10 % slower differ");
}
