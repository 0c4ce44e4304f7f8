//! A terminal's session: the current transaction and its progress.

use super::super::ModelLoad;
use super::super::terminal::Terminal;
use super::work::{Contents, Step, Work};

/// Action after the current processor burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Read a page that is not in memory.
    Fetch,
    /// Commit.
    Commit,
}

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) terminal: Terminal,
    pub(super) work: Work,
    /// Index of the next step. `locked` is the number of locks held.
    pub(super) at: usize,
    pub(super) locked: usize,
    pub(super) next: Next,
    /// Steps of the current burst.
    pub(super) steps: u64,
}

impl Session {
    pub(super) fn new(load: &ModelLoad, number: u32) -> Session {
        Session {
            terminal: Terminal::new(load, number),
            work: Work::default(),
            at: 0,
            locked: 0,
            next: Next::Commit,
            steps: 0,
        }
    }

    /// Begins the next transaction.
    pub(super) fn next_transaction(&mut self, contents: &mut Contents, now_ns: u64) {
        contents.work(&self.terminal.next_transaction(now_ns), &mut self.work);
        (self.at, self.locked) = (0, 0);
    }

    /// The next step; `None` at the end of the transaction.
    #[inline]
    pub(super) fn step(&self) -> Option<Step> {
        self.work.steps.get(self.at).copied()
    }
    /// The next lock to take.
    pub(super) fn next_lock(&self) -> Option<u32> {
        self.work.locks.get(self.locked).copied().flatten()
    }
}
