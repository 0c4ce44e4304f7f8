//! Terminals on a fake database, which records the transactions and returns the outcomes that a test chooses.

use super::*;
use crate::{Counter, Failure, Outcome, Session};
use lowtide_engines::tpcc::Kind;
use lowtide_engines::tpcc::{Deck, Transaction};
use parking_lot::FairMutex;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, LazyLock};

const SEED: u64 = 31;
static CLOCK: LazyLock<WallClock> = LazyLock::new(WallClock::start);

/// Outcome of a transaction, from the number of the session, the number of its earlier calls, and the
/// transaction.
type Answer = fn(u32, u64, &Transaction) -> Result<Outcome, Failure>;

struct Fake {
    sessions: AtomicU32,
    answer: Answer,
    asked: Arc<FairMutex<Vec<(u32, Transaction)>>>,
}

impl Fake {
    fn new(answer: Answer) -> Self {
        Fake { sessions: AtomicU32::new(0), answer, asked: Arc::default() }
    }
    fn asked(&self) -> Vec<(u32, Transaction)> {
        self.asked.lock().clone()
    }
}

struct FakeSession {
    number: u32,
    calls: u64,
    answer: Answer,
    asked: Arc<FairMutex<Vec<(u32, Transaction)>>>,
}

impl Session for FakeSession {
    fn run(&mut self, transaction: &Transaction) -> Result<Outcome, Failure> {
        self.calls += 1;
        let mut asked = self.asked.lock();
        asked.push((self.number, transaction.clone()));
        (self.answer)(self.number, self.calls - 1, transaction)
    }
    fn statements(&self) -> u64 {
        7 + 3 * self.calls
    }
}

impl Database for Fake {
    fn version(&self) -> &str {
        "none"
    }
    fn session(&self) -> Result<Box<dyn Session>, OltpError> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(FakeSession { number, calls: 0, answer: self.answer, asked: self.asked.clone() }))
    }
    fn load(&self, _: &Scale, _: Seed, _: &AtomicBool, _: &(dyn Fn(f64) + Sync)) -> Result<(), OltpError> {
        Ok(())
    }
    fn number(&self, _: &str) -> Result<i64, OltpError> {
        Ok(0)
    }
    fn numbers(&self, _: &str) -> Result<Vec<Vec<i64>>, OltpError> {
        Ok(Vec::new())
    }
    fn damage(&self) -> Result<Vec<String>, OltpError> {
        Ok(Vec::new())
    }
    fn execute(&self, _: &str) -> Result<(), OltpError> {
        Ok(())
    }
    fn counters(&self) -> Result<Vec<Counter>, OltpError> {
        Ok(Vec::new())
    }
}

fn load(terminals: u32, interrupt: &AtomicBool) -> Load<'_> {
    let interval = Nanos::from_millis(5);
    Load { terminals, think: false, interval, clock: &*CLOCK, seed: Seed::new(SEED), interrupt }
}

/// Runs a load until its intervals contain `transactions` completed transactions; returns the intervals.
fn run_for(
    parts: &[Part<'_>],
    load: &Load<'_>,
    transactions: u64,
) -> (Vec<Interval>, Result<Summary, OltpError>) {
    let mut heard: Vec<Interval> = Vec::new();
    let summary = run(parts, load, &mut |interval| {
        heard.push(interval);
        if ended(&heard) >= transactions { Control::Stop } else { Control::Continue }
    });
    (heard, summary)
}

fn ended(intervals: &[Interval]) -> u64 {
    let tallies = intervals.iter().flat_map(|interval| &interval.kinds);
    tallies.map(|tally| tally.committed + tally.rolled_back).sum()
}

#[test]
fn everything_that_ended_is_counted_once_and_intervals_have_no_gaps() {
    let database =
        Fake::new(|_, call, _| Ok(if call % 10 == 9 { Outcome::RolledBack } else { Outcome::Committed }));
    let (scale, interrupt) = (Scale::warehouses(2), AtomicBool::new(false));
    let parts = [Part { database: &database, scale: &scale }];
    let (heard, summary) = run_for(&parts, &load(3, &interrupt), 2_000);
    let summary = summary.expect("nothing fails");
    assert!(!summary.interrupted);
    assert_eq!(summary.transactions, database.asked().len() as u64);
    assert_eq!(summary.statements, 3 * summary.transactions, "those before the start are not its");
    // Transactions that ended after the last interval are only in the summary.
    assert!(ended(&heard) <= summary.transactions && ended(&heard) >= 2_000);
    for (number, interval) in (0u64..).zip(&heard) {
        assert_eq!((interval.start_ns, interval.end_ns), (number * 5_000_000, (number + 1) * 5_000_000));
        for tally in &interval.kinds {
            assert_eq!(tally.latency.count(), tally.committed + tally.rolled_back);
        }
    }
    let asked: Vec<Transaction> = database.asked().into_iter().map(|(_, transaction)| transaction).collect();
    let orders = asked.iter().filter(|it| it.kind() == Kind::NewOrder).count() as f64;
    // A full deck has exact shares. The last deck of each of the three terminals may be incomplete.
    assert!((orders - 0.45 * asked.len() as f64).abs() <= 3.0 * 45.0 * 0.55, "seed {SEED}: {orders}");
}

#[test]
fn what_meets_another_is_tried_again_until_it_ends() {
    let database = Fake::new(|_, call, _| match call % 3 {
        2 => Ok(Outcome::Committed),
        _ => Err(Failure::Conflict("deadlock".to_owned())),
    });
    let (scale, interrupt) = (Scale::warehouses(1), AtomicBool::new(false));
    let parts = [Part { database: &database, scale: &scale }];
    let (heard, summary) = run_for(&parts, &load(1, &interrupt), 300);
    summary.expect("conflicts are no failures");
    let retries: u64 = heard.iter().flat_map(|interval| &interval.kinds).map(|tally| tally.retries).sum();
    // The last transaction may be between attempts.
    let twice = 2 * ended(&heard);
    assert!((twice..=twice + 2).contains(&retries), "{retries} retries, {} ended", ended(&heard));
    let asked = database.asked();
    for attempts in asked.chunks_exact(3) {
        assert!(attempts.iter().all(|it| it == &attempts[0]), "seed {SEED}: another was asked for");
    }
}

#[test]
fn a_failure_names_terminal_and_transaction_after_all_was_heard() {
    let database = Fake::new(|session, call, _| match (session, call) {
        (2, 50..) => Err(Failure::Refused("database or disk is full".to_owned())),
        _ => Ok(Outcome::Committed),
    });
    let scale = Scale { warehouses: 5..=6, ..Scale::warehouses(2) };
    let interrupt = AtomicBool::new(false);
    let parts = [Part { database: &database, scale: &scale }];
    let mut deck = Deck::new(lowtide_engines::tpcc::random::Random::new(
        Seed::new(SEED).part("terminal", 2).part("deck", 0),
    ));
    let failing = (0..=50).map(|_| deck.deal()).last().expect("a card");
    let (heard, summary) = run_for(&parts, &load(3, &interrupt), u64::MAX);
    let said = summary.expect_err("it failed").to_string();
    let expected = format!("terminal 2 (warehouse 5): {}: database or disk is full", failing.name());
    assert_eq!(said, expected);
    assert_eq!(ended(&heard), database.asked().len() as u64 - 1, "all but the one that failed");
}

#[test]
fn an_interrupt_ends_a_load_even_while_terminals_think() {
    for think in [false, true] {
        let database = Fake::new(|_, _, _| Ok(Outcome::Delivered { skipped: 2 }));
        let (scale, interrupt) = (Scale::warehouses(1), AtomicBool::new(false));
        let parts = [Part { database: &database, scale: &scale }];
        let mut heard = Vec::new();
        let summary = run(&parts, &Load { think, ..load(2, &interrupt) }, &mut |interval| {
            heard.push(interval);
            interrupt.store(think || ended(&heard) > 0, Ordering::Relaxed);
            Control::Continue
        });
        let summary = summary.expect("an interrupt is no failure");
        assert!(summary.interrupted);
        assert_eq!(ended(&heard), summary.transactions);
        assert_eq!(summary.skipped_deliveries, 2 * summary.transactions);
        // Keying an order takes longer than these milliseconds.
        assert_eq!(summary.transactions == 0, think);
    }
}

#[test]
fn terminals_are_spread_over_parts_warehouses_and_districts() {
    let databases =
        [Fake::new(|_, _, _| Ok(Outcome::Committed)), Fake::new(|_, _, _| Ok(Outcome::Committed))];
    let scales = [1..=3, 4..=6].map(|warehouses| Scale { warehouses, ..Scale::warehouses(3) });
    let interrupt = AtomicBool::new(false);
    let parts = [0, 1].map(|n| Part { database: &databases[n], scale: &scales[n] });
    // A full deck contains Stock-Level for every terminal.
    let whole = |database: &Fake| {
        let asked = database.asked();
        (0..6).all(|session| asked.iter().filter(|(by, _)| *by == session).count() >= 100)
    };
    let summary = run(&parts, &load(12, &interrupt), &mut |_| {
        if databases.iter().all(whole) { Control::Stop } else { Control::Continue }
    });
    summary.expect("nothing fails");
    for (database, scale) in databases.iter().zip(&scales) {
        let asked = database.asked();
        let levels = asked.iter().filter_map(|(session, transaction)| match transaction {
            Transaction::StockLevel(level) => Some((*session, level.warehouse, level.district)),
            _ => None,
        });
        let homes: BTreeSet<(u32, u32, u32)> = levels.collect();
        let first = *scale.warehouses.start();
        let expected = (0..6).map(|session| (session, first + session % 3, session / 3 + 1)).collect();
        assert_eq!(homes, expected, "seed {SEED}");
    }
}

#[test]
fn what_cannot_be_run_is_told() {
    let database = Fake::new(|_, _, _| Ok(Outcome::Committed));
    let (scale, interrupt) = (Scale::warehouses(1), AtomicBool::new(false));
    let part = Part { database: &database, scale: &scale };
    let told = |parts: &[Part<'_>], load: &Load<'_>| run_for(parts, load, 1).1.unwrap_err().to_string();
    assert_eq!(told(&[], &load(1, &interrupt)), "a load needs a database");
    assert_eq!(told(&[part], &load(0, &interrupt)), "a load needs at least one terminal");
    let none = Scale::warehouses(0);
    let empty = Part { database: &database, scale: &none };
    assert_eq!(
        told(&[part, empty], &load(1, &interrupt)),
        "a database needs warehouses, customers and items"
    );
    let timeless = Load { interval: Nanos::ZERO, ..load(1, &interrupt) };
    assert_eq!(told(&[part], &timeless), "intervals need a length");
}
