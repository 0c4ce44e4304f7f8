//! The terminals: who asks, when, and what came of it, interval by interval.
//!
//! ```text
//!   terminal: deck ─► inputs ─► Session ─► Event ─┐
//!   terminal: …                                    ├─► Ledger: intervals ─► each(Interval)
//!   terminal: …                                    ┘   (this thread)
//! ```
//!
//! Each terminal has a thread, a session, a home warehouse and random streams of its own. Not here: when a measurement is
//! over: whoever hears of the intervals decides.

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

/// The longest that an interrupt goes unseen.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A load of terminals.
#[derive(Clone)]
pub struct Load<'a> {
    /// How many in all parts together; terminal `t` of a part is bound to warehouse `t mod warehouses` of it, and for
    /// Stock-Level to the district that follows that of the terminal before it there. Where a part has fewer terminals
    /// than warehouses, each is bound to its share of them, and speaks for one at a time.
    pub terminals: u32,
    /// Whether terminals wait for keys and for thoughts (clause 5.2.5.4); else they ask again at once.
    pub think: bool,
    /// Length of an interval.
    pub interval: Nanos,
    /// What time is it; transactions that are in flight over one of its gaps are not counted.
    pub clock: &'a dyn Clock,
    /// Where random choices come from.
    pub seed: Seed,
    /// Ends the load from outside.
    pub interrupt: &'a AtomicBool,
}

/// A clock that has no gaps: time passes while nobody looks.
#[derive(Debug)]
pub struct WallClock(Instant);

impl WallClock {
    /// A clock that begins now.
    pub fn start() -> WallClock {
        WallClock(Instant::now())
    }
}

impl Clock for WallClock {
    fn read(&self) -> Reading {
        Reading { ns: u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX), gaps: 0 }
    }
}

/// A database, and the warehouses that are in it. Terminals are spread evenly over several.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// What is asked.
    pub database: &'a dyn Database,
    /// What is in it.
    pub scale: &'a Scale,
}

/// What a load came to, apart from its intervals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// When it began, by its clock.
    pub began_ns: u64,
    /// Transactions that ended.
    pub transactions: u64,
    /// Statements sent for them.
    pub statements: u64,
    /// Processor time of the terminals' threads; where the database is within lowtide, its own too.
    pub client_cpu: Nanos,
    /// Order lines that were committed, and those of them that another warehouse supplied.
    pub lines: (u64, u64),
    /// Payments that were committed, and those of them by customers of another warehouse.
    pub payments: (u64, u64),
    /// Deliveries that found a district without new orders.
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

/// Runs a load; `each` hears of every interval, in order, and says whether to go on.
///
/// All sessions are open before the clock starts. An interval holds what ended in it, however late it is heard of. Where
/// the load ends within an interval (interrupted, or a transaction failed), that one is shorter, and is heard too. An
/// interrupted load has no failures: what interrupts it may end a server as well. The connection of a transaction that does
/// not end then is cut by its database, which watches the same interrupt.
///
/// # Errors
/// [`OltpError`] where the load has no terminals, parts or length of intervals, a database takes fewer sessions than it has
/// terminals, a session cannot be opened, it is interrupted before all are, or a transaction fails for good. What was
/// measured until then was heard.
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
            // Whatever is said to the last ones, there is no more.
            for last in ledger.finish() {
                let _ = each(last);
            }
        }
        // What interrupts a load may cut connections and end servers.
        let failed_by_interrupt = !failures.is_empty() && load.interrupt.load(Ordering::Relaxed);
        summary.interrupted = heard == Heard::Interrupted || failed_by_interrupt;
        let first = failures.into_iter().min_by_key(|(at, _)| *at).filter(|_| !summary.interrupted);
        first.map_or(Ok(summary), |(_, error)| Err(error))
    })
}

/// Whether each database takes the sessions of its terminals, so that not the last of hundreds finds out.
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

/// Why no further intervals are heard of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    Stop,
    Interrupted,
    Failure,
}

/// Hands over intervals until the load is over, and says so to the terminals.
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
                // What interrupts us may end a server too.
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
