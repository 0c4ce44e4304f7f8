//! MariaDB with TPC-C's tables and transactions ([`Tpcc`]), and the ledger of acknowledged transactions.
//!
//! `lowtide_powercut::Ledger` looks up the transactions, and `lowtide_oltp::check` has the consistency conditions.

use crate::common::Lab;
use lowtide_core::{Bytes, Nanos, Seed};
use lowtide_engines::tpcc::random::{Random, RunConstants};
use lowtide_engines::tpcc::{Deck, Inputs, Scale};
use lowtide_engines::{Durability, Engine, Settings};
use lowtide_oltp::{Database, Failure, Instance, Places, Session, check, mariadb};
use lowtide_powercut::{Found, Ledger};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Scope;

const TERMINALS: u64 = 4;

/// A database on the log disk.
pub struct Tpcc {
    places: Places,
    instance: Option<Box<dyn Instance>>,
    scale: Scale,
    ledger: Arc<Mutex<Ledger>>,
    committed: Arc<AtomicU64>,
    /// Transactions whose outcome is unknown.
    unknown: Arc<AtomicU64>,
}

fn settings() -> Settings {
    Settings {
        engine: Engine::Mariadb,
        durability: Some(Durability::Full),
        flush_method: Some("O_DIRECT".to_owned()),
        doublewrite: Some(true),
        // Smaller than the data, so that pages are evicted and read back.
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
            committed: Arc::default(),
            unknown: Arc::default(),
        };
        tpcc.start();
        tpcc.database()
            .load(&tpcc.scale, Seed::new(crate::SEED), &AtomicBool::new(false), &|_| {})
            .expect("loaded");
        tpcc
    }

    fn start(&mut self) {
        let started = mariadb::start(&settings(), &self.places, &Arc::default());
        self.instance = Some(started.unwrap_or_else(|error| panic!("seed {}: {error}", crate::SEED)));
    }

    fn database(&self) -> Arc<dyn Database> {
        self.instance.as_ref().expect("it runs").database()
    }

    /// Shuts the server down cleanly.
    pub fn stop(mut self) {
        self.instance.take().expect("it runs").stop().expect("stopped");
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        // Dropping a running instance kills its server.
        self.instance = None;
    }

    /// Runs transactions on several threads until the server ends; returns the counter of acknowledged transactions.
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
                inputs: Inputs::new(&self.scale, (1, number as u32 + 1), constants, random("inputs")),
                committed: Arc::clone(&self.committed),
                unknown: Arc::clone(&self.unknown),
            };
            let ledger = Arc::clone(&self.ledger);
            scope.spawn(move || writer.run(over, &ledger));
        }
        Arc::clone(&self.committed)
    }

    /// Restarts the server, which recovers, and looks up all acknowledged transactions; returns the numbers of
    /// acknowledged and of unknown transactions of this round.
    pub fn verify(&mut self) -> (u64, u64) {
        self.start();
        let database = self.database();
        let mut ledger = self.ledger.lock().expect("no panic");
        let found = ledger.look(&*database, &self.scale, Nanos::ZERO);
        let found = found.unwrap_or_else(|error| panic!("seed {}: {error}", crate::SEED));
        let Found { lost, strange, .. } = found;
        assert_eq!((lost, strange), (0, 0), "lost or unexpected transactions: {found:?}");
        for condition in check::all(&*database, &self.scale).expect("the conditions can be asked") {
            assert_eq!(condition.broken, 0, "{condition:?}");
        }
        let damage = database.damage().expect("tables can be checked");
        assert!(damage.is_empty(), "{damage:?}");
        (self.committed.load(Ordering::Relaxed), self.unknown.swap(0, Ordering::Relaxed))
    }
}

/// A terminal that runs transactions.
struct Writer {
    session: Box<dyn Session>,
    deck: Deck,
    inputs: Inputs,
    committed: Arc<AtomicU64>,
    unknown: Arc<AtomicU64>,
}

impl Writer {
    fn run(mut self, over: &AtomicBool, ledger: &Mutex<Ledger>) {
        while !over.load(Ordering::Relaxed) {
            let mut transaction = self.inputs.next(self.deck.deal());
            ledger.lock().expect("no panic").name(&mut transaction);
            let ended = loop {
                match self.session.run(&transaction) {
                    Err(Failure::Conflict(_)) if !over.load(Ordering::Relaxed) => {}
                    ended => break ended,
                }
            };
            let mut ledger = ledger.lock().expect("no panic");
            match ended {
                Ok(outcome) => {
                    ledger.acknowledge(&transaction, outcome, Nanos::ZERO);
                    self.committed.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => {
                    ledger.unknown(transaction);
                    self.unknown.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        }
    }
}
