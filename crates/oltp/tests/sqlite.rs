//! TPC-C on SQLite: load, consistency conditions, terminals, and comparison of the terminals' counts with the data.
//!
//! Performance is not tested.

use lowtide_core::{Bytes, Control, Nanos, Seed};
use lowtide_engines::Interval;
use lowtide_engines::tpcc::{Delivery, Kind, Line, NewOrder, Scale, Table, Transaction, population};
use lowtide_engines::{Durability, Settings};
use lowtide_oltp::terminals::{Load, Part, Summary, WallClock, run};
use lowtide_oltp::{Database, Failure, Instance, OltpError, Outcome, Places, check, sqlite};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const SEED: u64 = 7;

/// A small database with several warehouses.
fn scale() -> Scale {
    Scale { warehouses: 3..=5, customers: 60, items: 400 }
}

/// A database in a temporary directory.
struct Place {
    instance: Box<dyn Instance>,
    database: Arc<dyn Database>,
    folder: tempfile::TempDir,
}

fn places(folder: &std::path::Path) -> Places {
    Places { data: folder.to_owned(), log: None, run: folder.to_owned() }
}

fn empty(settings: &Settings) -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let instance = sqlite::start(&places(folder.path()), settings).expect("starts");
    Place { database: instance.database(), instance, folder }
}

fn loaded() -> Place {
    let place = empty(&Settings { durability: Some(Durability::None), ..Settings::default() });
    let interrupt = AtomicBool::new(false);
    place.database.load(&scale(), Seed::new(SEED), &interrupt, &|_| {}).expect("loads");
    place
}

fn number(database: &dyn Database, query: &str) -> i64 {
    database.number(query).expect("answers")
}

fn assert_consistent(database: &dyn Database) {
    let conditions = check::all(database, &scale()).expect("answers");
    assert_eq!(conditions.len(), 14);
    let broken: Vec<_> = conditions.iter().filter(|condition| condition.broken != 0).collect();
    assert!(broken.is_empty(), "seed {SEED}: {broken:?}");
    let quantities = check::quantities(database, &scale(), Seed::new(SEED)).expect("answers");
    assert_eq!(quantities.broken, 0, "seed {SEED}: {quantities:?}");
}

/// Runs four terminals until the intervals contain `transactions` completed transactions.
fn run_for(database: &dyn Database, transactions: u64) -> (Vec<Interval>, Summary) {
    let interrupt = AtomicBool::new(false);
    let load = Load {
        clock: &WallClock::start(),
        terminals: 4,
        think: false,
        interval: Nanos::from_millis(20),
        seed: Seed::new(SEED),
        interrupt: &interrupt,
    };
    let mut heard: Vec<Interval> = Vec::new();
    let mut ended = 0;
    let scale = scale();
    let summary = run(&[Part { database, scale: &scale }], &load, &mut |interval| {
        ended += interval.kinds.iter().map(|tally| tally.committed + tally.rolled_back).sum::<u64>();
        heard.push(interval);
        if ended >= transactions { Control::Stop } else { Control::Continue }
    });
    (heard, summary.expect("runs"))
}

#[test]
fn a_load_has_its_rows_and_meets_every_condition() {
    let place = loaded();
    for table in Table::ALL.into_iter().filter(|table| *table != Table::OrderLine) {
        let rows = number(&*place.database, &format!("SELECT count(*) FROM {}", table.name()));
        assert_eq!(rows, population::count(table, &scale()) as i64, "{}", table.name());
    }
    assert_consistent(&*place.database);
}

#[test]
fn every_condition_can_be_broken_and_no_other_complains() {
    let place = loaded();
    let tried = check::faults::try_each(&*place.database, &scale()).expect("answers");
    assert_eq!(tried.len(), 14);
    for fault in tried {
        assert_eq!(fault.broken, fault.expected, "seed {SEED}: the fault for {}", fault.clause);
    }
    assert_consistent(&*place.database);
    let one_less = "UPDATE stock SET s_quantity = s_quantity - 1 WHERE s_w_id = 4 AND s_i_id = 9";
    place.database.execute(one_less).expect("runs");
    let quantities = check::quantities(&*place.database, &scale(), Seed::new(SEED)).expect("answers");
    assert_eq!(quantities.broken, 1, "seed {SEED}");
}

/// The row-count condition must detect missing rows, because all other conditions hold for empty tables.
#[test]
fn rows_that_are_not_there_are_missed() {
    let place = loaded();
    let broken = || -> Vec<(&str, i64)> {
        let conditions = check::all(&*place.database, &scale()).expect("answers");
        conditions.iter().filter(|it| it.broken != 0).map(|it| (it.clause, it.broken)).collect()
    };
    place.database.execute("DELETE FROM item WHERE i_id IN (2, 5, 7)").expect("runs");
    assert_eq!(broken(), [("rows", 3)]);
    for table in Table::ALL {
        place.database.execute(&format!("DELETE FROM {}", table.name())).expect("runs");
    }
    let those = [Table::Warehouse, Table::District, Table::Customer, Table::Stock, Table::Item];
    let all: u64 = those.map(|table| population::count(table, &scale())).iter().sum();
    assert_eq!(broken(), [("rows", all as i64)]);
}

#[test]
fn after_thousands_of_transactions_everything_still_holds() {
    let place = loaded();
    let database = &*place.database;
    let lines = number(database, "SELECT count(*) FROM order_line");
    let (heard, summary) = run_for(database, 2_000);
    assert_consistent(database);

    let retries: u64 = heard.iter().flat_map(|interval| &interval.kinds).map(|tally| tally.retries).sum();
    assert_eq!(retries, 0, "writers take turns, and readers wait for nobody");
    assert!(heard.iter().any(|interval| interval.kinds[Kind::NewOrder as usize].rolled_back > 0));
    assert!(summary.statements > 10 * summary.transactions, "{summary:?}");

    // The data agree with the terminals' counts.
    let entered = "FROM order_line WHERE ol_o_id > 60";
    let remote = number(database, &format!("SELECT count(*) {entered} AND ol_supply_w_id <> ol_w_id"));
    assert_eq!(number(database, "SELECT count(*) FROM order_line") - lines, summary.lines.0 as i64);
    assert_eq!(number(database, &format!("SELECT count(*) {entered}")), summary.lines.0 as i64);
    assert_eq!(remote, summary.lines.1 as i64);
    let payments = "SELECT count(*) FROM history WHERE h_data LIKE '%    %'";
    assert_eq!(number(database, payments), summary.payments.0 as i64);
    let others = format!("{payments} AND h_c_w_id <> h_w_id");
    assert_eq!(number(database, &others), summary.payments.1 as i64);

    // The shares are within five standard deviations of the specification.
    for ((all, some), share) in [(summary.lines, 0.01), (summary.payments, 0.15)] {
        let deviation = (share * (1.0 - share) / all as f64).sqrt();
        let found = some as f64 / all as f64;
        assert!((found - share).abs() < 5.0 * deviation, "seed {SEED}: {found}, not {share}");
    }
    let counters = database.counters().expect("counts");
    let commits = counters.iter().find(|counter| counter.name == "commits").expect("is counted").value;
    assert!(commits > 0.9 * summary.transactions as f64 * 0.92, "{commits}");
}

/// Numbers that change if a transaction leaves any trace in the tables.
fn fingerprint(database: &dyn Database) -> Vec<i64> {
    [
        "SELECT sum(d_next_o_id) FROM district",
        "SELECT sum(s_quantity * 7 + s_ytd * 5 + s_order_cnt * 3 + s_remote_cnt) FROM stock",
        "SELECT count(*) FROM orders",
        "SELECT count(*) FROM new_order",
        "SELECT count(*) FROM order_line",
    ]
    .iter()
    .map(|query| number(database, query))
    .collect()
}

#[test]
fn an_order_of_an_unused_item_leaves_nothing_behind() {
    let place = loaded();
    let before = fingerprint(&*place.database);
    let mut session = place.database.session().expect("opens");
    let line = |item| Line { item, supply: 3, quantity: 3 };
    let mut order = NewOrder {
        warehouse: 3,
        district: 2,
        customer: 1,
        lines: vec![line(1), line(1), line(2), line(3), line(401)],
    };
    let refused = session.run(&Transaction::NewOrder(order.clone()));
    assert_eq!(refused, Ok(Outcome::RolledBack));
    assert_eq!(fingerprint(&*place.database), before);
    order.lines.pop();
    assert_eq!(session.run(&Transaction::NewOrder(order)), Ok(Outcome::Committed));
    assert_ne!(fingerprint(&*place.database), before);
    assert_consistent(&*place.database);
}

#[test]
fn a_full_disk_is_told_in_sqlites_words_and_leaves_nothing_behind() {
    let place = loaded();
    let database = &*place.database;
    let pages = number(database, "PRAGMA page_count");
    database.execute(&format!("PRAGMA max_page_count = {pages}")).expect("accepts");
    let interrupt = AtomicBool::new(false);
    let load = Load {
        clock: &WallClock::start(),
        terminals: 2,
        think: false,
        interval: Nanos::from_secs(3600),
        seed: Seed::new(SEED),
        interrupt: &interrupt,
    };
    let (scale, mut heard) = (scale(), 0);
    let ended = run(&[Part { database, scale: &scale }], &load, &mut |interval| {
        heard += interval.kinds.iter().map(|tally| tally.committed).sum::<u64>();
        Control::Continue
    });
    let said = ended.expect_err("the file may not grow").to_string();
    assert!(said.starts_with("terminal ") && said.ends_with(": database or disk is full"), "{said}");
    assert!(heard > 0, "what was measured before was heard");
    assert_consistent(database);
}

#[test]
fn a_load_that_does_not_fit_leaves_an_empty_database_that_can_be_loaded() {
    let place = empty(&Settings { durability: Some(Durability::None), ..Settings::default() });
    let interrupt = AtomicBool::new(false);
    let load = || place.database.load(&scale(), Seed::new(SEED), &interrupt, &|_| {});
    place.database.execute("PRAGMA max_page_count = 50").expect("accepts");
    let said = load().expect_err("does not fit").to_string();
    assert!(said.starts_with("loading ") && said.ends_with(": database or disk is full"), "{said}");
    assert_eq!(number(&*place.database, "SELECT count(*) FROM sqlite_schema"), 0);
    place.database.execute("PRAGMA max_page_count = 1000000").expect("accepts");
    load().expect("fits");
    assert_consistent(&*place.database);
    let said = load().expect_err("is loaded").to_string();
    assert_eq!(said, "making item: table item already exists");
}

#[test]
fn a_lock_of_another_process_is_a_conflict_and_not_a_failure() {
    let place = empty(&Settings {
        durability: Some(Durability::None),
        options: vec![("busy_timeout".to_owned(), "20".to_owned())],
        ..Settings::default()
    });
    place.database.load(&scale(), Seed::new(SEED), &AtomicBool::new(false), &|_| {}).expect("loads");
    let mut session = place.database.session().expect("opens");
    let delivery = Transaction::Delivery(Delivery { warehouse: 3, carrier: 1 });
    let other = rusqlite::Connection::open(place.folder.path().join("tpcc.db")).expect("opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("locks");
    assert_eq!(session.run(&delivery), Err(Failure::Conflict("database is locked".to_owned())));
    other.execute_batch("ROLLBACK").expect("unlocks");
    assert_eq!(session.run(&delivery), Ok(Outcome::Delivered { skipped: 0 }));
    // Of a district's 60 orders, 18 are undelivered.
    for _ in 1..18 {
        session.run(&delivery).expect("delivers");
    }
    assert_eq!(session.run(&delivery), Ok(Outcome::Delivered { skipped: 10 }));
    assert_consistent(&*place.database);
}

#[test]
fn a_database_that_was_stopped_is_there_again_and_one_that_is_closed_says_so() {
    let Place { instance, database, folder } = loaded();
    let mut session = database.session().expect("opens");
    let before = fingerprint(&*database);
    instance.stop().expect("stops");
    let order = Transaction::NewOrder(NewOrder { warehouse: 3, district: 1, customer: 1, lines: vec![] });
    assert_eq!(session.run(&order), Err(Failure::Lost("the database is closed".to_owned())));
    drop(session);
    assert!(!folder.path().join("tpcc.db-wal").exists(), "everything is in the file");
    let again = sqlite::start(&places(folder.path()), &Settings::default()).expect("starts");
    assert_eq!(fingerprint(&*again.database()), before);
}

#[test]
fn settings_are_pragmas_and_what_is_none_is_told() {
    let settings = Settings {
        buffer_pool: Some(Bytes::new(64 << 20)),
        durability: Some(Durability::Second),
        log_size: Some(Bytes::new(16 << 20)),
        io_capacity: Some(200),
        options: vec![("page_size".to_owned(), "8192".to_owned()), ("temp_store".to_owned(), "2".to_owned())],
        ..Settings::default()
    };
    let place = empty(&settings);
    let shown: Vec<String> =
        place.instance.settings().iter().map(|(name, value)| format!("{name} = {value}")).collect();
    assert_eq!(
        shown,
        [
            "journal_mode = wal",
            "synchronous = 1",
            "page_size = 8192",
            "cache_size = -65536",
            "wal_autocheckpoint = 2048",
            "temp_store = 2"
        ]
    );
    let ignored = [
        "durability: SQLite syncs at commits or, as now, at checkpoints only, and never by the second",
        "io_capacity: SQLite writes nothing in the background",
    ];
    assert_eq!(place.instance.ignored(), ignored);

    let settings =
        Settings { options: vec![("cache_sise".to_owned(), "1".to_owned())], ..Settings::default() };
    let folder = tempfile::tempdir().expect("a folder");
    let refused = sqlite::start(&places(folder.path()), &settings).err().expect("is no pragma");
    assert_eq!(refused.to_string(), "SQLite has no pragma `cache_sise`; did you mean `cache_size`?");
}

#[test]
fn a_file_that_is_no_database_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("tpcc.db"), "x".repeat(10_000)).expect("writes");
    let refused = sqlite::start(&places(folder.path()), &Settings::default()).err().expect("is no database");
    assert!(
        matches!(&refused, OltpError::Sql { message, .. } if message == "file is not a database"),
        "{refused}"
    );
}
