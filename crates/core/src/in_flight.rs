//! A priority queue of operations in flight, ordered by completion time ([`InFlight`]).
//!
//! A device that serves one request after another completes requests nearly in order. A device with several such
//! parts completes them in a few interleaved orders. The queue therefore consists of a few sorted runs. A new entry
//! goes into the first run in which its position is near the end, and the next completion is at the head of a run.
//! Both operations are cheaper than on a binary heap.

use std::collections::VecDeque;

/// Maximum number of runs. An entry that fits no run is inserted into the last one.
const RUNS: usize = 4;

/// A run accepts a new entry if fewer than this many of its entries complete later.
const NEAR: usize = 8;

#[derive(Debug)]
struct Entry<T> {
    at_ns: u64,
    /// Order of insertion, which breaks ties between equal instants.
    sequence: u64,
    what: T,
}

/// Entries ordered by instant. Entries with the same instant keep their order of insertion.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    runs: [VecDeque<Entry<T>>; RUNS],
    /// Number of runs in use.
    begun: usize,
    /// The run whose head completes first, and its instant. The instant is `u64::MAX` if the queue is empty.
    first: usize,
    first_ns: u64,
    sequence: u64,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        let runs = std::array::from_fn(|_| VecDeque::new());
        InFlight { runs, begun: 1, first: 0, first_ns: u64::MAX, sequence: 0 }
    }
}

impl<T> InFlight<T> {
    /// Completion of the first entry in nanoseconds; `u64::MAX` if the queue is empty.
    #[inline]
    pub(crate) fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// Adds an entry that completes at `at_ns`, which must be below `u64::MAX`.
    #[inline]
    pub(crate) fn push(&mut self, at_ns: u64, what: T) {
        self.sequence += 1;
        let entry = Entry { at_ns, sequence: self.sequence, what };
        let run = if place_near_end(&self.runs[0], at_ns) { 0 } else { self.run_for(at_ns) };
        let entries = &mut self.runs[run];
        let mut place = entries.len();
        while place > 0 && entries[place - 1].at_ns > at_ns {
            place -= 1;
        }
        if place == entries.len() {
            entries.push_back(entry);
        } else {
            entries.insert(place, entry);
        }
        // At equal instants, the older entry stays first.
        if at_ns < self.first_ns {
            (self.first, self.first_ns) = (run, at_ns);
        }
    }

    /// Chooses the run for an entry that does not fit run 0.
    fn run_for(&mut self, at_ns: u64) -> usize {
        let near = (1..self.begun).find(|run| place_near_end(&self.runs[*run], at_ns));
        near.unwrap_or_else(|| {
            self.begun = (self.begun + 1).min(RUNS);
            self.begun - 1
        })
    }

    /// Removes the first entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        let entry = self.runs[self.first].pop_front()?;
        if self.begun == 1 {
            self.first_ns = self.runs[0].front().map_or(u64::MAX, |head| head.at_ns);
        } else {
            self.look_for_first();
        }
        Some((entry.at_ns, entry.what))
    }

    fn look_for_first(&mut self) {
        let mut next = (u64::MAX, u64::MAX);
        self.first_ns = u64::MAX;
        for (run, entries) in self.runs[..self.begun].iter().enumerate() {
            if let Some(head) = entries.front()
                && (head.at_ns, head.sequence) < next
            {
                next = (head.at_ns, head.sequence);
                (self.first, self.first_ns) = (run, head.at_ns);
            }
        }
    }
}

/// Returns whether fewer than `NEAR` entries of a run complete after `at_ns`.
#[inline]
fn place_near_end<T>(run: &VecDeque<Entry<T>>, at_ns: u64) -> bool {
    run.len() < NEAR || run[run.len() - NEAR].at_ns <= at_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_come_by_instant_and_then_in_the_order_they_went_in(
            steps in prop::collection::vec((0u8..5, 0u64..400), 1..800),
        ) {
            let mut in_flight = InFlight::default();
            let mut wanted: Vec<(u64, usize)> = Vec::new();
            for (number, (push, at_ns)) in steps.into_iter().enumerate() {
                if push > 1 {
                    in_flight.push(at_ns, number);
                    wanted.push((at_ns, number));
                } else {
                    wanted.sort_unstable();
                    let first = (!wanted.is_empty()).then(|| wanted.remove(0));
                    prop_assert_eq!(in_flight.pop(), first);
                }
                prop_assert_eq!(in_flight.first_ns(), wanted.iter().min().map_or(u64::MAX, |first| first.0));
            }
        }
    }
}
