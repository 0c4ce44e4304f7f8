//! fio's `steadystate=bw_slope:X%`, flaw and all, to print beside our answer.
//!
//! As `steadystate.c` of fio does it: at every sample, once the window is full, fit a line by least squares; stop
//! when `100 · |slope| / mean` is below the limit. The slope is in units *per sample*, not per window: over the
//! default window of 300 s with a sample a second, the default limit of 0.3 % lets the fitted line change by
//! 90 % of the mean. A sample here is one interval, so the flaw is the smaller the longer the intervals are. fio
//! has no interlock either: a fresh drive's plateau satisfies it at once. The confidence interval given here is
//! that of ten batches of its window; fio computes none. The default limit and window are those of the examples
//! in fio's manual, which has no defaults. Not here: fio's ramp time and its rule of the largest deviation.

use super::batch::{Batches, FEWEST};
use super::naive::{Answer, line};
use super::series::Series;

/// The rule's numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FioSlope {
    /// Largest slope per sample, in percent of the mean. 0.3.
    pub limit_percent: f64,
    /// Length of the window in nanoseconds; at least ten intervals are taken. 300 s.
    pub window_ns: u64,
}

impl Default for FioSlope {
    fn default() -> Self {
        FioSlope { limit_percent: 0.3, window_ns: 300_000_000_000 }
    }
}

impl FioSlope {
    /// What the rule would have answered, and when; `None` where it never held.
    pub fn answer(&self, series: &Series) -> Option<Answer> {
        let samples = self.samples(series)?;
        let first = series.rates(0).windows(samples).position(|window| self.holds(window))?;
        Some(answer_over(series, first, samples))
    }

    /// What the rule answers if it holds at the newest interval.
    pub(super) fn answer_at_end(&self, series: &Series) -> Option<Answer> {
        let samples = self.samples(series)?;
        let first = series.points().len().checked_sub(samples)?;
        self.holds(&series.rates(first)).then(|| answer_over(series, first, samples))
    }

    /// Samples of a window.
    fn samples(&self, series: &Series) -> Option<usize> {
        Some((self.window_ns.div_ceil(series.interval_ns()?) as usize).max(FEWEST))
    }

    /// Whether a full window satisfies the limit.
    pub fn holds(&self, samples: &[f64]) -> bool {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        mean > 0.0 && (100.0 * line(samples) / mean).abs() < self.limit_percent
    }
}

/// The answer over the window of `samples` intervals from `first` on.
fn answer_over(series: &Series, first: usize, samples: usize) -> Answer {
    let points = &series.points()[first..first + samples];
    let rates: Vec<f64> = points.iter().map(|point| point.rate).collect();
    Answer {
        mean: rates.iter().sum::<f64>() / samples as f64,
        half_width: Batches::cut(&rates, FEWEST).half_width(),
        from_ns: points[0].start_ns,
        stopped_ns: points[samples - 1].end_ns,
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
