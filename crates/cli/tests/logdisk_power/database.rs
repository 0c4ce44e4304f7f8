//! MariaDB with TPC-C's tables and transactions ([`Tpcc`]), and the ledger of what it acknowledged.
//!
//! Payments have amounts that no other has, so each is found again by its own; new orders are counted by customer, deliveries in
//! all. What was under way when the power went may be there or not. Leaves out whether rows fit each other, which the
//! conditions of consistency tell (`lowtide_oltp::check`).

use crate::common::Lab;
use lowtide_core::{Bytes, Seed};
use lowtide_oltp::tpcc::random::{Random, RunConstants};
use lowtide_oltp::tpcc::{DISTRICTS, Deck, Inputs, Scale, Table, Transaction};
use lowtide_oltp::{
    Database, Durability, Engine, Failure, Instance, Outcome, Places, Session, Settings, check, mariadb,
};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Scope;

const TERMINALS: u64 = 4;
/// Cents. Those of the load, and those that the specification allows, are less.
const FIRST_AMOUNT: i64 = 1_000_000;
/// Amounts that are looked for at a time.
const AT_ONCE: usize = 500;

/// A customer: district, number. There is one warehouse.
type Customer = (u32, u32);

/// What was acknowledged, and what may have been done.
#[derive(Debug, Default)]
struct Ledger {
    amounts: Vec<i64>,
    orders: BTreeMap<Customer, u64>,
    delivered: u64,
    /// Transactions whose end was not heard of.
    unknown: Vec<Transaction>,
}

impl Ledger {
    fn acknowledge(&mut self, transaction: &Transaction, outcome: Outcome) {
        match (transaction, outcome) {
            (Transaction::Payment(payment), Outcome::Committed) => self.amounts.push(payment.amount),
            (Transaction::NewOrder(order), Outcome::Committed) => {
                *self.orders.entry((order.district, order.customer)).or_default() += 1;
            }
            (_, Outcome::Delivered { skipped }) => self.delivered += u64::from(DISTRICTS - skipped),
            _ => {}
        }
    }
}

/// A database on the log disk.
pub struct Tpcc {
    places: Places,
    instance: Option<Box<dyn Instance>>,
    scale: Scale,
    ledger: Arc<Mutex<Ledger>>,
    next_amount: Arc<AtomicU64>,
    committed: Arc<AtomicU64>,
}

fn settings() -> Settings {
    Settings {
        engine: Engine::Mariadb,
        durability: Some(Durability::Full),
        flush_method: Some("O_DIRECT".to_owned()),
        doublewrite: Some(true),
        // Less than there is: pages are read back, and written when others need their place.
        buffer_pool: Some(Bytes::mib(8)),
        log_size: Some(Bytes::mib(8)),
        ..Settings::default()
    }
}

impl Tpcc {
    /// Makes a server's directory below `at`, starts the server, and loads a small warehouse.
    pub fn make(lab: &Lab, at: &Path) -> Tpcc {
        let (data, run) = (at.join("data"), lab.path("run"));
        for folder in [&data, &run] {
            std::fs::create_dir(folder).expect("made");
        }
        let mut tpcc = Tpcc {
            places: Places { data, log: None, run },
            instance: None,
            scale: Scale { warehouses: 1..=1, customers: 300, items: 5_000 },
            ledger: Arc::default(),
            next_amount: Arc::default(),
            committed: Arc::default(),
        };
        tpcc.start();
        tpcc.database()
            .load(&tpcc.scale, Seed::new(crate::SEED), &AtomicBool::new(false), &|_| {})
            .expect("loaded");
        tpcc
    }

    fn start(&mut self) {
        let started = mariadb::start(&settings(), &self.places);
        self.instance = Some(started.unwrap_or_else(|error| panic!("seed {}: {error}", crate::SEED)));
    }

    fn database(&self) -> Arc<dyn Database> {
        self.instance.as_ref().expect("it runs").database()
    }

    /// Ends the server in order.
    pub fn stop(mut self) {
        self.instance.take().expect("it runs").stop().expect("stopped");
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        // Dropping it kills it.
        self.instance = None;
    }

    /// Asks for transactions from several threads, until the server is gone; how many were acknowledged so far.
    pub fn write<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        seed: Seed,
        over: &'scope AtomicBool,
    ) -> Arc<AtomicU64> {
        let constants = RunConstants::of(seed);
        self.committed.store(0, Ordering::Relaxed);
        for number in 0..TERMINALS {
            let seed = seed.part("terminal", number);
            let random = |name| Random::new(seed.part(name, 0));
            let writer = Writer {
                session: self.database().session().expect("a session"),
                deck: Deck::new(random("deck")),
                inputs: Inputs::new(&self.scale, 1, number as u32 + 1, constants, random("inputs")),
                next_amount: Arc::clone(&self.next_amount),
                committed: Arc::clone(&self.committed),
            };
            let ledger = Arc::clone(&self.ledger);
            scope.spawn(move || writer.run(over, &ledger));
        }
        Arc::clone(&self.committed)
    }

    /// Starts the server again, which recovers, and looks for all that was acknowledged; how many transactions that are of this round,
    /// and of how many it is not known.
    pub fn verify(&mut self) -> (u64, u64) {
        self.start();
        let database = self.database();
        let number = |query: &str| database.number(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        let mut ledger = self.ledger.lock().expect("no panic");
        let unknown = std::mem::take(&mut ledger.unknown);
        // Payments: those that were acknowledged once each, and of the others those that were under way.
        let mut found = 0;
        for amounts in ledger.amounts.chunks(AT_ONCE) {
            let list: Vec<String> = amounts.iter().map(i64::to_string).collect();
            let list = list.join(",");
            found += number(&format!("SELECT count(*) FROM history WHERE h_amount IN ({list})"));
        }
        assert_eq!(found, ledger.amounts.len() as i64, "payments that are there, and those acknowledged");
        let all = number(&format!("SELECT count(*) FROM history WHERE h_amount >= {FIRST_AMOUNT}"));
        let under_way: Vec<i64> = unknown
            .iter()
            .filter_map(|it| match it {
                Transaction::Payment(payment) => Some(payment.amount),
                _ => None,
            })
            .collect();
        let mut done = Vec::new();
        for amount in under_way {
            if number(&format!("SELECT count(*) FROM history WHERE h_amount = {amount}")) == 1 {
                done.push(amount);
            }
        }
        ledger.amounts.extend(done);
        assert_eq!(all, ledger.amounts.len() as i64, "payments that nobody made");
        // Orders, by customer; the load has one of each.
        let mut conn = self.connect();
        let rows: Vec<(u32, u32, u64)> = conn
            .query("SELECT o_d_id, o_c_id, CAST(count(*) AS UNSIGNED) FROM orders GROUP BY o_d_id, o_c_id")
            .expect("orders");
        let found: BTreeMap<Customer, u64> =
            rows.into_iter().map(|(d, c, count)| ((d, c), count - 1)).collect();
        for (customer, acknowledged) in &ledger.orders {
            let found = found.get(customer).copied().unwrap_or(0);
            assert!(
                found >= *acknowledged,
                "orders of customer {customer:?}: {acknowledged} acknowledged, {found} there"
            );
        }
        for (customer, found) in &found {
            let may = unknown.iter().filter(|it| {
                matches!(it, Transaction::NewOrder(order)
                if (order.district, order.customer) == *customer)
            });
            let most = ledger.orders.get(customer).copied().unwrap_or(0) + may.count() as u64;
            assert!(*found <= most, "orders of customer {customer:?}: {found} there, at most {most} entered");
        }
        ledger.orders = found.into_iter().filter(|(_, count)| *count > 0).collect();
        let delivered = number("SELECT CAST(sum(c_delivery_cnt) AS SIGNED) FROM customer") as u64;
        let may = unknown.iter().filter(|it| matches!(it, Transaction::Delivery(_))).count() as u64;
        assert!(
            delivered >= ledger.delivered,
            "{} deliveries acknowledged, {delivered} there",
            ledger.delivered
        );
        assert!(delivered <= ledger.delivered + may * u64::from(DISTRICTS), "deliveries that nobody made");
        ledger.delivered = delivered;
        for condition in check::all(&*database, &self.scale).expect("the conditions can be asked") {
            assert_eq!(condition.broken, 0, "{condition:?}");
        }
        for table in Table::ALL {
            let rows: Vec<(String, String, String, String)> =
                conn.query(format!("CHECK TABLE {} EXTENDED", table.name())).expect("checked");
            let bad = rows.iter().find(|(_, _, kind, text)| kind != "status" || text != "OK");
            assert!(bad.is_none(), "{rows:?}");
        }
        (self.committed.load(Ordering::Relaxed), unknown.len() as u64)
    }

    fn connect(&self) -> Conn {
        let socket = self.places.run.join("socket");
        let options = OptsBuilder::new().ip_or_hostname(None::<String>).prefer_socket(false);
        let options = options.socket(Some(socket.to_string_lossy())).user(Some("root")).db_name(Some("tpcc"));
        Conn::new(options).expect("it lets us in")
    }
}

/// One that asks for transactions.
struct Writer {
    session: Box<dyn Session>,
    deck: Deck,
    inputs: Inputs,
    next_amount: Arc<AtomicU64>,
    committed: Arc<AtomicU64>,
}

impl Writer {
    fn run(mut self, over: &AtomicBool, ledger: &Mutex<Ledger>) {
        while !over.load(Ordering::Relaxed) {
            let mut transaction = self.inputs.next(self.deck.deal());
            if let Transaction::Payment(payment) = &mut transaction {
                payment.amount = FIRST_AMOUNT + self.next_amount.fetch_add(1, Ordering::Relaxed) as i64;
            }
            let ended = loop {
                match self.session.run(&transaction) {
                    Err(Failure::Conflict(_)) if !over.load(Ordering::Relaxed) => {}
                    ended => break ended,
                }
            };
            let mut ledger = ledger.lock().expect("no panic");
            match ended {
                Ok(outcome) => {
                    ledger.acknowledge(&transaction, outcome);
                    self.committed.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => {
                    ledger.unknown.push(transaction);
                    return;
                }
            }
        }
    }
}
