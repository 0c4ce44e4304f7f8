//! How far the level may still move: a relaxation extrapolated to its end.
//!
//! Write amplification relaxes towards its limit over several drive writes, so that a short window can look flat
//! while most of the way is still ahead. The window is fitted by least squares with
//! `y = L + A·exp(−x/τ)`, `x` the progress since the window began, for several fixed `τ`. The mean of the window
//! then lies `A·x̄_τ` away from the limit `L` (`x̄_τ` the mean of the exponential over the window). The
//! standard error comes from the scatter of batch means around the fit, widened as the batches' interval is, so
//! autocorrelation within batches is in it. With `τ` much longer than the window this is a linear trend,
//! extrapolated; with a shorter one it sees the rest of a transient. Not here: sums of exponentials, and change
//! that comes back (a cycle longer than the window).

use super::batch::{Batches, averages, inflation, student_t, von_neumann};

/// What a fit says about a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// How far the mean of the window lies above the limit, in the unit of the values.
    pub bias: f64,
    /// The standard error of that.
    pub error: f64,
    /// The time constant of this fit, in the unit of the progress.
    pub tau: f64,
    /// The relaxation's distance from its limit at the beginning of the window, in the unit of the values.
    pub amplitude: f64,
}

impl Drift {
    /// The values with the drift taken out and their mean kept.
    pub fn without(&self, values: &[f64], progress: &[f64]) -> Vec<f64> {
        let level = |x: &f64| self.amplitude * (-x / self.tau).exp() - self.bias;
        values.iter().zip(progress).map(|(value, x)| value - level(x)).collect()
    }

    /// How far away the limit may be, with `caution` standard errors added.
    pub fn reach(&self, caution: f64) -> f64 {
        self.bias.abs() + caution * self.error
    }
    /// Whether the drift differs from zero at the 95 % level, with as many batches.
    pub fn is_significant(&self, batches: usize) -> bool {
        self.bias.abs() > student_t(0.975, batches as f64 - 2.0) * self.error
    }
}

/// The fit with the time constant `tau`. `progress` has one value for each interval of the window, the `skipped`
/// ones left out, and begins near 0.
pub fn relaxation(batches: &Batches, progress: &[f64], tau: f64) -> Drift {
    let decay: Vec<f64> = progress.iter().map(|x| (-x / tau).exp()).collect();
    let basis = averages(&decay, batches.length);
    let (slope, error) = regress(&basis, &batches.means);
    let centre = basis.iter().sum::<f64>() / basis.len() as f64;
    Drift { bias: slope * centre, error: error * centre, tau, amplitude: slope }
}

/// The slope of the batch means against the batch number and its standard error.
pub fn trend(batches: &Batches) -> (f64, f64) {
    let number: Vec<f64> = (0..batches.means.len()).map(|i| i as f64).collect();
    regress(&number, &batches.means)
}

/// Slope and standard error of the least-squares line. A `basis` without spread, which says nothing, gives an
/// infinite error. Correlation left between the residuals widens the error.
fn regress(basis: &[f64], values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let centre = basis.iter().sum::<f64>() / n;
    let mean = values.iter().sum::<f64>() / n;
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
    fn a_window_that_says_nothing_has_no_bounds() {
        let batches = Batches::cut(&[1.0; 20], 10);
        assert_eq!(relaxation(&batches, &[0.0; 20], 1.0).reach(1.0), f64::INFINITY);
    }
}
