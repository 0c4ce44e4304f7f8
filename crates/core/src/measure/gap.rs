//! Gaps: times during which the measuring program did not run, and clocks that leave them out.
//!
//! A process may be stopped (SIGSTOP, Ctrl-Z), and a machine suspended, in the middle of a measurement. That
//! time is not the drive's. Leaves out how a gap is noticed, which needs a machine.

use crate::units::Nanos;

/// Why the program did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The process was stopped by a signal, and continued.
    Stopped,
    /// The machine was suspended, and resumed.
    Suspended,
}

impl Cause {
    /// All causes.
    pub const ALL: [Cause; 2] = [Cause::Stopped, Cause::Suspended];

    /// Its name in stores and exports.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Stopped => "stopped",
            Cause::Suspended => "suspended",
        }
    }
}

/// A period that is left out of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Nanoseconds from the beginning of the measurement to the gap, earlier gaps left out.
    pub at_ns: u64,
    /// How long the program did not run.
    pub length: Nanos,
    /// Why.
    pub cause: Cause,
}

/// A reading of the clock of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Nanoseconds since the clock was started, gaps left out.
    pub ns: u64,
    /// Number of gaps before this reading. A request that began at one number and ended at another was in
    /// flight over a gap: how long it took is not known.
    pub gaps: u32,
}

/// A clock that several threads read. Readings of a thread never go back.
pub trait Clock: Sync {
    /// What it shows now.
    fn read(&self) -> Reading;
}
