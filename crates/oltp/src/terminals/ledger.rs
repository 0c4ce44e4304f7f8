//! From what happened at the terminals to intervals.
//!
//! A terminal notes events in a list of its own, and takes the time while it holds the list. So when the list is taken after
//! an interval's end, everything that ended in the interval is in it, and what is later waits for the next: an event is
//! counted where it happened, however late the list is taken. Leaves out histograms on the way of a transaction.

use super::{Interval, Tally};
use crate::tpcc::Kind;
use lowtide_core::Nanos;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Something that happened to a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    at: Instant,
    kind: Kind,
    what: What,
}

/// What happened to it.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// It met another, and is tried again.
    Retried,
    /// It is committed, and began then.
    Committed { began: Instant },
    /// It was rolled back because it had to be, and began then.
    RolledBack { began: Instant },
}

/// The events of a terminal that are not in an interval yet.
#[derive(Debug, Default)]
pub(super) struct Events(Mutex<Vec<Event>>);

impl Events {
    /// Notes what happens now; when that is.
    pub(super) fn note(&self, kind: Kind, what: What) -> Instant {
        let mut events = self.lock();
        let at = Instant::now();
        events.push(Event { at, kind, what });
        at
    }
    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes intervals of the events of all terminals. Its clock starts when it is made.
pub(super) struct Ledger<'a> {
    start: Instant,
    length: Nanos,
    /// Nanoseconds from the start to the beginning of the interval that is not over.
    begin_ns: u64,
    terminals: &'a [Events],
    waiting: Vec<Event>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(length: Nanos, terminals: &'a [Events]) -> Self {
        Ledger { start: Instant::now(), length, begin_ns: 0, terminals, waiting: Vec::new() }
    }
    /// How long the interval has still to go.
    pub(super) fn until_end(&self) -> Duration {
        Duration::from_nanos(self.end_ns()).saturating_sub(self.start.elapsed())
    }
    /// The interval, when it is over; the next one begins where it ended.
    pub(super) fn next(&mut self) -> Interval {
        self.take(self.end_ns())
    }
    /// The interval that was not over when all terminals ended; none where nothing of it is left.
    pub(super) fn finish(mut self) -> Option<Interval> {
        let now = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        (now > self.begin_ns).then(|| self.take(now))
    }

    fn end_ns(&self) -> u64 {
        self.begin_ns + self.length.get()
    }
    fn take(&mut self, end_ns: u64) -> Interval {
        for terminal in self.terminals {
            self.waiting.append(&mut terminal.lock());
        }
        let end = self.start + Duration::from_nanos(end_ns);
        let mut kinds: [Tally; Kind::ALL.len()] = Default::default();
        self.waiting.retain(|event| {
            let ended = event.at < end;
            if ended {
                count(&mut kinds[event.kind as usize], event);
            }
            !ended
        });
        let start_ns = std::mem::replace(&mut self.begin_ns, end_ns);
        Interval { start_ns, end_ns, kinds }
    }
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
    *counter += 1;
    let took = event.at.saturating_duration_since(began).as_nanos();
    tally.latency.record(Nanos::new(u64::try_from(took).unwrap_or(u64::MAX)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_counts_in_the_interval_in_which_it_happened() {
        let terminals = [Events::default(), Events::default()];
        let mut ledger = Ledger::new(Nanos::new(100), &terminals);
        let at = |ns| ledger.start + Duration::from_nanos(ns);
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
        assert_eq!(ledger.begin_ns, 300);
    }
}
