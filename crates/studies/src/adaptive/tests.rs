//! Tests that known curves are recovered from some of their sizes, and that 95 % intervals are reliable.
//!
//! The random drives follow the laws of the forms within a few per cent, but with other costs and block sizes. Tests
//! with simulated drives are in `crates/cli/tests/adaptive.rs`; docs/guide/adaptive.md has their results.

use super::*;
use crate::fit::Amplification;
use lowtide_core::Seed;
use lowtide_core::rng::{Rng, below, unit};
use lowtide_device::flash::spec::Policy;

const SEED: u64 = 11;
const PRECISION: f64 = 0.05;
/// Noise of a measured level: one standard deviation, as a share.
const NOISE: f64 = 0.006;
const GIB: f64 = (1u64 << 30) as f64;
const CAPACITY: f64 = 149.0 * GIB;

fn sizes() -> Vec<f64> {
    (1..=14).map(|n| f64::from(n) * 10.0 * GIB).collect()
}

/// True levels by size, and a stream of random numbers for the noise.
struct Truth {
    levels: Vec<f64>,
    rng: Rng,
}

impl Truth {
    fn of(level: impl Fn(f64) -> f64, seed: u64) -> Truth {
        let rng = Seed::new(SEED).part("noise", seed).stream();
        Truth { levels: sizes().iter().map(|data| level(*data)).collect(), rng }
    }

    /// A random drive near its law: random policy, spare NAND, costs and, in some cases, a limited map cache.
    fn drawn(seed: u64) -> Truth {
        let mut rng = Seed::new(SEED).part("drive", seed).stream();
        let policies =
            [Policy::Greedy, Policy::DChoices(6), Policy::DChoices(3), Policy::Fifo, Policy::Random];
        let policy = policies[below(&mut rng, policies.len() as u64) as usize];
        let form = Amplification::of(policy, 64).expect("it has a form");
        let mut between = |low: f64, high: f64| low + (high - low) * unit(&mut rng);
        let raw = CAPACITY * (1.0 + between(0.07f64.ln(), 0.6f64.ln()).exp());
        let moved = between(0.5, 3.5);
        let reach = CAPACITY * between(0.05, 0.6);
        let miss = if between(0.0, 1.0) < 0.3 { between(0.05, 0.4) } else { 0.0 };
        let (far, often, phase) =
            (between(0.0, 0.02), between(1.0, 4.0), between(0.0, std::f64::consts::TAU));
        let level = |data: f64| {
            let missed = miss * (1.0 - reach / data).max(0.0);
            let wave = 1.0 + far * (often * std::f64::consts::PI * data / CAPACITY + phase).sin();
            100.0 / (1.0 + moved * (form.at(data / raw) - 1.0) + missed) / wave
        };
        let levels = sizes().iter().map(|data| level(*data)).collect();
        Truth { levels, rng }
    }

    fn measured(&mut self, at: usize) -> Seen {
        // A sum of twelve uniform numbers is nearly normal.
        let noise = (0..12).map(|_| unit(&mut self.rng)).sum::<f64>() - 6.0;
        Seen { at, level: self.levels[at] * (1.0 + NOISE * noise), deviation: NOISE }
    }

    /// Measures until `next` returns `None`. Returns the measured sizes and the posterior.
    fn run(&mut self, curve: &Curve) -> (Vec<usize>, Known) {
        let mut seen: Vec<Seen> = first(curve).into_iter().map(|at| self.measured(at)).collect();
        loop {
            let known = curve.known(&seen);
            let mut open = vec![true; curve.sizes()];
            seen.iter().for_each(|it| open[it.at] = false);
            match next(&known, &open, &vec![1.0; curve.sizes()], PRECISION) {
                Some(at) => {
                    assert!(open[at], "size {at} was measured already");
                    seen.push(self.measured(at));
                }
                None => return (seen.iter().map(|it| it.at).collect(), known),
            }
        }
    }

    /// The error of the prediction at each unmeasured size, as a share.
    fn errors(&self, measured: &[usize], known: &Known) -> Vec<f64> {
        let others = (0..self.levels.len()).filter(|at| !measured.contains(at));
        others.map(|at| known.levels[at] / self.levels[at] - 1.0).collect()
    }
}

#[test]
fn what_is_said_of_sizes_that_were_not_measured_holds_as_often_as_it_says() {
    println!("seed {SEED}");
    let curve = Curve::new(&sizes(), CAPACITY, true);
    let (mut count, mut cells, mut beyond, mut outside, mut drives) = (0, 0, 0, 0, 0);
    for drive in 0..20 {
        let mut truth = Truth::drawn(drive);
        let (measured, known) = truth.run(&curve);
        let errors = truth.errors(&measured, &known);
        (count, cells, drives) = (count + errors.len(), cells + measured.len(), drives + 1);
        beyond += errors.iter().filter(|error| error.abs() > PRECISION).count();
        let others = (0..curve.sizes()).filter(|at| !measured.contains(at));
        outside +=
            others.filter(|at| !(known.low[*at]..=known.high[*at]).contains(&truth.levels[*at])).count();
        println!(
            "drive {drive}: {measured:?}, worst {:.4}",
            errors.iter().fold(0.0, |a: f64, b| a.max(b.abs()))
        );
    }
    println!(
        "{cells} cells for {drives} curves; of {count} predicted {beyond} beyond {PRECISION}, {outside} outside"
    );
    // 5 % are expected. Above 10 % the intervals would be wrong.
    assert!(beyond * 20 <= count, "{beyond} of {count} are farther away than was asked for");
    assert!(outside * 10 <= count, "{outside} of {count} intervals do not hold the level");
    assert!(cells <= drives * 6, "{cells} cells for {drives} curves of 14 sizes spare little");
}

#[test]
fn a_step_is_noticed_and_costs_cells_on_both_sides() {
    println!("seed {SEED}");
    let curve = Curve::new(&sizes(), CAPACITY, true);
    for (n, edge) in [45.0, 75.0, 95.0].into_iter().enumerate() {
        let step = |data: f64| if data < edge * GIB { 100.0 } else { 60.0 };
        let mut truth = Truth::of(step, n as u64);
        let (measured, known) = truth.run(&curve);
        let errors = truth.errors(&measured, &known);
        println!("step at {edge} GiB: {measured:?}, {errors:?}");
        let (before, after) = (edge as usize / 10 - 1, edge as usize / 10);
        assert!(measured.contains(&before) && measured.contains(&after), "{edge}: {measured:?}");
        assert!(errors.iter().all(|error| error.abs() < PRECISION), "{edge}: {errors:?}");
    }
}

#[test]
fn a_stretch_that_no_form_follows_is_noticed_and_costs_cells() {
    println!("seed {SEED}");
    let curve = Curve::new(&sizes(), CAPACITY, true);
    let form = Amplification::of(Policy::Fifo, 64).expect("it has a form");
    let law = |data: f64| 100.0 / (1.0 + 2.0 * (form.at(data / CAPACITY / 1.15) - 1.0));
    // A faster stretch in the middle, which neither a law nor a knee describes.
    let stretch = |data: f64| law(data) * if (45.0..85.0).contains(&(data / GIB)) { 1.3 } else { 1.0 };
    let (plain, _) = Truth::of(law, 1).run(&curve);
    let mut truth = Truth::of(stretch, 1);
    let (measured, known) = truth.run(&curve);
    let errors = truth.errors(&measured, &known);
    println!("law alone: {plain:?}; with the stretch: {measured:?}, {errors:?}");
    assert!(measured.len() >= plain.len() + 3, "{measured:?}, and {plain:?} where the law holds");
    // Sizes 40 and 50 GiB, and 80 and 90 GiB: both sides of each edge.
    for at in [3, 4, 7, 8] {
        assert!(measured.contains(&at), "{at}: {measured:?}");
    }
    assert!(errors.iter().all(|error| error.abs() < PRECISION), "{errors:?}");
}

#[test]
fn a_curve_without_a_law_is_known_by_the_process_alone() {
    println!("seed {SEED}");
    let curve = Curve::new(&sizes(), CAPACITY, false);
    let mut flat = Truth::of(|_| 250.0, 0);
    let (measured, known) = flat.run(&curve);
    assert!(measured.len() <= 6, "nothing happens, and {} sizes were measured", measured.len());
    assert!(flat.errors(&measured, &known).iter().all(|error| error.abs() < PRECISION));
    // A cache of 40 GiB in front of a slower device.
    let cache = |data: f64| 1.0 / (1.0 + 9.0 * (1.0 - 40.0 * GIB / data).max(0.0)) * 400.0;
    let mut cached = Truth::of(cache, 1);
    let (measured, known) = cached.run(&curve);
    let errors = cached.errors(&measured, &known);
    println!("{measured:?} {errors:?}");
    assert!(errors.iter().all(|error| error.abs() < PRECISION), "{measured:?}: {errors:?}");
}

#[test]
fn it_ends_where_all_is_known_and_not_before() {
    let curve = Curve::new(&sizes(), CAPACITY, true);
    let mut truth = Truth::drawn(0);
    let seen: Vec<Seen> = (0..14).map(|at| truth.measured(at)).collect();
    let hours = vec![1.0; 14];
    let known = curve.known(&seen);
    assert_eq!(next(&known, &[false; 14], &hours, PRECISION), None, "nothing is left");
    let two = curve.known(&[seen[0], seen[13]]);
    let mut open = vec![true; 14];
    (open[0], open[13]) = (false, false);
    let at = next(&two, &open, &hours, PRECISION).expect("two sizes do not make a curve");
    assert!(two.half_widths()[at] > PRECISION);
    // A size that takes ten times as long is not chosen if another size is nearly as informative.
    let mut dear = hours.clone();
    dear[at] = 10.0;
    assert_ne!(next(&two, &open, &dear, PRECISION), Some(at));
}

#[test]
fn it_begins_with_the_ends_and_a_size_near_the_largest() {
    assert_eq!(first(&Curve::new(&sizes(), CAPACITY, true)), [0, 11, 13]);
    let four: Vec<f64> = [10.0, 20.0, 30.0, 40.0].map(|gib| gib * GIB).to_vec();
    assert_eq!(first(&Curve::new(&four, CAPACITY, true)), [0, 2, 3]);
}
