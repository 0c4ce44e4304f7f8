//! TPC-C on a real MariaDB server: load, transactions and failures.
//!
//! Without MariaDB, tests print that they were skipped. With `LOWTIDE_REQUIRE_REAL` set, they fail instead. Unit
//! tests of the crate cover the text of settings; `examples/bench.rs` measures performance.
#![allow(clippy::print_stdout)]

mod failures;
mod named;
#[path = "../common/network.rs"]
mod network;
#[path = "../common/proxy.rs"]
mod proxy;
mod transactions;

use lowtide_core::{Control, Nanos, Seed};
use lowtide_engines::tpcc::Scale;
use lowtide_engines::{Durability, Engine, Settings};
use lowtide_oltp::terminals::{self, Load, Part, Summary, WallClock};
use lowtide_oltp::{Database, Instance, OltpError, Places, mariadb};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const SEED: Seed = Seed::new(20);

/// Reports a skipped test. Panics if `LOWTIDE_REQUIRE_REAL` is set.
fn skipped(why: &str) {
    assert!(std::env::var_os("LOWTIDE_REQUIRE_REAL").is_none(), "LOWTIDE_REQUIRE_REAL is set, but {why}");
    println!("skipped: {why}");
}

/// Places within a directory that the server's user can reach.
fn places_in(directory: &Path) -> Places {
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory, open).expect("opened");
    let make = |name: &str| {
        let path = directory.join(name);
        std::fs::create_dir_all(&path).expect("made");
        path
    };
    Places { data: make("data"), log: None, run: make("run") }
}

/// Starts a server with the settings. Without MariaDB, prints a message and returns `None`.
fn server(settings: &Settings, places: &Places) -> Option<Box<dyn Instance>> {
    match mariadb::start(settings, places, &Arc::default()) {
        Ok(instance) => Some(instance),
        Err(error @ OltpError::Missing { .. }) => {
            skipped(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Settings of a server that does not wait for the device, for fast tests.
fn quick(engine: Engine) -> Settings {
    Settings { engine, durability: Some(Durability::None), ..Settings::default() }
}

/// A small database with several warehouses, not including warehouse 1.
fn scale() -> Scale {
    Scale { warehouses: 3..=5, customers: 60, items: 400 }
}

/// A server with a loaded database, in a temporary directory.
struct Loaded {
    instance: Box<dyn Instance>,
    _folder: tempfile::TempDir,
}

impl Loaded {
    fn new(settings: &Settings) -> Option<Loaded> {
        let folder = tempfile::tempdir().expect("a folder");
        let instance = server(settings, &places_in(folder.path()))?;
        instance.database().load(&scale(), SEED, &AtomicBool::new(false), &|_| {}).expect("loaded");
        Some(Loaded { instance, _folder: folder })
    }
}

fn number(database: &dyn Database, query: &str) -> i64 {
    database.number(query).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// Runs `count` terminals until `transactions` transactions have completed.
fn run(database: &dyn Database, count: u32, transactions: u64) -> Result<Summary, OltpError> {
    let interrupt = AtomicBool::new(false);
    let load = Load {
        terminals: count,
        think: false,
        interval: Nanos::from_millis(20),
        clock: &WallClock::start(),
        seed: SEED,
        interrupt: &interrupt,
    };
    let mut ended = 0;
    let scale = scale();
    terminals::run(&[Part { database, scale: &scale }], &load, &mut |interval| {
        ended += interval.kinds.iter().map(|tally| tally.committed + tally.rolled_back).sum::<u64>();
        if ended >= transactions { Control::Stop } else { Control::Continue }
    })
}
