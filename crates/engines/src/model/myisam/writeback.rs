//! Which dirty pages the kernel writes, when and in what order.
//!
//! ```text
//!   every 5 s: files that have been dirty for 30 s ─┐
//!                                                   ├─► turn: 1024 pages of each, in the order of the file ─► requests
//!   more than 10 % dirty: the file dirty longest ───┘
//! ```
//!
//! Linux writes by file: once a file has been dirty for long enough, all its dirty pages are written, also those of a moment ago; then
//! it begins to be dirty anew. A pass goes on where the last one ended, and round (`wb_kupdate`, `background_writeout`,
//! `sync_sb_inodes` and `write_cache_pages` of Linux 2.6; Documentation/sysctl/vm.txt). Neighbours go in one request of at most
//! 512 KiB (`max_sectors_kb`). Leaves out the filesystem's own writes and that a queue is told apart from another's when it is congested.

use super::layout::{FILES, File, Page};
use std::collections::{BTreeSet, VecDeque};

/// How long a file is dirty before it is written, and how often that is looked at (`dirty_expire_centisecs`,
/// `dirty_writeback_centisecs`).
const EXPIRE_NS: u64 = 30_000_000_000;
pub(super) const LOOK_NS: u64 = 5_000_000_000;

/// Pages of a file that are written before it is another's turn (`MAX_WRITEBACK_PAGES`), and of a request.
const TURN: u32 = 1024;
const REQUEST: u32 = 128;

/// Pages that are written with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: Page,
    pub(super) count: u32,
}

/// The dirty pages of a file.
#[derive(Debug, Default)]
struct Dirty {
    pages: BTreeSet<Page>,
    since_ns: Option<u64>,
    /// Where the next pass begins.
    next: Page,
    waits: bool,
}

/// A pass over a file.
#[derive(Debug, Clone, Copy)]
struct Pass {
    file: usize,
    /// Where it began, and whether it has come round to the beginning of the file.
    began: Page,
    round: bool,
    /// Pages until it is another's turn.
    left: u32,
    /// It is written because too much is dirty, not because it is so for long.
    background: bool,
}

/// What is dirty, and what is being written.
#[derive(Debug)]
pub(super) struct Writeback {
    files: [Dirty; FILES],
    turn: VecDeque<Pass>,
    dirty: u32,
    in_write: u32,
    under_way: Vec<Option<Run>>,
    background: u32,
    limit: u32,
}

impl Writeback {
    /// So many requests at a time; pages that may be dirty before they are written at once, and before all wait.
    pub(super) fn new(requests: u32, (background, limit): (u32, u32)) -> Writeback {
        Writeback {
            files: Default::default(),
            turn: VecDeque::new(),
            dirty: 0,
            in_write: 0,
            under_way: vec![None; requests as usize],
            background,
            limit,
        }
    }

    /// Whether who makes another page dirty must wait.
    pub(super) fn is_full(&self) -> bool {
        self.dirty + self.in_write >= self.limit
    }
    /// Whether more is dirty than may be left alone.
    pub(super) fn is_much(&self) -> bool {
        self.dirty > self.background
    }

    /// A page of a file that was not is dirty now.
    pub(super) fn soil(&mut self, file: File, page: Page, now_ns: u64) {
        let it = &mut self.files[file as usize];
        it.pages.insert(page);
        it.since_ns.get_or_insert(now_ns);
        self.dirty += 1;
    }

    /// It is time to look for what has been dirty for long.
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

    /// The next request, where one is to be made and may be: its number and its pages, which are not dirty any more.
    pub(super) fn next(&mut self, now_ns: u64) -> Option<(usize, Run)> {
        let free = self.under_way.iter().position(Option::is_none)?;
        // What is left of a file may be what is being written just now: each is looked at once.
        for _ in 0..=2 * FILES {
            if self.turn.is_empty() {
                let oldest = (0..FILES).filter_map(|file| Some((self.files[file].since_ns?, file))).min();
                let (_, file) = oldest.filter(|_| self.is_much())?;
                self.begin(file, true);
            }
            let mut pass = self.turn.pop_front().expect("one was begun");
            if pass.left > 0
                && let Some(run) = self.run(&mut pass)
            {
                pass.left = pass.left.saturating_sub(run.count);
                self.turn.push_front(pass);
                self.dirty -= run.count;
                self.in_write += run.count;
                self.under_way[free] = Some(run);
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

    /// The next pages of a pass that are not being written, as many as follow one another.
    fn run(&mut self, pass: &mut Pass) -> Option<Run> {
        let it = &mut self.files[pass.file];
        let in_write = |page: Page| {
            let mut runs = self.under_way.iter().flatten();
            runs.any(|run| (run.first..run.first + run.count).contains(&page))
        };
        loop {
            let end = if pass.round { pass.began } else { Page::MAX };
            let first = (it.next < end).then(|| it.pages.range(it.next..end).find(|page| !in_write(**page)));
            let Some(first) = first.flatten().copied() else {
                if std::mem::replace(&mut pass.round, true) {
                    return None;
                }
                it.next = 0;
                continue;
            };
            let most = REQUEST.min(end - first);
            let follows = it.pages.range(first..).zip(first..first + most);
            let count = follows.take_while(|(page, at)| *page == at && !in_write(**page)).count() as u32;
            (first..first + count).for_each(|page| {
                it.pages.remove(&page);
            });
            it.next = first + count;
            return Some(Run { first, count });
        }
    }

    /// A request is complete: its pages.
    pub(super) fn written(&mut self, number: usize) -> Run {
        let run = self.under_way[number].take().expect("it was under way");
        self.in_write -= run.count;
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Everything that is to be written now, one request after the other.
    fn all(writeback: &mut Writeback, now_ns: u64) -> Vec<(Page, u32)> {
        let mut runs = Vec::new();
        while let Some((number, run)) = writeback.next(now_ns) {
            runs.push((run.first, run.count));
            writeback.written(number);
        }
        runs
    }

    #[test]
    fn a_file_is_written_once_it_was_dirty_for_thirty_seconds_with_what_came_since_and_neighbours_together() {
        let mut writeback = Writeback::new(1, (1000, 2000));
        writeback.soil(2, 50, SECOND);
        writeback.soil(2, 7, 20 * SECOND);
        writeback.soil(3, 90, 25 * SECOND);
        writeback.look(30 * SECOND);
        assert_eq!(all(&mut writeback, 30 * SECOND), []);
        writeback.soil(2, 51, 30 * SECOND);
        writeback.look(35 * SECOND);
        assert_eq!(all(&mut writeback, 35 * SECOND), [(7, 1), (50, 2)]);
        // It begins to be dirty anew.
        writeback.soil(2, 8, 36 * SECOND);
        writeback.look(60 * SECOND);
        assert_eq!(all(&mut writeback, 60 * SECOND), [(90, 1)]);
        writeback.look(70 * SECOND);
        assert_eq!(all(&mut writeback, 70 * SECOND), [(8, 1)]);
        assert_eq!((writeback.dirty, writeback.in_write), (0, 0));
    }

    #[test]
    fn too_much_that_is_dirty_is_written_at_once_and_more_waits() {
        let mut writeback = Writeback::new(4, (100, 200));
        (0..150).for_each(|page| writeback.soil(0, 2 * page, 5));
        assert!(writeback.is_much() && !writeback.is_full());
        assert_eq!(all(&mut writeback, SECOND).len(), 50 + 100, "a pass is gone through");
        (0..200).for_each(|page| writeback.soil(1, page, 9));
        assert!(writeback.is_full());
        let (number, run) = writeback.next(SECOND).expect("it is too much");
        assert_eq!((run, writeback.is_full()), (Run { first: 0, count: 128 }, true));
        // Written again while it is written: it waits for that.
        writeback.soil(1, 5, SECOND);
        assert_eq!(writeback.next(SECOND).map(|(_, run)| run), Some(Run { first: 128, count: 72 }));
        assert_eq!(writeback.next(SECOND), None);
        writeback.written(number);
        assert!(!writeback.is_full() && !writeback.is_much());
    }

    #[test]
    fn files_take_turns() {
        let mut writeback = Writeback::new(1, (1 << 20, 1 << 21));
        for file in [0, 1] {
            (0..3000).for_each(|page| writeback.soil(file, u32::from(file) * 10_000 + page, 1));
        }
        writeback.look(40 * SECOND);
        let runs = all(&mut writeback, 40 * SECOND);
        let files: Vec<u32> = runs.iter().map(|(first, _)| first / 10_000).collect();
        let turns: Vec<usize> = files.chunk_by(|one, next| one == next).map(<[u32]>::len).collect();
        assert_eq!(turns, [8, 8, 8, 8, 8, 8]);
    }
}
