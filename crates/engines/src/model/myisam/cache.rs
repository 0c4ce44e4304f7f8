//! What is in memory and what goes next: blocks in the key cache, pages in the page cache of the kernel.
//!
//! ```text
//!   plain:      used ──────────────────────────────────► evicted
//!   two lists:  active ─► inactive ─────────────────────► evicted
//!                  ▲ used twice ┘ ▲ read
//! ```
//!
//! The key cache is least recently used without a midpoint, as `key_cache_division_limit = 100` makes it, which is MyISAM's default
//! (MySQL 5.1 Reference Manual, "The MyISAM Key Cache"). The kernel has two lists: what is read comes to the inactive one, and to the
//! active one when it is used for the second time there; the active one gives of its end while it is the longer (`mark_page_accessed`,
//! `shrink_active_list`, Linux 2.6; Gorman, "Understanding the Linux Virtual Memory Manager", 2004, chapter 10). Leaves out zones and
//! read-ahead, which small random reads do not start.

/// No page, or no frame.
const NONE: u32 = u32::MAX;

/// How it is decided what goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Plain,
    TwoLists,
}

/// A frame of memory.
#[derive(Debug, Clone, Copy)]
struct Frame {
    page: u32,
    newer: u32,
    older: u32,
    active: bool,
    /// It was used since it came, or since it was put to the front.
    referenced: bool,
    /// It is being read.
    comes: bool,
    /// It is dirty, or being written, and stays: both may be.
    dirty: bool,
    in_write: bool,
}

#[derive(Debug, Clone, Copy)]
struct List {
    first: u32,
    last: u32,
    length: u32,
}

/// What a look for a page finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It is here.
    Here(u32),
    /// It is being read.
    Coming,
    /// It is not.
    Missing,
}

/// A cache.
#[derive(Debug)]
pub(super) struct Cache {
    order: Order,
    /// By page, the frame it is in.
    places: Vec<u32>,
    frames: Vec<Frame>,
    free: Vec<u32>,
    inactive: List,
    active: List,
    evictions: u64,
}

impl Cache {
    pub(super) fn new(frames: u32, order: Order) -> Cache {
        let empty = Frame {
            page: NONE,
            newer: NONE,
            older: NONE,
            active: false,
            referenced: false,
            comes: false,
            dirty: false,
            in_write: false,
        };
        let none = List { first: NONE, last: NONE, length: 0 };
        Cache {
            order,
            places: Vec::new(),
            frames: vec![empty; frames as usize],
            free: (0..frames).rev().collect(),
            inactive: none,
            active: none,
            evictions: 0,
        }
    }

    pub(super) fn size(&self) -> u32 {
        self.frames.len() as u32
    }
    pub(super) fn evictions(&self) -> u64 {
        self.evictions
    }

    #[inline]
    pub(super) fn find(&self, page: u32) -> Found {
        match self.places.get(page as usize) {
            None | Some(&NONE) => Found::Missing,
            Some(&frame) if self.frames[frame as usize].comes => Found::Coming,
            Some(&frame) => Found::Here(frame),
        }
    }
    fn frame(&mut self, page: u32) -> &mut Frame {
        let frame = self.places[page as usize];
        &mut self.frames[frame as usize]
    }

    /// A page is used that is here.
    #[inline]
    pub(super) fn touch(&mut self, frame: u32) {
        let Frame { active, referenced, .. } = self.frames[frame as usize];
        match self.order {
            Order::Plain => self.move_to(frame, false),
            Order::TwoLists if referenced && !active => {
                self.move_to(frame, true);
                self.frames[frame as usize].referenced = false;
            }
            Order::TwoLists => self.frames[frame as usize].referenced = true,
        }
    }

    /// Puts a page into a frame: a free one, or that of what goes next; whether there was one. A page that `comes` is being read.
    pub(super) fn take(&mut self, page: u32, comes: bool) -> bool {
        if self.free.is_empty() && !self.evict() {
            return false;
        }
        let frame = self.free.pop().expect("it was looked for");
        if page as usize >= self.places.len() {
            self.places.resize(page as usize + 1, NONE);
        }
        self.places[page as usize] = frame;
        let it = &mut self.frames[frame as usize];
        (it.page, it.comes, it.referenced) = (page, comes, false);
        self.push(frame, false);
        true
    }
    /// A page was read.
    pub(super) fn arrived(&mut self, page: u32) {
        self.frame(page).comes = false;
    }
    /// A page is dirty; whether it was not before.
    pub(super) fn soil(&mut self, frame: u32) -> bool {
        !std::mem::replace(&mut self.frames[frame as usize].dirty, true)
    }
    pub(super) fn is_dirty(&self, frame: u32) -> bool {
        self.frames[frame as usize].dirty
    }
    /// What is dirty in a page is being written, and was.
    pub(super) fn begin_write(&mut self, page: u32) {
        let it = self.frame(page);
        (it.dirty, it.in_write) = (false, true);
    }
    pub(super) fn written(&mut self, page: u32) {
        self.frame(page).in_write = false;
    }

    /// Frees the frame of what goes next. What may not go comes to the front again (`shrink_page_list`).
    fn evict(&mut self) -> bool {
        self.balance();
        for _ in 0..self.inactive.length {
            let frame = self.inactive.last;
            let it = self.frames[frame as usize];
            if it.comes || it.dirty || it.in_write {
                self.move_to(frame, false);
                continue;
            }
            self.unlink(frame);
            self.places[it.page as usize] = NONE;
            self.free.push(frame);
            self.evictions += 1;
            return true;
        }
        false
    }

    /// The active list gives of its end while it is the longer.
    fn balance(&mut self) {
        while self.active.length > self.inactive.length {
            self.move_to(self.active.last, false);
        }
    }

    fn list(&mut self, active: bool) -> &mut List {
        if active { &mut self.active } else { &mut self.inactive }
    }
    fn move_to(&mut self, frame: u32, active: bool) {
        self.unlink(frame);
        self.push(frame, active);
    }
    fn push(&mut self, frame: u32, active: bool) {
        let first = self.list(active).first;
        let it = &mut self.frames[frame as usize];
        (it.newer, it.older, it.active) = (NONE, first, active);
        match first {
            NONE => self.list(active).last = frame,
            first => self.frames[first as usize].newer = frame,
        }
        let list = self.list(active);
        list.first = frame;
        list.length += 1;
    }
    fn unlink(&mut self, frame: u32) {
        let Frame { newer, older, active, .. } = self.frames[frame as usize];
        match newer {
            NONE => self.list(active).first = older,
            newer => self.frames[newer as usize].older = older,
        }
        match older {
            NONE => self.list(active).last = newer,
            older => self.frames[older as usize].newer = newer,
        }
        self.list(active).length -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;
    use lowtide_core::rng::below;
    use std::collections::VecDeque;

    fn read(cache: &mut Cache, page: u32) {
        if cache.find(page) == Found::Missing {
            assert!(cache.take(page, true), "nothing is dirty");
            assert_eq!(cache.find(page), Found::Coming);
            cache.arrived(page);
        }
        let Found::Here(frame) = cache.find(page) else { panic!("it was read") };
        cache.touch(frame);
    }

    #[test]
    fn the_key_cache_keeps_what_was_used_last() {
        let (seed, mut cache, mut model) = (7, Cache::new(50, Order::Plain), VecDeque::new());
        let mut rng = Seed::new(seed).stream();
        for _ in 0..20_000 {
            let page = below(&mut rng, 120) as u32;
            read(&mut cache, page);
            model.retain(|other| *other != page);
            model.push_front(page);
            model.truncate(50);
            let here = (0..120).filter(|page| matches!(cache.find(*page), Found::Here(_))).count();
            assert_eq!(here, model.len(), "seed {seed}");
            assert!(model.iter().all(|page| cache.find(*page) != Found::Missing), "seed {seed}");
        }
    }

    #[test]
    fn pages_that_are_used_twice_outlast_those_that_are_read_once() {
        let mut cache = Cache::new(1000, Order::TwoLists);
        for _ in 0..2 {
            (0..400).for_each(|page| read(&mut cache, page));
        }
        (10_000..20_000).for_each(|page| read(&mut cache, page));
        assert!((0..400).all(|page| cache.find(page) != Found::Missing), "the active half stays");
        // More of them than half: the active list gives of its end.
        for _ in 0..2 {
            (0..900).for_each(|page| read(&mut cache, page));
        }
        (20_000..30_000).for_each(|page| read(&mut cache, page));
        let kept = (0..900).filter(|page| cache.find(*page) != Found::Missing).count();
        assert!((400..=501).contains(&kept), "{kept}");
    }

    #[test]
    fn what_is_dirty_or_being_written_stays() {
        let mut cache = Cache::new(10, Order::TwoLists);
        (0..10).for_each(|page| read(&mut cache, page));
        for page in 0..10 {
            let Found::Here(frame) = cache.find(page) else { panic!("it was read") };
            assert!(cache.soil(frame) && !cache.soil(frame));
        }
        assert!(!cache.take(50, true));
        cache.begin_write(3);
        assert!(!cache.take(50, true));
        cache.written(3);
        assert!(cache.take(50, true));
        assert_eq!(cache.find(3), Found::Missing);
    }
}
