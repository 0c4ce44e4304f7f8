//! The buffer pool: which pages are in memory, which goes next, which were changed in what order.
//!
//! ```text
//!   young ──────────────────────┃ old ───────────┐      list of changes: by the log's position of the first one
//!     ▲ touched again            ▲ read          └─► evicted
//! ```
//!
//! Least recently used with a midpoint: a page that is read comes into the last three eighths, and to the front when it is touched
//! again a while later (at once, where that while is 0: then it is a plain list). A young page goes to the front only where it has
//! gone back a quarter of the young part since it was there (MySQL 5.5 Reference Manual, "The InnoDB Buffer Pool", and
//! `buf0lru.c`). Leaves out latches, and what is in a page.

use super::layout::Page;

/// No page, or no frame.
const NONE: u32 = u32::MAX;

/// The share of the list that is old.
const OLD: (u32, u32) = (3, 8);
/// The midpoint may be off by so many frames before it is moved.
const TOLERANCE: u32 = 20;

/// A frame of memory.
#[derive(Debug, Clone, Copy)]
struct Frame {
    page: Page,
    /// In the order of use.
    newer: u32,
    older: u32,
    /// In the order of the first change.
    later: u32,
    earlier: u32,
    /// The position of the log when it was first changed.
    changed_at: u64,
    /// Evictions until it was last put to the front.
    clock: u32,
    old: bool,
    changed: bool,
    /// It is being read or written, and stays.
    busy: bool,
    /// It is being read.
    comes: bool,
    /// Milliseconds, when it was read.
    came: u32,
}

/// Two ends of a list through frames.
#[derive(Debug, Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
}

/// What a look for a page finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It is here.
    Here(u32),
    /// It is being read.
    Coming(u32),
    /// It is not.
    Missing,
}

/// The pool.
#[derive(Debug)]
pub(super) struct Pool {
    /// By page, the frame it is in.
    places: Vec<u32>,
    frames: Vec<Frame>,
    free: Vec<u32>,
    /// The most recently used first.
    used: Ends,
    /// The newest of the old ones.
    midpoint: u32,
    length: u32,
    old: u32,
    /// The page changed last first.
    changes: Ends,
    changed: u32,
    evictions: u32,
    old_ms: u32,
}

impl Pool {
    /// An empty pool of so many frames, in which a page is old for at least so long.
    pub(super) fn new(frames: u32, old_ms: u32) -> Pool {
        let empty = Frame {
            page: NONE,
            newer: NONE,
            older: NONE,
            later: NONE,
            earlier: NONE,
            changed_at: 0,
            clock: 0,
            old: false,
            changed: false,
            busy: false,
            comes: false,
            came: 0,
        };
        let none = Ends { first: NONE, last: NONE };
        Pool {
            places: Vec::new(),
            frames: vec![empty; frames as usize],
            free: (0..frames).rev().collect(),
            used: none,
            midpoint: NONE,
            length: 0,
            old: 0,
            changes: none,
            changed: 0,
            evictions: 0,
            old_ms,
        }
    }

    /// Frames in all.
    pub(super) fn size(&self) -> u32 {
        self.frames.len() as u32
    }
    /// Frames without a page.
    pub(super) fn free(&self) -> u32 {
        self.free.len() as u32
    }
    /// Pages that were changed and not written.
    pub(super) fn changed(&self) -> u32 {
        self.changed
    }
    /// The page of a frame.
    pub(super) fn page(&self, frame: u32) -> Page {
        self.frames[frame as usize].page
    }
    /// The frame whose first change is the oldest, and the position of the log then.
    pub(super) fn oldest_change(&self) -> Option<(u32, u64)> {
        let last = self.changes.last;
        (last != NONE).then(|| (last, self.frames[last as usize].changed_at))
    }
    /// The position of the log when a frame was first changed.
    pub(super) fn changed_at(&self, frame: u32) -> u64 {
        self.frames[frame as usize].changed_at
    }
    /// The frame whose first change came next after another's.
    pub(super) fn changed_after(&self, frame: u32) -> Option<u32> {
        Some(self.frames[frame as usize].later).filter(|later| *later != NONE)
    }
    /// The frame used least recently, and the one used before a frame.
    pub(super) fn least_used(&self) -> Option<u32> {
        Some(self.used.last).filter(|last| *last != NONE)
    }
    pub(super) fn used_after(&self, frame: u32) -> Option<u32> {
        Some(self.frames[frame as usize].newer).filter(|newer| *newer != NONE)
    }
    /// Whether a frame holds changes that can be written now.
    pub(super) fn is_changed(&self, frame: u32) -> bool {
        let it = &self.frames[frame as usize];
        it.changed && !it.busy
    }
    /// Whether a frame could be evicted.
    pub(super) fn is_replaceable(&self, frame: u32) -> bool {
        let it = &self.frames[frame as usize];
        !it.changed && !it.busy
    }
    /// How many pages were evicted, and round again.
    pub(super) fn evictions(&self) -> u32 {
        self.evictions
    }
    /// Whether a frame is one of the old ones.
    pub(super) fn is_old(&self, frame: u32) -> bool {
        self.frames[frame as usize].old
    }

    /// Looks for a page.
    #[inline]
    pub(super) fn find(&self, page: Page) -> Found {
        match self.places.get(page as usize) {
            None | Some(&NONE) => Found::Missing,
            Some(&frame) => match self.frames[frame as usize] {
                Frame { comes: true, .. } => Found::Coming(frame),
                _ => Found::Here(frame),
            },
        }
    }

    /// A page is used that is here.
    #[inline]
    pub(super) fn touch(&mut self, frame: u32, now_ms: u32) {
        let it = &self.frames[frame as usize];
        let young = self.frames.len() as u32 / 8 * 5;
        let moves = match it.old {
            true => now_ms.wrapping_sub(it.came) >= self.old_ms,
            false => self.evictions.wrapping_sub(it.clock) > young / 4,
        };
        if moves {
            self.move_to_front(frame);
        }
    }

    /// Says that a frame was changed, at a position of the log.
    #[inline]
    pub(super) fn change(&mut self, frame: u32, at: u64) {
        let it = &mut self.frames[frame as usize];
        if it.changed {
            return;
        }
        it.changed = true;
        it.changed_at = at;
        (it.later, it.earlier) = (NONE, self.changes.first);
        match self.changes.first {
            NONE => self.changes.last = frame,
            first => self.frames[first as usize].later = frame,
        }
        self.changes.first = frame;
        self.changed += 1;
    }

    /// Takes the changes of a frame to be written; it stays until [`Pool::written`].
    pub(super) fn begin_write(&mut self, frame: u32) {
        self.unchange(frame);
        self.frames[frame as usize].busy = true;
    }
    /// Says that a frame was written.
    pub(super) fn written(&mut self, frame: u32) {
        self.frames[frame as usize].busy = false;
    }

    fn unchange(&mut self, frame: u32) {
        let it = &mut self.frames[frame as usize];
        debug_assert!(it.changed);
        it.changed = false;
        let (later, earlier) = (it.later, it.earlier);
        match later {
            NONE => self.changes.first = earlier,
            later => self.frames[later as usize].earlier = earlier,
        }
        match earlier {
            NONE => self.changes.last = later,
            earlier => self.frames[earlier as usize].later = later,
        }
        self.changed -= 1;
    }

    /// Puts a page into a free frame, where there is one. A page that `comes` is being read until [`Pool::arrived`].
    pub(super) fn take(&mut self, page: Page, comes: bool) -> Option<u32> {
        let frame = self.free.pop()?;
        if page as usize >= self.places.len() {
            self.places.resize(page as usize + 1, NONE);
        }
        self.places[page as usize] = frame;
        let it = &mut self.frames[frame as usize];
        (it.page, it.busy, it.comes, it.clock) = (page, comes, comes, self.evictions);
        // What is made here is young; what is read comes to the midpoint.
        if comes {
            self.push_at_midpoint(frame)
        } else {
            self.push_front(frame)
        }
        Some(frame)
    }
    /// Says that a page was read.
    pub(super) fn arrived(&mut self, frame: u32, now_ms: u32) {
        let it = &mut self.frames[frame as usize];
        (it.busy, it.comes, it.came) = (false, false, now_ms);
        if self.old_ms == 0 {
            self.move_to_front(frame);
        }
    }

    /// Frees a frame that was not changed and is not busy; whether it could.
    pub(super) fn evict(&mut self, frame: u32) -> bool {
        if !self.is_replaceable(frame) {
            return false;
        }
        let page = self.page(frame);
        self.unlink(frame);
        self.places[page as usize] = NONE;
        self.frames[frame as usize].page = NONE;
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
        let first = self.used.first;
        let it = &mut self.frames[frame as usize];
        (it.newer, it.older, it.old) = (NONE, first, false);
        match first {
            NONE => self.used.last = frame,
            first => self.frames[first as usize].newer = frame,
        }
        self.used.first = frame;
        self.length += 1;
        self.balance();
    }

    fn push_at_midpoint(&mut self, frame: u32) {
        let at = self.midpoint;
        if at == NONE {
            return self.push_front(frame);
        }
        let newer = self.frames[at as usize].newer;
        let it = &mut self.frames[frame as usize];
        (it.newer, it.older, it.old) = (newer, at, true);
        self.frames[at as usize].newer = frame;
        match newer {
            NONE => self.used.first = frame,
            newer => self.frames[newer as usize].older = frame,
        }
        self.midpoint = frame;
        self.old += 1;
        self.length += 1;
        self.balance();
    }

    fn unlink(&mut self, frame: u32) {
        let it = self.frames[frame as usize];
        if it.old {
            self.old -= 1;
            if self.midpoint == frame {
                self.midpoint = it.older;
            }
        }
        match it.newer {
            NONE => self.used.first = it.older,
            newer => self.frames[newer as usize].older = it.older,
        }
        match it.older {
            NONE => self.used.last = it.newer,
            older => self.frames[older as usize].newer = it.newer,
        }
        self.length -= 1;
    }

    /// Keeps the midpoint where it should be.
    fn balance(&mut self) {
        let wanted = self.length / OLD.1 * OLD.0;
        while self.old + TOLERANCE < wanted {
            let next = match self.midpoint {
                NONE => self.used.last,
                midpoint => self.frames[midpoint as usize].newer,
            };
            self.frames[next as usize].old = true;
            self.midpoint = next;
            self.old += 1;
        }
        while self.old > wanted + TOLERANCE {
            let midpoint = self.midpoint;
            self.frames[midpoint as usize].old = false;
            self.midpoint = self.frames[midpoint as usize].older;
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

    /// Uses a page of a full pool, which is read where it is missing.
    fn read(pool: &mut Pool, page: Page, now_ms: u32) {
        if let Found::Here(frame) = pool.find(page) {
            return pool.touch(frame, now_ms);
        }
        if pool.free() == 0 {
            let last = pool.least_used().expect("it is full");
            assert!(pool.evict(last));
        }
        let frame = pool.take(page, true).expect("one is free");
        assert_eq!(pool.find(page), Found::Coming(frame));
        pool.arrived(frame, now_ms);
    }

    /// How many of 500 pages that are used now and then stay beside four times as many that are used once.
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
        (0..500).filter(|page| matches!(pool.find(*page), Found::Here(_))).count()
    }

    #[test]
    fn what_is_read_once_does_not_push_out_what_is_used_unless_pages_are_young_at_once() {
        assert!(kept(1000) > 440, "{}", kept(1000));
        // Between two uses of a page 2000 others are read into 1000 frames.
        assert!(kept(0) < 300, "{}", kept(0));
    }

    #[test]
    fn changes_are_kept_in_the_order_in_which_they_began_whatever_is_written() {
        let (seed, mut pool) = (5, Pool::new(64, 0));
        let mut rng = Seed::new(seed).stream();
        (0..64).for_each(|page| read(&mut pool, page, 0));
        let mut model: BTreeMap<u64, u32> = BTreeMap::new();
        for at in 0..20_000u64 {
            let page = below(&mut rng, 64) as u32;
            let Found::Here(frame) = pool.find(page) else { panic!("it was read") };
            if below(&mut rng, 3) > 0 {
                if !model.values().any(|changed| *changed == frame) {
                    model.insert(at, frame);
                }
                pool.change(frame, at);
            } else if pool.is_changed(frame) {
                pool.begin_write(frame);
                assert!(!pool.evict(frame), "it is being written");
                pool.written(frame);
                model.retain(|_, changed| *changed != frame);
            }
            let oldest = model.first_key_value().map(|(at, frame)| (*frame, *at));
            assert_eq!(pool.oldest_change(), oldest, "seed {seed}");
            assert_eq!(pool.changed() as usize, model.len());
        }
    }
}
