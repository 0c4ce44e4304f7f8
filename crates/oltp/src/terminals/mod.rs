//! Terminals: they run the transactions of a load, and the results are collected in intervals.
//!
//! ```text
//!   terminal: deck ─► inputs ─► Session ─► Event ─┐
//!   terminal: …                                    ├─► Ledger: intervals ─► each(Interval)
//!   terminal: …                                    ┘   (this thread)
//! ```
//!
//! Each terminal has its own thread, session, home warehouse and random streams. The receiver of the intervals
//! decides when the measurement ends.

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

/// Maximum delay before an interrupt is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Parameters of a load of terminals.
#[derive(Clone)]
pub struct Load<'a> {
    /// Number of terminals over all parts. Terminal `t` of a part has the home warehouse `t mod warehouses`.
    /// Its district for Stock-Level advances by one with each pass over the warehouses. If a part has fewer
    /// terminals than warehouses, its warehouses are divided among the terminals. Each terminal then acts for a
    /// random warehouse of its share at each transaction.
    pub terminals: u32,
    /// Terminals pause for keying and think time (clause 5.2.5.4). Without pauses they issue transactions back
    /// to back.
    pub think: bool,
    /// Length of an interval.
    pub interval: Nanos,
    /// Clock of the measurement. Transactions in flight over one of its gaps are not counted.
    pub clock: &'a dyn Clock,
    /// Seed of the random choices.
    pub seed: Seed,
    /// Ends the load when set.
    pub interrupt: &'a AtomicBool,
}

/// A clock without gaps.
#[derive(Debug)]
pub struct WallClock(Instant);

impl WallClock {
    /// Starts the clock at zero.
    pub fn start() -> WallClock {
        WallClock(Instant::now())
    }
}

impl Clock for WallClock {
    fn read(&self) -> Reading {
        Reading { ns: u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX), gaps: 0 }
    }
}

/// A database and its warehouses. With several parts, the terminals are divided evenly among them.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The database.
    pub database: &'a dyn Database,
    /// Warehouses and row counts of the database.
    pub scale: &'a Scale,
}

/// Totals of a load.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// The load was interrupted.
    pub interrupted: bool,
    /// Start of the first interval, by the clock of the load.
    pub began_ns: u64,
    /// Completed transactions.
    pub transactions: u64,
    /// Statements sent for the transactions.
    pub statements: u64,
    /// CPU time of the terminal threads. It includes a database that runs within lowtide.
    pub client_cpu: Nanos,
    /// Committed order lines, and how many of them another warehouse supplied.
    pub lines: (u64, u64),
    /// Committed payments, and how many of them were by customers of another warehouse.
    pub payments: (u64, u64),
    /// Districts without an undelivered order, summed over all deliveries.
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

/// Runs a load. Passes every interval to `each` in order, until `each` returns `Stop`.
///
/// All sessions are open before the clock starts. An interval contains the transactions that ended in it, even
/// if it is passed on late. If the load ends within an interval because of an interrupt or a failed
/// transaction, `each` gets a shorter last interval.
///
/// An interrupted load returns no failure, because the interrupt may also end a server. If a transaction does
/// not end after an interrupt, its database, which watches the same flag, cuts the connection.
///
/// # Errors
/// [`OltpError`] in these cases; after a failed transaction, all intervals have been passed to `each`.
///
/// * The load has no terminals, no parts or empty intervals.
/// * A database allows fewer sessions than it has terminals, or a session cannot be opened.
/// * The load is interrupted before all sessions are open.
/// * A transaction fails permanently.
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
            // The load is over, so the result of `each` no longer matters.
            for last in ledger.finish() {
                let _ = each(last);
            }
        }
        // An interrupt may cause failures, since it cuts connections and ends servers.
        let failed_by_interrupt = !failures.is_empty() && load.interrupt.load(Ordering::Relaxed);
        summary.interrupted = heard == Heard::Interrupted || failed_by_interrupt;
        let first = failures.into_iter().min_by_key(|(at, _)| *at).filter(|_| !summary.interrupted);
        first.map_or(Ok(summary), |(_, error)| Err(error))
    })
}

/// Checks that each database allows enough sessions, before any session is opened.
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

/// Reason why no further intervals follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    Stop,
    Interrupted,
    Failure,
}

/// Passes on intervals until the load is over, then tells the terminals to stop.
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
                // The interrupt may also have ended a server.
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
