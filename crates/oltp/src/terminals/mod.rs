//! The terminals: run transactions and report their results interval by interval.
//!
//! ```text
//!   terminal: deck ─► inputs ─► Session ─► Event ─┐
//!   terminal: …                                    ├─► Ledger: intervals ─► each(Interval)
//!   terminal: …                                    ┘   (this thread)
//! ```
//!
//! Each terminal has its own thread, session, home warehouse and random streams. The caller decides when a
//! measurement ends.

mod ledger;
mod terminal;
#[cfg(test)]
mod tests;

use crate::{Database, OltpError};
use ledger::{Events, Ledger};
use lowtide_core::measure::{Clock, Reading};
use lowtide_core::{Control, Nanos, Seed};
use lowtide_engines::Interval;
use lowtide_engines::tpcc::Scale;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread::Builder;
use std::time::{Duration, Instant};
use terminal::{End, Over, Terminal};

/// Longest delay before an interrupt is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A load of terminals.
#[derive(Clone)]
pub struct Load<'a> {
    /// Total number of terminals over all parts. Terminal `t` of a part has home warehouse `t mod warehouses`; its
    /// Stock-Level district follows the district of the part's previous terminal. If a part has fewer terminals than
    /// warehouses, each terminal has a share of the warehouses and uses one of them at a time.
    pub terminals: u32,
    /// Whether terminals wait for keying and think times (clause 5.2.5.4). If not, they send the next transaction at
    /// once.
    pub think: bool,
    /// Length of an interval.
    pub interval: Nanos,
    /// The clock. A transaction in flight during one of its gaps is not counted.
    pub clock: &'a dyn Clock,
    /// Seed of all random choices.
    pub seed: Seed,
    /// Set by another thread to end the load.
    pub interrupt: &'a AtomicBool,
}

/// A clock without gaps, which follows real time.
#[derive(Debug)]
pub struct WallClock(Instant);

impl WallClock {
    /// A clock that starts now.
    pub fn start() -> WallClock {
        WallClock(Instant::now())
    }
}

impl Clock for WallClock {
    fn read(&self) -> Reading {
        Reading { ns: u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX), gaps: 0 }
    }
}

/// A database and its warehouses. Terminals are spread evenly over the parts.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The database.
    pub database: &'a dyn Database,
    /// The warehouses in the database.
    pub scale: &'a Scale,
}

/// The totals of a load, besides its intervals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Start of the load, by its clock.
    pub began_ns: u64,
    /// Number of completed transactions.
    pub transactions: u64,
    /// Number of statements sent for the transactions.
    pub statements: u64,
    /// Processor time of the terminals' threads, including the database's own if it runs within lowtide.
    pub client_cpu: Nanos,
    /// Committed order lines, and how many of them another warehouse supplied.
    pub lines: (u64, u64),
    /// Committed payments, and how many of them were by customers of another warehouse.
    pub payments: (u64, u64),
    /// Deliveries to districts that had no new order.
    pub skipped_deliveries: u64,
}

impl Summary {
    fn add(&mut self, other: &Summary) {
        self.transactions += other.transactions;
        self.statements += other.statements;
        self.client_cpu += other.client_cpu;
        self.lines = (self.lines.0 + other.lines.0, self.lines.1 + other.lines.1);
        self.payments = (self.payments.0 + other.payments.0, self.payments.1 + other.payments.1);
        self.skipped_deliveries += other.skipped_deliveries;
    }
}

/// Runs a load. Calls `each` with every interval, in order; the value that `each` returns decides whether to go on.
///
/// All sessions are open before the clock starts. An interval holds the transactions that ended in it, even if it is
/// reported later. If the load ends within an interval (by an interrupt or a failed transaction), that interval is
/// shorter, and is reported too. An interrupted load reports no failures, because the interrupt may also end a
/// server. The watchdog of the database cuts the connection of a transaction that does not end after an interrupt.
///
/// # Errors
/// [`OltpError`] if the load has no terminals, no parts or intervals of length zero; if a database accepts fewer
/// sessions than it has terminals; if a session cannot be opened; if the load is interrupted before all sessions are
/// open; or if a transaction fails and cannot be retried. Earlier intervals have been reported by then.
pub fn run(
    parts: &[Part<'_>],
    load: &Load<'_>,
    each: &mut dyn FnMut(Interval) -> Control,
) -> Result<Summary, OltpError> {
    let empty = |part: &Part<'_>| [part.scale.count(), part.scale.customers, part.scale.items].contains(&0);
    for (missing, what) in [
        (parts.is_empty(), "a load needs a database"),
        (parts.iter().any(empty), "a database needs warehouses, customers and items"),
        (load.terminals == 0, "a load needs at least one terminal"),
        (load.interval == Nanos::ZERO, "intervals need a length"),
    ] {
        if missing {
            return Err(OltpError::Invalid(what.to_owned()));
        }
    }
    enough_sessions(parts, load.terminals)?;
    let open = |number| match load.interrupt.load(Ordering::Relaxed) {
        true => Err(OltpError::Interrupted),
        false => Terminal::open(parts, load, number),
    };
    let terminals: Vec<Terminal> = (0..load.terminals).map(open).collect::<Result<_, _>>()?;
    let events: Vec<Events> = terminals.iter().map(|_| Events::default()).collect();
    let (over, gate) = (Over::default(), RwLock::new(()));
    std::thread::scope(|scope| {
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut threads = Vec::with_capacity(terminals.len());
        for (terminal, events) in terminals.into_iter().zip(&events) {
            let (over, gate) = (&over, &gate);
            let thread =
                Builder::new().spawn_scoped(scope, move || terminal.run(events, load.clock, over, gate));
            threads.push(thread.map_err(|error| {
                over.set();
                OltpError::Invalid(format!("{} terminals need as many threads: {error}", load.terminals))
            })?);
        }
        let mut ledger = Ledger::new(load.clock, load.interval, &events);
        drop(closed);
        let heard = listen(&mut ledger, load, &over, each);
        let ends = threads.into_iter().map(|thread| thread.join().expect("a terminal does not panic"));
        let mut summary = Summary { began_ns: ledger.began_ns(), ..Summary::default() };
        let mut failures = Vec::new();
        for End { summary: one, failure } in ends {
            summary.add(&one);
            failures.extend(failure);
        }
        if heard != Heard::Stop {
            // The load is over, so the answer of `each` no longer matters.
            for last in ledger.finish() {
                let _ = each(last);
            }
        }
        // An interrupt may also cut connections and end servers.
        let failed_by_interrupt = !failures.is_empty() && load.interrupt.load(Ordering::Relaxed);
        summary.interrupted = heard == Heard::Interrupted || failed_by_interrupt;
        let first = failures.into_iter().min_by_key(|(at, _)| *at).filter(|_| !summary.interrupted);
        first.map_or(Ok(summary), |(_, error)| Err(error))
    })
}

/// Checks that each database accepts enough sessions, so that the error comes before hundreds of sessions are open.
fn enough_sessions(parts: &[Part<'_>], terminals: u32) -> Result<(), OltpError> {
    let count = parts.len() as u32;
    for (number, part) in (0..).zip(parts) {
        let asked = terminals / count + u32::from(number < terminals % count);
        if let Some(most) = part.database.most_sessions()?.filter(|most| *most < asked) {
            return Err(OltpError::Invalid(format!(
                "{asked} terminals need as many sessions, and the server takes {most} (`max_connections`): fewer terminals, \
                 more instances, or another `max_connections` among the options of the server"
            )));
        }
    }
    Ok(())
}

/// The reason why no more intervals are reported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    Stop,
    Interrupted,
    Failure,
}

/// Reports intervals until the load is over, then tells the terminals to stop.
fn listen(
    ledger: &mut Ledger<'_>,
    load: &Load<'_>,
    over: &Over,
    each: &mut dyn FnMut(Interval) -> Control,
) -> Heard {
    let _guard = over.with_panic();
    let heard = loop {
        if load.interrupt.load(Ordering::Relaxed) {
            break Heard::Interrupted;
        }
        let left = ledger.until_end();
        if !left.is_zero() {
            if over.wait(left.min(LOOK_EVERY)) {
                // An interrupt may also end a server.
                let interrupted = load.interrupt.load(Ordering::Relaxed);
                break if interrupted { Heard::Interrupted } else { Heard::Failure };
            }
            ledger.gather();
        } else if each(ledger.next()) == Control::Stop {
            break Heard::Stop;
        }
    };
    over.set();
    heard
}
