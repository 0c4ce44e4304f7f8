//! What is in flight, by the instant it completes ([`InFlight`]).
//!
//! A device that serves one request after another answers nearly in order, and one made of a few such parts answers in
//! a few orders mixed together. So the entries lie in a few runs, each in order: a new one goes to the first run where
//! its place is near the end, and the next to complete is at the head of one of them. That is cheaper than keeping a
//! heap's order. Leaves out what the entries mean.

use std::collections::VecDeque;

/// Runs beyond these are not begun: what fits none of them is put in its place in the last.
const RUNS: usize = 4;

/// So many entries of a run may come after a new one.
const NEAR: usize = 8;

#[derive(Debug)]
struct Entry<T> {
    at_ns: u64,
    /// Of two that complete together, the one issued first comes first.
    sequence: u64,
    what: T,
}

/// Entries by instant; of two at the same instant, the one pushed first.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    runs: [VecDeque<Entry<T>>; RUNS],
    /// Runs that were ever begun.
    begun: usize,
    /// The run whose head is first, and that instant; `u64::MAX` where nothing is in flight.
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
    /// The instant of the first; `u64::MAX` where nothing is in flight.
    #[inline]
    pub(crate) fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// Adds what completes at `at_ns`, which is before the end of time.
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
        // One at the same instant as the first comes after it.
        if at_ns < self.first_ns {
            (self.first, self.first_ns) = (run, at_ns);
        }
    }

    /// The run for an entry that does not go into the first.
    fn run_for(&mut self, at_ns: u64) -> usize {
        let near = (1..self.begun).find(|run| place_near_end(&self.runs[*run], at_ns));
        near.unwrap_or_else(|| {
            self.begun = (self.begun + 1).min(RUNS);
            self.begun - 1
        })
    }

    /// Takes the first.
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

/// Whether few entries of a run come after `at_ns`.
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
