//! Caches of blocks and pages: MyISAM's key cache and the kernel's page cache.
//!
//! ```text
//!   plain:      used ──────────────────────────────────► evicted
//!   two lists:  active ─► inactive ─────────────────────► evicted
//!                  ▲ used twice ┘ ▲ read
//! ```
//!
//! The key cache is a plain LRU list without a midpoint, as with `key_cache_division_limit = 100`, MyISAM's default
//! (MySQL 5.1 Reference Manual, "The MyISAM Key Cache"). The page cache has two lists. A page that is read enters the
//! inactive list and moves to the active list at its second use. While the active list is longer than the inactive
//! list, pages move from its tail to the inactive list (`mark_page_accessed`, `shrink_active_list`, Linux 2.6;
//! Gorman, "Understanding the Linux Virtual Memory Manager", 2004, chapter 10).
//!
//! # Not modelled
//! Memory zones. Read-ahead, which small random reads do not trigger.

use crate::model::frames::{List, Lookup, PageTable};

/// Replacement policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Plain,
    TwoLists,
}

/// A frame of memory.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    page: u32,
    active: bool,
    /// `true` if the page was used since it was read or moved to the front.
    referenced: bool,
    reading: bool,
    /// `true` if the page is dirty. A page can become dirty again while it is being written.
    dirty: bool,
    writing: bool,
}

/// A cache of pages or of index blocks.
#[derive(Debug)]
pub(super) struct Cache {
    order: Order,
    table: PageTable,
    frames: Vec<Frame>,
    free: Vec<u32>,
    inactive: List,
    active: List,
    evictions: u64,
}

impl Cache {
    pub(super) fn new(frames: u32, order: Order) -> Cache {
        Cache {
            order,
            table: PageTable::default(),
            frames: vec![Frame::default(); frames as usize],
            free: (0..frames).rev().collect(),
            inactive: List::new(frames),
            active: List::new(frames),
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
    pub(super) fn find(&self, page: u32) -> Lookup {
        match self.table.get(page) {
            None => Lookup::Absent,
            Some(frame) if self.frames[frame as usize].reading => Lookup::Reading(frame),
            Some(frame) => Lookup::Resident(frame),
        }
    }
    fn frame(&mut self, page: u32) -> &mut Frame {
        let frame = self.table.get(page).expect("the page is in memory");
        &mut self.frames[frame as usize]
    }

    /// Records a use of a frame.
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

    /// Puts a page into a frame. Evicts another page if no frame is free, and returns false if no page can be
    /// evicted. If `reading`, the page cannot be evicted until [`Cache::arrived`].
    pub(super) fn take(&mut self, page: u32, reading: bool) -> bool {
        if self.free.is_empty() && !self.evict() {
            return false;
        }
        let frame = self.free.pop().expect("a frame is free or was freed");
        self.table.insert(page, frame);
        let it = &mut self.frames[frame as usize];
        (it.page, it.reading, it.referenced) = (page, reading, false);
        self.push(frame, false);
        true
    }
    /// Ends the read of a page.
    pub(super) fn arrived(&mut self, page: u32) {
        self.frame(page).reading = false;
    }
    /// Marks a frame dirty. Returns false if the frame was already dirty.
    pub(super) fn mark_dirty(&mut self, frame: u32) -> bool {
        !std::mem::replace(&mut self.frames[frame as usize].dirty, true)
    }
    pub(super) fn is_dirty(&self, frame: u32) -> bool {
        self.frames[frame as usize].dirty
    }
    /// Begins to write a dirty page.
    pub(super) fn begin_write(&mut self, page: u32) {
        let it = self.frame(page);
        (it.dirty, it.writing) = (false, true);
    }
    /// Ends the write of a page.
    pub(super) fn written(&mut self, page: u32) {
        self.frame(page).writing = false;
    }

    /// Evicts the oldest inactive page that can be evicted. Pages that cannot be evicted move to the front
    /// (`shrink_page_list`).
    fn evict(&mut self) -> bool {
        while self.active.len() > self.inactive.len() {
            let tail = self.active.last().expect("the list is not empty");
            self.move_to(tail, false);
        }
        for _ in 0..self.inactive.len() {
            let frame = self.inactive.last().expect("the list is not empty");
            let it = self.frames[frame as usize];
            if it.reading || it.dirty || it.writing {
                self.move_to(frame, false);
                continue;
            }
            self.inactive.unlink(frame);
            self.table.remove(it.page);
            self.free.push(frame);
            self.evictions += 1;
            return true;
        }
        false
    }

    fn list(&mut self, active: bool) -> &mut List {
        if active { &mut self.active } else { &mut self.inactive }
    }
    fn move_to(&mut self, frame: u32, active: bool) {
        let from = self.frames[frame as usize].active;
        self.list(from).unlink(frame);
        self.push(frame, active);
    }
    fn push(&mut self, frame: u32, active: bool) {
        self.frames[frame as usize].active = active;
        self.list(active).push_front(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;
    use lowtide_core::rng::below;
    use std::collections::VecDeque;

    fn read(cache: &mut Cache, page: u32) {
        if cache.find(page) == Lookup::Absent {
            assert!(cache.take(page, true), "nothing is dirty");
            assert!(matches!(cache.find(page), Lookup::Reading(_)));
            cache.arrived(page);
        }
        let Lookup::Resident(frame) = cache.find(page) else { panic!("page {page} was read") };
        cache.touch(frame);
    }

    #[test]
    fn the_key_cache_keeps_the_pages_used_last() {
        let (seed, mut cache, mut model) = (7, Cache::new(50, Order::Plain), VecDeque::new());
        let mut rng = Seed::new(seed).stream();
        for _ in 0..20_000 {
            let page = below(&mut rng, 120) as u32;
            read(&mut cache, page);
            model.retain(|other| *other != page);
            model.push_front(page);
            model.truncate(50);
            let here = (0..120).filter(|page| matches!(cache.find(*page), Lookup::Resident(_))).count();
            assert_eq!(here, model.len(), "seed {seed}");
            assert!(model.iter().all(|page| cache.find(*page) != Lookup::Absent), "seed {seed}");
        }
    }

    #[test]
    fn pages_used_twice_outlast_pages_read_once() {
        let mut cache = Cache::new(1000, Order::TwoLists);
        for _ in 0..2 {
            (0..400).for_each(|page| read(&mut cache, page));
        }
        (10_000..20_000).for_each(|page| read(&mut cache, page));
        assert!((0..400).all(|page| cache.find(page) != Lookup::Absent), "the active half stays");
        // The pages in use exceed half of memory, so the active list moves its tail to the inactive list.
        for _ in 0..2 {
            (0..900).for_each(|page| read(&mut cache, page));
        }
        (20_000..30_000).for_each(|page| read(&mut cache, page));
        let kept = (0..900).filter(|page| cache.find(*page) != Lookup::Absent).count();
        assert!((400..=501).contains(&kept), "{kept}");
    }

    #[test]
    fn dirty_pages_and_pages_being_written_stay() {
        let mut cache = Cache::new(10, Order::TwoLists);
        (0..10).for_each(|page| read(&mut cache, page));
        for page in 0..10 {
            let Lookup::Resident(frame) = cache.find(page) else { panic!("page {page} was read") };
            assert!(cache.mark_dirty(frame) && !cache.mark_dirty(frame));
        }
        assert!(!cache.take(50, true));
        cache.begin_write(3);
        assert!(!cache.take(50, true));
        cache.written(3);
        assert!(cache.take(50, true));
        assert_eq!(cache.find(3), Lookup::Absent);
    }
}
