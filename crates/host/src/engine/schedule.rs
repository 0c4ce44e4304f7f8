//! The intended starts of an open loop's requests ([`Schedule`]).
//!
//! A request whose start has passed stays due until a thread takes it, and its latency counts from the intended
//! start. Closed loops have no schedule.

use lowtide_core::Seed;
use lowtide_core::rng::Rng;
use lowtide_core::trace::Trace;
use lowtide_core::workload::{Arrival, Arrivals};
use std::sync::Arc;

/// The intended starts of one thread, in nanoseconds of the measurement's clock.
#[derive(Debug)]
pub(super) struct Schedule {
    starts: Starts,
    next_ns: u64,
}

#[derive(Debug)]
enum Starts {
    Drawn(Arrivals, Rng),
    /// The times of a trace, from this position on.
    Recorded(Arc<Trace>, usize),
}

impl Starts {
    /// The next start; `u64::MAX` after the end of a trace.
    fn next(&mut self) -> u64 {
        match self {
            Starts::Drawn(arrivals, rng) => arrivals.next(rng),
            Starts::Recorded(trace, next) => {
                let start = trace.requests().get(*next).map_or(u64::MAX, |traced| traced.at_ns);
                *next += 1;
                start
            }
        }
    }
}

impl Schedule {
    /// The schedule of one of `threads` threads; `None` for a closed loop.
    pub(super) fn new(arrival: Arrival, seed: Seed, thread: u32, threads: u32) -> Option<Schedule> {
        let arrivals = Arrivals::new(arrival, thread, threads)?;
        let rng = seed.part("arrivals", u64::from(thread)).stream();
        Some(Schedule::of(Starts::Drawn(arrivals, rng)))
    }

    /// The times of a trace.
    pub(super) fn recorded(trace: &Arc<Trace>) -> Schedule {
        Schedule::of(Starts::Recorded(Arc::clone(trace), 0))
    }

    fn of(mut starts: Starts) -> Schedule {
        let next_ns = starts.next();
        Schedule { starts, next_ns }
    }

    /// The next intended start.
    #[inline]
    pub(super) fn peek(&self) -> u64 {
        self.next_ns
    }

    /// Takes the next intended start.
    #[inline]
    pub(super) fn take(&mut self) -> u64 {
        std::mem::replace(&mut self.next_ns, self.starts.next())
    }

    /// Takes the next intended start if it has passed.
    #[inline]
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<u64> {
        (self.next_ns <= now_ns).then(|| self.take())
    }

    /// Counts the starts before `end_ns` that were not taken.
    pub(super) fn overdue(&mut self, end_ns: u64) -> u64 {
        let mut count = 0;
        while self.next_ns < end_ns {
            self.take();
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stay_due_until_taken() {
        let arrival = Arrival::Fixed { per_second: 1000.0 };
        let mut schedule = Schedule::new(arrival, Seed::new(1), 0, 1).expect("open");
        assert_eq!(schedule.take_due(5_000_000), Some(0));
        assert_eq!(schedule.take_due(5_000_000), Some(1_000_000));
        assert_eq!(schedule.take_due(1_999_999), None);
        assert_eq!(schedule.overdue(5_000_000), 3);
        assert!(Schedule::new(Arrival::Closed, Seed::new(1), 0, 1).is_none());
    }
}
