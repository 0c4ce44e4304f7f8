//! fio's `steadystate=bw_slope:X%`, including its flaw, for comparison with lowtide's own rule.
//!
//! The rule follows fio's `steadystate.c`. Once the window is full, fio fits a least-squares line at every sample and
//! stops when `100 · |slope| / mean` is below the limit. The flaw is that the slope is *per sample*, not per window:
//! with the default window of 300 s, one sample per second and the default limit of 0.3 %, the fitted line may change
//! by 90 % of the mean. Here a sample is one interval, so longer intervals reduce the flaw. fio also has no
//! interlock: the plateau of a fresh drive satisfies the rule at once. fio computes no confidence interval; the
//! interval here comes from ten batches of fio's window. fio's manual gives no defaults; the default limit and window
//! here are those of its examples.
//!
//! # Not modelled
//! fio's ramp time, and its criterion of the largest deviation.

use super::Estimate;
use super::batch::{Batches, FEWEST, mean};
use super::line::slope;
use super::series::Series;

/// The parameters of the rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FioSlope {
    /// Largest slope per sample, in percent of the mean. Default: 0.3.
    pub limit_percent: f64,
    /// Length of the window in nanoseconds, at least ten intervals. Default: 300 s.
    pub window_ns: u64,
}

impl Default for FioSlope {
    fn default() -> Self {
        FioSlope { limit_percent: 0.3, window_ns: 300_000_000_000 }
    }
}

impl FioSlope {
    /// The estimate over the first window that satisfies the rule.
    pub fn answer(&self, series: &Series) -> Option<Estimate> {
        let samples = self.samples(series)?;
        let first = series.rates(0).windows(samples).position(|window| self.holds(window))?;
        Some(estimate(series, first, samples))
    }

    /// The estimate over the newest window, if it satisfies the rule.
    pub(super) fn answer_at_end(&self, series: &Series) -> Option<Estimate> {
        let samples = self.samples(series)?;
        let first = series.points().len().checked_sub(samples)?;
        self.holds(&series.rates(first)).then(|| estimate(series, first, samples))
    }

    /// Samples of a window.
    fn samples(&self, series: &Series) -> Option<usize> {
        Some((self.window_ns.div_ceil(series.interval_ns()?) as usize).max(FEWEST))
    }

    /// Returns whether the samples of a full window satisfy the limit.
    pub fn holds(&self, samples: &[f64]) -> bool {
        let mean = mean(samples);
        mean > 0.0 && (100.0 * slope(samples) / mean).abs() < self.limit_percent
    }
}

/// The estimate over the window of `samples` intervals from `first` on.
fn estimate(series: &Series, first: usize, samples: usize) -> Estimate {
    let points = &series.points()[first..first + samples];
    let rates: Vec<f64> = points.iter().map(|point| point.rate).collect();
    Estimate {
        mean: mean(&rates),
        half_width: Batches::cut(&rates, FEWEST).half_width(),
        from_ns: points[0].start_ns,
        to_ns: points[samples - 1].end_ns,
        batches: FEWEST as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_per_sample_and_lets_a_window_fall_by_most_of_its_mean() {
        // A fall from 140 to 60 over 300 samples is 80 % of the mean, or 0.27 % per sample.
        let falling: Vec<f64> = (0..300).map(|i| 140.0 - 80.0 * f64::from(i) / 299.0).collect();
        assert!(FioSlope::default().holds(&falling));
        let steeper: Vec<f64> = (0..300).map(|i| 150.0 - 100.0 * f64::from(i) / 299.0).collect();
        assert!(!FioSlope::default().holds(&steeper));
    }
}
