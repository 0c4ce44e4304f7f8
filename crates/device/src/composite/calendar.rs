//! A resource that serves one user at a time and is booked ahead, such as a link shared by several devices.
//!
//! Members complete at instants in the future, and not in order. With a single busy-until time, an early transfer
//! would wait for a later transfer that was booked before it. The calendar therefore keeps the bookings and fills
//! gaps between them.
//!
//! # Not modelled
//! Preemption: transfers are not divided.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Bookings of a resource, in order and without overlaps.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Calendar {
    booked: VecDeque<(u64, u64)>,
}

impl Calendar {
    /// Books `length` nanoseconds in the first gap from `earliest` on. Returns the end of the booking. No later call
    /// books anything before `now`, so bookings that end by then are dropped.
    pub(crate) fn book(&mut self, now: u64, earliest: u64, length: u64) -> u64 {
        if length == 0 {
            return earliest;
        }
        while self.booked.front().is_some_and(|&(_, end)| end <= now) {
            self.booked.pop_front();
        }
        // Bookings that end by `earliest` do not matter. Most new bookings are at the end.
        let mut at = self.booked.len();
        while at > 0 && self.booked[at - 1].1 > earliest {
            at -= 1;
        }
        let mut begin = earliest;
        while at < self.booked.len() && self.booked[at].0 < begin + length {
            begin = begin.max(self.booked[at].1);
            at += 1;
        }
        let end = begin + length;
        // Adjacent bookings are merged, so that the list of a busy link stays short.
        let touches_before = at > 0 && self.booked[at - 1].1 == begin;
        let touches_after = at < self.booked.len() && self.booked[at].0 == end;
        match (touches_before, touches_after) {
            (true, true) => {
                self.booked[at - 1].1 = self.booked[at].1;
                self.booked.remove(at);
            }
            (true, false) => self.booked[at - 1].1 = end,
            (false, true) => self.booked[at].0 = begin,
            (false, false) => self.booked.insert(at, (begin, end)),
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn gaps_are_used() {
        let mut link = Calendar::default();
        assert_eq!(link.book(0, 100, 10), 110);
        assert_eq!(link.book(0, 0, 10), 10, "free before the booking");
        assert_eq!(link.book(0, 95, 10), 120, "a gap too short is passed over");
        assert_eq!(link.book(0, 0, 85), 95);
        assert_eq!(link.booked, [(0, 95), (100, 120)]);
        assert_eq!(link.book(0, 0, 5), 100, "the gap just fits");
        assert_eq!(link.booked, [(0, 120)]);
        assert_eq!(link.book(200, 200, 5), 205);
        assert_eq!(link.booked, [(200, 205)], "the past is forgotten");
    }

    proptest! {
        #[test]
        fn nothing_overlaps_and_nothing_begins_early(bookings in prop::collection::vec((0u64..500, 0u64..20), 1..100)) {
            let mut link = Calendar::default();
            let mut taken = Vec::new();
            for (earliest, length) in bookings {
                let end = link.book(0, earliest, length);
                prop_assert!(end >= earliest + length);
                if length > 0 {
                    taken.push((end - length, end));
                }
            }
            taken.sort_unstable();
            prop_assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{:?}", taken);
        }
    }
}
