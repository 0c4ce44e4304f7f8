//! Gaps in a measurement ([`Gap`]) and clocks that exclude them ([`Clock`]).
//!
//! A gap is time in which the measuring program did not run, because its process was stopped (SIGSTOP, Ctrl-Z) or the
//! machine was suspended. Such time must not count as the drive's. Gaps are detected elsewhere, as detection needs
//! the operating system.

use crate::units::Nanos;

/// The reason for a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A signal stopped the process, which later continued.
    Stopped,
    /// The machine was suspended and later resumed.
    Suspended,
}

impl Cause {
    /// All causes.
    pub const ALL: [Cause; 2] = [Cause::Stopped, Cause::Suspended];

    /// The name of the cause in stores and exports.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Stopped => "stopped",
            Cause::Suspended => "suspended",
        }
    }
}

/// A period excluded from a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Nanoseconds of measured time before the gap; earlier gaps do not count.
    pub at_ns: u64,
    /// Time in which the program did not run.
    pub length: Nanos,
    /// The reason.
    pub cause: Cause,
}

/// A reading of the clock of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Nanoseconds since the clock was started, gaps excluded.
    pub ns: u64,
    /// Number of gaps so far. If the number changed during a request, the request was in flight across a gap and its
    /// latency is unknown.
    pub gaps: u32,
}

/// A clock that several threads share. The readings of one thread never go backwards.
pub trait Clock: Sync {
    /// Reads the clock.
    fn read(&self) -> Reading;
}
