//! Batch means: the mean of a correlated series with a confidence interval that allows for the correlation.
//!
//! A. M. Law and W. D. Kelton, "Simulation Modeling and Analysis", section on batch means; C. Alexopoulos and A. F.
//! Seila, "Output data analysis" (Handbook of Simulation, 1998). The batch length is increased until the batch means
//! pass von Neumann's ratio test (J. von Neumann, Ann. Math. Stat. 12, 1941, in the form of G. S. Fishman,
//! "Principles of Discrete Event Simulation", 1978). As in ASAP3 (Steiger et al., ACM TOMACS 15(1), 2005), the
//! remaining correlation widens the interval. There are two deviations: the remaining correlation is modelled as an
//! AR(1) process, and only positive correlation is tested, because negative correlation can only make the interval
//! too wide.
//!
//! # Not handled
//! Overlapping batches.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewest batches.
pub const FEWEST: usize = 10;
/// Most batches.
pub const MOST: usize = 40;
/// The one-sided limit of the ratio test, in standard deviations: the 10 % point of the normal distribution.
const LIMIT: f64 = 1.2816;
/// Minimum length of a batch, in autocorrelation times of the intervals.
const TIMES: f64 = 3.0;

/// A series cut into batches of equal length. The remainder of the division is skipped at the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct Batches {
    /// The mean of each batch.
    pub means: Vec<f64>,
    /// Values of one batch.
    pub length: usize,
    /// Values skipped at the beginning.
    pub skipped: usize,
    /// The factor by which correlation between the batches raises the variance of their mean; ≥ 1.
    pub inflation: f64,
    /// `true` if the batches pass the test for correlation.
    pub independent: bool,
}

impl Batches {
    /// Cuts `values` into at most 40 batches. Reduces the number until the batches pass the test for correlation, but
    /// to no fewer than 10. If 10 batches fail the test too, `independent` is false. `None` for fewer than 10 values.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < FEWEST {
            return None;
        }
        let r = lag_1(values).clamp(0.0, 0.98);
        let time = (1.0 + r) / (1.0 - r);
        let most = ((values.len() as f64 / (TIMES * time)) as usize).clamp(FEWEST, MOST);
        let mut count = most;
        loop {
            let batches = Batches::cut(values, count);
            if batches.independent || count == FEWEST {
                return Some(batches);
            }
            count = (count * 4 / 5).max(FEWEST);
        }
    }

    /// Cuts `values` into exactly `count` batches; `count` must be at least 2.
    pub fn cut(values: &[f64], count: usize) -> Self {
        let length = values.len() / count;
        let skipped = values.len() - length * count;
        let means = averages(&values[skipped..], length);
        let correlation = von_neumann(&means);
        let k = count as f64;
        let limit = LIMIT * ((k - 2.0) / (k * k - 1.0)).sqrt();
        Batches {
            means,
            length,
            skipped,
            inflation: inflation(correlation),
            independent: correlation <= limit,
        }
    }

    /// The mean over all batches.
    pub fn mean(&self) -> f64 {
        mean(&self.means)
    }

    /// Half the width of the 95 % confidence interval of the mean.
    pub fn half_width(&self) -> f64 {
        let mean = self.mean();
        let k = self.means.len() as f64;
        let variance = self.means.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (k - 1.0);
        student_t(0.975, k - 1.0) * (variance / k * self.inflation).sqrt()
    }
}

/// The arithmetic mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The means of consecutive runs of `length` values.
pub fn averages(values: &[f64], length: usize) -> Vec<f64> {
    values.chunks_exact(length).map(mean).collect()
}

/// Limit of the degrees of freedom. More degrees change the quantiles by less than 0.02 %, and statrs does not
/// converge for them.
const MOST_FREEDOM: f64 = 1e4;

/// Student's t distribution.
fn students_t(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom.clamp(1.0, MOST_FREEDOM)).expect("at least one degree of freedom")
}

/// The quantile of Student's t distribution.
pub fn student_t(probability: f64, freedom: f64) -> f64 {
    students_t(freedom).inverse_cdf(probability)
}

/// The probability that Student's t is at least as far from 0 as `t`.
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    (2.0 * students_t(freedom).cdf(-t.abs())).min(1.0)
}

/// `C = 1 − Σ(x_{i+1} − x_i)² / 2Σ(x_i − x̄)²`: For k independent values the mean of C is 0 and its variance `(k −
/// 2)/(k² − 1)`. With positive correlation C approaches 1. For a constant it is 0.
pub fn von_neumann(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let steps: f64 = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    if squares > 0.0 { 1.0 - steps / (2.0 * squares) } else { 0.0 }
}

/// The factor by which correlation between neighbours raises the variance of a mean: `(1 + r)/(1 − r)`, the factor of
/// an AR(1) process. The factor is 1 for negative correlation, and at most 19.
pub fn inflation(correlation: f64) -> f64 {
    let r = correlation.clamp(0.0, 0.9);
    (1.0 + r) / (1.0 - r)
}

/// The correlation between neighbours; 0 for a constant.
fn lag_1(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_computed_interval() {
        // The values 9 and 11, ten times each: mean 10, variance 20/19, t(0.975, 19) = 2.0930.
        let values: Vec<f64> = (0..20).map(|i| if i % 2 == 0 { 9.0 } else { 11.0 }).collect();
        let batches = Batches::cut(&values, 20);
        assert_eq!((batches.mean(), batches.inflation, batches.independent), (10.0, 1.0, true));
        assert!((batches.half_width() - 2.0930 * (20.0f64 / 19.0 / 20.0).sqrt()).abs() < 1e-4);
    }

    #[test]
    fn the_ratio_distinguishes_a_trend_from_noise() {
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        assert!(von_neumann(&rising) > 0.9);
        assert!(!Batches::of(&rising).expect("20 values").independent);
        assert_eq!(von_neumann(&[5.0; 12]), 0.0);
        assert_eq!(Batches::of(&[1.0; 9]), None);
    }

    #[test]
    fn a_remainder_is_left_out_at_the_beginning() {
        let values: Vec<f64> = (0..23).map(|i| if i < 3 { 1000.0 } else { 1.0 }).collect();
        let batches = Batches::cut(&values, 10);
        assert_eq!((batches.length, batches.skipped, batches.mean()), (2, 3, 1.0));
    }
}
