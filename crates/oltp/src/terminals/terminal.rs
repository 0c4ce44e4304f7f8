//! A terminal: chooses a transaction, pauses for keying, runs the transaction, records its outcome, and pauses
//! for thinking.

use super::ledger::{Events, What};
use super::{Load, Part, Summary};
use crate::{Failure, OltpError, Outcome, Session};
use lowtide_core::Nanos;
use lowtide_core::measure::Clock;
use lowtide_engines::tpcc::random::{Random, RunConstants};
use lowtide_engines::tpcc::{Deck, Homes, Inputs, Transaction, pause};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// A flag that ends the load and wakes waiting terminals at once.
#[derive(Debug, Default)]
pub(super) struct Over {
    is: AtomicBool,
    waiting: Mutex<()>,
    changed: Condvar,
}

impl Over {
    /// Ends the load.
    pub(super) fn set(&self) {
        let _waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.is.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
    /// Returns true if the load is over.
    pub(super) fn is(&self) -> bool {
        self.is.load(Ordering::Relaxed)
    }
    /// Waits for `span` or until the load is over; returns true if it is over.
    pub(super) fn wait(&self, span: Duration) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(waiting, span, |()| !self.is()));
        self.is()
    }
    /// Returns a guard that ends the load if this thread panics, so that no other thread waits for ever.
    pub(super) fn with_panic(&self) -> impl Drop + '_ {
        struct Guard<'a>(&'a Over);
        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.set();
                }
            }
        }
        Guard(self)
    }
}

/// Result of a terminal.
pub(super) struct End {
    pub(super) summary: Summary,
    /// Time and cause of a failure of this terminal.
    pub(super) failure: Option<(Instant, OltpError)>,
}

/// A terminal with an open session.
pub(super) struct Terminal {
    number: u32,
    homes: Homes,
    think: bool,
    session: Box<dyn Session>,
    deck: Deck,
    inputs: Inputs,
    thoughts: Random,
    speakers: Random,
}

impl Terminal {
    /// Opens terminal `number` of a load. Terminals are assigned to the parts in rotation, and within a part to
    /// its warehouses in rotation.
    pub(super) fn open(parts: &[Part<'_>], load: &Load<'_>, number: u32) -> Result<Self, OltpError> {
        let (Part { database, scale }, within) = place(parts, number);
        let others = number % parts.len() as u32;
        let terminals = (load.terminals - others).div_ceil(parts.len() as u32);
        let homes = Homes::of(*scale.warehouses.start(), scale.count(), within, terminals);
        let seed = load.seed.part("terminal", number.into());
        let random = |name| Random::new(seed.part(name, 0));
        let constants = RunConstants::of(load.seed);
        Ok(Terminal {
            number,
            homes,
            think: load.think,
            session: database.session()?,
            deck: Deck::new(random("deck")),
            inputs: Inputs::new(scale, homes.first(), constants, random("inputs")),
            thoughts: random("thoughts"),
            speakers: random("speakers"),
        })
    }

    /// Runs transactions from the opening of the gate until the load is over. A permanent failure ends the
    /// load.
    pub(super) fn run(mut self, events: &Events, clock: &dyn Clock, over: &Over, gate: &RwLock<()>) -> End {
        let _guard = over.with_panic();
        let sent = self.session.statements();
        drop(gate.read().unwrap_or_else(PoisonError::into_inner));
        let cpu = cpu();
        let mut summary = Summary::default();
        let mut failure = None;
        while failure.is_none() && !over.is() {
            let kind = self.deck.deal();
            if self.think && over.wait(pause::keying(kind)) {
                break;
            }
            self.inputs.speak_for(self.homes.draw(&mut self.speakers));
            let transaction = self.inputs.next(kind);
            match self.ask(&transaction, events, clock, over) {
                Ok(Some(outcome)) => note(&mut summary, &transaction, outcome),
                Ok(None) => break,
                Err(error) => {
                    failure = Some((Instant::now(), error));
                    over.set();
                }
            }
            if self.think {
                over.wait(pause::thinking(kind, &mut self.thoughts));
            }
        }
        summary.statements = self.session.statements() - sent;
        summary.client_cpu = Nanos::new(self::cpu().saturating_sub(cpu));
        End { summary, failure }
    }

    /// Runs a transaction and retries it after conflicts. Returns `None` if the load was over first.
    fn ask(
        &mut self,
        transaction: &Transaction,
        events: &Events,
        clock: &dyn Clock,
        over: &Over,
    ) -> Result<Option<Outcome>, OltpError> {
        let (kind, began) = (transaction.kind(), clock.read());
        loop {
            match self.session.run(transaction) {
                Ok(Outcome::RolledBack) => {
                    events.note(clock, kind, What::RolledBack { began });
                    return Ok(Some(Outcome::RolledBack));
                }
                Ok(outcome) => {
                    events.note(clock, kind, What::Committed { began });
                    return Ok(Some(outcome));
                }
                Err(Failure::Conflict(_)) => {
                    events.note(clock, kind, What::Retried);
                    if over.is() {
                        return Ok(None);
                    }
                }
                Err(failure @ (Failure::Lost(_) | Failure::Refused(_))) => {
                    let (terminal, warehouse) = (self.number, self.inputs.home());
                    return Err(OltpError::Transaction { terminal, warehouse, kind, failure });
                }
            }
        }
    }
}

/// Returns the part of a terminal, and the terminal's number within the part.
fn place<'a>(parts: &[Part<'a>], number: u32) -> (Part<'a>, u32) {
    let count = parts.len() as u32;
    (parts[(number % count) as usize], number / count)
}

fn note(summary: &mut Summary, transaction: &Transaction, outcome: Outcome) {
    summary.transactions += 1;
    match (transaction, outcome) {
        (Transaction::NewOrder(order), Outcome::Committed) => {
            let remote = order.lines.iter().filter(|line| line.supply != order.warehouse);
            summary.lines.0 += order.lines.len() as u64;
            summary.lines.1 += remote.count() as u64;
        }
        (Transaction::Payment(payment), Outcome::Committed) => {
            summary.payments.0 += 1;
            summary.payments.1 += u64::from(payment.customer_warehouse != payment.warehouse);
        }
        (_, Outcome::Delivered { skipped }) => summary.skipped_deliveries += u64::from(skipped),
        _ => {}
    }
}

/// CPU time of this thread in nanoseconds.
fn cpu() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
