//! Tests of the tables' contents after transactions: consistency conditions, comparison with SQLite, and single
//! orders.
//!
//! Failing servers are in `failures`.

use crate::{Loaded, SEED, number, places_in, quick, run, scale, server};
use lowtide_core::Bytes;
use lowtide_engines::tpcc::random::{Random, RunConstants};
use lowtide_engines::tpcc::{Inputs, Kind, Line, NewOrder, Scale, Table, Transaction, Who, population};
use lowtide_engines::{Engine, Preset, Settings};
use lowtide_oltp::{Database, Failure, Outcome, Places, Session, check, snapshot, sqlite};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const ENGINES: [Engine; 3] = [Engine::Mariadb, Engine::MariadbAria, Engine::MariadbMyisam];

pub fn assert_consistent(database: &dyn Database) {
    let conditions = check::all(database, &scale()).expect("answers");
    assert_eq!(conditions.len(), 14);
    let broken: Vec<_> = conditions.iter().filter(|condition| condition.broken != 0).collect();
    assert!(broken.is_empty(), "{}, {SEED:?}: {broken:?}", database.version());
    let quantities = check::quantities(database, &scale(), SEED).expect("answers");
    assert_eq!(quantities.broken, 0, "{}, {SEED:?}: {quantities:?}", database.version());
}

#[test]
fn a_fresh_database_has_the_rows_of_its_scale_and_runs_as_it_was_told() {
    let settings = Settings {
        buffer_pool: Some(Bytes::mib(64)),
        preset: Some(Preset::Y2010),
        doublewrite: Some(false),
        log_size: Some(Bytes::mib(48)),
        data_files: Some(2),
        options: vec![("innodb-io-capacity-max".to_owned(), "700".to_owned())],
        ..quick(Engine::Mariadb)
    };
    let Some(mut loaded) = Loaded::new(&settings) else { return };
    let database = loaded.instance.database();
    for table in Table::ALL {
        let rows = number(&*database, &format!("SELECT count(*) FROM {}", table.name()));
        let expected = population::count(table, &scale()) as i64;
        let close = if table == Table::OrderLine { expected / 10 } else { 0 };
        assert!((rows - expected).abs() <= close, "{}: {rows}, not {expected}", table.name());
    }
    assert_consistent(&*database);
    let value = |name: &str| {
        let found = loaded.instance.settings().iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    for (name, expected) in [
        ("innodb_buffer_pool_size", (64 << 20).to_string()),
        ("innodb_log_file_size", (48 << 20).to_string()),
        ("innodb_doublewrite", "OFF".to_owned()),
        ("innodb_flush_neighbors", "2".to_owned()),
        ("innodb_flush_method", "O_DIRECT".to_owned()),
        ("innodb_flush_log_at_trx_commit", "0".to_owned()),
        ("innodb_io_capacity", "200".to_owned()),
        ("innodb_io_capacity_max", "700".to_owned()),
        ("innodb_read_ahead_threshold", "56".to_owned()),
        ("innodb_file_per_table", "OFF".to_owned()),
        ("innodb_adaptive_hash_index", "ON".to_owned()),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    let ignored = loaded.instance.ignored().join("\n");
    assert!(ignored.contains("innodb_thread_concurrency: removed"), "{ignored}");
    assert!(!ignored.contains("preset 2010: this server has no"), "{ignored}");
    assert!(database.version().starts_with("MariaDB 1"), "{}", database.version());
    // The load has restored the settings that it changed.
    let global = |name: &str| number(&*database, &format!("SELECT CAST(@@GLOBAL.{name} AS SIGNED)"));
    assert_eq!((global("innodb_io_capacity"), global("innodb_io_capacity_max")), (200, 700));
    assert_eq!((global("innodb_flush_log_at_trx_commit"), global("innodb_max_dirty_pages_pct")), (0, 90));
    let counters = database.counters().expect("counted");
    for (from, name) in [
        ("global_status", "innodb_data_written"),
        ("global_status", "innodb_os_log_written"),
        ("innodb_metrics", "log_writes"),
    ] {
        assert!(counters.iter().any(|it| it.from == from && it.name == name && it.value > 0.0), "{name}");
    }
    loaded.instance.check().expect("it runs");
    loaded.instance.stop().expect("stopped");
}

#[test]
fn every_condition_can_be_broken_and_no_other_complains() {
    let Some(loaded) = Loaded::new(&quick(Engine::Mariadb)) else { return };
    let database = loaded.instance.database();
    let tried = check::faults::try_each(&*database, &scale()).expect("answers");
    assert_eq!(tried.len(), 14);
    for fault in tried {
        assert_eq!(fault.broken, fault.expected, "{SEED:?}: the fault for {}", fault.clause);
    }
    assert_consistent(&*database);
}

#[test]
fn after_thousands_of_transactions_of_sixteen_terminals_everything_still_holds() {
    for engine in ENGINES {
        let Some(loaded) = Loaded::new(&quick(engine)) else { return };
        let database = loaded.instance.database();
        let summary = run(&*database, 16, 4_000).unwrap_or_else(|error| panic!("{SEED:?}: {error}"));
        assert!(summary.transactions >= 4_000, "{summary:?}");
        assert!(summary.statements < 2 * summary.transactions, "{summary:?}");
        assert_consistent(&*database);
        loaded.instance.stop().expect("stopped");
    }
}

/// Queries that digest the tables to numbers. They exclude times and `c_data`, which SQLite writes differently.
const DIGESTS: [&str; 14] = [
    "SELECT sum(w_ytd * w_id) FROM warehouse",
    "SELECT sum(d_ytd * d_id + d_next_o_id * d_w_id) FROM district",
    "SELECT sum(c_balance * c_id * c_d_id) FROM customer",
    "SELECT sum(c_ytd_payment * c_id + c_payment_cnt * c_d_id + c_delivery_cnt * 7) FROM customer",
    "SELECT count(*) FROM history",
    "SELECT sum(h_amount * h_c_id + h_d_id * h_c_w_id) FROM history",
    "SELECT sum(length(h_data)) FROM history",
    "SELECT sum(s_quantity * s_i_id * s_w_id) FROM stock",
    "SELECT sum(s_ytd * s_i_id + s_order_cnt * s_w_id + s_remote_cnt * 3) FROM stock",
    "SELECT sum(o_id * o_c_id + o_d_id * COALESCE(o_carrier_id, 0) + o_ol_cnt * o_all_local) FROM orders",
    "SELECT COALESCE(sum(no_o_id * no_d_id), 0) FROM new_order",
    "SELECT sum(ol_amount * ol_number + ol_i_id * ol_quantity + ol_supply_w_id) FROM order_line",
    "SELECT count(*) FROM order_line WHERE ol_delivery_d IS NULL",
    "SELECT count(*) FROM order_line JOIN stock ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id WHERE ol_dist_info = s_dist_04",
];

/// Equal transactions, run sequentially, leave equal rows in MariaDB and SQLite.
#[test]
fn the_same_inputs_leave_the_same_rows_as_on_sqlite() {
    for engine in ENGINES {
        let Some(loaded) = Loaded::new(&quick(engine)) else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let places = Places { data: folder.path().to_owned(), log: None, run: folder.path().to_owned() };
        let settings =
            Settings { durability: Some(lowtide_engines::Durability::None), ..Settings::default() };
        let other = sqlite::start(&places, &settings).expect("SQLite starts");
        other.database().load(&scale(), SEED, &AtomicBool::new(false), &|_| {}).expect("loaded");
        let both = [loaded.instance.database(), other.database()];
        replay(&both, 600);
        for query in DIGESTS {
            let [here, there] = [&both[0], &both[1]].map(|database| number(&**database, query));
            assert_eq!(here, there, "{engine}, {SEED:?}: {query}");
        }
        assert_consistent(&*both[0]);
    }
}

fn replay(both: &[Arc<dyn Database>; 2], transactions: usize) {
    let mut sessions: Vec<Box<dyn Session>> =
        both.iter().map(|database| database.session().expect("a session")).collect();
    let constants = RunConstants::of(SEED);
    let mut inputs: Vec<Inputs> = (0..6u32)
        .map(|terminal| {
            let random = Random::new(SEED.part("replay", terminal.into()));
            Inputs::new(&scale(), (3 + terminal % 3, 1 + terminal), constants, random)
        })
        .collect();
    for turn in 0..transactions {
        let count = inputs.len();
        // All kinds are equally frequent, because rare kinds need testing just as much.
        let transaction = inputs[turn % count].next(Kind::ALL[turn / count % Kind::ALL.len()]);
        let outcomes: Vec<_> = sessions.iter_mut().map(|session| session.run(&transaction)).collect();
        assert_eq!(outcomes[0], outcomes[1], "{SEED:?}, turn {turn}: {transaction:?}");
        assert!(outcomes[0].is_ok(), "{SEED:?}, turn {turn}: {outcomes:?}");
    }
}

fn order(lines: &[(u32, u32, u32)]) -> Transaction {
    let line = |&(item, supply, quantity): &(u32, u32, u32)| Line { item, supply, quantity };
    let lines = lines.iter().map(line).collect();
    Transaction::NewOrder(NewOrder { warehouse: 3, district: 4, customer: 7, lines })
}

#[test]
fn an_order_takes_from_stock_line_by_line() {
    let Some(loaded) = Loaded::new(&quick(Engine::Mariadb)) else { return };
    let database = loaded.instance.database();
    let mut session = database.session().expect("a session");
    let ask = |query: &str| number(&*database, query);
    database.execute("UPDATE stock SET s_quantity = 12 WHERE s_i_id = 5").expect("set");
    // Three lines take item 5 from the home warehouse: 12 − 3 = 9, which is below 10, so 91 is added: 100; then 93;
    // then 84. One line takes it from another warehouse: 12 − 2 = 10.
    let lines = [(9, 3, 10), (5, 3, 3), (20, 4, 1), (5, 3, 7), (5, 5, 2), (5, 3, 9)];
    assert_eq!(session.run(&order(&lines)), Ok(Outcome::Committed));
    assert_eq!(ask("SELECT s_quantity FROM stock WHERE s_w_id = 3 AND s_i_id = 5"), 84);
    assert_eq!(ask("SELECT s_ytd FROM stock WHERE s_w_id = 3 AND s_i_id = 5"), 19);
    assert_eq!(ask("SELECT s_order_cnt FROM stock WHERE s_w_id = 3 AND s_i_id = 5"), 3);
    assert_eq!(ask("SELECT s_quantity FROM stock WHERE s_w_id = 5 AND s_i_id = 5"), 10);
    assert_eq!(ask("SELECT s_remote_cnt FROM stock WHERE s_w_id = 4 AND s_i_id = 20"), 1);
    assert_eq!(ask("SELECT s_remote_cnt FROM stock WHERE s_w_id = 3 AND s_i_id = 5"), 0);
    assert_eq!(ask("SELECT o_all_local FROM orders WHERE o_w_id = 3 AND o_d_id = 4 AND o_id = 61"), 0);
    let right = "SELECT count(*) FROM order_line JOIN item ON i_id = ol_i_id \
                 JOIN stock ON s_w_id = ol_supply_w_id AND s_i_id = i_id WHERE ol_w_id = 3 AND ol_d_id = 4 \
                 AND ol_o_id = 61 AND ol_amount = ol_quantity * i_price AND ol_dist_info = s_dist_04";
    assert_eq!(ask(right), 6);
}

#[test]
fn an_order_with_an_unused_item_leaves_nothing_behind() {
    for engine in ENGINES {
        let Some(loaded) = Loaded::new(&quick(engine)) else { return };
        let database = loaded.instance.database();
        let digests = || DIGESTS.map(|query| number(&*database, query));
        let before = digests();
        let mut session = database.session().expect("a session");
        let lines = [(9, 3, 10), (5, 4, 3), (scale().items + 1, 3, 1)];
        assert_eq!(session.run(&order(&lines)), Ok(Outcome::RolledBack));
        assert_eq!(digests(), before, "{engine}");
        assert_eq!(session.run(&order(&lines[2..])), Ok(Outcome::RolledBack));
        assert_eq!(digests(), before, "{engine}");
        // The session remains usable.
        assert_eq!(session.run(&order(&lines[..2])), Ok(Outcome::Committed));
    }
}

#[test]
fn what_is_not_in_the_tables_is_refused_and_undone() {
    let Some(loaded) = Loaded::new(&quick(Engine::Mariadb)) else { return };
    let database = loaded.instance.database();
    let before = DIGESTS.map(|query| number(&*database, query));
    let mut session = database.session().expect("a session");
    let Transaction::NewOrder(mut nobody) = order(&[(9, 3, 1)]) else { unreachable!("it is an order") };
    nobody.customer = 61;
    let refused = session.run(&Transaction::NewOrder(nobody)).expect_err("no such customer");
    assert_eq!(refused, Failure::Refused("there is no customer 61 of district 4 of warehouse 3".into()));
    let refused = session.run(&order(&[(9, 8, 1)])).expect_err("no such warehouse");
    assert_eq!(refused, Failure::Refused("item 9 is not in the stock of warehouse 8".into()));
    let payment = lowtide_engines::tpcc::Payment {
        warehouse: 3,
        district: 4,
        customer_warehouse: 3,
        customer_district: 4,
        who: Who::LastName("O'NOBODY\\".into()),
        amount: 100,
    };
    let refused = session.run(&Transaction::Payment(payment)).expect_err("nobody has that name");
    assert_eq!(refused, Failure::Refused("there is no customer `O'NOBODY\\` in the district".into()));
    assert_eq!(DIGESTS.map(|query| number(&*database, query)), before);
}

/// Statements with lists of keys are fast only if the optimiser reads by key. An order must read a few dozen rows,
/// not the entire stock of the warehouse.
#[test]
fn transactions_read_by_key() {
    let Some(loaded) = Loaded::new(&quick(Engine::Mariadb)) else { return };
    let database = loaded.instance.database();
    let whole = Scale { items: 4_000, ..scale() };
    database.load(&whole, SEED, &AtomicBool::new(false), &|_| {}).expect("loaded");
    let mut session = database.session().expect("a session");
    let constants = RunConstants::of(SEED);
    let mut inputs = Inputs::new(&whole, (3, 1), constants, Random::new(SEED));
    let rows = || {
        let counters = database.counters().expect("counted");
        let read = counters.iter().filter(|counter| counter.name.starts_with("handler_read_"));
        read.map(|counter| counter.value).sum::<f64>()
    };
    for (kind, most) in [
        (Kind::NewOrder, 150.0),
        (Kind::Payment, 60.0),
        (Kind::OrderStatus, 80.0),
        (Kind::Delivery, 900.0),
        (Kind::StockLevel, 700.0),
    ] {
        let asking = rows();
        let before = rows();
        for _ in 0..20 {
            session.run(&inputs.next(kind)).unwrap_or_else(|failure| panic!("{SEED:?}: {failure}"));
        }
        let read = (rows() - before - (before - asking)) / 20.0;
        assert!(read <= most, "{SEED:?}: a {} reads {read} rows, more than {most}", kind.name());
    }
}

/// Loads a database with a large log. A server then starts from a copy in another directory with a smaller log. The
/// log has its own directory.
#[test]
fn a_copy_of_a_stopped_server_starts_elsewhere_with_other_settings() {
    for engine in ENGINES {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str, log: bool| {
            let mut places = places_in(&folder.path().join(name));
            places.log = log.then(|| folder.path().join(name).join("log"));
            places.log.iter().for_each(|log| std::fs::create_dir(log).expect("made"));
            places
        };
        // MyISAM has no log to put in a separate directory.
        let apart = engine != Engine::MariadbMyisam;
        std::fs::create_dir(folder.path().join("set")).expect("made");
        std::fs::create_dir(folder.path().join("cell")).expect("made");
        let (set, cell) = (at("set", apart), at("cell", apart));
        let settings = Settings { log_size: Some(Bytes::mib(128)), ..quick(engine) };
        let Some(instance) = server(&settings, &set) else { return };
        instance.database().load(&scale(), SEED, &AtomicBool::new(false), &|_| {}).expect("loaded");
        instance.stop().expect("stopped");
        let never = AtomicBool::new(false);
        snapshot::copy(&set.data, &cell.data, &never, &|_| ()).expect("copied");
        if let (Some(from), Some(to)) = (&set.log, &cell.log) {
            assert!(
                snapshot::copy(from, to, &never, &|_| ()).expect("copied").bytes > 0,
                "{engine}: the log"
            );
        }
        std::fs::remove_dir_all(folder.path().join("set")).expect("removed");
        let settings = Settings { log_size: Some(Bytes::mib(32)), ..quick(engine) };
        let instance = server(&settings, &cell).expect("MariaDB is here");
        assert_consistent(&*instance.database());
        run(&*instance.database(), 4, 200).unwrap_or_else(|error| panic!("{SEED:?}: {error}"));
        assert_consistent(&*instance.database());
        instance.stop().expect("stopped");
    }
}
