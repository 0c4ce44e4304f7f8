//! Writes that were acknowledged and are not on the surface ([`WriteCache`]): runs of bytes, neighbours merged.
//!
//! Leaves out the time at which they are written, which the disk chooses, and reads that overlap a run only partly.

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

/// Writes that were acknowledged and are not on the surface.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WriteCache {
    size: u64,
    scheduler: Scheduler,
    /// How many runs the shortest positioning is chosen from.
    choices: usize,
    /// End of each run, by its first byte; they neither overlap nor touch.
    runs: BTreeMap<u64, u64>,
    bytes: u64,
    /// First bytes of runs in the order of arrival, for `fifo`; some of these runs no longer exist.
    order: VecDeque<u64>,
    /// Runs that are being written; they can be read from the cache until then.
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

    /// Whether there is room for `length` more bytes at `now_ns`. A write larger than the cache needs an empty cache.
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

    /// Whether all of these bytes are in memory at `now_ns`, in one run.
    #[inline]
    pub(super) fn holds(&self, now_ns: u64, first: u64, end: u64) -> bool {
        let waiting = self.runs.range(..=first).next_back();
        let mut landing = self.landing.iter().rev().take_while(|it| it.until_ns > now_ns);
        waiting.is_some_and(|(_, &run_end)| run_end >= end)
            || landing.any(|it| it.first <= first && it.end >= end)
    }

    /// Takes a write in.
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
        // Runs that the write reached are one with it.
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

    /// Chooses what to write next: the first bytes of a run, up to `most`. There must be one.
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

    /// The first bytes of the runs in the order of a sweep inwards that begins at `byte`; each once.
    fn sweep(&self, byte: u64) -> impl Iterator<Item = u64> {
        self.runs.range(byte..).chain(self.runs.range(..byte)).map(|(&run, _)| run)
    }

    /// Of the next runs inwards, the one with the shortest positioning time. The search ends at a run to which the seek
    /// alone takes longer than that.
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

    /// Marks the bytes from `first`, where a run begins, to `end` as being written until `until_ns`.
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

    /// When the last write in progress is complete; 0 where there is none.
    pub(super) fn landed_ns(&self) -> u64 {
        self.landing.back().map_or(0, |landing| landing.until_ns)
    }

    /// Loses everything that is not on the surface at `now_ns`: how many bytes.
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
