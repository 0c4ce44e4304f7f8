//! The remaining range of a write after parts of it were durably overwritten ([`Left`]).
//!
//! A range without holes needs no allocation.

/// A range of bytes with holes.
#[derive(Debug, Clone, Default)]
pub(super) struct Left {
    first: u64,
    end: u64,
    /// Sorted, within the range, and not touching one another.
    holes: Vec<(u64, u64)>,
}

impl Left {
    pub(super) fn whole(first: u64, end: u64) -> Self {
        Left { first, end, holes: Vec::new() }
    }

    /// First byte of the range, and one past the last, holes or not.
    pub(super) fn range(&self) -> (u64, u64) {
        (self.first, self.end)
    }

    /// Removes bytes; returns the number that had remained.
    pub(super) fn cut(&mut self, first: u64, end: u64) -> u64 {
        let (mut first, mut end) = (first.max(self.first), end.min(self.end));
        if first >= end {
            return 0;
        }
        // The holes that the new one touches are one with it.
        let from = self.holes.partition_point(|hole| hole.1 < first);
        let to = self.holes.partition_point(|hole| hole.0 <= end);
        let touched = &self.holes[from..to];
        let gone: u64 = touched.iter().map(|hole| hole.1.min(end).saturating_sub(hole.0.max(first))).sum();
        let removed = end - first - gone;
        if let (Some(one), Some(other)) = (touched.first(), touched.last()) {
            (first, end) = (first.min(one.0), end.max(other.1));
        }
        self.holes.splice(from..to, [(first, end)]);
        removed
    }

    /// The pieces that are left between two bytes: first, and one past the last.
    pub(super) fn pieces(&self, first: u64, end: u64, mut each: impl FnMut(u64, u64)) {
        let (mut at, end) = (first.max(self.first), end.min(self.end));
        for hole in &self.holes[self.holes.partition_point(|hole| hole.1 <= at)..] {
            if hole.0 >= end {
                break;
            }
            if at < hole.0 {
                each(at, hole.0);
            }
            at = hole.1;
        }
        if at < end {
            each(at, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_left_is_what_no_cut_covered(cuts in prop::collection::vec((0u64..24, 0u64..24), 0..8)) {
            let mut left = Left::whole(4, 20);
            let mut plain: Vec<bool> = (0..24).map(|byte| (4..20).contains(&byte)).collect();
            for (first, end) in cuts {
                let before = plain.iter().filter(|it| **it).count();
                plain.iter_mut().take(end as usize).skip(first as usize).for_each(|it| *it = false);
                let removed = left.cut(first, end);
                prop_assert_eq!(removed as usize, before - plain.iter().filter(|it| **it).count());
                let mut seen = vec![false; 24];
                left.pieces(0, 24, |a, b| seen[a as usize..b as usize].fill(true));
                prop_assert_eq!(&seen, &plain);
                prop_assert!(left.holes.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
