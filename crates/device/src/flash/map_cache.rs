//! The cache of a demand-paged mapping table (after DFTL, Gupta et al. 2009).
//!
//! Replacement is CLOCK. A miss costs a NAND read; the eviction of a dirty page costs a write.
//!
//! # Not modelled
//! The positions of map pages in NAND: their space is assumed to be separate and cleaned at no cost. Map updates of
//! garbage collection for pages that are not in memory: they are assumed to be journalled and merged later.

use serde::{Deserialize, Serialize};

/// The cost of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lookup {
    pub(super) missed: bool,
    pub(super) wrote_back: bool,
}

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;
const REFERENCED: u8 = 2;
const DIRTY: u8 = 4;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MapCache {
    state: Vec<u8>,
    frames: Vec<u32>,
    capacity: usize,
    hand: usize,
    entries_per_page: u32,
}

impl MapCache {
    /// A cache of `cache_pages` of the `map_pages` pages of the table; `None` if the whole table fits.
    pub(super) fn new(map_pages: u64, cache_pages: u64, entries_per_page: u32) -> Option<Self> {
        (cache_pages < map_pages).then(|| MapCache {
            state: vec![ABSENT; map_pages as usize],
            frames: Vec::with_capacity(cache_pages.max(1) as usize),
            capacity: cache_pages.max(1) as usize,
            hand: 0,
            entries_per_page,
        })
    }

    /// The page of the table that holds the entry of a logical unit.
    #[inline]
    pub(super) fn page_of(&self, logical: u32) -> u32 {
        logical / self.entries_per_page
    }

    /// Loads a page if it is not in memory, and marks it dirty if `dirty`.
    #[inline]
    pub(super) fn touch(&mut self, page: u32, dirty: bool) -> Lookup {
        let mark = REFERENCED | if dirty { DIRTY } else { 0 };
        let state = &mut self.state[page as usize];
        if *state != ABSENT {
            *state |= mark;
            return Lookup { missed: false, wrote_back: false };
        }
        *state = PRESENT | mark;
        if self.frames.len() < self.capacity {
            self.frames.push(page);
            return Lookup { missed: true, wrote_back: false };
        }
        loop {
            let victim = self.frames[self.hand];
            let state = &mut self.state[victim as usize];
            if *state & REFERENCED == 0 {
                let wrote_back = *state & DIRTY != 0;
                *state = ABSENT;
                self.frames[self.hand] = page;
                self.advance();
                return Lookup { missed: true, wrote_back };
            }
            *state &= !REFERENCED;
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.hand = if self.hand + 1 == self.frames.len() { 0 } else { self.hand + 1 };
    }

    /// Clears everything, for a secure erase.
    pub(super) fn clear(&mut self) {
        self.state.fill(ABSENT);
        self.frames.clear();
        self.hand = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;
    use lowtide_core::rng::below;

    #[test]
    fn uniform_accesses_miss_in_proportion_to_what_does_not_fit() {
        let seed = 5;
        let mut rng = Seed::new(seed).stream();
        let mut cache = MapCache::new(1000, 300, 1024).expect("does not fit");
        (0..10_000).for_each(|_| {
            cache.touch(below(&mut rng, 1000) as u32, true);
        });
        let misses = (0..100_000).filter(|_| cache.touch(below(&mut rng, 1000) as u32, true).missed).count();
        assert!((misses as f64 / 100_000.0 - 0.7).abs() < 0.01, "seed {seed}: {misses}");
    }

    #[test]
    fn only_changed_pages_are_written_back() {
        let mut cache = MapCache::new(10, 2, 1024).expect("does not fit");
        cache.touch(0, false);
        cache.touch(1, true);
        assert_eq!(cache.touch(2, false), Lookup { missed: true, wrote_back: false });
        assert_eq!(cache.touch(3, false), Lookup { missed: true, wrote_back: true });
        assert!(MapCache::new(10, 10, 1024).is_none());
    }
}
