//! What was measured: levels by how much data there is, or a drive that was written from fresh to settled.
//!
//! Not here: where it comes from (`read`).

use lowtide_core::Bytes;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Bytes of data under test.
    pub data: Bytes,
    /// Bytes written a second.
    pub rate: f64,
    /// One standard deviation of it as a share, where it is known.
    pub deviation: Option<f64>,
    /// The line of the table that it stands on, where it stands on one.
    pub line: Option<u64>,
}

impl Point {
    /// Where it stands, behind the name of what was measured.
    pub(super) fn place(&self) -> String {
        self.line.map(|line| format!(": line {line}")).unwrap_or_default()
    }
}

/// When a fresh drive had used up its erased blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// Bytes of data under test, written before.
    pub data: Bytes,
    /// Bytes written at random until the rate fell.
    pub written: f64,
    /// The rate until then, bytes a second.
    pub rate: f64,
}

/// What was measured of one drive under one load of random writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What to call it.
    pub name: String,
    /// Settled levels, by data, without two of the same data.
    pub points: Vec<Point>,
    /// Of a timeline.
    pub knee: Option<Knee>,
    /// Bytes that the host may address, where known.
    pub capacity: Option<Bytes>,
    /// Bytes of a request, where known.
    pub block: Option<Bytes>,
    /// Requests in flight, where known.
    pub threads: Option<u32>,
    /// What the user should know of how it was read.
    pub notes: Vec<String>,
}

impl Measured {
    /// Orders levels by data, and takes the mean of those of the same data.
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

/// The knee and the settled level of a timeline: bytes a second in intervals of equal length.
///
/// The fresh rate is the median of the first intervals, until three in a row are a seventh below it; the settled one is the mean of
/// the last quarter.
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

/// The median of numbers that come one after the other, none of them negative; of an even count, the upper one.
#[derive(Default)]
struct Median {
    /// The lower half, the largest on top; the bits of such numbers are ordered as the numbers are.
    low: BinaryHeap<u64>,
    /// The upper half, the smallest on top, and as many or one more.
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
