//! Which size is measured next, and when enough is known.
//!
//! It begins with the smallest size, the largest, and one near 85 % of it, as `fit` needs three. Then that size comes next whose level
//! would lower the squares of all half widths the most for each hour that it takes: a Gaussian with the covariance of all levels
//! says by how much, whatever the level turns out to be. It ends when no size that was not measured has a wider interval than was
//! asked for, and five were measured: a form through three of them is confirmed by two more. Not here: what is known (`posterior`)
//! and measuring.

use super::posterior::{Curve, Known};

/// Where the third size lies, as a share of the largest.
const THIRD: f64 = 0.85;
/// Fewer than these are not enough, however well they agree.
const LEAST: usize = 5;
/// How well a level will be known, one standard deviation, as a share.
const DEVIATION: f64 = 0.007;

/// The sizes to begin with.
pub fn first(curve: &Curve) -> Vec<usize> {
    let last = curve.sizes() - 1;
    let near = |at: &usize| (curve.data(*at) / curve.data(last) - THIRD).abs();
    let third = (1..last).min_by(|a, b| near(a).total_cmp(&near(b)));
    let mut all: Vec<usize> = [0].into_iter().chain(third).chain([last]).collect();
    all.dedup();
    all
}

/// The size to measure next; `None` where every one of those that can be measured is known to `precision`, a share, and enough are
/// measured. `open` says which those are, `hours` what they take.
pub fn next(known: &Known, open: &[bool], hours: &[f64], precision: f64) -> Option<usize> {
    let sizes = open.len();
    let halves = known.half_widths();
    let widest = (0..sizes).filter(|at| open[*at]).map(|at| halves[at]).fold(0.0, f64::max);
    if widest <= precision && (known.measured >= LEAST || !open.contains(&true)) {
        return None;
    }
    let variance = |at: usize| known.covariance[at * sizes + at].max(1e-12);
    // How much is left of the squares when `at` is known.
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
