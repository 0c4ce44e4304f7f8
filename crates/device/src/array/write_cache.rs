//! The write-back cache of an array's controller.
//!
//! It holds the ranges of each group that are not written to the members yet. They are destaged in order of address,
//! cyclically, and adjacent ranges are merged. Written data is not kept for reads.

use super::spec::WriteCacheSpec;
use crate::composite::insert;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The size limit of a merged write.
const LARGEST: u64 = 1 << 20;

/// A write in flight to the members of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Destage {
    pub(super) offset: u64,
    pub(super) end: u64,
    /// The number of copies that have not completed the write.
    left: usize,
    /// The latest completion among the other copies.
    done_ns: u64,
}

/// The waiting writes of one group.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Waiting {
    /// Ranges by their start. They neither overlap nor touch.
    ranges: BTreeMap<u64, u64>,
    sweep: u64,
    under_way: Vec<Option<Destage>>,
}

/// The cache.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct WriteCache {
    pub(super) latency_ns: u64,
    size: u64,
    depth: usize,
    used: u64,
    groups: Vec<Waiting>,
}

impl WriteCache {
    pub(super) fn new(spec: &WriteCacheSpec, groups: usize) -> Self {
        WriteCache {
            latency_ns: spec.latency.get(),
            size: spec.size.get(),
            depth: spec.depth as usize,
            used: 0,
            groups: vec![Waiting::default(); groups],
        }
    }

    /// Returns whether so many bytes fit into the free part of the cache.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.used.saturating_add(bytes) <= self.size
    }

    /// Returns whether so many bytes fit into the empty cache.
    pub(super) fn takes(&self, bytes: u64) -> bool {
        bytes <= self.size
    }

    /// Adds a range. Its overlap with waiting ranges takes no additional room.
    pub(super) fn add(&mut self, group: usize, offset: u64, length: u64) {
        let (mut begin, mut end) = (offset, offset + length);
        let ranges = &mut self.groups[group].ranges;
        let before = ranges.range(..=begin).next_back().filter(|(_, until)| **until >= begin);
        if let Some((&other, &until)) = before {
            (begin, end) = (other, end.max(until));
        }
        while let Some((&other, &until)) = ranges.range(begin..=end).next() {
            end = end.max(until);
            ranges.remove(&other);
            self.used -= until - other;
        }
        ranges.insert(begin, end);
        self.used += end - begin;
    }

    /// Drops waiting data of a range that is trimmed or written around the cache.
    pub(super) fn forget(&mut self, group: usize, offset: u64, length: u64) {
        let end = offset + length;
        let ranges = &mut self.groups[group].ranges;
        while let Some((&begin, &until)) =
            ranges.range(..end).next_back().filter(|(_, until)| **until > offset)
        {
            ranges.remove(&begin);
            if begin < offset {
                ranges.insert(begin, offset);
            }
            if until > end {
                ranges.insert(end, until);
            }
            self.used -= until.min(end) - begin.max(offset);
        }
    }

    /// Returns whether a range can be read from the cache.
    pub(super) fn holds(&self, group: usize, offset: u64, length: u64) -> bool {
        let (Waiting { ranges, under_way, .. }, end) = (&self.groups[group], offset + length);
        ranges.range(..=offset).next_back().is_some_and(|(_, until)| *until >= end)
            || under_way.iter().flatten().any(|destage| destage.offset <= offset && destage.end >= end)
    }

    /// The next write to a group, with its number, if the group may have another one in flight.
    pub(super) fn next(&mut self, group: usize, copies: usize) -> Option<(usize, Destage)> {
        let Waiting { ranges, sweep, under_way } = &mut self.groups[group];
        if under_way.iter().flatten().count() >= self.depth {
            return None;
        }
        let (&begin, &until) = ranges.range(*sweep..).next().or_else(|| ranges.iter().next())?;
        let end = until.min(begin + LARGEST);
        // An older write to the same bytes must complete first.
        if under_way.iter().flatten().any(|other| other.offset < end && begin < other.end) {
            return None;
        }
        ranges.remove(&begin);
        if until > end {
            ranges.insert(end, until);
        }
        *sweep = end;
        let destage = Destage { offset: begin, end, left: copies, done_ns: 0 };
        Some((insert(under_way, destage), destage))
    }

    /// Records that a copy completed the write at `at_ns`. Returns the latest completion if it was the last copy.
    pub(super) fn copied(&mut self, group: usize, number: usize, at_ns: u64) -> Option<u64> {
        let destage = self.groups[group].under_way[number].as_mut().expect("it is under way");
        destage.done_ns = destage.done_ns.max(at_ns);
        destage.left -= 1;
        (destage.left == 0).then_some(destage.done_ns)
    }

    /// Frees the room of a write that all copies have completed.
    pub(super) fn written(&mut self, group: usize, number: usize) {
        let destage = self.groups[group].under_way[number].take().expect("it was under way");
        self.used -= destage.end - destage.offset;
    }

    /// Drops all waiting data. Writes in flight continue.
    pub(super) fn clear(&mut self) {
        for group in 0..self.groups.len() {
            self.forget(group, 0, u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{Bytes, Nanos};

    fn cache(depth: u32) -> WriteCache {
        WriteCache::new(&WriteCacheSpec { size: Bytes::new(100), latency: Nanos::ZERO, depth }, 1)
    }

    #[test]
    fn adjacent_writes_are_one_and_addresses_rise() {
        let mut cache = cache(4);
        for (offset, length) in [(50, 10), (20, 5), (25, 5), (60, 10), (22, 4)] {
            cache.add(0, offset, length);
        }
        assert_eq!(cache.used, 30);
        let ranges = std::iter::from_fn(|| cache.next(0, 1).map(|(_, it)| (it.offset, it.end)));
        assert_eq!(ranges.collect::<Vec<_>>(), [(20, 30), (50, 70)]);
    }

    #[test]
    fn a_range_is_not_under_way_twice_and_room_comes_back() {
        let mut cache = cache(4);
        cache.add(0, 0, 60);
        let (number, _) = cache.next(0, 2).expect("one waits");
        cache.add(0, 10, 20);
        assert!(!cache.has_room(30) && cache.has_room(20));
        assert!(cache.next(0, 2).is_none(), "the older write of these bytes comes first");
        assert!(cache.holds(0, 0, 60) && cache.holds(0, 15, 5) && !cache.holds(0, 50, 20));
        assert_eq!(cache.copied(0, number, 7), None);
        assert_eq!(cache.copied(0, number, 5), Some(7));
        cache.written(0, number);
        assert_eq!(cache.used, 20);
        assert!(cache.next(0, 2).is_some());
    }

    #[test]
    fn forgetting_cuts_ranges() {
        let mut cache = cache(4);
        cache.add(0, 0, 30);
        cache.add(0, 40, 30);
        cache.forget(0, 10, 50);
        assert_eq!(cache.used, 20);
        assert!(cache.holds(0, 0, 10) && cache.holds(0, 60, 10) && !cache.holds(0, 5, 10));
        cache.clear();
        assert_eq!(cache.used, 0);
    }
}
