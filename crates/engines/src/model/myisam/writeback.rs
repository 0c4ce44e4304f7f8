//! Write-back of dirty pages by the kernel.
//!
//! ```text
//!   every 5 s: files that have been dirty for 30 s ─┐
//!                                                   ├─► passes: 1024 pages of each file in turn ─► requests
//!   more than 10 % dirty: the oldest dirty file ────┘
//! ```
//!
//! Linux writes back by file. Once a file has been dirty for long enough, all its dirty pages are written, including
//! recently changed pages, and its age is reset. A pass continues at the end of the last pass and wraps around
//! (`wb_kupdate`, `background_writeout`, `sync_sb_inodes` and `write_cache_pages` of Linux 2.6;
//! Documentation/sysctl/vm.txt). Neighbouring pages share a request of at most 512 KiB (`max_sectors_kb`).
//!
//! # Not modelled
//!
//! Metadata writes of the filesystem. Congestion control by request queue.

use super::layout::{FILES, File, Page};
use std::collections::{BTreeSet, VecDeque};

/// Age at which a dirty file is written (`dirty_expire_centisecs`), and period of the check
/// (`dirty_writeback_centisecs`), in nanoseconds.
const EXPIRE_NS: u64 = 30_000_000_000;
pub(super) const LOOK_NS: u64 = 5_000_000_000;

/// Maximum pages of a file written in one turn (`MAX_WRITEBACK_PAGES`), and maximum pages of a request.
const TURN: u32 = 1024;
const REQUEST: u32 = 128;

/// Contiguous pages of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: Page,
    pub(super) count: u32,
}

/// Dirty pages of a file.
#[derive(Debug, Default)]
struct Dirty {
    pages: BTreeSet<Page>,
    since_ns: Option<u64>,
    /// Start of the next pass.
    next: Page,
    waits: bool,
}

/// A pass over a file.
#[derive(Debug, Clone, Copy)]
struct Pass {
    file: usize,
    /// Start of the pass. `round` is true once the pass has wrapped around.
    began: Page,
    round: bool,
    /// Pages that the pass may still write in this turn.
    left: u32,
    /// `true` if the dirty limit started the pass, `false` if the file's age did.
    background: bool,
}

/// Dirty pages, and writes in flight.
#[derive(Debug)]
pub(super) struct Writeback {
    files: [Dirty; FILES],
    turn: VecDeque<Pass>,
    dirty: u32,
    writing: u32,
    in_flight: Vec<Option<Run>>,
    background: u32,
    limit: u32,
}

impl Writeback {
    /// Creates a write-back with at most `requests` requests in flight. `background` and `limit` are the numbers of
    /// dirty pages at which background write-back begins and writers wait.
    pub(super) fn new(requests: u32, (background, limit): (u32, u32)) -> Writeback {
        Writeback {
            files: Default::default(),
            turn: VecDeque::new(),
            dirty: 0,
            writing: 0,
            in_flight: vec![None; requests as usize],
            background,
            limit,
        }
    }

    /// Returns true if a writer must wait before it makes another page dirty.
    pub(super) fn is_full(&self) -> bool {
        self.dirty + self.writing >= self.limit
    }
    /// Returns true if background write-back is due.
    pub(super) fn is_background_due(&self) -> bool {
        self.dirty > self.background
    }

    /// Marks a clean page dirty.
    pub(super) fn mark_dirty(&mut self, file: File, page: Page, now_ns: u64) {
        let it = &mut self.files[file as usize];
        it.pages.insert(page);
        it.since_ns.get_or_insert(now_ns);
        self.dirty += 1;
    }

    /// Starts passes over the files that have been dirty for 30 s.
    pub(super) fn look(&mut self, now_ns: u64) {
        for file in 0..FILES {
            if self.files[file].since_ns.is_some_and(|since_ns| since_ns + EXPIRE_NS <= now_ns) {
                self.begin(file, false);
            }
        }
    }

    fn begin(&mut self, file: usize, background: bool) {
        let it = &mut self.files[file];
        if !std::mem::replace(&mut it.waits, true) {
            self.turn.push_back(Pass { file, began: it.next, round: false, left: TURN, background });
        }
    }

    /// Returns the number and pages of the next request, and marks the pages clean. `None` if no request is due or
    /// allowed.
    pub(super) fn next(&mut self, now_ns: u64) -> Option<(usize, Run)> {
        let free = self.in_flight.iter().position(Option::is_none)?;
        // All dirty pages of a file may be in flight, so each file is visited at most twice.
        for _ in 0..=2 * FILES {
            if self.turn.is_empty() {
                let oldest = (0..FILES).filter_map(|file| Some((self.files[file].since_ns?, file))).min();
                let (_, file) = oldest.filter(|_| self.is_background_due())?;
                self.begin(file, true);
            }
            let mut pass = self.turn.pop_front().expect("a pass was started");
            if pass.left > 0
                && let Some(run) = self.run(&mut pass)
            {
                pass.left = pass.left.saturating_sub(run.count);
                self.turn.push_front(pass);
                self.dirty -= run.count;
                self.writing += run.count;
                self.in_flight[free] = Some(run);
                return Some((free, run));
            }
            if pass.left == 0 && !pass.background {
                self.turn.push_back(Pass { left: TURN, ..pass });
                continue;
            }
            let it = &mut self.files[pass.file];
            it.waits = false;
            it.since_ns = (!it.pages.is_empty()).then_some(now_ns);
        }
        None
    }

    /// Returns the next contiguous pages of a pass that are not in flight.
    fn run(&mut self, pass: &mut Pass) -> Option<Run> {
        let it = &mut self.files[pass.file];
        let writing = |page: Page| {
            let mut runs = self.in_flight.iter().flatten();
            runs.any(|run| (run.first..run.first + run.count).contains(&page))
        };
        loop {
            let end = if pass.round { pass.began } else { Page::MAX };
            let first = (it.next < end).then(|| it.pages.range(it.next..end).find(|page| !writing(**page)));
            let Some(first) = first.flatten().copied() else {
                if std::mem::replace(&mut pass.round, true) {
                    return None;
                }
                it.next = 0;
                continue;
            };
            let most = REQUEST.min(end - first);
            let follows = it.pages.range(first..).zip(first..first + most);
            let count = follows.take_while(|(page, at)| *page == at && !writing(**page)).count() as u32;
            (first..first + count).for_each(|page| {
                it.pages.remove(&page);
            });
            it.next = first + count;
            return Some(Run { first, count });
        }
    }

    /// Completes a request, and returns its pages.
    pub(super) fn written(&mut self, number: usize) -> Run {
        let run = self.in_flight[number].take().expect("the request was in flight");
        self.writing -= run.count;
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Runs all requests that are due, one after another.
    fn all(writeback: &mut Writeback, now_ns: u64) -> Vec<(Page, u32)> {
        let mut runs = Vec::new();
        while let Some((number, run)) = writeback.next(now_ns) {
            runs.push((run.first, run.count));
            writeback.written(number);
        }
        runs
    }

    #[test]
    fn a_file_dirty_for_thirty_seconds_is_written_with_its_recent_pages_and_neighbours_together() {
        let mut writeback = Writeback::new(1, (1000, 2000));
        writeback.mark_dirty(2, 50, SECOND);
        writeback.mark_dirty(2, 7, 20 * SECOND);
        writeback.mark_dirty(3, 90, 25 * SECOND);
        writeback.look(30 * SECOND);
        assert_eq!(all(&mut writeback, 30 * SECOND), []);
        writeback.mark_dirty(2, 51, 30 * SECOND);
        writeback.look(35 * SECOND);
        assert_eq!(all(&mut writeback, 35 * SECOND), [(7, 1), (50, 2)]);
        // The file's age was reset.
        writeback.mark_dirty(2, 8, 36 * SECOND);
        writeback.look(60 * SECOND);
        assert_eq!(all(&mut writeback, 60 * SECOND), [(90, 1)]);
        writeback.look(70 * SECOND);
        assert_eq!(all(&mut writeback, 70 * SECOND), [(8, 1)]);
        assert_eq!((writeback.dirty, writeback.writing), (0, 0));
    }

    #[test]
    fn background_write_back_starts_at_one_limit_and_writers_wait_at_the_other() {
        let mut writeback = Writeback::new(4, (100, 200));
        (0..150).for_each(|page| writeback.mark_dirty(0, 2 * page, 5));
        assert!(writeback.is_background_due() && !writeback.is_full());
        assert_eq!(all(&mut writeback, SECOND).len(), 50 + 100, "a full pass");
        (0..200).for_each(|page| writeback.mark_dirty(1, page, 9));
        assert!(writeback.is_full());
        let (number, run) = writeback.next(SECOND).expect("background write-back is due");
        assert_eq!((run, writeback.is_full()), (Run { first: 0, count: 128 }, true));
        // A page that becomes dirty again while it is being written is not written again until that write ends.
        writeback.mark_dirty(1, 5, SECOND);
        assert_eq!(writeback.next(SECOND).map(|(_, run)| run), Some(Run { first: 128, count: 72 }));
        assert_eq!(writeback.next(SECOND), None);
        writeback.written(number);
        assert!(!writeback.is_full() && !writeback.is_background_due());
    }

    #[test]
    fn files_take_turns() {
        let mut writeback = Writeback::new(1, (1 << 20, 1 << 21));
        for file in [0, 1] {
            (0..3000).for_each(|page| writeback.mark_dirty(file, u32::from(file) * 10_000 + page, 1));
        }
        writeback.look(40 * SECOND);
        let runs = all(&mut writeback, 40 * SECOND);
        let files: Vec<u32> = runs.iter().map(|(first, _)| first / 10_000).collect();
        let turns: Vec<usize> = files.chunk_by(|one, next| one == next).map(<[u32]>::len).collect();
        assert_eq!(turns, [8, 8, 8, 8, 8, 8]);
    }
}
