//! Comparing two estimates: their ratio with its confidence interval.
//!
//! E. C. Fieller, "Some problems in interval estimation", J. Royal Stat. Soc. B 16, 1954, for independent means;
//! the degrees of freedom are those of Welch (1947) and Satterthwaite (1946), both estimates resting on few
//! batches. Leaves out correction for many comparisons, and variation between repetitions: two single runs differ
//! by more than their intervals say if the device has a memory.

use super::Estimate;
use super::batch::student_t;

/// The ratio of two means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The first mean divided by the second.
    pub ratio: f64,
    /// Lower end of the 95 % confidence interval of the ratio.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether the interval excludes 1.
    pub significant: bool,
}

impl Comparison {
    /// By how much the first is larger, in percent of the second; negative where it is smaller.
    pub fn advantage_percent(&self) -> f64 {
        100.0 * (self.ratio - 1.0)
    }
}

/// Compares `a` with `b`; `None` where the interval of `b` is so wide that the ratio has no bounds.
pub fn compare(a: &Estimate, b: &Estimate) -> Option<Comparison> {
    let freedom = |e: &Estimate| f64::from(e.batches.max(2) - 1);
    let variance = |e: &Estimate| (e.half_width_mib_per_s / student_t(0.975, freedom(e))).powi(2);
    let (x, y) = (a.mean_mib_per_s, b.mean_mib_per_s);
    let (vx, vy) = (variance(a), variance(b));
    if y <= 0.0 {
        return None;
    }
    let ratio = x / y;
    // Welch–Satterthwaite for x − ratio·y, the quantity Fieller's interval tests.
    let (wx, wy) = (vx, ratio * ratio * vy);
    let sum = wx + wy;
    let joint =
        if sum > 0.0 { sum * sum / (wx * wx / freedom(a) + wy * wy / freedom(b)) } else { freedom(a) };
    let t2 = student_t(0.975, joint).powi(2);
    let denominator = y * y - t2 * vy;
    if denominator <= 0.0 {
        return None;
    }
    let root = ((x * y).powi(2) - (x * x - t2 * vx) * denominator).max(0.0).sqrt();
    let (low, high) = ((x * y - root) / denominator, (x * y + root) / denominator);
    Some(Comparison { ratio, low, high, significant: low > 1.0 || high < 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, half: f64, batches: u32) -> Estimate {
        Estimate { mean_mib_per_s: mean, half_width_mib_per_s: half, from_ns: 0, to_ns: 1, batches }
    }

    #[test]
    fn fieller_agrees_with_the_delta_method_for_narrow_intervals() {
        let c = compare(&estimate(33.0, 0.33, 31), &estimate(30.0, 0.30, 31)).expect("bounded");
        // Delta method: 1.1 · sqrt(0.01² + 0.01²) = 0.015556, with a t of 60 instead of 30 degrees: · 2.0003/2.0423.
        let delta = 0.015_556 * 2.0003 / 2.0423;
        assert!((c.ratio - 1.1).abs() < 1e-12 && c.significant);
        assert!(((c.high - c.low) / 2.0 - delta).abs() < 2e-5, "{c:?}");
        assert!((c.advantage_percent() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn equal_levels_are_not_significant_and_a_mean_near_zero_has_no_ratio() {
        assert!(!compare(&estimate(30.2, 0.3, 20), &estimate(30.0, 0.3, 20)).expect("bounded").significant);
        assert_eq!(compare(&estimate(1.0, 0.1, 20), &estimate(0.1, 0.2, 20)), None);
        assert_eq!(compare(&estimate(1.0, 0.1, 20), &estimate(0.0, 0.0, 20)), None);
        let exact = compare(&estimate(2.0, 0.0, 0), &estimate(1.0, 0.0, 0)).expect("bounded");
        assert_eq!((exact.low, exact.ratio, exact.high, exact.significant), (2.0, 2.0, 2.0, true));
    }
}
