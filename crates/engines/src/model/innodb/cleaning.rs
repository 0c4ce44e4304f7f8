//! Flushing of dirty pages: [`Cleaner`] chooses the pages, and a [`Batch`] is a group of pages written together
//! through the doublewrite buffer.
//!
//! ```text
//!   by checkpoint age ─┐
//!                      ├─► queue ─► batch of 120: doublewrite ─► flush ─► pages, neighbours together ─► flush
//!   by LRU list ───────┘
//! ```
//!
//! A batch ends with a sync of every data file, one after another (`fil_flush_file_spaces`). Each sync
//! commits to the filesystem's journal if the server uses `fsync`, and flushes the drive.
//!
//! Sources: `buf0flu.c`, `srv0srv.c` and `buf0dblwr.c` of MySQL 5.5 and 5.6; "Configuring Buffer Pool
//! Flushing", MySQL 5.6 Reference Manual.
//!
//! # Not modelled
//!
//! In InnoDB a page cannot be changed while it is being written. The model allows the change.

use super::layout::{EXTENT, Page};
use super::pool::Pool;
use super::settings::{Cleaner as Style, InnodbSettings};
use crate::model::frames::Lookup;
use std::collections::VecDeque;

/// Pages of a batch (`srv_doublewrite_batch_size`).
pub(super) const BATCH: usize = 120;

/// Frames at the LRU tail that are searched for a replaceable frame (`buf_LRU_search_free_block`).
pub(super) const SEARCHED: u32 = 100;

/// Frames at the LRU tail that a terminal scans after a read (`BUF_LRU_FREE_SEARCH_LEN`).
const SCANNED: u32 = 133;
/// If fewer than `MARGIN` of the scanned frames are replaceable (`BUF_FLUSH_FREE_BLOCK_MARGIN`), the terminal flushes
/// pages and waits for the flush. Afterwards `KEPT_CLEAN` frames are replaceable (`BUF_FLUSH_EXTRA_MARGIN` more).
const MARGIN: u32 = 69;
const KEPT_CLEAN: u32 = 186;

/// Number of free frames that the page cleaner maintains (`innodb_lru_scan_depth`). It frees frames when fewer than
/// half of this number are free.
const SCAN_DEPTH: u32 = 1536;

/// Lower bound of the default of `innodb_io_capacity_max`, which is twice `innodb_io_capacity`.
const MIN_IO_CAPACITY_MAX: f64 = 2000.0;

/// Seconds over which the growth of the log is averaged.
const AVERAGE: f64 = 20.0;

/// Choice of the pages to flush.
#[derive(Debug)]
pub(super) struct Cleaner {
    style: Style,
    neighbours: bool,
    io_capacity: f64,
    max_dirty: f64,
    /// Queued pages. `queue` has pages flushed for the checkpoint age; `urgent` has pages flushed from the LRU list,
    /// for which a terminal may wait.
    queue: VecDeque<u32>,
    urgent: VecDeque<u32>,
    queued: Vec<Queued>,
    /// For each frame, `true` if its page is to be evicted after the write. `evicting` counts these frames.
    evict_after: Vec<bool>,
    evicting: u32,
    /// Number of replaceable frames found by the last scan. `evictions_at_scan` is the eviction count at that time.
    replaceable: u32,
    evictions_at_scan: u32,
    /// Frames scanned since the last call of [`Cleaner::take_scanned`].
    scanned: u64,
    /// LSN at the last whole second. `growth` is the growth of the log in bytes per second.
    lsn: u64,
    growth: f64,
    /// Average rate of LRU flushes in pages per second, and number of LRU flushes in the current second.
    lru_rate: f64,
    lru_flushes: u32,
    /// Fraction of a page carried over from the last tick.
    fraction: f64,
    average: f64,
}

/// The queue of a frame. A queued frame that becomes urgent is in both queues and is written with the urgent frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Queued {
    No,
    Yes,
    Urgently,
}

/// A batch of pages that are written together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) frames: Vec<u32>,
    /// Runs of contiguous pages: first page and length.
    pub(super) runs: Vec<(Page, u32)>,
    /// Index of the next run to write, and number of runs in flight.
    pub(super) next: usize,
    pub(super) in_flight: u32,
    /// LSN of the oldest change in the batch.
    pub(super) oldest: u64,
    /// Number of data files synced so far.
    pub(super) synced: u32,
}

impl Cleaner {
    pub(super) fn new(model: &InnodbSettings) -> Cleaner {
        Cleaner {
            style: model.cleaner,
            neighbours: model.neighbours,
            io_capacity: f64::from(model.io_capacity),
            max_dirty: model.max_dirty,
            queue: VecDeque::new(),
            urgent: VecDeque::new(),
            queued: vec![Queued::No; model.frames() as usize],
            evict_after: vec![false; model.frames() as usize],
            evicting: 0,
            replaceable: 0,
            evictions_at_scan: 0,
            scanned: 0,
            lsn: 0,
            growth: 0.0,
            lru_rate: 0.0,
            lru_flushes: 0,
            fraction: 0.0,
            average: 0.0,
        }
    }

    /// Called every 100 ms. The LSN, the checkpoint age, the age limit for asynchronous flushing and the redo capacity
    /// decide how many dirty pages are flushed.
    pub(super) fn tick(
        &mut self,
        pool: &Pool,
        tenth: u64,
        lsn: u64,
        age: u64,
        async_limit: u64,
        capacity: u64,
    ) {
        let per_second = tenth.is_multiple_of(10);
        if per_second {
            let weight = if self.growth == 0.0 { 1.0 } else { 1.0 / AVERAGE };
            self.growth += weight * ((lsn - self.lsn) as f64 - self.growth);
            self.lru_rate += (f64::from(self.lru_flushes) - self.lru_rate) / AVERAGE;
            (self.lsn, self.lru_flushes) = (lsn, 0);
        }
        let changed = f64::from(pool.dirty());
        let wanted = match self.style {
            Style::KeepAverage => {
                let target = async_limit as f64;
                changed * self.growth / 10.0 / target * (age as f64 / target * 2.0).clamp(0.5, 2.0)
            }
            _ if !per_second => return,
            Style::Master if changed > self.max_dirty * f64::from(pool.size()) => self.io_capacity,
            Style::Master => {
                (changed * self.growth / capacity as f64 - self.lru_rate).clamp(0.0, self.io_capacity)
            }
            Style::PageCleaner => self.recommended(pool, changed, age, async_limit),
        };
        let wanted = wanted + self.fraction;
        self.fraction = wanted.fract();
        // Pages still queued from the last tick count towards the number.
        let more = (wanted as usize).saturating_sub(self.queue.len());
        self.enqueue_oldest(pool, more, u64::MAX);
    }

    /// `page_cleaner_flush_pages_recommendation`: pages to flush per second, from the checkpoint age, the
    /// growth of the log and the recent flush rate.
    fn recommended(&mut self, pool: &Pool, changed: f64, age: u64, async_limit: u64) -> f64 {
        let most = self.io_capacity_max();
        let factor = age as f64 * 100.0 / async_limit as f64;
        let too_many = changed >= self.max_dirty * f64::from(pool.size());
        if factor < 10.0 && !too_many {
            return 0.0;
        }
        let by_age = most / self.io_capacity * factor * factor.sqrt() / 7.5;
        let share = by_age.max(if too_many { 100.0 } else { 0.0 });
        // The dirty pages to flush so that the checkpoint advances by one second's growth of the log.
        let for_growth = changed * self.growth / (age as f64).max(1.0);
        let wanted = (share / 100.0 * self.io_capacity + self.average + for_growth) / 3.0;
        let wanted = wanted.min(most);
        self.average += (wanted - self.average) / 30.0;
        wanted
    }

    /// Maximum pages flushed per second and per call (`innodb_io_capacity_max`).
    fn io_capacity_max(&self) -> f64 {
        (2.0 * self.io_capacity).max(MIN_IO_CAPACITY_MAX)
    }

    /// Queues all pages whose first change is before the LSN `until`.
    pub(super) fn flush_until(&mut self, pool: &Pool, until: u64) {
        self.enqueue_oldest(pool, usize::MAX, until);
    }

    /// Queues up to `pages` more pages, oldest first change first. Stops at the LSN `until`.
    fn enqueue_oldest(&mut self, pool: &Pool, pages: usize, until: u64) {
        let most = self.queue.len().saturating_add(pages);
        let mut next = pool.oldest_dirty().map(|(frame, _)| frame);
        while let Some(frame) = next.filter(|frame| self.queue.len() < most && pool.first_lsn(*frame) < until)
        {
            if self.queued[frame as usize] == Queued::No {
                self.enqueue(pool, frame, Queued::Yes);
            }
            next = pool.next_dirty(frame);
        }
    }

    /// Queues a frame from the LRU tail, to be evicted after its write. Returns false if enough frames are
    /// queued.
    pub(super) fn enqueue_for_eviction(&mut self, pool: &Pool, frame: u32) -> bool {
        if pool.is_flushable(frame) && !self.evict_after[frame as usize] {
            self.evict_after[frame as usize] = true;
            self.evicting += 1;
            if self.queued[frame as usize] != Queued::Urgently {
                self.enqueue(pool, frame, Queued::Urgently);
            }
        }
        f64::from(self.evicting) < self.io_capacity_max()
    }
    /// Returns true if a written frame is to be evicted now. Clears the mark.
    pub(super) fn take_evict(&mut self, frame: u32) -> bool {
        let evict = std::mem::take(&mut self.evict_after[frame as usize]);
        self.evicting -= u32::from(evict);
        evict
    }

    /// Flushes LRU pages if too few frames at the LRU tail are replaceable (`buf_flush_free_margin` of MySQL
    /// 5.1 to 5.5). A terminal calls this after a read. Returns true if it queued pages.
    pub(super) fn keep_margin(&mut self, pool: &Pool) -> bool {
        if self.style == Style::PageCleaner {
            return false;
        }
        self.scanned += u64::from(SCANNED);
        // Each eviction since the last scan removed at most one replaceable frame, so the scan can often be
        // skipped.
        let evicted = pool.evictions().wrapping_sub(self.evictions_at_scan);
        if self.replaceable.saturating_sub(evicted) >= MARGIN {
            return false;
        }
        self.scan(pool);
        if self.replaceable >= MARGIN {
            return false;
        }
        self.enqueue_lru(pool);
        true
    }

    /// Counts the replaceable frames at the LRU tail.
    fn scan(&mut self, pool: &Pool) {
        let (mut next, mut replaceable) = (pool.lru_tail(), pool.free());
        for _ in 0..SCANNED {
            let Some(frame) = next.filter(|_| replaceable < KEPT_CLEAN) else { break };
            replaceable += u32::from(pool.is_replaceable(frame));
            next = pool.lru_newer(frame);
        }
        (self.replaceable, self.evictions_at_scan) = (replaceable, pool.evictions());
    }

    /// Queues LRU pages until enough frames will be replaceable.
    fn enqueue_lru(&mut self, pool: &Pool) {
        let wanted = KEPT_CLEAN.saturating_sub(self.replaceable) as usize;
        let before = self.urgent.len();
        let (mut next, mut distance) = (pool.lru_tail(), 0);
        // Pages that are already in the urgent queue count towards `wanted`.
        while let Some(frame) = next.filter(|_| self.urgent.len() < wanted) {
            distance += 1;
            if pool.is_flushable(frame) && self.queued[frame as usize] != Queued::Urgently {
                self.enqueue(pool, frame, Queued::Urgently);
                // Each write restarts the scan at the LRU tail (`buf_flush_LRU_list_batch`).
                self.scanned += distance;
            }
            next = pool.lru_newer(frame);
        }
        self.lru_flushes += (self.urgent.len() - before) as u32;
    }

    /// Flushes LRU pages because no frame is replaceable. With the page cleaner, [`Cleaner::enqueue_for_eviction`]
    /// has already queued the pages.
    pub(super) fn flush_lru(&mut self, pool: &Pool) {
        if self.style != Style::PageCleaner {
            self.scan(pool);
            self.enqueue_lru(pool);
        }
    }
    /// Returns the number of frames scanned since the last call, each under the pool latch.
    pub(super) fn take_scanned(&mut self) -> u64 {
        std::mem::take(&mut self.scanned)
    }
    /// Returns true if pages in the urgent queue have not been written yet.
    pub(super) fn is_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Queues a frame, and its dirty neighbours if neighbours are flushed.
    fn enqueue(&mut self, pool: &Pool, frame: u32, how: Queued) {
        if !self.neighbours {
            return self.push(frame, how);
        }
        let page = pool.page(frame);
        let first = page / EXTENT * EXTENT;
        let changed = |page: Page| match pool.find(page) {
            Lookup::Resident(frame) if pool.is_flushable(frame) => Some(frame),
            _ => None,
        };
        if self.style == Style::PageCleaner {
            // Neighbours must be contiguous with the page.
            let before = (first..page).rev().map_while(changed);
            let after = (page + 1..first + EXTENT).map_while(changed);
            let all: Vec<u32> = before.chain(after).collect();
            self.push(frame, how);
            return all.into_iter().for_each(|frame| self.push(frame, how));
        }
        for other in (first..first + EXTENT).filter_map(changed) {
            if other == frame || how == Queued::Yes || pool.is_old(other) {
                self.push(other, how);
            }
        }
    }

    fn push(&mut self, frame: u32, how: Queued) {
        let queued = &mut self.queued[frame as usize];
        match (*queued, how) {
            (Queued::No, Queued::Yes) => self.queue.push_back(frame),
            (Queued::No | Queued::Yes, Queued::Urgently) => self.urgent.push_back(frame),
            _ => return,
        }
        *queued = how;
    }

    /// Takes the next frame to write, urgent frames first.
    fn pop(&mut self) -> Option<u32> {
        if let Some(frame) = self.urgent.pop_front() {
            self.queued[frame as usize] = Queued::No;
            return Some(frame);
        }
        while let Some(frame) = self.queue.pop_front() {
            if self.queued[frame as usize] == Queued::Yes {
                self.queued[frame as usize] = Queued::No;
                return Some(frame);
            }
        }
        None
    }

    /// Number of frames to free ahead of demand. Zero while frames of the last call are being written.
    pub(super) fn to_free(&self, pool: &Pool) -> u32 {
        let kept = SCAN_DEPTH.min(pool.size() / 2);
        let free = pool.free();
        let due = self.style == Style::PageCleaner && self.evicting == 0 && free < kept / 2;
        if due { kept - free } else { 0 }
    }

    /// Takes the next batch of pages; `None` if no page is queued. The pages are busy until the batch ends.
    pub(super) fn next_batch(&mut self, pool: &mut Pool) -> Option<Batch> {
        let mut batch = Batch { oldest: u64::MAX, ..Batch::default() };
        while batch.frames.len() < BATCH
            && let Some(frame) = self.pop()
        {
            if !pool.is_flushable(frame) {
                // The page has been written since it was queued.
                self.take_evict(frame);
            } else {
                batch.oldest = batch.oldest.min(pool.first_lsn(frame));
                pool.begin_write(frame);
                batch.frames.push(frame);
            }
        }
        let mut pages: Vec<Page> = batch.frames.iter().map(|frame| pool.page(*frame)).collect();
        pages.sort_unstable();
        for page in pages {
            match batch.runs.last_mut() {
                Some((first, count)) if *first + *count == page && *count < EXTENT && self.neighbours => {
                    *count += 1;
                }
                _ => batch.runs.push((page, 1)),
            }
        }
        if self.neighbours && self.style == Style::Master {
            // All pages of the extent are looked up, including absent ones (`buf_flush_try_neighbors`). Percona
            // Server uses a separate latch for the lookup.
            self.scanned += batch.runs.len() as u64 * u64::from(EXTENT);
        }
        (!batch.frames.is_empty()).then_some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Settings};

    #[test]
    fn the_page_cleaner_writes_twice_io_capacity_and_at_least_2000_pages_per_second() {
        for (io_capacity, most) in [(100, 2_000.0), (200, 2_000.0), (5_000, 10_000.0)] {
            let settings = Settings {
                engine: Engine::InnodbModel,
                io_capacity: Some(io_capacity),
                ..Settings::default()
            };
            let model = InnodbSettings::of(&settings).expect("valid");
            let mut cleaner = Cleaner::new(&model);
            cleaner.growth = 1e12;
            // With the checkpoint age at its limit and fast growth, the recommendation is the maximum.
            let wanted = cleaner.recommended(&Pool::new(model.frames(), 0), 1e6, 1 << 30, 1 << 30);
            assert_eq!(wanted, most, "io_capacity {io_capacity}");
        }
    }
}
