//! fio's `steadystate=bw_slope:X%` with its flaw, as a comparison for lowtide's own rule.
//!
//! The rule follows `steadystate.c` of fio: at every sample, once the window is full, fit a line by least squares;
//! stop when `100 · |slope| / mean` is below the limit. The slope is in units *per sample*, not per window: over the
//! default window of 300 s with a sample a second, the default limit of 0.3 % lets the fitted line change by
//! 90 % of the mean. A sample here is one interval, so longer intervals make the flaw smaller. fio has no interlock
//! either: the plateau of a fresh drive satisfies it at once. fio computes no confidence interval; the one given here
//! is that of ten batches of its window. fio's manual has no defaults; the default limit and window are those of its
//! examples. Not here: fio's ramp time and its rule of the largest deviation.

use super::Estimate;
use super::batch::{Batches, FEWEST, mean};
use super::line::slope;
use super::series::Series;

/// The parameters of the rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FioSlope {
    /// Largest slope per sample, in percent of the mean. 0.3.
    pub limit_percent: f64,
    /// Length of the window in nanoseconds, at least ten intervals. 300 s.
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

    /// Whether a full window satisfies the limit.
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
        // From 140 down to 60 over 300 samples: 80 % of the mean, and 0.27 % a sample.
        let falling: Vec<f64> = (0..300).map(|i| 140.0 - 80.0 * f64::from(i) / 299.0).collect();
        assert!(FioSlope::default().holds(&falling));
        let steeper: Vec<f64> = (0..300).map(|i| 150.0 - 100.0 * f64::from(i) / 299.0).collect();
        assert!(!FioSlope::default().holds(&steeper));
    }
}
