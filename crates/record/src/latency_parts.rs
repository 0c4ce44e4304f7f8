//! Latency percentiles of equal parts of a measured window, which show how certain those of the whole window
//! are.
//!
//! The histograms of a window are merged part by part, so that at most one part is in memory beside the whole. Not here:
//! what is made of them (`lowtide_report::compare`).

use super::Percentiles;
use lowtide_core::{Distribution, Latency};

/// The most parts of a window.
const MOST: usize = 20;

/// One part of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Operations that completed in it.
    pub operations: u64,
    /// Their latency.
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

/// Takes the histograms of a window, interval by interval.
#[derive(Debug)]
pub struct Gatherer {
    /// Intervals of the window.
    intervals: usize,
    part: usize,
    read: Gathered,
    write: Gathered,
    parts: LatencyParts,
}

/// The histograms of an operation.
#[derive(Debug, Default)]
struct Gathered {
    part: Latency,
    /// Of the parts that ended.
    whole: Latency,
}

impl Gatherer {
    /// Of a window of so many intervals.
    pub fn new(intervals: usize) -> Gatherer {
        let (read, write, parts) = (Default::default(), Default::default(), LatencyParts::default());
        Gatherer { intervals, part: 0, read, write, parts }
    }

    /// A histogram of reads (`true`) or writes of the window's interval `position`; positions never fall.
    pub fn add(&mut self, position: usize, reads: bool, latency: &Latency) {
        let part = position * MOST.min(self.intervals) / self.intervals.max(1);
        if part != self.part {
            self.end_part();
            self.part = part;
        }
        let own = if reads { &mut self.read } else { &mut self.write };
        own.part.merge(latency);
    }

    /// Reads and writes of the whole window, and its parts.
    pub fn finish(mut self) -> (Distribution, Distribution, LatencyParts) {
        self.end_part();
        (self.read.whole.into(), self.write.whole.into(), self.parts)
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
        for gathered in [&mut self.read, &mut self.write] {
            gathered.whole.merge(&gathered.part);
            gathered.part.clear();
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
