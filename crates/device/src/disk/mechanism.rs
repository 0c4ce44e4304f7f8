//! The mechanism of a disk ([`Mechanism`]): the position of the head, rotation, and one transfer at a time.
//!
//! Only a power cut interrupts a transfer. Module `queue` chooses the next command.

use super::seek::{Coarse, SeekCurve};
use super::surface::Surface;
use serde::{Deserialize, Serialize};

/// Units of coarse time in a revolution. A power of two, so that the angle needs no division.
const TURN: u32 = 1 << 27;

/// The position of the head, and the time at which it is free.
#[derive(Debug)]
pub(super) struct Mechanism {
    pub(super) surface: Surface,
    curve: SeekCurve,
    coarse: Coarse,
    units_per_ns: f64,
    write_settle_ns: u64,
    /// The angle at time 0, in nanoseconds.
    phase_ns: u64,
    /// End of the current or last transfer.
    pub(super) free_ns: u64,
    /// The byte after the current or last transfer.
    pub(super) byte: u64,
    cylinder: u64,
}

/// The saved state of a [`Mechanism`].
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Position {
    phase_ns: u64,
    free_ns: u64,
    byte: u64,
    cylinder: u64,
}

/// A target of the scheduler, in coarse units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    pub(super) cylinder: i32,
    pub(super) angle: u32,
    pub(super) settle: u32,
}

/// The times of a transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer {
    /// Time at which the first byte passes the head.
    pub(super) begin_ns: u64,
    /// Time at which the last byte has passed the head.
    pub(super) end_ns: u64,
}

impl Mechanism {
    pub(super) fn position(&self) -> Position {
        let Mechanism { phase_ns, free_ns, byte, cylinder, .. } = *self;
        Position { phase_ns, free_ns, byte, cylinder }
    }

    pub(super) fn move_to(&mut self, position: Position) {
        let Position { phase_ns, free_ns, byte, cylinder } = position;
        (self.phase_ns, self.free_ns, self.byte, self.cylinder) = (phase_ns, free_ns, byte, cylinder);
    }

    pub(super) fn new(surface: Surface, curve: SeekCurve, write_settle_ns: u64, phase_ns: u64) -> Self {
        let units_per_ns = f64::from(TURN) / surface.revolution_ns() as f64;
        let coarse = curve.coarse(units_per_ns);
        Mechanism {
            surface,
            curve,
            coarse,
            units_per_ns,
            write_settle_ns,
            phase_ns,
            free_ns: 0,
            byte: 0,
            cylinder: 0,
        }
    }

    pub(super) fn curve(&self) -> &SeekCurve {
        &self.curve
    }

    /// The first time from `ns` on at which `place` is below the head, if the head is on its track.
    #[inline]
    pub(super) fn turn_to(&self, place: u64, ns: u64) -> u64 {
        let revolution = self.surface.revolution_ns();
        let (wanted, angle) = (place % revolution, (ns + self.phase_ns) % revolution);
        ns + if wanted >= angle { wanted - angle } else { wanted + revolution - angle }
    }

    /// Time at which the head is on the track of `place`, if the seek begins at `start_ns`.
    #[inline]
    pub(super) fn arrive(&self, start_ns: u64, place: u64, write: bool) -> u64 {
        let distance = self.surface.cylinder(place).abs_diff(self.cylinder);
        let settle = if write && distance > 0 { self.write_settle_ns } else { 0 };
        start_ns + self.curve.ns(distance) + settle
    }

    /// Transfers the bytes from `first` to `end`. The seek begins at `start_ns`, or when the head is free if that is
    /// later.
    #[inline]
    pub(super) fn transfer(&mut self, start_ns: u64, first: u64, end: u64, write: bool) -> Transfer {
        let (place, end_place) = (self.surface.place(first), self.surface.place(end));
        let there_ns = self.arrive(start_ns.max(self.free_ns), place, write);
        let begin_ns = self.turn_to(place, there_ns);
        self.free_ns = begin_ns + (end_place - place);
        self.byte = end;
        self.cylinder = self.surface.cylinder(end_place);
        Transfer { begin_ns, end_ns: self.free_ns }
    }

    /// Moves the head along the spiral to `byte`, which is at `place`.
    #[inline]
    pub(super) fn follow(&mut self, byte: u64, place: u64) {
        self.byte = byte;
        self.cylinder = self.surface.cylinder(place);
    }

    /// Converts a place to a target of the scheduler.
    #[inline]
    pub(super) fn aim(&self, place: u64, write: bool) -> Aim {
        let settle = if write { self.write_settle_ns } else { 0 };
        Aim {
            cylinder: self.surface.cylinder(place) as i32,
            angle: self.units(place % self.surface.revolution_ns()),
            settle: self.units(settle),
        }
    }

    #[inline]
    fn units(&self, ns: u64) -> u32 {
        (ns as f64 * self.units_per_ns) as u32
    }

    /// Fills `costs` with the positioning time of each target, in coarse units from the time at which the head is
    /// free.
    pub(super) fn costs(&self, cylinders: &[i32], angles: &[u32], settles: &[u32], costs: &mut Vec<u32>) {
        let revolution = self.surface.revolution_ns();
        let angle = self.units((self.free_ns + self.phase_ns) % revolution);
        let here = self.cylinder as i32;
        costs.clear();
        costs.extend(cylinders.iter().zip(angles).zip(settles).map(|((&cylinder, &wanted), &settle)| {
            let distance = (cylinder - here).unsigned_abs();
            let settle = if distance == 0 { 0 } else { settle };
            let seek = self.coarse.at(distance as i32 as f32) as i32 as u32 + settle;
            seek + (wanted.wrapping_sub(angle).wrapping_sub(seek) & (TURN - 1))
        }));
    }

    /// Ends the current transfer at `now_ns`, because of a power cut.
    pub(super) fn interrupt(&mut self, now_ns: u64) {
        self.free_ns = self.free_ns.min(now_ns);
    }
}
