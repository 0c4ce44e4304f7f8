//! The Bayesian estimate of a curve: levels at all sizes, from measured levels at some of them.
//!
//! Let q be the seconds per byte, and ln g the linear interpolation of ln q between the measured sizes. The model is
//!
//! ```text
//!   q(x) / g(x) = form(x) · costs / g(x) + δ(x) + noise        δ: a Gaussian process, Matérn 3/2, of amplitude s
//! ```
//!
//! The process δ models the deviation of a drive from its form. For a given form and s, the model is linear and
//! Gaussian: the costs, δ and the likelihood of the measurements have closed forms (Rasmussen and Williams, "Gaussian
//! Processes for Machine Learning", 2.7). The result is a mixture of all forms and amplitudes, weighted by their
//! posterior probability. A change of the level counts as distance in the correlation of δ, so that levels on one
//! side of a step have little influence on the other side. Module `choose` selects the next size.

use super::forms::{Form, forms};
use super::linear::Factor;
use rayon::prelude::*;
use statrs::distribution::{ContinuousCDF, Normal};

/// Candidate amplitudes s of δ, as shares of the level.
const AMPLITUDES: [f64; 9] = [0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512];
/// Standard deviation of the prior of ln s around the misfit that a form expects.
const SPREAD: f64 = 0.9;
/// Correlation length of δ, as a share of the largest size.
const LENGTH: f64 = 0.25;
/// Correlation length of δ in the logarithm of the level.
const LENGTH_OF_LEVEL: f64 = 1.0;
/// Hypotheses with a lower probability than this, relative to the best, are ignored.
const NOTHING: f64 = 1e-5;
/// Hypotheses that are summed by one task.
const PART: usize = 64;
/// Lower bound of a variance, against rounding errors.
const LEAST_VARIANCE: f64 = 1e-12;
/// Quantiles that bound a 95 % interval.
const ENDS: [f64; 2] = [0.025, 0.975];
/// Steps of the bisection for a quantile.
const STEPS: usize = 30;

/// A measured level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Index of the size in the curve.
    pub at: usize,
    /// The level, in any unit of rate.
    pub level: f64,
    /// Standard deviation, as a share of the level.
    pub deviation: f64,
}

/// The sizes of a curve, with its prior.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Bytes of data, ascending.
    data: Vec<f64>,
    forms: Vec<Form>,
}

/// The posterior of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The level at each size, in the unit of the measured levels.
    pub levels: Vec<f64>,
    /// The lower end of the 95 % interval of each level.
    pub low: Vec<f64>,
    /// The upper end of the 95 % interval of each level.
    pub high: Vec<f64>,
    /// The covariance of all levels as shares of the level, row by row.
    pub(super) covariance: Vec<f64>,
    /// Posterior mean of the amplitude s, as a share.
    pub misfit: f64,
    /// Number of measured sizes.
    pub measured: usize,
}

impl Known {
    /// Half the width of each interval, as a share of the level.
    pub fn half_widths(&self) -> Vec<f64> {
        let each = self.levels.iter().zip(self.low.iter().zip(&self.high));
        each.map(|(level, (low, high))| (high - low) / 2.0 / level).collect()
    }
}

/// The posterior for one form and amplitude: its weight, and a normal distribution at each size.
struct Said {
    weight: f64,
    means: Vec<f64>,
    deviations: Vec<f64>,
}

/// The posteriors of one task, and the sum of their weighted second moments around the line, row by row.
struct Part {
    said: Vec<Said>,
    moments: Vec<f64>,
}

impl Curve {
    /// Creates a curve over `data` (bytes, ascending) on a device of `capacity` bytes. The laws of `fit` apply if
    /// `uniform_writes`; other loads use only a straight line.
    pub fn new(data: &[f64], capacity: f64, uniform_writes: bool) -> Curve {
        debug_assert!(data.windows(2).all(|pair| pair[0] < pair[1]), "sizes rise");
        Curve { data: data.to_vec(), forms: forms(data, capacity, uniform_writes) }
    }

    /// Number of sizes.
    pub fn sizes(&self) -> usize {
        self.data.len()
    }

    /// The size at an index, in bytes.
    pub fn data(&self, at: usize) -> f64 {
        self.data[at]
    }

    /// Computes the posterior of all levels from the measured ones.
    ///
    /// # Panics
    /// Panics if `seen` is empty.
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
        // Parts are summed in order, so that rounding does not depend on the number of threads.
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

    /// The line g at each size: seconds per byte, interpolated linearly in the logarithm between measured sizes.
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

    /// The correlation matrix of δ, row by row.
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

/// Divides the coefficients of a form by the line g. Costs are in units of the fastest byte.
fn scaled(form: &Form, line: &[f64], fastest: f64) -> Vec<[f64; 3]> {
    form.rows.iter().zip(line).map(|(row, line)| row.map(|it| it * fastest / line)).collect()
}

fn mean(form: &Form, row: &[f64; 3]) -> f64 {
    (0..3).map(|n| row[n] * form.costs[n].0).sum()
}

fn of_costs(form: &Form, a: &[f64; 3], b: &[f64; 3]) -> f64 {
    (0..3).map(|n| a[n] * b[n] * form.costs[n].1 * form.costs[n].1).sum()
}

/// The prior covariance at some sizes due to the unknown costs, row by row.
fn covariance_of_costs(form: &Form, rows: &[[f64; 3]], at: impl Iterator<Item = usize> + Clone) -> Vec<f64> {
    at.clone().flat_map(|a| at.clone().map(move |b| of_costs(form, &rows[a], &rows[b]))).collect()
}

/// The covariance of the measurements.
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

/// The logarithm of the marginal likelihood of the measurements, up to a constant.
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

/// The posterior for one form and amplitude. Adds its weighted second moments to `moments`.
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

/// Mixes the posteriors.
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
    // The cumulative distribution of the mixture.
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
    // A level is the reciprocal of the seconds, so the seconds have a lower bound.
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
