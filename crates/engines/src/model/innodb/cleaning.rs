//! Writing changed pages: which and how many ([`Cleaner`]), in batches that are written twice ([`Batch`]).
//!
//! ```text
//!   by age of the log ─┐
//!                      ├─► queue ─► batch of 120: doublewrite ─► flush ─► pages, neighbours together ─► flush
//!   least used ────────┘
//! ```
//!
//! A batch ends with a sync of every data file, one after the other (`fil_flush_file_spaces`): each commits to the filesystem's
//! journal, where the server asks for `fsync`, and flushes the drive.
//!
//! Sources: `buf0flu.c`, `srv0srv.c` and `buf0dblwr.c` of MySQL 5.5 and 5.6; "Configuring Buffer Pool Flushing", MySQL 5.6 Reference
//! Manual. Leaves out that a page which is being written cannot be changed meanwhile.

use super::layout::{EXTENT, Page};
use super::pool::{Found, Pool};
use super::settings::{Cleaner as Style, InnodbSettings};
use std::collections::VecDeque;

/// Pages of a batch (`srv_doublewrite_batch_size`).
pub(super) const BATCH: usize = 120;

/// Frames at the end of the list that are looked at for one that can be had (`buf_LRU_search_free_block`).
const SEARCHED: u32 = 100;

/// Who has read a page looks at so many frames at the end of the list (`BUF_LRU_FREE_SEARCH_LEN`).
const LOOKED_AT: u32 = 133;
/// Where fewer of them could be had at once (`BUF_FLUSH_FREE_BLOCK_MARGIN`), it has the rest of so many written, and waits for that
/// (with `BUF_FLUSH_EXTRA_MARGIN`).
const MARGIN: u32 = 69;
const KEPT_CLEAN: u32 = 186;

/// Frames that the page cleaner keeps free: once there are less than half as many, it frees so many (`innodb_lru_scan_depth`).
const SCAN_DEPTH: u32 = 1536;

/// What `innodb_io_capacity_max` is at least, where nobody says it: else it is twice `innodb_io_capacity`.
const LEAST_MOST: f64 = 2000.0;

/// Seconds over which the growth of the log is averaged.
const AVERAGE: f64 = 20.0;

/// What is to be written, and why.
#[derive(Debug)]
pub(super) struct Cleaner {
    style: Style,
    neighbours: bool,
    io_capacity: f64,
    most_changed: f64,
    /// What was changed first, and what somebody waits for because it was least used.
    queue: VecDeque<u32>,
    urgent: VecDeque<u32>,
    queued: Vec<Queued>,
    /// By frame, whether it is freed once it is written, and how many are.
    leaving: Vec<bool>,
    leave: u32,
    /// Of the frames looked at last, how many could be had, and evictions until then.
    replaceable: u32,
    looked_at: u32,
    /// Frames looked at since somebody asked.
    looks: u64,
    /// The log at the last look, and its growth per second.
    log: u64,
    growth: f64,
    /// Pages a second that were written because they were least used.
    least_used: f64,
    least_used_now: u32,
    /// Pages that the last look wanted and were not whole.
    rest: f64,
    average: f64,
}

/// In which queue a frame waits. What became urgent stands in both, and goes with the urgent ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Queued {
    No,
    Yes,
    Urgently,
}

/// Pages that are written together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) frames: Vec<u32>,
    /// Runs of pages that lie one after the other: first, and how many.
    pub(super) runs: Vec<(Page, u32)>,
    /// Runs whose write has not begun, and that have not ended.
    pub(super) next: usize,
    pub(super) under_way: u32,
    /// The oldest change among them.
    pub(super) oldest: u64,
    /// Data files that were synced.
    pub(super) synced: u32,
}

impl Cleaner {
    pub(super) fn new(model: &InnodbSettings) -> Cleaner {
        Cleaner {
            style: model.cleaner,
            neighbours: model.neighbours,
            io_capacity: f64::from(model.io_capacity),
            most_changed: model.most_changed,
            queue: VecDeque::new(),
            urgent: VecDeque::new(),
            queued: vec![Queued::No; model.frames() as usize],
            leaving: vec![false; model.frames() as usize],
            leave: 0,
            replaceable: 0,
            looked_at: 0,
            looks: 0,
            log: 0,
            growth: 0.0,
            least_used: 0.0,
            least_used_now: 0,
            rest: 0.0,
            average: 0.0,
        }
    }

    /// Looks what is to be written, every tenth of a second; `made` of the log, of which `age` is needed and `capacity` may be.
    pub(super) fn tick(&mut self, pool: &Pool, tenth: u64, made: u64, age: u64, hurry: u64, capacity: u64) {
        let per_second = tenth.is_multiple_of(10);
        if per_second {
            let weight = if self.growth == 0.0 { 1.0 } else { 1.0 / AVERAGE };
            self.growth += weight * ((made - self.log) as f64 - self.growth);
            self.least_used += (f64::from(self.least_used_now) - self.least_used) / AVERAGE;
            (self.log, self.least_used_now) = (made, 0);
        }
        let changed = f64::from(pool.changed());
        let wanted = match self.style {
            Style::KeepAverage => {
                let target = hurry as f64;
                changed * self.growth / 10.0 / target * (age as f64 / target * 2.0).clamp(0.5, 2.0)
            }
            _ if !per_second => return,
            Style::Master if changed > self.most_changed * f64::from(pool.size()) => self.io_capacity,
            Style::Master => {
                (changed * self.growth / capacity as f64 - self.least_used).clamp(0.0, self.io_capacity)
            }
            Style::PageCleaner => self.recommended(pool, changed, age, hurry),
        };
        let wanted = wanted + self.rest;
        self.rest = wanted.fract();
        // What the second before did not get done is not wanted twice.
        let more = (wanted as usize).saturating_sub(self.queue.len());
        self.enqueue_oldest(pool, more, u64::MAX);
    }

    /// `page_cleaner_flush_pages_recommendation`: of the age of the log, the log's growth and what was written lately.
    fn recommended(&mut self, pool: &Pool, changed: f64, age: u64, hurry: u64) -> f64 {
        let most = self.most();
        let factor = age as f64 * 100.0 / hurry as f64;
        let too_many = changed >= self.most_changed * f64::from(pool.size());
        if factor < 10.0 && !too_many {
            return 0.0;
        }
        let by_age = most / self.io_capacity * factor * factor.sqrt() / 7.5;
        let share = by_age.max(if too_many { 100.0 } else { 0.0 });
        // Pages whose oldest change lies within a second's growth of the oldest of all.
        let for_growth = changed * self.growth / (age as f64).max(1.0);
        let wanted = (share / 100.0 * self.io_capacity + self.average + for_growth) / 3.0;
        let wanted = wanted.min(most);
        self.average += (wanted - self.average) / 30.0;
        wanted
    }

    /// Pages that it writes a second, and at a time, at most (`innodb_io_capacity_max`).
    fn most(&self) -> f64 {
        (2.0 * self.io_capacity).max(LEAST_MOST)
    }

    /// Everything that was changed before a position of the log is to be written.
    pub(super) fn hurry(&mut self, pool: &Pool, until: u64) {
        self.enqueue_oldest(pool, usize::MAX, until);
    }

    /// What was changed first, until there are so many pages more in the queue, or the next was changed later than `until`.
    fn enqueue_oldest(&mut self, pool: &Pool, pages: usize, until: u64) {
        let most = self.queue.len().saturating_add(pages);
        let mut next = pool.oldest_change().map(|(frame, _)| frame);
        while let Some(frame) =
            next.filter(|frame| self.queue.len() < most && pool.changed_at(*frame) < until)
        {
            if self.queued[frame as usize] == Queued::No {
                self.enqueue(pool, frame, Queued::Yes);
            }
            next = pool.changed_after(frame);
        }
    }

    /// A frame is to be written because it was least used, and freed then; `false` once enough are for now.
    pub(super) fn enqueue_to_free(&mut self, pool: &Pool, frame: u32) -> bool {
        if pool.is_changed(frame) && !self.leaving[frame as usize] {
            self.leaving[frame as usize] = true;
            self.leave += 1;
            if self.queued[frame as usize] != Queued::Urgently {
                self.enqueue(pool, frame, Queued::Urgently);
            }
        }
        f64::from(self.leave) < self.most()
    }
    /// Whether a frame that was written is to be freed now.
    pub(super) fn leaves(&mut self, frame: u32) -> bool {
        let leaves = std::mem::take(&mut self.leaving[frame as usize]);
        self.leave -= u32::from(leaves);
        leaves
    }

    /// Whoever has read a page sees to it that more can be read: has least used pages written where too few of the last ones could be
    /// had (`buf_flush_free_margin` of MySQL 5.1 to 5.5); whether it has.
    pub(super) fn keeps_margin(&mut self, pool: &Pool) -> bool {
        if self.style == Style::PageCleaner {
            return false;
        }
        self.looks += u64::from(LOOKED_AT);
        // What is evicted is one less, and what comes to the end of the list can only be one more: the look may be left out here.
        let evicted = pool.evictions().wrapping_sub(self.looked_at);
        if self.replaceable.saturating_sub(evicted) >= MARGIN {
            return false;
        }
        self.look(pool);
        if self.replaceable >= MARGIN {
            return false;
        }
        self.write_least_used(pool);
        true
    }

    /// How many of the frames at the end of the list could be had.
    fn look(&mut self, pool: &Pool) {
        let (mut next, mut replaceable) = (pool.least_used(), pool.free());
        for _ in 0..LOOKED_AT {
            let Some(frame) = next.filter(|_| replaceable < KEPT_CLEAN) else { break };
            replaceable += u32::from(pool.is_replaceable(frame));
            next = pool.used_after(frame);
        }
        (self.replaceable, self.looked_at) = (replaceable, pool.evictions());
    }

    /// Has as many of the least used pages written as are missing.
    fn write_least_used(&mut self, pool: &Pool) {
        let wanted = KEPT_CLEAN.saturating_sub(self.replaceable) as usize;
        let before = self.urgent.len();
        let (mut next, mut distance) = (pool.least_used(), 0);
        // Those that are waited for already are some of them.
        while let Some(frame) = next.filter(|_| self.urgent.len() < wanted) {
            distance += 1;
            if pool.is_changed(frame) && self.queued[frame as usize] != Queued::Urgently {
                self.enqueue(pool, frame, Queued::Urgently);
                // After each it begins at the end of the list again (`buf_flush_LRU_list_batch`).
                self.looks += distance;
            }
            next = pool.used_after(frame);
        }
        self.least_used_now += (self.urgent.len() - before) as u32;
    }

    /// Nobody can have a frame: pages are written until somebody can.
    pub(super) fn needs_frame(&mut self, pool: &Pool) {
        match self.style {
            // It is on its way ([`Cleaner::enqueue_to_free`]).
            Style::PageCleaner => {}
            _ => {
                self.look(pool);
                self.write_least_used(pool);
            }
        }
    }
    /// Frames that were looked at since this was asked last, by who held the pool's lock meanwhile.
    pub(super) fn take_looks(&mut self) -> u64 {
        std::mem::take(&mut self.looks)
    }
    /// Whether somebody waits for pages that are not being written yet.
    pub(super) fn is_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// A page, and its neighbours where they are to be written along.
    fn enqueue(&mut self, pool: &Pool, frame: u32, how: Queued) {
        if !self.neighbours {
            return self.push(frame, how);
        }
        let page = pool.page(frame);
        let first = page / EXTENT * EXTENT;
        let changed = |page: Page| match pool.find(page) {
            Found::Here(frame) if pool.is_changed(frame) => Some(frame),
            _ => None,
        };
        if self.style == Style::PageCleaner {
            // Those that follow one another without a gap.
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

    /// The next frame to be written: what somebody waits for first.
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

    /// How many frames are to be freed ahead now; none while those of the last time are being written.
    pub(super) fn to_free(&self, pool: &Pool) -> u32 {
        let kept = SCAN_DEPTH.min(pool.size() / 2);
        let free = pool.free();
        let due = self.style == Style::PageCleaner && self.leave == 0 && free < kept / 2;
        if due { kept - free } else { 0 }
    }
    /// Frames that are looked at for one that can be had.
    pub(super) const fn searched(&self) -> u32 {
        SEARCHED
    }

    /// The next pages to be written; they stay until the batch is over.
    pub(super) fn next_batch(&mut self, pool: &mut Pool, batch: &mut Batch) -> bool {
        batch.frames.clear();
        batch.runs.clear();
        (batch.next, batch.under_way, batch.oldest, batch.synced) = (0, 0, u64::MAX, 0);
        while batch.frames.len() < BATCH
            && let Some(frame) = self.pop()
        {
            if !pool.is_changed(frame) {
                // It was written meanwhile.
                self.leaves(frame);
            } else {
                batch.oldest = batch.oldest.min(pool.changed_at(frame));
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
            // Each page of the extent is looked for, also those that are not there (`buf_flush_try_neighbors`). Percona Server has a
            // lock of its own for that.
            self.looks += batch.runs.len() as u64 * u64::from(EXTENT);
        }
        !batch.frames.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Settings};

    #[test]
    fn the_page_cleaner_writes_twice_what_the_device_is_taken_for_and_2000_pages_a_second_at_least() {
        for (io_capacity, most) in [(100, 2_000.0), (200, 2_000.0), (5_000, 10_000.0)] {
            let settings = Settings {
                engine: Engine::InnodbModel,
                io_capacity: Some(io_capacity),
                ..Settings::default()
            };
            let model = InnodbSettings::of(&settings).expect("valid");
            let mut cleaner = Cleaner::new(&model);
            cleaner.growth = 1e12;
            // As old as the log may be: everything that is changed lies within a second's growth.
            let wanted = cleaner.recommended(&Pool::new(model.frames(), 0), 1e6, 1 << 30, 1 << 30);
            assert_eq!(wanted, most, "io_capacity {io_capacity}");
        }
    }
}
