//! The buffer pool: pages in memory, the LRU list and the list of dirty pages.
//!
//! ```text
//!   young ──────────────────────┃ old ───────────┐      dirty list: by the LSN of the first change
//!     ▲ touched again            ▲ read          └─► evicted
//! ```
//!
//! The LRU list has a midpoint. A page that is read enters at the head of the old part, which is three eighths of the
//! list. It moves to the front of the list when it is used again after at least `old_ms`; with 0, any later use
//! suffices. A young page moves to the front only after a quarter of the young part has passed it (MySQL 5.5
//! Reference Manual, "The InnoDB Buffer Pool", and `buf0lru.c`).
//!
//! # Not modelled
//! Page latches and page contents.

use super::layout::Page;
use crate::model::frames::{List, Lookup, PageTable};

/// The old part as a fraction of the list.
const OLD: (u32, u32) = (3, 8);
/// Tolerance of the old part's length, in frames.
const TOLERANCE: u32 = 20;

/// A frame of memory.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    page: Page,
    /// LSN of the first change.
    first_lsn: u64,
    /// Eviction count at the time when the frame last moved to the front.
    clock: u32,
    old: bool,
    dirty: bool,
    /// The frame is being read or written and cannot be evicted.
    busy: bool,
    reading: bool,
    /// Time at which the page was read, in milliseconds.
    read_ms: u32,
}

/// The buffer pool.
#[derive(Debug)]
pub(super) struct Pool {
    table: PageTable,
    frames: Vec<Frame>,
    free: Vec<u32>,
    /// Frames by last use.
    lru: List,
    /// The newest old frame.
    midpoint: Option<u32>,
    /// Number of old frames.
    old: u32,
    /// Dirty frames by first change.
    dirty: List,
    evictions: u32,
    old_ms: u32,
}

impl Pool {
    /// Creates an empty pool of `frames` frames, in which a page stays old for at least `old_ms` milliseconds.
    pub(super) fn new(frames: u32, old_ms: u32) -> Pool {
        Pool {
            table: PageTable::default(),
            frames: vec![Frame::default(); frames as usize],
            free: (0..frames).rev().collect(),
            lru: List::new(frames),
            midpoint: None,
            old: 0,
            dirty: List::new(frames),
            evictions: 0,
            old_ms,
        }
    }

    /// Number of frames.
    pub(super) fn size(&self) -> u32 {
        self.frames.len() as u32
    }
    /// Number of frames without a page.
    pub(super) fn free(&self) -> u32 {
        self.free.len() as u32
    }
    /// Number of dirty pages.
    pub(super) fn dirty(&self) -> u32 {
        self.dirty.len()
    }
    /// The page in a frame.
    pub(super) fn page(&self, frame: u32) -> Page {
        self.frames[frame as usize].page
    }
    /// The frame with the oldest change, and the LSN of that change.
    pub(super) fn oldest_dirty(&self) -> Option<(u32, u64)> {
        self.dirty.last().map(|frame| (frame, self.first_lsn(frame)))
    }
    /// LSN of the first change of a frame since its last write.
    pub(super) fn first_lsn(&self, frame: u32) -> u64 {
        self.frames[frame as usize].first_lsn
    }
    /// The dirty frame after `frame`, in the order of first changes.
    pub(super) fn next_dirty(&self, frame: u32) -> Option<u32> {
        self.dirty.newer(frame)
    }
    /// The least recently used frame.
    pub(super) fn lru_tail(&self) -> Option<u32> {
        self.lru.last()
    }
    /// The next more recently used frame.
    pub(super) fn lru_newer(&self, frame: u32) -> Option<u32> {
        self.lru.newer(frame)
    }
    /// Returns true if a frame is dirty and can be written now.
    pub(super) fn is_flushable(&self, frame: u32) -> bool {
        let frame = &self.frames[frame as usize];
        frame.dirty && !frame.busy
    }
    /// Returns true if a frame can be evicted.
    pub(super) fn is_replaceable(&self, frame: u32) -> bool {
        let frame = &self.frames[frame as usize];
        !frame.dirty && !frame.busy
    }
    /// Number of evictions, modulo 2³².
    pub(super) fn evictions(&self) -> u32 {
        self.evictions
    }
    pub(super) fn is_old(&self, frame: u32) -> bool {
        self.frames[frame as usize].old
    }

    /// Looks up a page.
    #[inline]
    pub(super) fn find(&self, page: Page) -> Lookup {
        match self.table.get(page) {
            None => Lookup::Absent,
            Some(frame) if self.frames[frame as usize].reading => Lookup::Reading(frame),
            Some(frame) => Lookup::Resident(frame),
        }
    }

    /// Records a use of a frame.
    #[inline]
    pub(super) fn touch(&mut self, frame: u32, now_ms: u32) {
        let it = &self.frames[frame as usize];
        let young = self.frames.len() as u32 / 8 * 5;
        let moves = match it.old {
            true => now_ms.wrapping_sub(it.read_ms) >= self.old_ms,
            false => self.evictions.wrapping_sub(it.clock) > young / 4,
        };
        if moves {
            self.move_to_front(frame);
        }
    }

    /// Records a change of a frame at an LSN.
    #[inline]
    pub(super) fn mark_dirty(&mut self, frame: u32, lsn: u64) {
        let it = &mut self.frames[frame as usize];
        if !it.dirty {
            (it.dirty, it.first_lsn) = (true, lsn);
            self.dirty.push_front(frame);
        }
    }

    /// Begins to write a dirty frame, which stays busy until [`Pool::written`].
    pub(super) fn begin_write(&mut self, frame: u32) {
        let it = &mut self.frames[frame as usize];
        debug_assert!(it.dirty);
        (it.dirty, it.busy) = (false, true);
        self.dirty.unlink(frame);
    }
    /// Ends the write of a frame.
    pub(super) fn written(&mut self, frame: u32) {
        self.frames[frame as usize].busy = false;
    }

    /// Puts a page into a free frame; `None` if no frame is free. If `reading`, the frame stays busy until
    /// [`Pool::arrived`].
    pub(super) fn take(&mut self, page: Page, reading: bool) -> Option<u32> {
        let frame = self.free.pop()?;
        self.table.insert(page, frame);
        let it = &mut self.frames[frame as usize];
        (it.page, it.busy, it.reading, it.clock) = (page, reading, reading, self.evictions);
        // A created page is young; a page that is read enters at the midpoint.
        match self.midpoint.filter(|_| reading) {
            None => self.push_front(frame),
            Some(midpoint) => {
                self.lru.insert_before(midpoint, frame);
                self.frames[frame as usize].old = true;
                self.midpoint = Some(frame);
                self.old += 1;
                self.balance();
            }
        }
        Some(frame)
    }
    /// Ends the read of a frame.
    pub(super) fn arrived(&mut self, frame: u32, now_ms: u32) {
        let it = &mut self.frames[frame as usize];
        (it.busy, it.reading, it.read_ms) = (false, false, now_ms);
        if self.old_ms == 0 {
            self.move_to_front(frame);
        }
    }

    /// Evicts the page of a frame. Returns false if the frame is dirty or busy.
    pub(super) fn evict(&mut self, frame: u32) -> bool {
        if !self.is_replaceable(frame) {
            return false;
        }
        self.unlink(frame);
        self.table.remove(self.page(frame));
        self.free.push(frame);
        self.evictions = self.evictions.wrapping_add(1);
        true
    }

    fn move_to_front(&mut self, frame: u32) {
        self.unlink(frame);
        self.push_front(frame);
        self.frames[frame as usize].clock = self.evictions;
    }

    fn push_front(&mut self, frame: u32) {
        self.lru.push_front(frame);
        self.frames[frame as usize].old = false;
        self.balance();
    }

    fn unlink(&mut self, frame: u32) {
        if self.frames[frame as usize].old {
            self.old -= 1;
            if self.midpoint == Some(frame) {
                self.midpoint = self.lru.older(frame);
            }
        }
        self.lru.unlink(frame);
    }

    /// Moves the midpoint until the length of the old part is within the tolerance.
    fn balance(&mut self) {
        let wanted = self.lru.len() / OLD.1 * OLD.0;
        while self.old + TOLERANCE < wanted {
            let next = self.midpoint.map_or(self.lru.last(), |midpoint| self.lru.newer(midpoint));
            let next = next.expect("the list has more frames than are old");
            self.frames[next as usize].old = true;
            self.midpoint = Some(next);
            self.old += 1;
        }
        while self.old > wanted + TOLERANCE {
            let midpoint = self.midpoint.expect("some frames are old");
            self.frames[midpoint as usize].old = false;
            self.midpoint = self.lru.older(midpoint);
            self.old -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;
    use lowtide_core::rng::below;
    use std::collections::BTreeMap;

    /// Uses a page of a full pool. Reads the page if it is absent.
    fn read(pool: &mut Pool, page: Page, now_ms: u32) {
        if let Lookup::Resident(frame) = pool.find(page) {
            return pool.touch(frame, now_ms);
        }
        if pool.free() == 0 {
            let last = pool.lru_tail().expect("the pool is full");
            assert!(pool.evict(last));
        }
        let frame = pool.take(page, true).expect("one is free");
        assert_eq!(pool.find(page), Lookup::Reading(frame));
        pool.arrived(frame, now_ms);
    }

    /// Number of 500 regularly used pages that stay in memory during a scan with four times as many reads.
    fn kept(old_ms: u32) -> usize {
        let mut pool = Pool::new(1000, old_ms);
        for round in 0..20 {
            (0..500).for_each(|page| read(&mut pool, page, round * 2000));
        }
        for scan in 0..100_000 {
            read(&mut pool, 10_000 + scan, 40_000 + scan);
            if scan % 4 == 0 {
                read(&mut pool, scan / 4 % 500, 40_000 + scan);
            }
        }
        (0..500).filter(|page| matches!(pool.find(*page), Lookup::Resident(_))).count()
    }

    #[test]
    fn a_scan_does_not_evict_pages_in_use_unless_pages_are_young_at_once() {
        assert!(kept(1000) > 440, "{}", kept(1000));
        // Between two uses of a page, 2000 other pages are read into 1000 frames.
        assert!(kept(0) < 300, "{}", kept(0));
    }

    #[test]
    fn dirty_pages_are_listed_by_first_change_whichever_are_written() {
        let (seed, mut pool) = (5, Pool::new(64, 0));
        let mut rng = Seed::new(seed).stream();
        (0..64).for_each(|page| read(&mut pool, page, 0));
        let mut model: BTreeMap<u64, u32> = BTreeMap::new();
        for lsn in 0..20_000u64 {
            let page = below(&mut rng, 64) as u32;
            let Lookup::Resident(frame) = pool.find(page) else { panic!("page {page} was read") };
            if below(&mut rng, 3) > 0 {
                if !model.values().any(|dirty| *dirty == frame) {
                    model.insert(lsn, frame);
                }
                pool.mark_dirty(frame, lsn);
            } else if pool.is_flushable(frame) {
                pool.begin_write(frame);
                assert!(!pool.evict(frame), "the frame is being written");
                pool.written(frame);
                model.retain(|_, dirty| *dirty != frame);
            }
            let oldest = model.first_key_value().map(|(lsn, frame)| (*frame, *lsn));
            assert_eq!(pool.oldest_dirty(), oldest, "seed {seed}");
            assert_eq!(pool.dirty() as usize, model.len());
        }
    }
}
