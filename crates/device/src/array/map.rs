//! Translates addresses of an array to a group and an address in it.
//!
//! Chunks of a request that are consecutive on a member form one part, so a request has at most one part per group.

use super::spec::Shape;

/// The address map.
#[derive(Debug, Clone)]
pub(super) struct Map {
    chunk: u64,
    groups: u64,
    striped: bool,
    /// The start of each group in a linear array.
    begins: Vec<u64>,
    capacity: u64,
}

/// The part of a request that a group serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupPart {
    pub(super) group: usize,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl Map {
    pub(super) fn new(shape: Shape, chunk: u64, sizes: &[u64]) -> Self {
        let mut capacity = 0;
        let begins = sizes.iter().map(|size| {
            capacity += size;
            capacity - size
        });
        let begins = begins.collect();
        Map { chunk, groups: shape.groups as u64, striped: shape.striped, begins, capacity }
    }

    /// A map without addresses.
    pub(super) fn nowhere() -> Self {
        Map { chunk: 1, groups: 1, striped: false, begins: Vec::new(), capacity: 0 }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Calls `each` with the part of every group that the range overlaps, in order of address.
    #[inline]
    pub(super) fn split(&self, offset: u64, length: u64, mut each: impl FnMut(GroupPart)) {
        if length == 0 {
            return;
        }
        if self.groups == 1 {
            each(GroupPart { group: 0, offset, length });
        } else if self.striped {
            self.split_stripes(offset, length, each);
        } else {
            self.split_linear(offset, length, each);
        }
    }

    fn split_stripes(&self, offset: u64, length: u64, mut each: impl FnMut(GroupPart)) {
        let (chunk, groups) = (self.chunk, self.groups);
        let first = offset / chunk;
        let within = offset - first * chunk;
        if within + length <= chunk {
            let row = first / groups;
            let group = (first - row * groups) as usize;
            each(GroupPart { group, offset: row * chunk + within, length });
            return;
        }
        let end = offset + length;
        let last = (end - 1) / chunk;
        for index in first..=last.min(first + groups - 1) {
            let latest = index + (last - index) / groups * groups;
            let begin = index / groups * chunk + if index == first { within } else { 0 };
            let until = latest / groups * chunk + if latest == last { (end - 1) % chunk + 1 } else { chunk };
            each(GroupPart { group: (index % groups) as usize, offset: begin, length: until - begin });
        }
    }

    fn split_linear(&self, offset: u64, length: u64, mut each: impl FnMut(GroupPart)) {
        let (mut at, end) = (offset, offset + length);
        let mut group = self.begins.partition_point(|begin| *begin <= offset) - 1;
        while at < end {
            let stop = self.begins.get(group + 1).copied().unwrap_or(self.capacity).min(end);
            if stop > at {
                each(GroupPart { group, offset: at - self.begins[group], length: stop - at });
            }
            at = at.max(stop);
            group += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Group and address of one byte of a stripe, by the definition.
    fn byte(offset: u64, chunk: u64, groups: u64) -> (usize, u64) {
        let index = offset / chunk;
        ((index % groups) as usize, index / groups * chunk + offset % chunk)
    }

    #[test]
    fn groups_that_follow_one_another_meet_without_a_gap() {
        let shape = Shape { groups: 3, copies: 1, striped: false };
        let map = Map::new(shape, 8, &[10, 20, 30]);
        let mut parts = Vec::new();
        map.split(5, 40, |part| parts.push((part.group, part.offset, part.length)));
        assert_eq!(parts, [(0, 5, 5), (1, 0, 20), (2, 0, 15)]);
    }

    proptest! {
        #[test]
        fn stripes_cover_every_byte_once(chunk in 1u64..9, groups in 2u64..6, offset in 0u64..200, length in 1u64..200) {
            let shape = Shape { groups: groups as usize, copies: 1, striped: true };
            let map = Map::new(shape, chunk, &vec![400; groups as usize]);
            let mut covered = Vec::new();
            let mut parts = 0;
            map.split(offset, length, |part| {
                parts += 1;
                covered.extend((part.offset..part.offset + part.length).map(|at| (part.group, at)));
            });
            let mut wanted: Vec<_> = (offset..offset + length).map(|at| byte(at, chunk, groups)).collect();
            covered.sort_unstable();
            wanted.sort_unstable();
            prop_assert_eq!(covered, wanted);
            prop_assert!(parts <= groups);
        }
    }
}
