//! Latency percentiles of equal parts of a measured window. They are the basis for confidence intervals of the
//! window's percentiles.
//!
//! The histograms of a window are merged part by part, so only one part and the sum are in memory. The confidence
//! intervals are computed in `lowtide_report::compare`.

use super::Percentiles;
use lowtide_core::{Distribution, Latency};

/// The maximum number of parts of a window.
const MOST: usize = 20;

/// One part of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Operations that completed in the part.
    pub operations: u64,
    /// Latency of these operations.
    pub latency: Percentiles,
}

impl Part {
    fn of(latency: &Latency) -> Part {
        match latency.count() {
            0 => Part { operations: 0, latency: Percentiles::default() },
            operations => Part { operations, latency: Percentiles::of(latency) },
        }
    }
}

/// The parts of a window, in order; at most twenty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LatencyParts {
    /// Reads and writes together.
    pub all: Vec<Part>,
    /// Reads.
    pub read: Vec<Part>,
    /// Writes.
    pub write: Vec<Part>,
}

/// Merges the histograms of a window, interval by interval.
#[derive(Debug, Default)]
pub struct Gatherer {
    /// Intervals of the window.
    intervals: usize,
    part: usize,
    read: Histograms,
    write: Histograms,
    parts: LatencyParts,
}

/// The histograms of one kind of operation.
#[derive(Debug, Default)]
struct Histograms {
    /// The current part.
    part: Latency,
    /// The sum of the parts before `part`.
    sum: Latency,
}

impl Gatherer {
    /// Creates a gatherer for a window of `intervals` intervals.
    pub fn new(intervals: usize) -> Gatherer {
        Gatherer { intervals, ..Gatherer::default() }
    }

    /// Adds a histogram of interval `position` of the window: of reads if `reads`, otherwise of writes. Positions
    /// must not decrease.
    pub fn add(&mut self, position: usize, reads: bool, latency: &Latency) {
        let part = position * MOST.min(self.intervals) / self.intervals.max(1);
        if part != self.part {
            self.end_part();
            self.part = part;
        }
        let own = if reads { &mut self.read } else { &mut self.write };
        own.part.merge(latency);
    }

    /// Returns the latency of reads over the window, the latency of writes, and the parts.
    pub fn finish(mut self) -> (Distribution, Distribution, LatencyParts) {
        self.end_part();
        (self.read.sum.into(), self.write.sum.into(), self.parts)
    }

    fn end_part(&mut self) {
        if self.read.part.count() + self.write.part.count() == 0 {
            return;
        }
        let (read, write) = (Part::of(&self.read.part), Part::of(&self.write.part));
        self.parts.read.push(read);
        self.parts.write.push(write);
        self.parts.all.push(match (read.operations, write.operations) {
            (_, 0) => read,
            (0, _) => write,
            _ => {
                let mut all = self.read.part.clone();
                all.merge(&self.write.part);
                Part::of(&all)
            }
        });
        for histograms in [&mut self.read, &mut self.write] {
            histograms.sum.merge(&histograms.part);
            histograms.part.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Nanos;

    #[test]
    fn a_window_is_cut_into_equal_parts_and_nothing_is_lost() {
        let one = |ns| {
            let mut latency = Latency::default();
            latency.record(Nanos::new(ns));
            latency
        };
        let mut gatherer = Gatherer::new(50);
        for position in 0..50 {
            gatherer.add(position, true, &one(1000 + position as u64));
            if position == 7 {
                gatherer.add(position, false, &one(9000));
            }
        }
        let (read, write, parts) = gatherer.finish();
        assert_eq!((read.count(), write.count(), parts.all.len()), (50, 1, 20));
        let operations = |parts: &[Part]| parts.iter().map(|part| part.operations).collect::<Vec<_>>();
        assert!(operations(&parts.read).iter().all(|count| (2..=3).contains(count)), "{parts:?}");
        assert_eq!(operations(&parts.write).iter().sum::<u64>(), 1);
        assert_eq!(parts.all[2].latency.max_ns / 10, 900);
        assert_eq!(Gatherer::new(0).finish().2, LatencyParts::default());
    }
}
