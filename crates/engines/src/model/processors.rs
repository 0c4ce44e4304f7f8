//! The processors: who runs, who waits for one, how long it takes.
//!
//! Leaves out the scheduler's time slices: whoever has a processor keeps it until it waits for something.

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
    /// So many, where each that runs takes a share of `contention` longer for each other.
    pub(super) fn new(cores: u32, contention: f64) -> Processors {
        Processors { cores, contention, running: 0, waiting: VecDeque::new() }
    }

    /// A terminal needs a processor for so long: how long it takes until it is done, where one is free.
    pub(super) fn take(&mut self, terminal: u32, ns: u64) -> Option<u64> {
        if self.running == self.cores {
            self.waiting.push_back((terminal, ns));
            return None;
        }
        self.running += 1;
        Some(self.stretched(ns))
    }

    /// A processor is free: who has it now, and how long that takes.
    pub(super) fn leave(&mut self) -> Option<(u32, u64)> {
        match self.waiting.pop_front() {
            Some((terminal, ns)) => Some((terminal, self.stretched(ns))),
            None => {
                self.running -= 1;
                None
            }
        }
    }

    /// The others that run make it longer.
    fn stretched(&self, ns: u64) -> u64 {
        (ns as f64 * (1.0 + self.contention * f64::from(self.running - 1))) as u64
    }
}
