//! The write that each byte of a device holds ([`Runs`]), as runs of bytes of one write.
//!
//! A write is identified by its number; contents are not stored.

use super::Number;
use std::collections::BTreeMap;

/// Runs of bytes by where they begin, none overlapping another: one past the last, and whose they are.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs(BTreeMap<u64, (u64, Number)>);

impl Runs {
    /// The write that a byte belongs to.
    pub(super) fn get(&self, byte: u64) -> Option<Number> {
        let (_, &(end, number)) = self.0.range(..=byte).next_back()?;
        (byte < end).then_some(number)
    }

    /// All of a range is of one write, in place of what is given back.
    pub(super) fn set(&mut self, first: u64, end: u64, number: Number) -> Runs {
        let before = self.take(first, end);
        if first < end {
            self.0.insert(first, (end, number));
        }
        before
    }

    /// Removes a range and returns it.
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

    /// Exchanges a range with the same range of `other`.
    pub(super) fn exchange(&mut self, other: &mut Runs, first: u64, end: u64) {
        let (ours, theirs) = (self.take(first, end), other.take(first, end));
        self.0.extend(theirs.0);
        other.0.extend(ours.0);
    }

    /// Lets no run reach over a byte.
    fn split(&mut self, at: u64) {
        let Some((_, held)) = self.0.range_mut(..at).next_back() else { return };
        let (end, number) = *held;
        if end > at {
            held.0 = at;
            self.0.insert(at, (end, number));
        }
    }
}
