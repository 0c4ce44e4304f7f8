//! What the rules of others share: their answer, and a line through equidistant values. Not here: the rules.

use super::Estimate;

/// What a rule without an interlock would have answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// Mean throughput over its window, in MiB/s.
    pub mean: f64,
    /// Half the width of a 95 % confidence interval of that, in MiB/s; the rules themselves give none.
    pub half_width: f64,
    /// Where its window begins, in nanoseconds since the measurement began.
    pub from_ns: u64,
    /// When it would have stopped, in nanoseconds since the measurement began.
    pub stopped_ns: u64,
    /// Values the interval rests on.
    pub batches: u32,
}

impl From<Answer> for Estimate {
    fn from(answer: Answer) -> Self {
        Estimate {
            mean: answer.mean,
            half_width: answer.half_width,
            from_ns: answer.from_ns,
            to_ns: answer.stopped_ns,
            batches: answer.batches,
        }
    }
}

/// The slope of the least-squares line through `values` at 0, 1, 2 …
pub fn line(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let centre = (n - 1.0) / 2.0;
    let products: f64 = values.iter().enumerate().map(|(i, y)| (i as f64 - centre) * y).sum();
    let squares = n * (n * n - 1.0) / 12.0;
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// The largest value less the smallest.
pub fn spread(values: &[f64]) -> f64 {
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high - values.iter().copied().fold(f64::INFINITY, f64::min)
}
