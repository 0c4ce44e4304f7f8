//! The processors: running and waiting terminals.
//!
//! # Not modelled
//!
//! Time slices of the scheduler: a terminal keeps its processor until it waits.

use std::collections::VecDeque;

/// The processors.
#[derive(Debug)]
pub(super) struct Processors {
    cores: u32,
    contention: f64,
    running: u32,
    waiting: VecDeque<(u32, u64)>,
}

impl Processors {
    /// Creates `cores` processors. Each running terminal slows down every other running terminal by the share
    /// `contention`.
    pub(super) fn new(cores: u32, contention: f64) -> Processors {
        Processors { cores, contention, running: 0, waiting: VecDeque::new() }
    }

    /// Requests a processor for `ns`. Returns the duration if a processor is free. Otherwise queues the terminal and
    /// returns `None`.
    pub(super) fn take(&mut self, terminal: u32, ns: u64) -> Option<u64> {
        if self.running == self.cores {
            self.waiting.push_back((terminal, ns));
            return None;
        }
        self.running += 1;
        Some(self.stretched(ns))
    }

    /// Releases a processor. Returns the next terminal to run and the duration of its burst.
    pub(super) fn leave(&mut self) -> Option<(u32, u64)> {
        match self.waiting.pop_front() {
            Some((terminal, ns)) => Some((terminal, self.stretched(ns))),
            None => {
                self.running -= 1;
                None
            }
        }
    }

    /// Duration of work that takes `ns` without contention.
    fn stretched(&self, ns: u64) -> u64 {
        (ns as f64 * (1.0 + self.contention * f64::from(self.running - 1))) as u64
    }
}
