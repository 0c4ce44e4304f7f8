//! Acknowledged writes that are not yet on the surface ([`WriteCache`]), as runs of bytes with adjacent runs merged.
//!
//! The disk chooses the time of write-back, in module `device`.
//!
//! # Not modelled
//! Reads that are only partly in the cache: they are served from the surface.

use super::mechanism::Mechanism;
use super::spec::{Queue, Scheduler};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A run that is being written.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Landing {
    until_ns: u64,
    first: u64,
    end: u64,
}

/// Acknowledged writes that are not yet on the surface.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WriteCache {
    size: u64,
    scheduler: Scheduler,
    /// Number of runs among which the shortest positioning time is searched.
    choices: usize,
    /// End of each run, by its first byte. Runs neither overlap nor touch.
    runs: BTreeMap<u64, u64>,
    bytes: u64,
    /// First bytes of runs in order of arrival, for `fifo`. Some of these runs no longer exist.
    order: VecDeque<u64>,
    /// Runs that are being written. Reads find a run in the cache until its write ends.
    landing: VecDeque<Landing>,
    landing_bytes: u64,
}

impl WriteCache {
    pub(super) fn new(size: u64, queue: &Queue) -> Self {
        WriteCache {
            size,
            scheduler: queue.scheduler,
            choices: queue.depth as usize,
            runs: BTreeMap::new(),
            bytes: 0,
            order: VecDeque::new(),
            landing: VecDeque::new(),
            landing_bytes: 0,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns true if there is room for `length` more bytes at `now_ns`. A write larger than the cache needs an
    /// empty cache.
    #[inline]
    pub(super) fn has_room(&mut self, now_ns: u64, length: u64) -> bool {
        while let Some(landing) = self.landing.front()
            && landing.until_ns <= now_ns
        {
            self.landing_bytes -= landing.end - landing.first;
            self.landing.pop_front();
        }
        let used = self.bytes + self.landing_bytes;
        used + length <= self.size || used == 0
    }

    /// Returns true if one run, cached or being written at `now_ns`, holds all bytes from `first` to `end`.
    #[inline]
    pub(super) fn holds(&self, now_ns: u64, first: u64, end: u64) -> bool {
        let waiting = self.runs.range(..=first).next_back();
        let mut landing = self.landing.iter().rev().take_while(|it| it.until_ns > now_ns);
        waiting.is_some_and(|(_, &run_end)| run_end >= end)
            || landing.any(|it| it.first <= first && it.end >= end)
    }

    /// Adds the bytes of a write.
    #[inline]
    pub(super) fn insert(&mut self, first: u64, end: u64) {
        let (mut start, mut stop) = (first, end);
        let before = self.runs.range_mut(..=first).next_back().filter(|(_, run_end)| **run_end >= first);
        if let Some((&run, run_end)) = before {
            let held = *run_end;
            if held >= end {
                return;
            }
            (start, stop) = (run, end);
            *run_end = end;
            self.bytes += end - held;
        } else {
            self.runs.insert(first, end);
            self.bytes += end - first;
            if self.scheduler == Scheduler::Fifo {
                self.order.push_back(first);
            }
        }
        // Merges the following runs that the write overlaps or touches.
        while let Some((&next, &next_end)) = self.runs.range(start + 1..=stop).next() {
            self.runs.remove(&next);
            self.bytes -= next_end - next;
            if next_end > stop {
                self.bytes += next_end - stop;
                stop = next_end;
                self.runs.insert(start, stop);
            }
        }
    }

    /// Removes these bytes from the cache, because a newer write of them bypassed it.
    pub(super) fn drop_range(&mut self, first: u64, end: u64) {
        let overlapping: Vec<(u64, u64)> = self
            .runs
            .range(..end)
            .rev()
            .take_while(|(_, run_end)| **run_end > first)
            .map(|(&run, &run_end)| (run, run_end))
            .collect();
        for (run, run_end) in overlapping {
            self.runs.remove(&run);
            self.bytes -= run_end - run;
            for (start, stop) in [(run, first.min(run_end)), (end.max(run), run_end)] {
                if start < stop {
                    self.insert(start, stop);
                }
            }
        }
    }

    /// Chooses the next bytes to write: up to `most` from the beginning of a run. Panics if there is no run.
    pub(super) fn choose(&mut self, mechanism: &Mechanism, most: u64) -> (u64, u64) {
        let run = match self.scheduler {
            Scheduler::Fifo => self.oldest(),
            Scheduler::Elevator => self.sweep(mechanism.byte).next(),
            Scheduler::Sptf => self.nearest(mechanism),
        };
        let run = run.expect("a caller asks only where something is held");
        let end = self.runs[&run];
        (run, end.min(run + most))
    }

    /// The first bytes of all runs in the order of an inward sweep that begins at `byte` and wraps around.
    fn sweep(&self, byte: u64) -> impl Iterator<Item = u64> {
        self.runs.range(byte..).chain(self.runs.range(..byte)).map(|(&run, _)| run)
    }

    /// The run with the shortest positioning time among the next runs inwards. The search ends at the first run whose
    /// seek alone takes longer than the best positioning time.
    fn nearest(&self, mechanism: &Mechanism) -> Option<u64> {
        let start_ns = mechanism.free_ns;
        let mut best = None;
        let mut best_ns = u64::MAX;
        for run in self.sweep(mechanism.byte).take(self.choices) {
            let place = mechanism.surface.place(run);
            let there_ns = mechanism.arrive(start_ns, place, true);
            if there_ns >= best_ns {
                break;
            }
            let begin_ns = mechanism.turn_to(place, there_ns);
            if begin_ns < best_ns {
                (best, best_ns) = (Some(run), begin_ns);
            }
        }
        best
    }

    fn oldest(&mut self) -> Option<u64> {
        while let Some(first) = self.order.front() {
            if self.runs.contains_key(first) {
                return Some(*first);
            }
            self.order.pop_front();
        }
        self.runs.keys().next().copied()
    }

    /// Marks the bytes from `first` to `end` as being written until `until_ns`. A run must begin at `first`.
    pub(super) fn land(&mut self, first: u64, end: u64, until_ns: u64) {
        let run_end = self.runs.remove(&first).expect("a run begins here");
        self.bytes -= end - first;
        if end < run_end {
            self.runs.insert(end, run_end);
            if self.scheduler == Scheduler::Fifo {
                self.order.push_front(end);
            }
        }
        self.landing.push_back(Landing { until_ns, first, end });
        self.landing_bytes += end - first;
    }

    /// End of the last write to the surface; 0 if none is in progress.
    pub(super) fn landed_ns(&self) -> u64 {
        self.landing.back().map_or(0, |landing| landing.until_ns)
    }

    /// Discards all bytes that are not on the surface at `now_ns`. Returns their number.
    pub(super) fn lose(&mut self, now_ns: u64) -> u64 {
        let unfinished = self.landing.iter().filter(|it| it.until_ns > now_ns);
        let landing: u64 = unfinished.map(|it| it.end - it.first).sum();
        let lost = self.bytes + landing;
        self.runs.clear();
        self.order.clear();
        self.landing.clear();
        (self.bytes, self.landing_bytes) = (0, 0);
        lost
    }
}
