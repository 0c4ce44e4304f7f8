//! The terminals: who asks, when, and what came of it, interval by interval.
//!
//! ```text
//!   terminal: deck ─► inputs ─► Session ─► Event ─┐
//!   terminal: …                                    ├─► Ledger: intervals ─► each(Interval)
//!   terminal: …                                    ┘   (this thread)
//! ```
//!
//! Each terminal has a thread, a session, a home warehouse and random streams of its own. Leaves out when a measurement is
//! over: whoever hears of the intervals decides.

mod ledger;
mod terminal;
#[cfg(test)]
mod tests;

use crate::tpcc::{Kind, Scale};
use crate::{Cut, Database, OltpError};
use ledger::{Events, Ledger};
use lowtide_core::{Control, Latency, Nanos, Seed};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{PoisonError, RwLock};
use std::thread::Builder;
use std::time::{Duration, Instant};
use terminal::{End, Over, Terminal};

/// The longest that an interrupt goes unseen.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a transaction may take to its end after an interrupt; then its connection is cut.
const GRACE: Duration = Duration::from_secs(3);

/// A load of terminals.
#[derive(Debug, Clone)]
pub struct Load<'a> {
    /// How many in all parts together; terminal `t` of a part is bound to warehouse `t mod warehouses` of it, and for
    /// Stock-Level to the district that follows that of the terminal before it there. Where a part has fewer terminals
    /// than warehouses, each is bound to its share of them, and speaks for one at a time.
    pub terminals: u32,
    /// Whether terminals wait for keys and for thoughts (clause 5.2.5.4); else they ask again at once.
    pub think: bool,
    /// Length of an interval.
    pub interval: Nanos,
    /// Where random choices come from.
    pub seed: Seed,
    /// Ends the load from outside.
    pub interrupt: &'a AtomicBool,
}

/// A database, and the warehouses that are in it. Terminals are spread evenly over several.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// What is asked.
    pub database: &'a dyn Database,
    /// What is in it.
    pub scale: &'a Scale,
}

/// What was done in an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Nanoseconds from the beginning of the load to that of the interval.
    pub start_ns: u64,
    /// Nanoseconds from the beginning of the load to the end of the interval.
    pub end_ns: u64,
    /// By kind, in the order of [`Kind::ALL`].
    pub kinds: [Tally; Kind::ALL.len()],
}

/// What became of one kind of transaction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    /// Committed.
    pub committed: u64,
    /// Rolled back because they had to be.
    pub rolled_back: u64,
    /// Attempts that met another transaction and were made again.
    pub retries: u64,
    /// From the first attempt to the end, of those committed and rolled back.
    pub latency: Latency,
}

/// What a load came to, apart from its intervals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Whether it was interrupted.
    pub interrupted: bool,
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
/// interrupted load has no failures: what interrupts it may end a server as well. A transaction that does not end then has
/// its connection cut after a while.
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
    let cuts: Vec<Cut> = terminals.iter().filter_map(Terminal::cut).collect();
    let events: Vec<Events> = terminals.iter().map(|_| Events::default()).collect();
    let (over, gate) = (Over::default(), RwLock::new(()));
    std::thread::scope(|scope| {
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut threads = Vec::with_capacity(terminals.len());
        // Nothing is sent: that nobody can send any more says that all have ended.
        let (at_work, all_ended) = mpsc::channel::<()>();
        for (terminal, events) in terminals.into_iter().zip(&events) {
            let (over, gate, at_work) = (&over, &gate, at_work.clone());
            let thread = Builder::new().spawn_scoped(scope, move || {
                let _at_work = at_work;
                terminal.run(events, over, gate)
            });
            threads.push(thread.map_err(|error| {
                over.set();
                OltpError::Invalid(format!("{} terminals need as many threads: {error}", load.terminals))
            })?);
        }
        let mut ledger = Ledger::new(load.interval, &events);
        drop((closed, at_work));
        let heard = listen(&mut ledger, load, &over, each);
        let cut = wait_for_end(&all_ended, load.interrupt, &cuts);
        let ends = threads.into_iter().map(|thread| thread.join().expect("a terminal does not panic"));
        let mut summary = Summary { interrupted: cut || heard == Heard::Interrupted, ..Summary::default() };
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

/// Waits until all terminals have ended; those that wait for a database [`GRACE`] after an interrupt have their connections
/// cut. Whether they had.
fn wait_for_end(all_ended: &Receiver<()>, interrupt: &AtomicBool, cuts: &[Cut]) -> bool {
    let mut interrupted: Option<Instant> = None;
    let mut cut = false;
    while let Err(RecvTimeoutError::Timeout) = all_ended.recv_timeout(LOOK_EVERY) {
        if interrupt.load(Ordering::Relaxed)
            && interrupted.get_or_insert_with(Instant::now).elapsed() >= GRACE
        {
            cuts.iter().for_each(Cut::now);
            cut = true;
        }
    }
    cut
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
