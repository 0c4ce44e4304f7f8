//! Chooses the next size to measure, and decides when to stop.
//!
//! The first sizes are the smallest, the largest, and one near 85 % of the largest, since `fit` needs three. After
//! these, the next size is the one that most reduces the sum of squared half-widths per hour of device time. The
//! covariance of the levels predicts this reduction, whatever level will be measured.
//!
//! Measuring stops when the interval of every unmeasured size is as narrow as requested. At least five sizes are
//! measured: three determine a form, and two more confirm it. The estimate is in `posterior`.

use super::posterior::{Curve, Known};

/// Position of the third size, as a share of the largest.
const THIRD: f64 = 0.85;
/// Minimum number of measured sizes.
const LEAST: usize = 5;
/// Expected standard deviation of the next measurement, as a share.
const DEVIATION: f64 = 0.007;

/// The indices of the sizes to begin with.
pub fn first(curve: &Curve) -> Vec<usize> {
    let last = curve.sizes() - 1;
    let near = |at: &usize| (curve.data(*at) / curve.data(last) - THIRD).abs();
    let third = (1..last).min_by(|a, b| near(a).total_cmp(&near(b)));
    let mut all: Vec<usize> = [0].into_iter().chain(third).chain([last]).collect();
    all.dedup();
    all
}

/// The index of the size to measure next. `None` if enough sizes are measured and every size in `open` is known to
/// `precision`, a share of the level. `open` marks the sizes that can be measured. `hours` has the duration per size.
pub fn next(known: &Known, open: &[bool], hours: &[f64], precision: f64) -> Option<usize> {
    let sizes = open.len();
    let halves = known.half_widths();
    let widest = (0..sizes).filter(|at| open[*at]).map(|at| halves[at]).fold(0.0, f64::max);
    if widest <= precision && (known.measured >= LEAST || !open.contains(&true)) {
        return None;
    }
    let variance = |at: usize| known.covariance[at * sizes + at].max(1e-12);
    // The sum of squared half-widths that remains once `at` is measured.
    let left = |at: usize| -> f64 {
        (0..sizes)
            .filter(|other| open[*other] && *other != at)
            .map(|other| {
                let shared = known.covariance[at * sizes + other];
                let gone = shared * shared / (variance(at) + DEVIATION * DEVIATION) / variance(other);
                halves[other] * halves[other] * (1.0 - gone).max(0.0)
            })
            .sum()
    };
    let whole: f64 = (0..sizes).filter(|at| open[*at]).map(|at| halves[at] * halves[at]).sum();
    let gain = |at: &usize| (whole - left(*at)) / hours[*at].max(1e-9);
    (0..sizes).filter(|at| open[*at]).max_by(|a, b| gain(a).total_cmp(&gain(b)))
}
