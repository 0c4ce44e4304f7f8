//! A map from each byte of a device to the write that it holds ([`Runs`]).
//!
//! Writes are known by number; their data is not stored.

use super::Number;
use std::collections::BTreeMap;

/// Disjoint ranges by first byte, each with its end (exclusive) and its write.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs(BTreeMap<u64, (u64, Number)>);

impl Runs {
    /// The write that a byte holds.
    pub(super) fn get(&self, byte: u64) -> Option<Number> {
        let (_, &(end, number)) = self.0.range(..=byte).next_back()?;
        (byte < end).then_some(number)
    }

    /// Assigns the range `first..end` to a write. Returns the previous assignment of the range.
    pub(super) fn set(&mut self, first: u64, end: u64, number: Number) -> Runs {
        let before = self.take(first, end);
        if first < end {
            self.0.insert(first, (end, number));
        }
        before
    }

    /// Removes the range `first..end` and returns its assignment.
    pub(super) fn take(&mut self, first: u64, end: u64) -> Runs {
        self.split(first);
        self.split(end);
        let mut taken = BTreeMap::new();
        while let Some((&run, &held)) = self.0.range(first..end.max(first)).next() {
            self.0.remove(&run);
            taken.insert(run, held);
        }
        Runs(taken)
    }

    /// Exchanges the assignment of `first..end` with `other`.
    pub(super) fn exchange(&mut self, other: &mut Runs, first: u64, end: u64) {
        let (ours, theirs) = (self.take(first, end), other.take(first, end));
        self.0.extend(theirs.0);
        other.0.extend(ours.0);
    }

    /// Splits the range that contains `at`, so that no range extends across `at`.
    fn split(&mut self, at: u64) {
        let Some((_, held)) = self.0.range_mut(..at).next_back() else { return };
        let (end, number) = *held;
        if end > at {
            held.0 = at;
            self.0.insert(at, (end, number));
        }
    }
}
