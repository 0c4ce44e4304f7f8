//! Segments: which are free, how many slots of each are live, which to clean next, and when a dead one may be written again.
//!
//! ```text
//!   Free ─► Open ─► Full ─► Dead ─► Free
//!                     │       └─ waits: what replaced its slots is durable, and no recovery needs to read it
//!                     └─ cleaned: its live slots are moved
//! ```

use crate::format::checkpoint::{SegmentState, Use};
use crate::format::{Geometry, Seq};
use std::collections::VecDeque;

/// What becomes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Full,
    /// Nothing in it is live: since this slot replaced its last one, and after the checkpoint of this number was begun.
    Dead {
        since: Seq,
        checkpoint: u64,
    },
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    state: State,
    used: Use,
    live: u32,
    newest: Seq,
    /// Its first slot; every slot of an earlier generation has a smaller number. 0 if unknown.
    begun: Seq,
    /// It could not be cleaned: something in it, or the map of it, cannot be read.
    stuck: bool,
    /// What counted as live in it is not: only a checkpoint says so.
    abandoned: bool,
}

impl Segment {
    /// Whether only a checkpoint frees it once it is dead: one lists where the pages of the map are, and what is live in a segment.
    fn by_checkpoint(&self) -> bool {
        self.used == Use::Map || self.abandoned
    }
}

/// All segments of a log.
#[derive(Debug)]
pub struct Segments {
    all: Vec<Segment>,
    free: VecDeque<u32>,
    dead: Vec<u32>,
    slots: u32,
    /// Ages beyond so many slots are the same: numbers leap with every opening.
    oldest: Seq,
}

/// From when on dead segments may be written again.
#[derive(Debug, Clone, Copy)]
pub struct Safe {
    /// Every slot up to here is durable.
    pub durable: Seq,
    /// The first slot that is not in the last durable checkpoint.
    pub replayed_from: Seq,
    /// The number of the last durable checkpoint.
    pub checkpoint: u64,
}

impl Segments {
    /// Segments as a checkpoint has them.
    pub fn new(states: &[SegmentState], geometry: &Geometry) -> Segments {
        let all: Vec<Segment> = states
            .iter()
            .map(|state| Segment {
                state: if state.used == Use::Free { State::Free } else { State::Full },
                used: state.used,
                live: state.live,
                newest: state.newest,
                begun: state.begun,
                stuck: false,
                abandoned: false,
            })
            .collect();
        let free = (0..all.len() as u32).filter(|&n| all[n as usize].state == State::Free).collect();
        let oldest = Seq::from(geometry.segments) * Seq::from(geometry.segment_slots());
        Segments { all, free, dead: Vec::new(), slots: geometry.data_slots(), oldest }
    }

    /// For a checkpoint.
    pub fn states(&self) -> Vec<SegmentState> {
        let state = |segment: &Segment| SegmentState {
            used: if segment.state == State::Free { Use::Free } else { segment.used },
            live: segment.live,
            newest: segment.newest,
            begun: segment.begun,
        };
        self.all.iter().map(state).collect()
    }

    /// Segments that may be written.
    pub fn free(&self) -> usize {
        self.free.len()
    }
    /// Segments without anything live, which may not be written yet.
    pub fn dead(&self) -> usize {
        self.dead.len()
    }
    /// How many of those a flush would free, and how many only a checkpoint.
    pub fn dead_until(&self, safe: Safe) -> (usize, usize) {
        let flush = |&&segment: &&u32| {
            let it = &self.all[segment as usize];
            let newer = matches!(it.state, State::Dead { since, .. } if since > safe.durable);
            !it.by_checkpoint() && newer && it.newest < safe.replayed_from
        };
        let flush = self.dead.iter().filter(flush).count();
        (flush, self.dead.len() - flush)
    }
    /// When a full segment was written last; `None` where it is dead, free, or written anew by now.
    pub fn full_since(&self, segment: u32) -> Option<Seq> {
        let it = &self.all[segment as usize];
        (it.state == State::Full).then_some(it.newest)
    }
    /// How many of a segment's slots are live.
    pub fn live(&self, segment: u32) -> u32 {
        self.all[segment as usize].live
    }
    /// The first sequence number of a segment's current generation, or a lower bound: 0 where nothing is known. A slot
    /// with a smaller one was written before the segment was freed: the medium lost the write that replaced it.
    pub fn begun(&self, segment: u32) -> Seq {
        self.all[segment as usize].begun
    }
    /// The newest slot of a segment.
    pub fn newest(&self, segment: u32) -> Seq {
        self.all[segment as usize].newest
    }
    /// What a segment is used for.
    pub fn used(&self, segment: u32) -> Use {
        self.all[segment as usize].used
    }

    /// Takes the free segment that is free for longest.
    pub fn take(&mut self) -> Option<u32> {
        let segment = self.free.pop_front()?;
        self.all[segment as usize].state = State::Open;
        Some(segment)
    }
    /// Says what a taken segment is written for; nothing in it is live.
    pub fn begin(&mut self, segment: u32, used: Use, seq: Seq) {
        let it = &mut self.all[segment as usize];
        *it = Segment {
            state: State::Open,
            used,
            live: 0,
            newest: seq,
            begun: seq,
            stuck: false,
            abandoned: false,
        };
    }
    /// Segments that a recovery found to be written after the checkpoint: their newest slots, and the first numbers of
    /// their generations, or lower bounds.
    pub fn found(&mut self, segments: &[(u32, Seq, Seq)]) {
        for &(segment, newest, begun) in segments {
            let it = &mut self.all[segment as usize];
            it.state = State::Full;
            it.used = Use::Data;
            it.newest = it.newest.max(newest);
            it.begun = begun;
        }
        let all = &self.all;
        self.free.retain(|&free| all[free as usize].state == State::Free);
    }
    /// A slot of it was written.
    pub fn written(&mut self, segment: u32, seq: Seq) {
        let it = &mut self.all[segment as usize];
        it.newest = it.newest.max(seq);
    }
    /// Nothing more is written to it.
    pub fn close(&mut self, segment: u32, at: Seq, checkpoint: u64) {
        self.all[segment as usize].state = State::Full;
        self.died(segment, at, checkpoint);
    }

    /// A slot of it became live.
    pub fn gained(&mut self, segment: u32) {
        self.all[segment as usize].live += 1;
    }
    /// A slot of it was replaced by the one with the number `by`.
    pub fn lost(&mut self, segment: u32, by: Seq, checkpoint: u64) {
        let it = &mut self.all[segment as usize];
        it.live = it.live.saturating_sub(1);
        self.died(segment, by, checkpoint);
    }
    fn died(&mut self, segment: u32, since: Seq, checkpoint: u64) {
        let it = &mut self.all[segment as usize];
        if it.live == 0 && it.state == State::Full {
            it.state = State::Dead { since, checkpoint };
            self.dead.push(segment);
        }
    }
    /// After a recovery: what is open is written on, and what else holds nothing live is dead.
    pub fn settle(&mut self, open: &[u32], at: Seq, checkpoint: u64) {
        self.dead.clear();
        for &segment in open {
            self.all[segment as usize].state = State::Open;
        }
        self.free.retain(|segment| !open.contains(segment));
        for segment in 0..self.all.len() as u32 {
            if !matches!(self.all[segment as usize].state, State::Free | State::Open) {
                self.all[segment as usize].state = State::Full;
                self.died(segment, at, checkpoint);
            }
        }
    }

    /// Frees what may be written again.
    pub fn release(&mut self, safe: Safe) {
        let (all, free) = (&mut self.all, &mut self.free);
        self.dead.retain(|&segment| {
            let it = &mut all[segment as usize];
            let State::Dead { since, checkpoint } = it.state else { return false };
            let may = match it.by_checkpoint() {
                true => checkpoint < safe.checkpoint,
                // What replaced its slots is durable, and a recovery does not read it.
                false => since <= safe.durable && it.newest < safe.replayed_from,
            };
            if may {
                it.state = State::Free;
                it.used = Use::Free;
                free.push_back(segment);
            }
            !may
        });
    }

    /// The segment whose cleaning gives most for what it costs: free space times age over what is to be read and written
    /// (Rosenblum and Ousterhout, "The design and implementation of a log-structured file system", 1992, section 3.5).
    pub fn victim(&self, now: Seq) -> Option<u32> {
        let score = |it: &Segment| {
            let used = f64::from(it.live) / f64::from(self.slots);
            let age = now.saturating_sub(it.newest).min(self.oldest) as f64 + 1.0;
            (1.0 - used) * age / (1.0 + used)
        };
        let full =
            self.all.iter().enumerate().filter(|(_, it)| {
                it.state == State::Full && !it.stuck && it.live > 0 && it.live < self.slots
            });
        full.max_by(|(_, a), (_, b)| score(a).total_cmp(&score(b))).map(|(segment, _)| segment as u32)
    }
    /// Nothing in a segment is what the map means, whatever counted as live. It is free after a checkpoint that says so.
    pub fn abandon(&mut self, segment: u32, at: Seq, checkpoint: u64) {
        let it = &mut self.all[segment as usize];
        it.live = 0;
        it.abandoned = true;
        self.died(segment, at, checkpoint);
    }
    /// Says that a segment cannot be emptied.
    pub fn stuck(&mut self, segment: u32) {
        self.all[segment as usize].stuck = true;
    }
    /// The next of those that could not be emptied, from `from` on and round.
    pub fn next_stuck(&self, from: u32) -> Option<u32> {
        let count = self.all.len() as u32;
        (0..count).map(|n| (from % count + n) % count).find(|&segment| self.all[segment as usize].stuck)
    }
    /// Has all of them tried again.
    pub fn try_stuck(&mut self) {
        self.all.iter_mut().for_each(|it| it.stuck = false);
    }
    /// Segments that cannot be cleaned.
    pub fn stuck_count(&self) -> usize {
        self.all.iter().filter(|it| it.stuck).count()
    }
}
