//! The states of segments ([`Segments`]): free segments, live slots, the choice of victims, and the release of dead
//! segments.
//!
//! ```text
//!   Free ─► Open ─► Full ─► Dead ─► Free
//!                     │       └─ waits until its replacements are durable and no recovery reads it
//!                     └─ cleaned: live slots are moved
//! ```

use crate::format::checkpoint::{SegmentState, Use};
use crate::format::{Geometry, Seq};
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Full,
    /// Without live slots since slot `since` replaced the last one, after the begin of checkpoint `checkpoint`.
    Dead {
        since: Seq,
        checkpoint: u64,
    },
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    state: State,
    /// The record for a checkpoint, except that `used` is kept until the segment is free.
    record: SegmentState,
    /// Whether the segment cannot be cleaned, because a part of it, or of the map that refers to it, is unreadable.
    stuck: bool,
    /// Whether the live count was wrong, so that only a checkpoint may free the segment.
    abandoned: bool,
}

impl Segment {
    /// Returns whether only a checkpoint may free the segment: checkpoints list the pages of the map and the live
    /// counts.
    fn by_checkpoint(&self) -> bool {
        self.record.used == Use::Map || self.abandoned
    }
}

/// All segments of a log.
#[derive(Debug)]
pub struct Segments {
    all: Vec<Segment>,
    free: VecDeque<u32>,
    dead: Vec<u32>,
    slots: u32,
    /// Maximum age in slots. Larger ages result from the leap of numbers at each opening.
    oldest: Seq,
}

/// The conditions for releasing dead segments.
#[derive(Debug, Clone, Copy)]
pub struct Safe {
    /// All slots up to this one are durable.
    pub durable: Seq,
    /// The first slot after the last durable checkpoint.
    pub replayed_from: Seq,
    /// The number of the last durable checkpoint.
    pub checkpoint: u64,
}

impl Segments {
    /// The segments of a checkpoint.
    pub fn new(states: &[SegmentState], geometry: &Geometry) -> Segments {
        let all: Vec<Segment> = states
            .iter()
            .map(|&record| {
                let state = if record.used == Use::Free { State::Free } else { State::Full };
                Segment { state, record, stuck: false, abandoned: false }
            })
            .collect();
        let free = (0..all.len() as u32).filter(|&n| all[n as usize].state == State::Free).collect();
        let oldest = Seq::from(geometry.segments) * Seq::from(geometry.segment_slots());
        Segments { all, free, dead: Vec::new(), slots: geometry.data_slots(), oldest }
    }

    /// The states for a checkpoint.
    pub fn states(&self) -> Vec<SegmentState> {
        let state = |segment: &Segment| SegmentState {
            used: if segment.state == State::Free { Use::Free } else { segment.record.used },
            ..segment.record
        };
        self.all.iter().map(state).collect()
    }

    /// Number of free segments.
    pub fn free(&self) -> usize {
        self.free.len()
    }
    /// Number of dead segments that are not released yet.
    pub fn dead(&self) -> usize {
        self.dead.len()
    }
    /// The number of dead segments that a flush would release, and the number of those that need a checkpoint.
    pub fn dead_until(&self, safe: Safe) -> (usize, usize) {
        let flush = |&&segment: &&u32| {
            let it = &self.all[segment as usize];
            let newer = matches!(it.state, State::Dead { since, .. } if since > safe.durable);
            !it.by_checkpoint() && newer && it.record.newest < safe.replayed_from
        };
        let flush = self.dead.iter().filter(flush).count();
        (flush, self.dead.len() - flush)
    }
    /// The newest slot of a full segment; `None` in any other state.
    pub fn full_since(&self, segment: u32) -> Option<Seq> {
        let it = &self.all[segment as usize];
        (it.state == State::Full).then_some(it.record.newest)
    }
    /// Number of live slots.
    pub fn live(&self, segment: u32) -> u32 {
        self.all[segment as usize].record.live
    }
    /// The first sequence number of a segment's current generation, or a lower bound; 0 if unknown. A slot with a
    /// smaller number remains from an earlier generation: the medium lost the write that replaced it.
    pub fn begun(&self, segment: u32) -> Seq {
        self.all[segment as usize].record.begun
    }
    /// The newest slot of a segment.
    pub fn newest(&self, segment: u32) -> Seq {
        self.all[segment as usize].record.newest
    }
    /// The use of a segment.
    pub fn used(&self, segment: u32) -> Use {
        self.all[segment as usize].record.used
    }

    /// Takes the segment that has been free longest.
    pub fn take(&mut self) -> Option<u32> {
        let segment = self.free.pop_front()?;
        self.all[segment as usize].state = State::Open;
        Some(segment)
    }
    /// Begins a new generation of a taken segment.
    pub fn begin(&mut self, segment: u32, used: Use, seq: Seq) {
        let record = SegmentState { used, live: 0, newest: seq, begun: seq };
        self.all[segment as usize] = Segment { state: State::Open, record, stuck: false, abandoned: false };
    }
    /// Sets the segments that recovery found to be written after the checkpoint: number, newest slot, and first slot
    /// of the generation or a lower bound.
    pub fn found(&mut self, segments: &[(u32, Seq, Seq)]) {
        for &(segment, newest, begun) in segments {
            let it = &mut self.all[segment as usize];
            it.state = State::Full;
            it.record.used = Use::Data;
            it.record.newest = it.record.newest.max(newest);
            it.record.begun = begun;
        }
        let all = &self.all;
        self.free.retain(|&free| all[free as usize].state == State::Free);
    }
    /// Notes that a slot was written.
    pub fn written(&mut self, segment: u32, seq: Seq) {
        let it = &mut self.all[segment as usize];
        it.record.newest = it.record.newest.max(seq);
    }
    /// Notes that a segment is full.
    pub fn close(&mut self, segment: u32, at: Seq, checkpoint: u64) {
        self.all[segment as usize].state = State::Full;
        self.died(segment, at, checkpoint);
    }

    /// Counts a new live slot.
    pub fn gained(&mut self, segment: u32) {
        self.all[segment as usize].record.live += 1;
    }
    /// Counts a slot that slot `by` has replaced.
    pub fn lost(&mut self, segment: u32, by: Seq, checkpoint: u64) {
        let it = &mut self.all[segment as usize];
        it.record.live = it.record.live.saturating_sub(1);
        self.died(segment, by, checkpoint);
    }
    fn died(&mut self, segment: u32, since: Seq, checkpoint: u64) {
        let it = &mut self.all[segment as usize];
        if it.record.live == 0 && it.state == State::Full {
            it.state = State::Dead { since, checkpoint };
            self.dead.push(segment);
        }
    }
    /// Ends a recovery: `open` segments stay open, and all others without live slots are dead.
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

    /// Releases dead segments.
    pub fn release(&mut self, safe: Safe) {
        let (all, free) = (&mut self.all, &mut self.free);
        self.dead.retain(|&segment| {
            let it = &mut all[segment as usize];
            let State::Dead { since, checkpoint } = it.state else { return false };
            let may = match it.by_checkpoint() {
                true => checkpoint < safe.checkpoint,
                // The replacements are durable, and recovery does not read the segment.
                false => since <= safe.durable && it.record.newest < safe.replayed_from,
            };
            if may {
                it.state = State::Free;
                it.record.used = Use::Free;
                free.push_back(segment);
            }
            !may
        });
    }

    /// The segment with the highest benefit-to-cost ratio: free space times age over the slots to read and write
    /// (Rosenblum and Ousterhout, "The design and implementation of a log-structured file system", 1992, section
    /// 3.5).
    pub fn victim(&self, now: Seq) -> Option<u32> {
        let score = |it: &Segment| {
            let used = f64::from(it.record.live) / f64::from(self.slots);
            let age = now.saturating_sub(it.record.newest).min(self.oldest) as f64 + 1.0;
            (1.0 - used) * age / (1.0 + used)
        };
        let full = self.all.iter().enumerate().filter(|(_, it)| {
            it.state == State::Full && !it.stuck && it.record.live > 0 && it.record.live < self.slots
        });
        full.max_by(|(_, a), (_, b)| score(a).total_cmp(&score(b))).map(|(segment, _)| segment as u32)
    }
    /// Sets the live count to 0, because the map refers to no slot of the segment. A checkpoint then frees it.
    pub fn abandon(&mut self, segment: u32, at: Seq, checkpoint: u64) {
        let it = &mut self.all[segment as usize];
        it.record.live = 0;
        it.abandoned = true;
        self.died(segment, at, checkpoint);
    }
    /// Excludes a segment from cleaning.
    pub fn stuck(&mut self, segment: u32) {
        self.all[segment as usize].stuck = true;
    }
    /// The next excluded segment from `from` on, cyclically.
    pub fn next_stuck(&self, from: u32) -> Option<u32> {
        let count = self.all.len() as u32;
        (0..count).map(|n| (from % count + n) % count).find(|&segment| self.all[segment as usize].stuck)
    }
    /// Includes all segments again.
    pub fn try_stuck(&mut self) {
        self.all.iter_mut().for_each(|it| it.stuck = false);
    }
    /// Number of excluded segments.
    pub fn stuck_count(&self) -> usize {
        self.all.iter().filter(|it| it.stuck).count()
    }
}
