//! What levels at some sizes tell of the levels at all: Bayes over the forms, with a Gaussian process for what no form follows.
//!
//! The seconds of a byte, q, over those of a line through what was measured (in logarithms), g, are taken for
//!
//! ```text
//!   q(x) / g(x) = form(x) · costs / g(x) + δ(x) + noise        δ: a Gaussian process, Matérn 3/2, of amplitude s
//! ```
//!
//! For a form and an s that is a linear Gaussian problem: the costs, δ and the probability of what was measured have closed forms
//! (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2.7). All forms and amplitudes are weighed by that probability,
//! and what they say is mixed. δ is correlated along the curve: a step of the curve counts as distance, so that little is known
//! across one. Not here: which size comes next (`choose`).

use super::forms::{Form, forms};
use super::linear::Factor;
use rayon::prelude::*;
use statrs::distribution::{ContinuousCDF, Normal};

/// Amplitudes of what no form follows, as shares.
const AMPLITUDES: [f64; 9] = [0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512];
/// Their spread beforehand around what a form expects, as a logarithm.
const SPREAD: f64 = 0.9;
/// How far δ is correlated, as a share of the largest size.
const LENGTH: f64 = 0.25;
/// How far as a logarithm of the level.
const LENGTH_OF_LEVEL: f64 = 1.0;
/// Hypotheses that are so much less probable than the best count for nothing.
const NOTHING: f64 = 1e-5;
/// Hypotheses that are added up in one go.
const PART: usize = 64;
/// Rounding takes variances no lower.
const LEAST_VARIANCE: f64 = 1e-12;
/// The ends of a 95 % interval.
const ENDS: [f64; 2] = [0.025, 0.975];
/// Steps of the search for an end.
const STEPS: usize = 30;

/// A measured level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Which of the sizes.
    pub at: usize,
    /// Any rate.
    pub level: f64,
    /// One standard deviation, as a share.
    pub deviation: f64,
}

/// The sizes of a curve, and what can be said of it beforehand.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Bytes of data, rising.
    data: Vec<f64>,
    forms: Vec<Form>,
}

/// What is known of a curve. Shares are shares of the level.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The level at each size.
    pub levels: Vec<f64>,
    /// The ends of its 95 % interval.
    pub low: Vec<f64>,
    /// The upper ones.
    pub high: Vec<f64>,
    /// The covariance of all levels, as shares, row by row.
    pub(super) covariance: Vec<f64>,
    /// How far the drive is from the forms, as a share.
    pub misfit: f64,
    /// How many sizes were measured.
    pub measured: usize,
}

impl Known {
    /// Half of the width of each interval, as a share of the level.
    pub fn half_widths(&self) -> Vec<f64> {
        let each = self.levels.iter().zip(self.low.iter().zip(&self.high));
        each.map(|(level, (low, high))| (high - low) / 2.0 / level).collect()
    }
}

/// A form with an amplitude, its weight, and what it says at each size.
struct Said {
    weight: f64,
    means: Vec<f64>,
    deviations: Vec<f64>,
}

/// What many of them say: each alone, and the weighed second moments around the line, row by row.
struct Part {
    said: Vec<Said>,
    moments: Vec<f64>,
}

impl Curve {
    /// A curve over sizes of data (bytes, rising) on a device of some capacity. The laws of `fit` count for uniform random writes.
    pub fn new(data: &[f64], capacity: f64, uniform_writes: bool) -> Curve {
        debug_assert!(data.windows(2).all(|pair| pair[0] < pair[1]), "sizes rise");
        Curve { data: data.to_vec(), forms: forms(data, capacity, uniform_writes) }
    }

    /// How many sizes it has.
    pub fn sizes(&self) -> usize {
        self.data.len()
    }

    /// The size at a place, bytes.
    pub fn data(&self, at: usize) -> f64 {
        self.data[at]
    }

    /// What levels at some of the sizes tell of all of them.
    ///
    /// # Panics
    /// Where nothing was measured.
    pub fn known(&self, seen: &[Seen]) -> Known {
        let sizes = self.data.len();
        let line = self.line(seen);
        let kernel = self.kernel(&line);
        let fastest = seen.iter().map(|it| 1.0 / it.level).fold(f64::INFINITY, f64::min);
        let hypotheses: Vec<(usize, f64, f64)> = self
            .forms
            .par_iter()
            .enumerate()
            .flat_map_iter(|(n, form)| {
                let rows = scaled(form, &line, fastest);
                let plain = covariance_of_costs(form, &rows, seen.iter().map(|it| it.at));
                let means: Vec<f64> = seen.iter().map(|it| mean(form, &rows[it.at])).collect();
                let kernel = &kernel;
                AMPLITUDES.into_iter().map(move |amplitude| {
                    let ln = evidence(&plain, &means, seen, kernel, sizes, amplitude);
                    let from = (amplitude / form.misfit).ln() / SPREAD;
                    (n, amplitude, form.ln_prior - from * from / 2.0 + ln)
                })
            })
            .collect();
        let best = hypotheses.iter().map(|(.., ln)| *ln).fold(f64::NEG_INFINITY, f64::max);
        let kept: Vec<(usize, f64, f64)> = hypotheses
            .into_iter()
            .map(|(n, amplitude, ln)| (n, amplitude, (ln - best).exp()))
            .filter(|(.., weight)| *weight > NOTHING)
            .collect();
        let whole: f64 = kept.iter().map(|(.., weight)| weight).sum();
        // Parts are added in order, so that the sum does not depend on how many threads there are.
        let parts: Vec<Part> = kept
            .par_chunks(PART)
            .map(|some| {
                let mut part =
                    Part { said: Vec::with_capacity(some.len()), moments: vec![0.0; sizes * sizes] };
                for (n, amplitude, weight) in some {
                    let form = &self.forms[*n];
                    let rows = scaled(form, &line, fastest);
                    let one = said(form, &rows, seen, &kernel, *amplitude, weight / whole, &mut part.moments);
                    part.said.push(one);
                }
                part
            })
            .collect();
        let misfit = kept.iter().map(|(_, amplitude, weight)| amplitude * weight).sum::<f64>() / whole;
        Known { measured: seen.len(), ..mixed(parts, &line, misfit) }
    }

    /// Seconds of a byte on a line through what was measured, in logarithms, at each size.
    fn line(&self, seen: &[Seen]) -> Vec<f64> {
        let mut points: Vec<(f64, f64)> = seen.iter().map(|it| (self.data[it.at], -it.level.ln())).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let at = |data: &f64| {
            let after = points.partition_point(|(at, _)| at < data);
            match (after.checked_sub(1).map(|n| points[n]), points.get(after)) {
                (Some((from, low)), Some((to, high))) => low + (high - low) * (data - from) / (to - from),
                (Some((_, only)), None) | (None, Some(&(_, only))) => only,
                (None, None) => unreachable!("something was measured"),
            }
        };
        self.data.iter().map(at).map(f64::exp).collect()
    }

    /// The correlation of δ between all sizes, row by row.
    fn kernel(&self, line: &[f64]) -> Vec<f64> {
        let largest = self.data[self.data.len() - 1];
        let mut along = vec![0.0];
        for n in 1..self.data.len() {
            let step = (self.data[n] - self.data[n - 1]) / largest / LENGTH
                + (line[n] / line[n - 1]).ln().abs() / LENGTH_OF_LEVEL;
            along.push(along[n - 1] + step);
        }
        let matern = |a: &f64, b: &f64| {
            let distance = 3f64.sqrt() * (a - b).abs();
            (1.0 + distance) * (-distance).exp()
        };
        along.iter().flat_map(|a| along.iter().map(move |b| matern(a, b))).collect()
    }
}

/// The rows of a form over the line, with costs in units of the fastest byte.
fn scaled(form: &Form, line: &[f64], fastest: f64) -> Vec<[f64; 3]> {
    form.rows.iter().zip(line).map(|(row, line)| row.map(|it| it * fastest / line)).collect()
}

fn mean(form: &Form, row: &[f64; 3]) -> f64 {
    (0..3).map(|n| row[n] * form.costs[n].0).sum()
}

fn of_costs(form: &Form, a: &[f64; 3], b: &[f64; 3]) -> f64 {
    (0..3).map(|n| a[n] * b[n] * form.costs[n].1 * form.costs[n].1).sum()
}

/// The covariance that not knowing the costs gives, between some sizes, row by row.
fn covariance_of_costs(form: &Form, rows: &[[f64; 3]], at: impl Iterator<Item = usize> + Clone) -> Vec<f64> {
    at.clone().flat_map(|a| at.clone().map(move |b| of_costs(form, &rows[a], &rows[b]))).collect()
}

/// The covariance of what was measured.
fn of_seen(plain: &[f64], seen: &[Seen], kernel: &[f64], sizes: usize, amplitude: f64) -> Vec<f64> {
    let mut matrix = plain.to_vec();
    for (i, a) in seen.iter().enumerate() {
        for (j, b) in seen.iter().enumerate() {
            matrix[i * seen.len() + j] += amplitude * amplitude * kernel[a.at * sizes + b.at];
        }
        matrix[i * seen.len() + i] += a.deviation * a.deviation;
    }
    matrix
}

/// The logarithm of the probability of what was measured.
fn evidence(
    plain: &[f64],
    means: &[f64],
    seen: &[Seen],
    kernel: &[f64],
    sizes: usize,
    amplitude: f64,
) -> f64 {
    let matrix = of_seen(plain, seen, kernel, sizes, amplitude);
    let Some(factor) = Factor::of(&matrix, seen.len()) else { return f64::NEG_INFINITY };
    let mut rest: Vec<f64> = means.iter().map(|mean| 1.0 - mean).collect();
    factor.forward(&mut rest);
    -rest.iter().map(|it| it * it).sum::<f64>() / 2.0 - factor.ln_root()
}

/// What one form with one amplitude says at every size; its second moments are added to those of others.
fn said(
    form: &Form,
    rows: &[[f64; 3]],
    seen: &[Seen],
    kernel: &[f64],
    amplitude: f64,
    weight: f64,
    moments: &mut [f64],
) -> Said {
    let (sizes, count) = (rows.len(), seen.len());
    let plain = covariance_of_costs(form, rows, seen.iter().map(|it| it.at));
    let factor = Factor::of(&of_seen(&plain, seen, kernel, sizes, amplitude), count);
    let factor = factor.expect("its probability was found with the same matrix");
    let mut rest: Vec<f64> = seen.iter().map(|it| 1.0 - mean(form, &rows[it.at])).collect();
    factor.forward(&mut rest);
    let between = |a: usize, b: usize| {
        of_costs(form, &rows[a], &rows[b]) + amplitude * amplitude * kernel[a * sizes + b]
    };
    let to_seen: Vec<Vec<f64>> = (0..sizes)
        .map(|at| {
            let mut row: Vec<f64> = seen.iter().map(|it| between(at, it.at)).collect();
            factor.forward(&mut row);
            row
        })
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let means: Vec<f64> = (0..sizes).map(|at| mean(form, &rows[at]) + dot(&to_seen[at], &rest)).collect();
    let mut deviations = Vec::with_capacity(sizes);
    for a in 0..sizes {
        for b in 0..=a {
            let left = between(a, b) - dot(&to_seen[a], &to_seen[b]);
            let moment = weight * (left + (means[a] - 1.0) * (means[b] - 1.0));
            moments[a * sizes + b] += moment;
            if a == b {
                deviations.push(left.max(LEAST_VARIANCE).sqrt());
            } else {
                moments[b * sizes + a] += moment;
            }
        }
    }
    Said { weight, means, deviations }
}

/// What all of them say together.
fn mixed(parts: Vec<Part>, line: &[f64], misfit: f64) -> Known {
    let sizes = line.len();
    let mut covariance = vec![0.0; sizes * sizes];
    for part in &parts {
        covariance.iter_mut().zip(&part.moments).for_each(|(sum, moment)| *sum += moment);
    }
    let said: Vec<Said> = parts.into_iter().flat_map(|part| part.said).collect();
    let mean: Vec<f64> = (0..sizes).map(|at| said.iter().map(|it| it.weight * it.means[at]).sum()).collect();
    for a in 0..sizes {
        for b in 0..sizes {
            covariance[a * sizes + b] -= (mean[a] - 1.0) * (mean[b] - 1.0);
        }
        covariance[a * sizes + a] = covariance[a * sizes + a].max(LEAST_VARIANCE);
    }
    let normal = Normal::standard();
    // The share of the mixture below a value.
    let below = |at: usize, value: f64| -> f64 {
        said.iter().map(|it| it.weight * normal.cdf((value - it.means[at]) / it.deviations[at])).sum()
    };
    let end = |at: usize, share: f64| {
        let wide = 12.0 * covariance[at * sizes + at].sqrt();
        let (mut low, mut high) = (mean[at] - wide, mean[at] + wide);
        for _ in 0..STEPS {
            let middle = (low + high) / 2.0;
            if below(at, middle) < share { low = middle } else { high = middle }
        }
        (low + high) / 2.0
    };
    let ends: Vec<[f64; 2]> = (0..sizes).into_par_iter().map(|at| ENDS.map(|share| end(at, share))).collect();
    // Levels are one over seconds; where these may be none at all, nothing is known.
    let level = |at: usize, seconds: f64| 1.0 / (line[at] * seconds.max(mean[at] * 1e-3));
    for a in 0..sizes {
        for b in 0..sizes {
            covariance[a * sizes + b] /= mean[a] * mean[b];
        }
    }
    Known {
        levels: (0..sizes).map(|at| level(at, mean[at])).collect(),
        low: (0..sizes).map(|at| level(at, ends[at][1])).collect(),
        high: (0..sizes).map(|at| level(at, ends[at][0])).collect(),
        covariance,
        misfit,
        measured: 0,
    }
}
