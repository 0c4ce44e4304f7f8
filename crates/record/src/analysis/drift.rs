//! The drift of a level, as a fitted relaxation extrapolated to its limit.
//!
//! Write amplification relaxes towards its limit over several drive writes, so a short window can look flat while
//! most of the change is still ahead. For each of several fixed time constants `τ`, the window is fitted by least
//! squares with `y = L + A·exp(−x/τ)`, where `x` is the progress since the start of the window. The mean of the
//! window then differs from the limit `L` by `A·x̄_τ`, where `x̄_τ` is the mean of the exponential over the window.
//! The standard error comes from the scatter of batch means around the fit. It is widened for correlation like the
//! interval of the batches. With `τ` much longer than the window, the fit is an extrapolated linear trend. A shorter
//! `τ` fits the end of a transient.
//!
//! # Not handled
//! Sums of exponentials, and cycles longer than the window.

use super::batch::{Batches, averages, inflation, mean, student_t, von_neumann};

/// A fitted relaxation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Mean of the window minus the limit `L`, in the unit of the values.
    pub bias: f64,
    /// Standard error of the bias.
    pub error: f64,
    /// Time constant of the fit, in the unit of the progress.
    pub tau: f64,
    /// Distance from the limit at the beginning of the window, in the unit of the values.
    pub amplitude: f64,
}

impl Drift {
    /// Removes the drift from `values` and keeps their mean.
    pub fn without(&self, values: &[f64], progress: &[f64]) -> Vec<f64> {
        let level = |x: &f64| self.amplitude * (-x / self.tau).exp() - self.bias;
        values.iter().zip(progress).map(|(value, x)| value - level(x)).collect()
    }

    /// The possible distance from the limit: the absolute bias plus `caution` standard errors.
    pub fn reach(&self, caution: f64) -> f64 {
        self.bias.abs() + caution * self.error
    }
    /// Returns whether the drift of a window with `batches` batches differs from zero at the 95 % level.
    pub fn is_significant(&self, batches: usize) -> bool {
        self.bias.abs() > student_t(0.975, batches as f64 - 2.0) * self.error
    }
}

/// Fits a relaxation with time constant `tau`. `progress` begins near 0 and has one value for each interval of the
/// window, except the skipped intervals ([`Batches::skipped`]).
pub fn relaxation(batches: &Batches, progress: &[f64], tau: f64) -> Drift {
    let decay: Vec<f64> = progress.iter().map(|x| (-x / tau).exp()).collect();
    let basis = averages(&decay, batches.length);
    let (slope, error) = regress(&basis, &batches.means);
    let centre = mean(&basis);
    Drift { bias: slope * centre, error: error * centre, tau, amplitude: slope }
}

/// The slope of the batch means per batch, and its standard error.
pub fn trend(batches: &Batches) -> (f64, f64) {
    let number: Vec<f64> = (0..batches.means.len()).map(|i| i as f64).collect();
    regress(&number, &batches.means)
}

/// Slope and standard error of the least-squares line. A constant `basis` gives an infinite error. Correlation of the
/// residuals widens the error.
fn regress(basis: &[f64], values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let (centre, mean) = (mean(basis), mean(values));
    let spread: f64 = basis.iter().map(|x| (x - centre).powi(2)).sum();
    if spread <= f64::EPSILON * f64::EPSILON {
        return (0.0, f64::INFINITY);
    }
    let slope = basis.iter().zip(values).map(|(x, y)| (x - centre) * (y - mean)).sum::<f64>() / spread;
    let residuals: Vec<f64> =
        basis.iter().zip(values).map(|(x, y)| y - mean - slope * (x - centre)).collect();
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    (slope, (squares / (n - 2.0) * inflation(von_neumann(&residuals)) / spread).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponential_without_noise_is_extrapolated_exactly() {
        let progress: Vec<f64> = (0..200).map(|i| f64::from(i) / 400.0).collect();
        let values: Vec<f64> = progress.iter().map(|x| 30.0 + 6.0 * (-x / 2.0).exp()).collect();
        let batches = Batches::cut(&values, 20);
        let drift = relaxation(&batches, &progress, 2.0);
        assert!((batches.mean() - drift.bias - 30.0).abs() < 1e-9, "{drift:?}");
        assert!(drift.is_significant(20) && drift.error < 1e-6);
        let (slope, _) = trend(&batches);
        assert!(slope < 0.0);
    }

    #[test]
    fn a_window_without_progress_has_no_bounds() {
        let batches = Batches::cut(&[1.0; 20], 10);
        assert_eq!(relaxation(&batches, &[0.0; 20], 1.0).reach(1.0), f64::INFINITY);
    }
}
