//! Table locks: holders and waiters.
//!
//! Reads share a table. Updates and deletes are exclusive. One insert at the end of the file is concurrent
//! with reads. Writers have priority: a read waits if an update is waiting (`thr_lock.c`; "Internal Locking
//! Methods" and "Concurrent Inserts", MySQL 5.1 Reference Manual).
//!
//! # Not modelled
//!
//! `low_priority_updates` and `max_write_lock_count`, which are off by default.

use super::statement::Mode;
use std::collections::VecDeque;

/// The lock of a table.
#[derive(Debug, Default)]
pub(super) struct Lock {
    readers: u32,
    writer: Option<Mode>,
    writers: VecDeque<(u32, Mode)>,
    reads: VecDeque<u32>,
}

impl Lock {
    /// Requests the lock. Returns true if it is granted; otherwise `who` waits.
    pub(super) fn take(&mut self, who: u32, mode: Mode) -> bool {
        let granted = match mode {
            Mode::Read => self.readable() && !self.update_waits(),
            _ => self.writers.is_empty() && self.writable(mode),
        };
        match (granted, mode) {
            (true, Mode::Read) => self.readers += 1,
            (true, _) => self.writer = Some(mode),
            (false, Mode::Read) => self.reads.push_back(who),
            (false, _) => self.writers.push_back((who, mode)),
        }
        granted
    }

    /// Releases the lock. Adds the waiters that now hold the lock to `granted`.
    pub(super) fn leave(&mut self, mode: Mode, granted: &mut Vec<u32>) {
        match mode {
            Mode::Read => self.readers -= 1,
            _ => self.writer = None,
        }
        let mut inserts = false;
        if let Some((who, mode)) = self.writers.front().copied()
            && self.writable(mode)
        {
            self.writers.pop_front();
            self.writer = Some(mode);
            granted.push(who);
            inserts = mode == Mode::Insert;
        }
        // Waiting readers get the lock together with a newly granted insert. Otherwise a waiting update goes first.
        if self.readable() && (inserts || !self.update_waits()) {
            self.readers += self.reads.len() as u32;
            granted.extend(self.reads.drain(..));
        }
    }

    fn update_waits(&self) -> bool {
        self.writers.front().is_some_and(|(_, first)| *first == Mode::Write)
    }
    fn readable(&self) -> bool {
        self.writer != Some(Mode::Write)
    }
    fn writable(&self, mode: Mode) -> bool {
        self.writer.is_none() && (mode == Mode::Insert || self.readers == 0)
    }
    /// Returns true if a write or an insert holds the lock.
    pub(super) fn has_writer(&self) -> bool {
        self.writer.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;
    use lowtide_core::rng::below;

    #[test]
    fn writers_are_exclusive_unless_they_insert_and_no_waiter_starves() {
        let (seed, mut lock) = (11, Lock::default());
        let mut rng = Seed::new(seed).stream();
        let mut has: Vec<(u32, Mode)> = Vec::new();
        let mut waits = has.clone();
        let mut granted = Vec::new();
        for who in 0..100_000 {
            if who < 90_000 && below(&mut rng, 2) == 0 {
                let mode = [Mode::Read, Mode::Insert, Mode::Write][below(&mut rng, 3) as usize];
                if lock.take(who, mode) { has.push((who, mode)) } else { waits.push((who, mode)) }
            } else if !has.is_empty() {
                let (_, mode) = has.swap_remove(below(&mut rng, has.len() as u64) as usize);
                lock.leave(mode, &mut granted);
                for who in granted.drain(..) {
                    let at = waits.iter().position(|(other, _)| *other == who).expect("a waiter");
                    has.push(waits.swap_remove(at));
                }
            }
            let count = |mode| has.iter().filter(|(_, other)| *other == mode).count();
            let (reads, inserts, writes) = (count(Mode::Read), count(Mode::Insert), count(Mode::Write));
            assert!(inserts + writes <= 1, "seed {seed}: {has:?}");
            assert!(writes == 0 || reads == 0, "seed {seed}: {has:?}");
            assert!(!has.is_empty() || waits.is_empty(), "seed {seed}: {waits:?} wait for a free lock");
        }
        assert!(has.is_empty() && waits.is_empty(), "seed {seed}");
    }

    #[test]
    fn a_waiting_update_precedes_later_reads() {
        let (mut lock, mut granted) = (Lock::default(), Vec::new());
        assert!(lock.take(1, Mode::Read) && lock.take(2, Mode::Insert) && lock.take(3, Mode::Read));
        assert!(!lock.take(4, Mode::Write) && !lock.take(5, Mode::Read));
        lock.leave(Mode::Read, &mut granted);
        lock.leave(Mode::Insert, &mut granted);
        assert!(granted.is_empty());
        lock.leave(Mode::Read, &mut granted);
        assert_eq!(granted, [4]);
        lock.leave(Mode::Write, &mut granted);
        assert_eq!(granted, [4, 5]);
    }
}
