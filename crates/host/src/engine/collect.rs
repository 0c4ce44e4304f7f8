//! Merges the intervals of all threads into one per period, in order ([`Collector`]).
//!
//! An interval is complete when all threads have delivered their part of it. [`super::run`] waits for the parts.

use lowtide_core::{Interval, Nanos};
use std::collections::VecDeque;

/// Merges intervals of equal length from `workers` threads.
#[derive(Debug)]
pub(super) struct Collector {
    workers: usize,
    length_ns: u64,
    /// Periods delivered so far.
    delivered: u64,
    /// Later periods, each with the number of threads that have delivered it.
    pending: VecDeque<(Option<Interval>, usize)>,
}

impl Collector {
    pub(super) fn new(workers: usize, length: Nanos) -> Self {
        Collector { workers, length_ns: length.get(), delivered: 0, pending: VecDeque::new() }
    }

    /// Adds the interval of one thread. An interval of a delivered period is dropped; only a thread that was given up
    /// can send one.
    pub(super) fn add(&mut self, interval: Interval) {
        let Some(place) = (interval.start_ns / self.length_ns).checked_sub(self.delivered) else { return };
        let place = place as usize;
        while self.pending.len() <= place {
            self.pending.push_back((None, 0));
        }
        let (merged, count) = &mut self.pending[place];
        match merged {
            Some(merged) => merged.merge(&interval),
            None => *merged = Some(interval),
        }
        *count += 1;
    }

    /// The next interval, if all threads have delivered it.
    pub(super) fn complete(&mut self) -> Option<Interval> {
        let (_, count) = self.pending.front()?;
        if *count < self.workers { None } else { self.next() }
    }

    /// The next interval that any thread has delivered, after the end.
    pub(super) fn next(&mut self) -> Option<Interval> {
        loop {
            let (interval, _) = self.pending.pop_front()?;
            self.delivered += 1;
            if interval.is_some() {
                return interval;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(start_ns: u64, end_ns: u64, reads: u64) -> Interval {
        let mut interval = Interval { start_ns, end_ns, reads, ..Interval::default() };
        (0..reads).for_each(|_| interval.read_latency.record(Nanos::new(5)));
        interval
    }

    #[test]
    fn a_period_waits_for_all_threads_and_the_rest_comes_at_the_end() {
        let mut collector = Collector::new(2, Nanos::new(10));
        collector.add(interval(0, 10, 1));
        collector.add(interval(10, 20, 2));
        assert_eq!(collector.complete(), None, "the second thread has not passed the first period");
        collector.add(interval(0, 10, 4));
        let first = collector.complete().expect("complete");
        assert_eq!((first.start_ns, first.reads, first.read_latency.count()), (0, 5, 5));
        assert_eq!(collector.complete(), None);
        collector.add(interval(20, 23, 8));
        assert_eq!(collector.next().map(|i| (i.start_ns, i.end_ns, i.reads)), Some((10, 20, 2)));
        assert_eq!(collector.next().map(|i| (i.start_ns, i.end_ns, i.reads)), Some((20, 23, 8)));
        assert_eq!(collector.next(), None);
        collector.add(interval(0, 10, 1));
        assert_eq!(collector.next(), None, "a period already delivered is not delivered twice");
    }
}
