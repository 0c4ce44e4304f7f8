//! The pace of garbage collection.
//!
//! Each unit that the host writes adds to a debt of units to reclaim; the fewer blocks are erased, the more it adds. A
//! bounded number of slots pays the debt in small steps, so that host writes and cleaning interleave. Each slot empties
//! one victim, which [`super::victim`] selects.
//!
//! # Not modelled
//! Static wear levelling, refresh of old data, and cleaning of map pages.

use super::Geometry;
use super::spec::Gc;
use serde::{Deserialize, Serialize};

/// Fixed point: units × 2^16.
pub(super) const ONE: i64 = 1 << 16;

/// The most units reclaimed per host unit in steady mode.
const MAX_STEADY_PACE: i64 = 4 * ONE;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Mode {
    /// A drive with a late start that has not begun to clean.
    Waiting,
    /// A drive with a late start that refills its pool of erased blocks.
    CatchingUp,
    /// The drive keeps the pool at its set point.
    Steady,
}

/// A slot, which empties one victim at a time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) victim: Option<u32>,
    /// The next physical unit to examine; the victim ends at `end`.
    pub(super) cursor: u32,
    pub(super) end: u32,
    pub(super) moved: u32,
    pub(super) busy_ns: u64,
    credit_per_move: i64,
    credited: i64,
}

impl Slot {
    /// Begins a victim with `valid` of `block_units` units to move.
    pub(super) fn begin(&mut self, victim: u32, valid: u32, block_units: u32) {
        self.victim = Some(victim);
        self.cursor = victim * block_units;
        self.end = self.cursor + block_units;
        self.moved = 0;
        self.credited = 0;
        self.credit_per_move =
            if valid == 0 { 0 } else { i64::from(block_units - valid) * ONE / i64::from(valid) };
    }

    /// The units credited for `moves` moves. The gain of a victim is credited while it is emptied, not at its end.
    pub(super) fn credit(&mut self, moves: u32) -> i64 {
        let credit = self.credit_per_move * i64::from(moves);
        self.moved += moves;
        self.credited += credit;
        credit
    }

    /// Ends an empty victim. Returns the units that its erasure reclaims in addition to those credited.
    pub(super) fn finish(&mut self, block_units: u32) -> i64 {
        self.victim = None;
        (i64::from(block_units) - i64::from(self.moved)) * ONE - self.credited
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Collector {
    pub(super) slots: Vec<Slot>,
    turn: usize,
    /// The number of slots that clean in turn. The slots after them fold the SLC cache.
    in_turn: usize,
    debt: i64,
    pace: i64,
    mode: Mode,
    late: bool,
    catch_up_pace: i64,
    start: i64,
    set_point: i64,
    high: i64,
    /// Units moved per step.
    pub(super) step_units: u32,
}

impl Collector {
    pub(super) fn new(geometry: &Geometry, gc: &Gc) -> Self {
        let slot =
            Slot { victim: None, cursor: 0, end: 0, moved: 0, busy_ns: 0, credit_per_move: 0, credited: 0 };
        Collector {
            slots: vec![slot; (geometry.gc_slots + geometry.fold_slots) as usize],
            turn: 0,
            in_turn: geometry.gc_slots as usize,
            debt: 0,
            pace: 0,
            mode: if gc.catch_up.is_some() { Mode::Waiting } else { Mode::Steady },
            late: gc.catch_up.is_some(),
            catch_up_pace: gc.catch_up.map_or(0, |late| (late.pace * ONE as f64) as i64),
            start: i64::from(geometry.start_blocks),
            set_point: i64::from(geometry.set_point_blocks),
            high: i64::from(geometry.high_blocks),
            step_units: geometry.page_units.max(16),
        }
    }

    /// Updates everything that depends on the number of erased blocks.
    pub(super) fn observe(&mut self, free: u32) {
        let free = i64::from(free);
        if self.late {
            self.mode = match self.mode {
                Mode::Waiting | Mode::Steady if free <= self.start => Mode::CatchingUp,
                Mode::CatchingUp if free >= self.high => Mode::Steady,
                Mode::Steady if free > 2 * self.high => Mode::Waiting,
                mode => mode,
            };
        }
        self.pace = match self.mode {
            Mode::Waiting => 0,
            Mode::CatchingUp => self.catch_up_pace,
            // One unit per host unit at the set point, which keeps the pool there; none when the pool is full.
            Mode::Steady => {
                ((self.high - free).max(0) * ONE / (self.high - self.set_point)).min(MAX_STEADY_PACE)
            }
        };
        if self.pace == 0 {
            self.debt = 0;
        }
    }

    /// Adds units written by the host. Returns whether a step is due.
    #[inline]
    pub(super) fn charge(&mut self, units: u32) -> bool {
        self.debt += self.pace * i64::from(units);
        self.debt > 0
    }

    /// Subtracts the units that a step reclaimed. Returns whether another step is due.
    #[inline]
    pub(super) fn pay(&mut self, credit: i64) -> bool {
        self.debt -= credit;
        self.debt > 0
    }

    /// The next slot in turn.
    pub(super) fn next_slot(&mut self) -> usize {
        let slot = self.turn;
        self.turn = if slot + 1 == self.in_turn { 0 } else { slot + 1 };
        slot
    }

    /// The slots that empty victims.
    pub(super) fn cleaning(&self) -> &[Slot] {
        &self.slots[..self.in_turn]
    }

    /// Ends the operations in progress at a power cut.
    pub(super) fn interrupt(&mut self, now_ns: u64) {
        self.slots.iter_mut().for_each(|slot| slot.busy_ns = slot.busy_ns.min(now_ns));
    }

    /// Clears victims and debt, for a secure erase.
    pub(super) fn clear(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.victim = None);
        self.debt = 0;
        if self.late {
            self.mode = Mode::Waiting;
        }
    }
}
