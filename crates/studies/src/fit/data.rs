//! Measurements to fit: levels by data size, or a timeline from a fresh drive to its settled level.
//!
//! Reading them is in `read`.

use lowtide_core::Bytes;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A settled level at one data size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Bytes of data under test.
    pub data: Bytes,
    /// Write rate in bytes/s.
    pub rate: f64,
    /// Standard deviation of the rate as a share, if known.
    pub deviation: Option<f64>,
    /// Line in the table, if the level came from one.
    pub line: Option<u64>,
}

impl Point {
    /// The line of the level, to be appended to the file name in messages.
    pub(super) fn place(&self) -> String {
        self.line.map(|line| format!(": line {line}")).unwrap_or_default()
    }
}

/// The point at which a fresh drive ran out of erased blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// Bytes of data under test, all written beforehand.
    pub data: Bytes,
    /// Bytes of random writes until the rate fell.
    pub written: f64,
    /// Rate until then, in bytes/s.
    pub rate: f64,
}

/// Measurements of one drive under one load of random writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Name for messages.
    pub name: String,
    /// Settled levels by ascending data size, each size once.
    pub points: Vec<Point>,
    /// The knee of a timeline.
    pub knee: Option<Knee>,
    /// Bytes that the host can address, if known.
    pub capacity: Option<Bytes>,
    /// Bytes per request, if known.
    pub block: Option<Bytes>,
    /// Requests in flight, if known.
    pub threads: Option<u32>,
    /// Notes for the user about how the input was read.
    pub notes: Vec<String>,
}

impl Measured {
    /// Sorts levels by data size, and averages levels of the same size.
    pub(super) fn sorted(mut self) -> Measured {
        self.points.sort_by_key(|point| point.data);
        let mut merged: Vec<(Point, f64)> = Vec::new();
        for point in self.points {
            match merged.last_mut() {
                Some((last, count)) if last.data == point.data => {
                    last.rate = (last.rate * *count + point.rate) / (*count + 1.0);
                    last.deviation = last.deviation.zip(point.deviation).map(|(a, b)| a.max(b));
                    *count += 1.0;
                }
                _ => merged.push((point, 1.0)),
            }
        }
        self.points = merged.into_iter().map(|(point, _)| point).collect();
        self
    }
}

/// Finds the knee and the settled level of a timeline. `rates` are in bytes/s, of intervals that last `seconds` each.
///
/// The fresh rate is the median of the rates before the knee. The knee is the first of three consecutive rates that
/// are at least a seventh below the fresh rate. The settled level is the mean of the last quarter. `None` if there is
/// no knee or there are fewer than 12 rates.
pub(super) fn timeline(rates: &[f64], seconds: f64, data: Bytes) -> Option<(Knee, Point)> {
    const FALL: f64 = 6.0 / 7.0;
    if rates.len() < 12 {
        return None;
    }
    let mut before = Median::default();
    rates[..3].iter().for_each(|rate| before.add(*rate));
    let mut fallen = None;
    for at in 3..rates.len() - 2 {
        let fresh = before.get();
        if rates[at..at + 3].iter().all(|rate| *rate < fresh * FALL) {
            fallen = Some((at, fresh));
            break;
        }
        before.add(rates[at]);
    }
    let (at, fresh) = fallen?;
    let written = rates[..at].iter().sum::<f64>() * seconds;
    let last = &rates[rates.len() - (rates.len() / 4).max(1)..];
    let rate = last.iter().sum::<f64>() / last.len() as f64;
    let settled = Point { data, rate, deviation: None, line: None };
    (rate > 0.0).then_some((Knee { data, written, rate: fresh }, settled))
}

/// Running median of non-negative numbers. An even count gives the upper median.
#[derive(Default)]
struct Median {
    /// The lower half as a max-heap of bit patterns, which sort like the numbers because none is negative.
    low: BinaryHeap<u64>,
    /// The upper half as a min-heap, with as many elements or one more.
    high: BinaryHeap<Reverse<u64>>,
}

impl Median {
    fn add(&mut self, number: f64) {
        self.low.push(number.to_bits());
        self.high.extend(self.low.pop().map(Reverse));
        if self.high.len() > self.low.len() + 1 {
            self.low.extend(self.high.pop().map(|Reverse(bits)| bits));
        }
    }

    fn get(&self) -> f64 {
        self.high.peek().map_or(0.0, |Reverse(bits)| f64::from_bits(*bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{Seed, rng::unit};

    #[test]
    fn the_running_median_is_that_of_what_came_so_far() {
        let seed = 3;
        println!("seed {seed}");
        let mut rng = Seed::new(seed).part("median", 0).stream();
        let (mut running, mut all) = (Median::default(), Vec::new());
        for _ in 0..500 {
            let number = (unit(&mut rng) * 50.0).floor();
            running.add(number);
            all.push(number);
            all.sort_by(f64::total_cmp);
            assert_eq!(running.get(), all[all.len() / 2], "{} numbers", all.len());
        }
    }
}
