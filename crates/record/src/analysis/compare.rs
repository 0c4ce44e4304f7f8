//! Comparison of two levels: the ratio with its confidence interval, and the probability that chance alone puts the
//! ratio so far from a limit.
//!
//! Independent levels are compared by Fieller's method: E. C. Fieller, "Some problems in interval estimation", J.
//! Royal Stat. Soc. B 16,
//! 1954. Because both levels rest on few sections, the degrees of freedom follow Welch (1947) and Satterthwaite
//! (1946). Levels measured in pairs, shortly after each other, are compared by the logarithms of their ratios, so
//! that an influence on both levels of a pair cancels.
//!
//! Standard errors of levels are in `sections`, the correction for many comparisons in `many`.

use super::Estimate;
use super::batch::{student_t, two_sided};
use super::sections::spread;

/// A number with its uncertainty: a throughput, a percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// The number, in any unit.
    pub value: f64,
    /// Its standard error, in the same unit; 0 if the number is exact.
    pub standard_error: f64,
    /// Degrees of freedom of the standard error; at least 1.
    pub freedom: f64,
}

impl Level {
    /// Half the 95 % confidence interval.
    pub fn half_width(&self) -> f64 {
        student_t(0.975, self.freedom) * self.standard_error
    }
}

impl From<&Estimate> for Level {
    fn from(estimate: &Estimate) -> Self {
        let freedom = f64::from(estimate.batches.max(2) - 1);
        let standard_error = estimate.half_width / student_t(0.975, freedom);
        Level { value: estimate.mean, standard_error, freedom }
    }
}

/// The ratio of two levels with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The first level divided by the second; above 0.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    basis: Basis,
}

/// The data behind an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Basis {
    /// Two independent levels.
    Independent(Level, Level),
    /// The logarithm of the ratio.
    Logarithm(Level),
}

impl Ratio {
    /// Compares independently measured levels. `None` if a level is not above 0, or if the interval of `b` is so wide
    /// that the ratio has no bounds.
    pub fn of(a: &Level, b: &Level) -> Option<Ratio> {
        let (x, y) = (a.value, b.value);
        if !(x > 0.0 && y > 0.0) {
            return None;
        }
        let (vx, vy) = (a.standard_error.powi(2), b.standard_error.powi(2));
        let ratio = x / y;
        let t2 = student_t(0.975, joint_freedom(a, b, ratio)).powi(2);
        let denominator = y * y - t2 * vy;
        if denominator <= 0.0 {
            return None;
        }
        let root = ((x * y).powi(2) - (x * x - t2 * vx) * denominator).max(0.0).sqrt();
        let (low, high) = ((x * y - root) / denominator, (x * y + root) / denominator);
        Some(Ratio { ratio, low, high, basis: Basis::Independent(*a, *b) })
    }

    /// Compares levels measured in pairs: `ratio` is the ratio over all pairs, `pairs` the ratio of each pair. `None`
    /// for fewer than two pairs, or if a ratio is not above 0.
    pub fn of_pairs(ratio: f64, pairs: &[f64]) -> Option<Ratio> {
        if pairs.len() < 2 || !pairs.iter().chain([&ratio]).all(|it| *it > 0.0 && it.is_finite()) {
            return None;
        }
        let logarithms: Vec<f64> = pairs.iter().map(|pair| pair.ln()).collect();
        let standard_error = spread(ratio.ln(), &logarithms);
        let freedom = pairs.len() as f64 - 1.0;
        Some(Ratio::of_logarithm(Level { value: ratio.ln(), standard_error, freedom }))
    }

    /// The ratio whose logarithm is `level`.
    fn of_logarithm(level: Level) -> Ratio {
        let half = level.half_width();
        let [ratio, low, high] = [level.value, level.value - half, level.value + half].map(f64::exp);
        Ratio { ratio, low, high, basis: Basis::Logarithm(level) }
    }

    /// Widens the interval at both ends by the share `share`, to allow for rounding.
    pub fn widened(self, share: f64) -> Ratio {
        Ratio { low: self.low * (1.0 - share), high: self.high / (1.0 - share), ..self }
    }

    /// Returns whether the entire interval is below `limit`.
    pub fn below(&self, limit: f64) -> bool {
        self.high < limit
    }

    /// Returns whether the entire interval is above `limit`.
    pub fn above(&self, limit: f64) -> bool {
        self.low > limit
    }

    /// The two-sided p-value of the hypothesis that the true ratio is `limit`. Returns 1 if the interval, including
    /// any widening for rounding, contains `limit`.
    pub fn probability(&self, limit: f64) -> f64 {
        if !self.below(limit) && !self.above(limit) {
            return 1.0;
        }
        let (distance, error, freedom) = match &self.basis {
            Basis::Independent(a, b) => (
                a.value - limit * b.value,
                a.standard_error.hypot(limit * b.standard_error),
                joint_freedom(a, b, limit),
            ),
            Basis::Logarithm(level) => (level.value - limit.ln(), level.standard_error, level.freedom),
        };
        if error > 0.0 { two_sided(distance / error, freedom) } else { 0.0 }
    }

    /// The logarithm of the ratio. For independent levels, the standard error comes from first-order propagation.
    fn logarithm(&self) -> Level {
        match self.basis {
            Basis::Logarithm(level) => level,
            Basis::Independent(a, b) => {
                let relative = |level: Level| level.standard_error / level.value;
                let freedom = joint_freedom(&a, &b, a.value / b.value);
                Level { value: self.ratio.ln(), standard_error: relative(a).hypot(relative(b)), freedom }
            }
        }
    }
}

/// The geometric mean of ratios, with an interval propagated from their intervals. The interval describes these
/// ratios only, not a population from which they were drawn. `None` for an empty list.
pub fn geometric_mean(ratios: &[Ratio]) -> Option<Ratio> {
    if let [one] = ratios {
        return Some(*one);
    }
    let logarithms: Vec<Level> = ratios.iter().map(Ratio::logarithm).collect();
    let count = logarithms.len() as f64;
    let value = logarithms.iter().map(|level| level.value).sum::<f64>() / count;
    let variances = logarithms.iter().map(|level| (level.standard_error.powi(2), level.freedom));
    let sum: f64 = variances.clone().map(|(variance, _)| variance).sum();
    let squares: f64 = variances.map(|(variance, freedom)| variance * variance / freedom).sum();
    let freedom = if squares > 0.0 { sum * sum / squares } else { 1.0 };
    (count > 0.0).then(|| Ratio::of_logarithm(Level { value, standard_error: sum.sqrt() / count, freedom }))
}

/// Welch–Satterthwaite degrees of freedom of a − ratio·b, the quantity that Fieller's method tests.
fn joint_freedom(a: &Level, b: &Level, ratio: f64) -> f64 {
    let (wa, wb) = (a.standard_error.powi(2), (ratio * b.standard_error).powi(2));
    let squares = wa * wa / a.freedom + wb * wb / b.freedom;
    if squares > 0.0 { (wa + wb).powi(2) / squares } else { a.freedom }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(value: f64, half: f64, batches: u32) -> Level {
        let (mean, half_width) = (value, half);
        Level::from(&Estimate { mean, half_width, from_ns: 0, to_ns: 1, batches })
    }

    #[test]
    fn fieller_agrees_with_the_delta_method_for_narrow_intervals() {
        let c = Ratio::of(&level(33.0, 0.33, 31), &level(30.0, 0.30, 31)).expect("bounded");
        // Delta method: 1.1 · sqrt(0.01² + 0.01²) = 0.015556, with a t of 60 instead of 30 degrees: · 2.0003/2.0423.
        let delta = 0.015_556 * 2.0003 / 2.0423;
        assert!((c.ratio - 1.1).abs() < 1e-12 && c.above(1.0) && !c.above(1.1) && !c.below(1.1));
        assert!(((c.high - c.low) / 2.0 - delta).abs() < 2e-5, "{c:?}");
    }

    #[test]
    fn fieller_as_computed_by_hand() {
        // x = 10 ± 1, y = 5 ± 0.5 (standard errors). More than 1e4 degrees of freedom count as 1e4, so t = 1.9602.
        // g = t²·0.25/25; the ends are (2 ± t·sqrt(0.04 + 4·0.01 − 0.04·g))/(1 − g).
        let of = |value, standard_error| Level { value, standard_error, freedom: 1e9 };
        let c = Ratio::of(&of(10.0, 1.0), &of(5.0, 0.5)).expect("bounded");
        let t = 1.960_201f64;
        let g = t * t * 0.25 / 25.0;
        let half = t * (0.04f64 + 0.04 * (1.0 - g)).sqrt();
        assert!((c.low - (2.0 - half) / (1.0 - g)).abs() < 1e-5, "{c:?} {half}");
        assert!((c.high - (2.0 + half) / (1.0 - g)).abs() < 1e-5, "{c:?}");
    }

    #[test]
    fn equal_levels_are_not_apart_and_a_level_near_zero_has_no_ratio() {
        let near = Ratio::of(&level(30.2, 0.3, 20), &level(30.0, 0.3, 20)).expect("bounded");
        assert!(!near.above(1.0) && !near.below(1.0) && near.probability(1.0) == 1.0);
        assert_eq!(Ratio::of(&level(1.0, 0.1, 20), &level(0.1, 0.2, 20)), None);
        assert_eq!(Ratio::of(&level(1.0, 0.1, 20), &level(0.0, 0.0, 20)), None);
        let exact = Ratio::of(&level(2.0, 0.0, 0), &level(1.0, 0.0, 0)).expect("bounded");
        assert_eq!((exact.low, exact.ratio, exact.high, exact.probability(1.0)), (2.0, 2.0, 2.0, 0.0));
        assert!(exact.widened(0.001).low < 2.0);
    }

    #[test]
    fn the_interval_ends_where_the_probability_is_five_percent() {
        let c = Ratio::of(&level(30.0, 0.9, 20), &level(28.0, 0.4, 12)).expect("bounded");
        for end in [c.low - 1e-9, c.high + 1e-9] {
            // The degrees of freedom at the end of the interval differ slightly from those at the ratio.
            assert!((c.probability(end) - 0.05).abs() < 2e-3, "{}", c.probability(end));
        }
        let pairs = Ratio::of_pairs(1.1, &[1.08, 1.12, 1.1, 1.09, 1.11]).expect("five pairs");
        assert!((pairs.probability(pairs.high + 1e-9) - 0.05).abs() < 1e-6);
    }

    /// Symptom: the test above never ended, and neither would a mean over many cells. Cause: the quantile function of
    /// statrs does not converge at very many degrees of freedom. Fix: a limit on the degrees of freedom.
    #[test]
    fn quantiles_of_very_many_degrees_of_freedom_are_found() {
        assert!((student_t(0.975, 1e12) - 1.96).abs() < 1e-3);
        assert!(two_sided(1.96, 1e12) > 0.049);
    }

    #[test]
    fn the_geometric_mean_of_two_halves_the_variance() {
        let one = Ratio::of(&level(33.0, 0.33, 31), &level(30.0, 0.30, 31)).expect("bounded");
        let mean = geometric_mean(&[one, one]).expect("two");
        assert!((mean.ratio - 1.1).abs() < 1e-12);
        let narrower = (mean.high / mean.low).ln() / (one.high / one.low).ln();
        // 1/√2, and the t of 120 instead of 60 degrees.
        assert!((narrower - 1.9799 / 2.0003 / 2f64.sqrt()).abs() < 1e-3, "{narrower}");
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[one]), Some(one));
    }

    #[test]
    fn an_influence_on_both_levels_of_a_pair_cancels() {
        // The machine slows down by half over five pairs; the second of each pair is about 2 % slower.
        let drift = [100.0, 87.0, 75.0, 62.0, 50.0];
        let second = [98.1, 85.2, 73.6, 60.7, 49.0];
        let pairs: Vec<f64> = second.iter().zip(drift).map(|(b, a)| b / a).collect();
        let sum = |values: &[f64]| values.iter().sum::<f64>();
        let paired = Ratio::of_pairs(sum(&second) / sum(&drift), &pairs).expect("five pairs");
        assert!(paired.below(1.0), "{paired:?}");
        let alone = |values: &[f64]| Level {
            value: sum(values) / 5.0,
            standard_error: spread(sum(values) / 5.0, values),
            freedom: 4.0,
        };
        let apart = Ratio::of(&alone(&second), &alone(&drift)).expect("bounded");
        assert!(!apart.below(1.0), "{apart:?}");
        assert_eq!(Ratio::of_pairs(1.0, &[1.0]), None);
    }
}
