//! Groups the terminals' events into intervals.
//!
//! A terminal notes events in its own list, and reads the clock while it holds the list's lock. So a list that is
//! taken after the end of an interval holds all events of that interval; later events stay for the next one. An event
//! is counted in the interval in which it happened, even if the list is taken late. The ledger fills the histograms
//! later, so that terminals do not spend time on them.

use lowtide_core::Nanos;
use lowtide_core::measure::{Clock, Reading};
use lowtide_engines::tpcc::Kind;
use lowtide_engines::{Interval, Tally};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An event of a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    at: Reading,
    kind: Kind,
    what: What,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// A conflict with another transaction; the transaction is retried.
    Retried,
    /// A commit, with the start of the transaction.
    Committed { began: Reading },
    /// A rollback that the specification requires, with the start of the transaction.
    RolledBack { began: Reading },
}

/// The events of a terminal that are not in an interval yet.
#[derive(Debug, Default)]
pub(super) struct Events(Mutex<Vec<Event>>);

impl Events {
    /// Notes an event that happens now.
    pub(super) fn note(&self, clock: &dyn Clock, kind: Kind, what: What) {
        let mut events = self.lock();
        let at = clock.read();
        events.push(Event { at, kind, what });
    }
    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Groups the events of all terminals into intervals. The first interval begins when the ledger is made.
pub(super) struct Ledger<'a> {
    clock: &'a dyn Clock,
    start_ns: u64,
    length: Nanos,
    terminals: &'a [Events],
    /// The interval in progress.
    current: Interval,
    /// Events of later intervals.
    later: Vec<Event>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(clock: &'a dyn Clock, length: Nanos, terminals: &'a [Events]) -> Self {
        let current = interval(0, length);
        Ledger { clock, start_ns: clock.read().ns, length, terminals, current, later: Vec::new() }
    }
    /// Start of the first interval, by the clock.
    pub(super) fn began_ns(&self) -> u64 {
        self.start_ns
    }
    /// Time until the interval in progress ends.
    pub(super) fn until_end(&self) -> Duration {
        Duration::from_nanos(self.end_ns().saturating_sub(self.clock.read().ns))
    }
    /// Counts the events noted so far, which keeps the lists short in long intervals.
    pub(super) fn gather(&mut self) {
        for terminal in self.terminals {
            self.later.append(&mut terminal.lock());
        }
        let end_ns = self.end_ns();
        self.later.retain(|event| {
            let ended = event.at.ns < end_ns;
            if ended {
                count(&mut self.current.kinds[event.kind as usize], event);
            }
            !ended
        });
    }
    /// Returns the interval once it is over. The next interval begins at its end.
    pub(super) fn next(&mut self) -> Interval {
        self.gather();
        let next = interval(self.current.end_ns, self.length);
        std::mem::replace(&mut self.current, next)
    }
    /// Returns the intervals not yet reported when all terminals have ended. The last of them is shorter.
    pub(super) fn finish(mut self) -> Vec<Interval> {
        let now = self.clock.read().ns.saturating_sub(self.start_ns);
        let mut left = Vec::new();
        while self.current.end_ns < now {
            left.push(self.next());
        }
        self.gather();
        self.current.end_ns = now;
        left.extend((self.current.start_ns < now).then_some(self.current));
        left
    }

    fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.current.end_ns)
    }
}

fn interval(start_ns: u64, length: Nanos) -> Interval {
    Interval { start_ns, end_ns: start_ns.saturating_add(length.get()), kinds: Default::default() }
}

fn count(tally: &mut Tally, event: &Event) {
    let (counter, began) = match event.what {
        What::Retried => {
            tally.retries += 1;
            return;
        }
        What::Committed { began } => (&mut tally.committed, began),
        What::RolledBack { began } => (&mut tally.rolled_back, began),
    };
    if began.gaps != event.at.gaps {
        // The latency of a transaction that spans a gap is unknown, and the time of the gap does not count.
        return;
    }
    *counter += 1;
    tally.latency.record(Nanos::new(event.at.ns.saturating_sub(began.ns)));
}

#[cfg(test)]
mod tests {
    use super::super::WallClock;
    use super::*;

    /// A clock that shows a value set by the test.
    struct Shown(Reading);

    impl Clock for Shown {
        fn read(&self) -> Reading {
            self.0
        }
    }

    #[test]
    fn a_transaction_that_was_in_flight_over_a_gap_does_not_count() {
        let terminals = [Events::default()];
        let clock = Shown(Reading { ns: 7, gaps: 0 });
        let mut ledger = Ledger::new(&clock, Nanos::new(100), &terminals);
        let at = |ns: u64, gaps| Reading { ns: 7 + ns, gaps };
        for (began, ended) in [(at(10, 0), at(20, 0)), (at(30, 0), at(31, 1)), (at(40, 1), at(45, 1))] {
            let what = What::Committed { began };
            terminals[0].lock().push(Event { at: ended, kind: Kind::Payment, what });
        }
        let tally = ledger.next().kinds[Kind::Payment as usize].clone();
        assert_eq!((tally.committed, tally.latency.count()), (2, 2));
        assert_eq!(tally.latency.max(), Nanos::new(10));
        assert_eq!(ledger.began_ns(), 7);
    }

    #[test]
    fn an_event_counts_in_the_interval_in_which_it_happened() {
        let terminals = [Events::default(), Events::default()];
        let clock = Shown(Reading { ns: 5_000, gaps: 0 });
        let mut ledger = Ledger::new(&clock, Nanos::new(100), &terminals);
        let at = |ns: u64| Reading { ns: 5_000 + ns, gaps: 0 };
        let put = |terminal: usize, ns, what| {
            terminals[terminal].lock().push(Event { at: at(ns), kind: Kind::Payment, what });
        };
        put(0, 99, What::Committed { began: at(49) });
        put(1, 100, What::Committed { began: at(10) });
        put(1, 250, What::RolledBack { began: at(240) });
        put(0, 150, What::Retried);
        let tallies: Vec<Tally> =
            (0..3).map(|_| ledger.next().kinds[Kind::Payment as usize].clone()).collect();
        let counts = tallies.iter().map(|it| (it.committed, it.rolled_back, it.retries)).collect::<Vec<_>>();
        assert_eq!(counts, [(1, 0, 0), (1, 0, 1), (0, 1, 0)]);
        assert_eq!(tallies[0].latency.max(), Nanos::new(50));
        assert_eq!(tallies[2].latency.count(), 1);
        assert_eq!(ledger.current.start_ns, 300);
    }

    #[test]
    fn what_is_left_when_terminals_end_late_is_in_intervals_too() {
        let terminals = [Events::default()];
        let clock = WallClock::start();
        let mut ledger = Ledger::new(&clock, Nanos::from_millis(2), &terminals);
        ledger.next();
        let at = Reading { ns: ledger.start_ns + 3_000_000, gaps: 0 };
        terminals[0].lock().push(Event { at, kind: Kind::Delivery, what: What::Retried });
        std::thread::sleep(Duration::from_millis(7));
        let left = ledger.finish();
        let mut next = 2_000_000;
        for interval in &left {
            assert_eq!(interval.start_ns, next);
            next = interval.end_ns;
        }
        assert!(left.len() >= 3 && next >= 7_000_000, "{left:?}");
        assert_eq!(left[0].kinds[Kind::Delivery as usize].retries, 1);
    }
}
