//! What was measured: levels by how much data there is, or a drive that was written from fresh to settled.
//!
//! Leaves out where it comes from (`read`).

use lowtide_core::Bytes;

/// A level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Bytes of data under test.
    pub data: Bytes,
    /// Bytes written a second.
    pub rate: f64,
    /// One standard deviation of it as a share, where it is known.
    pub deviation: Option<f64>,
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
    let median = |of: &[f64]| {
        let mut sorted = of.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let mut fallen = None;
    for at in 3..rates.len() - 2 {
        let fresh = median(&rates[..at]);
        if rates[at..at + 3].iter().all(|rate| *rate < fresh * FALL) {
            fallen = Some((at, fresh));
            break;
        }
    }
    let (at, fresh) = fallen?;
    let written = rates[..at].iter().sum::<f64>() * seconds;
    let last = &rates[rates.len() - (rates.len() / 4).max(1)..];
    let rate = last.iter().sum::<f64>() / last.len() as f64;
    (rate > 0.0).then_some((Knee { data, written, rate: fresh }, Point { data, rate, deviation: None }))
}
