//! TPC-C on a real PostgreSQL server: load, transactions and failures.
//!
//! Without PostgreSQL, tests print that they were skipped. With `LOWTIDE_REQUIRE_REAL` set, they fail instead. Unit
//! tests of the crate cover the text of settings; `lowtide bench oltp` measures performance.

mod damage;
#[path = "../common/network.rs"]
mod network;
#[path = "../common/proxy.rs"]
mod proxy;

use lowtide_core::{Control, Nanos, Seed};
use lowtide_engines::Settings;
use lowtide_engines::tpcc::{
    Delivery, Line, NewOrder, OrderStatus, Payment, Scale, StockLevel, Table, Transaction, Who, population,
};
use lowtide_oltp::terminals::{self, Load, Part, Summary, WallClock};
use lowtide_oltp::{
    Database, Failure, Instance, OltpError, Outcome, Places, check, instance, postgres, snapshot,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SEED: Seed = Seed::new(20);

/// Reports a skipped test. Panics if `LOWTIDE_REQUIRE_REAL` is set.
fn skipped(why: &str) {
    assert!(std::env::var_os("LOWTIDE_REQUIRE_REAL").is_none(), "LOWTIDE_REQUIRE_REAL is set, but {why}");
    println!("skipped: {why}");
}

/// A directory that the server's user can reach, and the places in it.
fn places() -> (tempfile::TempDir, Places) {
    let directory = tempfile::tempdir().expect("a directory");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).expect("opened");
    let make = |name: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir(&path).expect("made");
        path
    };
    let places = Places { data: make("data"), log: None, run: make("run") };
    (directory, places)
}

/// Starts a server with the settings. Without PostgreSQL, prints a message and returns `None`.
fn server(settings: &Settings, places: &Places) -> Option<Box<dyn Instance>> {
    match postgres::start(settings, places, &Arc::default()) {
        Ok(instance) => Some(instance),
        Err(error @ OltpError::Missing { .. }) => {
            skipped(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Settings of a server that does not wait for the device, for fast tests.
fn quick() -> Settings {
    Settings { durability: Some(lowtide_engines::Durability::None), ..Settings::default() }
}

/// Two small warehouses.
fn small() -> Scale {
    Scale { warehouses: 1..=2, customers: 30, items: 100 }
}

fn loaded(settings: &Settings) -> Option<(tempfile::TempDir, Box<dyn Instance>, Scale)> {
    let (directory, places) = places();
    let instance = server(settings, &places)?;
    let scale = small();
    let database = instance.database();
    database.load(&scale, SEED, &AtomicBool::new(false), &|_| {}).expect("loaded");
    Some((directory, instance, scale))
}

fn order(lines: &[(u32, u32, u32)]) -> Transaction {
    let line = |&(item, supply, quantity): &(u32, u32, u32)| Line { item, supply, quantity };
    Transaction::NewOrder(NewOrder {
        warehouse: 1,
        district: 3,
        customer: 7,
        lines: lines.iter().map(line).collect(),
    })
}

fn number(database: &dyn Database, query: &str) -> i64 {
    database.number(query).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// Runs terminals for one interval of `ms` milliseconds.
fn run(database: &dyn Database, scale: &Scale, terminals: u32, ms: u64) -> Result<Summary, OltpError> {
    let interrupt = AtomicBool::new(false);
    let load = Load {
        terminals,
        think: false,
        interval: Nanos::from_millis(ms),
        clock: &WallClock::start(),
        seed: SEED,
        interrupt: &interrupt,
    };
    terminals::run(&[Part { database, scale }], &load, &mut |_| Control::Stop)
}

#[test]
fn a_fresh_database_has_the_rows_of_its_scale_and_runs_as_it_was_told() {
    let settings = Settings {
        buffer_pool: Some(lowtide_core::Bytes::mib(64)),
        data_files: Some(3),
        options: vec![("work_mem".to_owned(), "8MB".to_owned())],
        ..quick()
    };
    let Some((_directory, mut instance, scale)) = loaded(&settings) else { return };
    let database = instance.database();
    for table in Table::ALL {
        let rows = number(&*database, &format!("SELECT count(*) FROM {}", table.name()));
        let expected = population::count(table, &scale) as i64;
        let close = if table == Table::OrderLine { expected / 10 } else { 0 };
        assert!((rows - expected).abs() <= close, "{}: {rows}, not {expected}", table.name());
    }
    let spaces = "SELECT count(DISTINCT reltablespace) FROM pg_class WHERE relnamespace = 'lowtide'::regnamespace \
                  AND relkind IN ('r', 'i') AND reltablespace <> 0";
    assert_eq!(number(&*database, spaces), 3);
    let value = |name: &str| {
        let found = instance.settings().iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert_eq!((value("shared_buffers").as_str(), value("work_mem").as_str()), ("64MB", "8MB"));
    assert_eq!((value("fsync").as_str(), value("autovacuum").as_str()), ("off", "on"));
    assert!(database.version().starts_with("PostgreSQL 1"), "{}", database.version());
    let counters = database.counters().expect("counted");
    for (from, name) in [
        ("pg_stat_database", "xact_commit"),
        ("pg_stat_wal", "wal_bytes"),
        ("pg_statio_user_tables", "stock.heap_blks_hit"),
    ] {
        assert!(counters.iter().any(|it| it.from == from && it.name == name && it.value > 0.0), "{name}");
    }
    instance.check().expect("it runs");
    instance.stop().expect("stopped");
}

#[test]
fn an_order_takes_from_stock_line_by_line() {
    let Some((_directory, instance, _)) = loaded(&quick()) else { return };
    let database = instance.database();
    let mut session = database.session().expect("a session");
    let ask = |query: &str| number(&*database, query);
    database.execute("UPDATE stock SET s_quantity = 12 WHERE s_i_id = 5").expect("set");
    database.execute("UPDATE stock SET s_quantity = 40 WHERE s_i_id = 9").expect("set");
    // Three lines take item 5: 12 − 3 = 9, which is below 10, so 91 is added: 100; then 93; then 84.
    let lines = [(9, 1, 10), (5, 1, 3), (20, 2, 1), (5, 1, 7), (5, 1, 9)];
    assert_eq!(session.run(&order(&lines)), Ok(Outcome::Committed));
    assert_eq!(ask("SELECT s_quantity FROM stock WHERE s_w_id = 1 AND s_i_id = 5"), 84);
    assert_eq!(ask("SELECT s_ytd FROM stock WHERE s_w_id = 1 AND s_i_id = 5"), 19);
    assert_eq!(ask("SELECT s_order_cnt FROM stock WHERE s_w_id = 1 AND s_i_id = 5"), 3);
    assert_eq!(ask("SELECT s_quantity FROM stock WHERE s_w_id = 1 AND s_i_id = 9"), 30);
    assert_eq!(ask("SELECT s_remote_cnt FROM stock WHERE s_w_id = 2 AND s_i_id = 20"), 1);
    assert_eq!(ask("SELECT count(*) FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 31"), 5);
    let sums = "SELECT sum(CASE WHEN ol_amount = ol_quantity * i_price AND ol_dist_info = s_dist_03 THEN 1 END) \
                FROM order_line JOIN item ON i_id = ol_i_id JOIN stock ON s_w_id = ol_supply_w_id AND s_i_id = i_id \
                WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 31";
    assert_eq!(ask(sums), 5);
    assert_eq!(ask("SELECT o_all_local FROM orders WHERE o_w_id = 1 AND o_d_id = 3 AND o_id = 31"), 0);
    assert_eq!(session.statements(), 2);

    // An order with an unknown item changes nothing.
    let before = ask("SELECT sum(s_ytd) FROM stock");
    assert_eq!(session.run(&order(&[(9, 1, 10), (101, 1, 1)])), Ok(Outcome::RolledBack));
    assert_eq!(ask("SELECT sum(s_ytd) FROM stock"), before);
    assert_eq!(ask("SELECT d_next_o_id FROM district WHERE d_w_id = 1 AND d_id = 3"), 32);
}

/// Environment variables for other servers change neither lowtide's server nor its socket.
#[test]
fn the_environment_says_nothing_to_a_server_of_ours() {
    let output = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "an_order_takes_from_stock_line_by_line"])
        .envs([
            ("PGPORT", "6001"),
            ("PGDATA", "/nowhere"),
            ("PGHOST", "nowhere"),
            ("PGOPTIONS", "-c port=6002"),
        ])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn payments_orders_and_deliveries_do_what_the_specification_says() {
    let Some((_directory, instance, _)) = loaded(&quick()) else { return };
    let database = instance.database();
    let mut session = database.session().expect("a session");
    let ask = |query: &str| number(&*database, query);
    database
        .execute(
            "UPDATE customer SET c_credit = 'BC', c_last = 'BARBAR', c_data = 'old' \
             WHERE c_w_id = 2 AND c_d_id = 4 AND c_id IN (3, 5, 8, 9);
             UPDATE customer SET c_first = 'A' || c_id WHERE c_w_id = 2 AND c_d_id = 4 AND c_id IN (3, 5, 8, 9)",
        )
        .expect("set");
    let who = Who::LastName("BARBAR".to_owned());
    let payment = Payment {
        warehouse: 1,
        district: 2,
        customer_warehouse: 2,
        customer_district: 4,
        who: who.clone(),
        amount: 12_345,
    };
    let bearers = ask("SELECT count(*) FROM customer WHERE c_w_id = 2 AND c_d_id = 4 AND c_last = 'BARBAR'");
    assert_eq!(bearers, 4, "the middle of four is the second");
    assert_eq!(session.run(&Transaction::Payment(payment)), Ok(Outcome::Committed));
    let paid = "SELECT c_id FROM customer WHERE c_ytd_payment = 13345 AND c_balance = -13345 AND c_payment_cnt = 2 \
                AND c_data = '5 4 2 2 1 12345 old'";
    assert_eq!(ask(paid), 5);
    assert_eq!(ask("SELECT w_ytd FROM warehouse WHERE w_id = 1"), 10 * 30 * 1000 + 12_345);
    assert_eq!(ask("SELECT d_ytd FROM district WHERE d_w_id = 1 AND d_id = 2"), 30 * 1000 + 12_345);
    let history = "SELECT count(*) FROM history, warehouse, district WHERE h_amount = 12345 AND h_c_id = 5 \
                   AND h_c_w_id = 2 AND h_w_id = 1 AND w_id = 1 AND d_w_id = 1 AND d_id = 2 \
                   AND h_data = w_name || '    ' || d_name";
    assert_eq!(ask(history), 1);
    let status = |who| Transaction::OrderStatus(OrderStatus { warehouse: 2, district: 4, who });
    assert_eq!(session.run(&status(who)), Ok(Outcome::Committed));
    assert_eq!(session.run(&status(Who::Number(1))), Ok(Outcome::Committed));
    let missing = session.run(&status(Who::LastName("NOBODY".to_owned())));
    assert!(matches!(missing, Err(Failure::Refused(_))), "{missing:?}");

    let deliver = Transaction::Delivery(Delivery { warehouse: 1, carrier: 4 });
    let due = ask("SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = 1 AND ol_o_id = 22");
    assert_eq!(session.run(&deliver), Ok(Outcome::Delivered { skipped: 0 }));
    assert_eq!(ask("SELECT count(*) FROM orders WHERE o_w_id = 1 AND o_id = 22 AND o_carrier_id = 4"), 10);
    assert_eq!(ask("SELECT count(*) FROM new_order WHERE no_w_id = 1 AND no_o_id = 22"), 0);
    assert_eq!(
        ask("SELECT count(*) FROM order_line WHERE ol_w_id = 1 AND ol_o_id = 22 AND ol_delivery_d IS NULL"),
        0
    );
    assert_eq!(ask("SELECT sum(c_balance) FROM customer WHERE c_w_id = 1"), due - 300 * 1000);
    assert_eq!(ask("SELECT sum(c_delivery_cnt) FROM customer WHERE c_w_id = 1"), 10);
    database.execute("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id IN (2, 10)").expect("deleted");
    assert_eq!(session.run(&deliver), Ok(Outcome::Delivered { skipped: 2 }));

    let level = Transaction::StockLevel(StockLevel { warehouse: 1, district: 1, threshold: 15 });
    assert_eq!(session.run(&level), Ok(Outcome::Committed));
    assert_eq!(session.statements(), 7);
}

fn assert_consistent(database: &dyn Database, scale: &Scale) {
    let conditions = check::all(database, scale).expect("answers");
    assert_eq!(conditions.len(), 14);
    let broken: Vec<_> = conditions.iter().filter(|condition| condition.broken != 0).collect();
    assert!(broken.is_empty(), "{SEED:?}: {broken:?}");
    let quantities = check::quantities(database, scale, SEED).expect("answers");
    assert_eq!(quantities.broken, 0, "{SEED:?}: {quantities:?}");
}

#[test]
fn every_condition_holds_after_the_load_and_is_seen_when_it_is_broken() {
    let Some((_directory, instance, scale)) = loaded(&quick()) else { return };
    let database = instance.database();
    assert_consistent(&*database, &scale);
    let tried = check::faults::try_each(&*database, &scale).expect("answers");
    assert_eq!(tried.len(), 14);
    for fault in tried {
        assert_eq!(fault.broken, fault.expected, "the fault for {}", fault.clause);
    }
    assert_consistent(&*database, &scale);
}

#[test]
fn sixteen_terminals_leave_everything_consistent_and_miss_no_delivery() {
    let (_directory, places) = places();
    let Some(instance) = server(&quick(), &places) else { return };
    // Many orders are undelivered at the start, so that no district runs out of orders to deliver.
    let scale = Scale { warehouses: 1..=2, customers: 1000, items: 200 };
    let database = instance.database();
    database.load(&scale, SEED, &AtomicBool::new(false), &|_| {}).expect("loaded");
    let summary = run(&*database, &scale, 16, 3000).expect("it ran");
    println!("{summary:?}");
    assert!(summary.transactions > 1000, "{summary:?}");
    assert_eq!(summary.skipped_deliveries, 0, "each delivery found an order in every district");
    assert_consistent(&*database, &scale);
    let entered = "SELECT count(*) FROM order_line WHERE ol_o_id > 1000";
    assert_eq!(number(&*database, entered), summary.lines.0 as i64);
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let (_directory, places) = places();
    let settings = Settings { options: vec![("wrok_mem".to_owned(), "1".to_owned())], ..quick() };
    match postgres::start(&settings, &places, &Arc::default()) {
        Err(OltpError::Missing { program, hint }) => skipped(&format!("{program}: {hint}")),
        Err(OltpError::Server { server, what, line, .. }) => {
            assert_eq!((server.as_str(), what.as_str()), ("postgres", "did not start"));
            assert_eq!(line, "FATAL:  unrecognized configuration parameter \"wrok_mem\"");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it started"),
    }
}

#[test]
fn a_killed_server_is_seen_by_terminals_and_by_check_and_comes_back_whole() {
    let (_directory, places) = places();
    let Some(mut instance) = server(&Settings::default(), &places) else { return };
    let scale = small();
    let database = instance.database();
    database.load(&scale, SEED, &AtomicBool::new(false), &|_| {}).expect("loaded");
    let id = instance.process().expect("a process").to_string();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        std::process::Command::new("kill").args(["-KILL", &id]).status().expect("kill is there");
    });
    let failed = run(&*database, &scale, 8, 600_000).expect_err("the server was killed");
    killer.join().expect("killed");
    assert!(failed.to_string().contains("lost"), "{failed}");
    let told = until_it_ended(&mut *instance);
    assert!(told.contains("postgres was killed by signal 9"), "{told}");
    drop(instance);
    let again = server(&Settings::default(), &places).expect("it starts again");
    let database = again.database();
    assert_consistent(&*database, &scale);
    assert!(run(&*database, &scale, 2, 200).is_ok());
}

#[test]
fn a_log_apart_moves_with_a_copy_of_its_cluster() {
    let (directory, mut places) = places();
    let make = |name: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir(&path).expect("made");
        path
    };
    places.log = Some(make("log"));
    let settings = Settings { data_files: Some(2), ..quick() };
    let Some(instance) = server(&settings, &places) else { return };
    let scale = small();
    instance.database().load(&scale, SEED, &AtomicBool::new(false), &|_| {}).expect("loaded");
    instance.stop().expect("stopped");
    for place in ["data", "log"] {
        let (from, to) = (directory.path().join(place), directory.path().join(format!("{place}-copy")));
        snapshot::copy(&from, &to, &AtomicBool::new(false), &|_| {}).expect("copied");
    }
    let copy = Places {
        data: directory.path().join("data-copy"),
        log: Some(directory.path().join("log-copy")),
        run: make("run-copy"),
    };
    let lost = Places { log: None, ..copy.clone() };
    let told = postgres::start(&quick(), &lost, &Arc::default())
        .map(drop)
        .expect_err("its log is elsewhere")
        .to_string();
    assert!(told.contains("no place was named"), "{told}");
    let (one, other) = (server(&quick(), &places).expect("starts"), server(&quick(), &copy).expect("starts"));
    assert!(run(&*one.database(), &scale, 2, 200).is_ok());
    assert_consistent(&*other.database(), &scale);
}

#[test]
fn a_backend_that_is_killed_ends_the_server() {
    let Some((_directory, mut instance, _)) = loaded(&quick()) else { return };
    let database = instance.database();
    let mut session = database.session().expect("a session");
    let others = "backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let backend = number(&*database, &format!("SELECT min(pid) FROM pg_stat_activity WHERE {others}"));
    std::process::Command::new("kill").args(["-KILL", &backend.to_string()]).status().expect("kill is there");
    let lost = session.run(&order(&[(1, 1, 1)]));
    assert!(matches!(lost, Err(Failure::Lost(_))), "{lost:?}");
    let told = until_it_ended(&mut *instance);
    assert!(told.contains("was terminated by signal 9"), "{told}");
}

#[test]
fn a_load_is_given_up_when_it_is_interrupted() {
    let (_directory, places) = places();
    let Some(instance) = server(&quick(), &places) else { return };
    let interrupt = AtomicBool::new(false);
    let stop = |_: f64| interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
    let scale = Scale::warehouses(50);
    let result = instance.database().load(&scale, SEED, &interrupt, &stop);
    assert!(matches!(result, Err(OltpError::Interrupted)), "{result:?}");
}

#[test]
fn the_schema_of_somebody_else_is_left_alone() {
    let (_directory, places) = places();
    let Some(instance) = server(&quick(), &places) else { return };
    let database = instance.database();
    database.execute("CREATE SCHEMA lowtide; CREATE TABLE lowtide.stock (mine int)").expect("made");
    let refused = database.load(&small(), SEED, &AtomicBool::new(false), &|_| {}).expect_err("not ours");
    assert!(refused.to_string().contains("did not make"), "{refused}");
    assert_eq!(number(&*database, "SELECT count(*) FROM lowtide.stock"), 0);
}

#[test]
fn a_named_server_is_asked_through_its_address() {
    let (_directory, places) = places();
    let Some(instance) = server(&quick(), &places) else { return };
    let setup = "CREATE ROLE bench LOGIN PASSWORD 'pass word'; CREATE DATABASE bench OWNER bench";
    for statement in setup.split("; ") {
        instance.database().execute(statement).expect("made");
    }
    let host = places.run.to_str().expect("plain").replace('/', "%2F");
    let database =
        postgres::connect(&format!("postgresql://bench:pass%20word@{host}/bench"), &Arc::default())
            .expect("it answers");
    let scale = small();
    database.load(&scale, SEED, &AtomicBool::new(false), &|_| {}).expect("loaded");
    assert_eq!(number(&*database, "SELECT count(*) FROM item"), 100);
    assert!(run(&*database, &scale, 2, 200).is_ok());
    let nobody = postgres::connect(&format!("postgresql://nobody@{host}/bench"), &Arc::default());
    let told = nobody.map(drop).expect_err("there is no such role").to_string();
    assert!(told.starts_with(&format!("connecting to postgresql://nobody@{host}/bench")), "{told}");
    let wrong = postgres::connect(&format!("postgresql://bench:se%20cret@{host}/nowhere"), &Arc::default());
    let told = wrong.map(drop).expect_err("there is no such database").to_string();
    assert!(told.contains("connecting to postgresql://bench:***@") && !told.contains("cret"), "{told}");
}

/// Starts a server and a proxy to it. The address has the port of the proxy.
fn through_a_network() -> Option<(tempfile::TempDir, Box<dyn Instance>, proxy::Proxy, String)> {
    let (directory, instance, _) = loaded(&quick())?;
    let proxy = proxy::Proxy::to(&directory.path().join("run/.s.PGSQL.5432"));
    let address = format!("postgresql://lowtide:secret@127.0.0.1:{}/postgres", proxy.port());
    Some((directory, instance, proxy, address))
}

#[test]
fn a_lost_connection_is_named() {
    let Some((_directory, _instance, proxy, address)) = through_a_network() else { return };
    network::a_lost_connection_is_named(&proxy, &address, &small(), SEED);
}

#[test]
fn an_interrupt_ends_a_load_that_nobody_answers() {
    let Some((_directory, _instance, proxy, address)) = through_a_network() else { return };
    network::an_interrupt_ends_a_load_that_nobody_answers(&proxy, &address, &small(), SEED);
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    network::a_server_that_says_nothing_is_given_up("postgresql");
}

/// An idle timeout or a server restart may close a cached session while it is not in use.
#[test]
fn a_kept_session_that_was_lost_is_opened_again() {
    let Some((_directory, instance, proxy, address)) = through_a_network() else { return };
    let database = instance::connect(&address, &Arc::default()).expect("connected");
    let process = || number(&*database, "SELECT pg_backend_pid()");
    let first = process();
    proxy.close();
    assert_ne!(process(), first);
    drop(instance);
    let told = database.number("SELECT 1").expect_err("it is gone").to_string();
    assert!(told.contains("lost"), "{told}");
}

#[test]
fn more_terminals_than_a_server_takes_are_refused_before_they_begin() {
    let options = vec![("max_connections".to_owned(), "20".to_owned())];
    let Some((_directory, instance, scale)) = loaded(&Settings { options, ..quick() }) else { return };
    let told = run(&*instance.database(), &scale, 40, 20).expect_err("too many").to_string();
    assert!(told.starts_with("40 terminals need as many sessions, and the server takes 19"), "{told}");
}

#[test]
fn more_tablespaces_than_tables_are_refused() {
    let (_directory, places) = places();
    match postgres::start(&Settings { data_files: Some(10), ..quick() }, &places, &Arc::default()).map(drop) {
        Err(OltpError::Missing { program, .. }) => skipped(&program),
        other => {
            let told = other.expect_err("ten of nine").to_string();
            assert_eq!(told, "data_files = 10: there are 9 tables to spread, so 1 to 9");
        }
    }
}

/// Environment variable that marks the process to be killed. Its value is the file for the server's process number.
const VICTIM: &str = "LOWTIDE_TEST_POSTGRES_OF_A_VICTIM";

#[test]
fn a_server_ends_when_the_program_that_started_it_is_killed() {
    if let Some(path) = std::env::var_os(VICTIM) {
        // This is the process to be killed: it writes the server's process number and waits.
        let (_directory, places) = places();
        // A killed server would leave its shared memory behind in `/dev/shm`.
        let options = vec![("dynamic_shared_memory_type".to_owned(), "mmap".to_owned())];
        let settings = Settings { options, ..quick() };
        let instance = server(&settings, &places).expect("PostgreSQL is there");
        let id = instance.process().expect("a process");
        std::fs::write(path, format!("{id} {}", places.data.display())).expect("told");
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let (directory, places) = places();
    if server(&quick(), &places).is_none() {
        return;
    }
    let note = directory.path().join("note");
    let name = "a_server_ends_when_the_program_that_started_it_is_killed";
    let mut victim = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", name])
        .env(VICTIM, &note)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("started");
    let told = wait_for(|| {
        let text = std::fs::read_to_string(&note).ok()?;
        let (id, data) = text.split_once(' ')?;
        Some((id.to_owned(), std::path::PathBuf::from(data)))
    });
    victim.kill().expect("killed");
    victim.wait().expect("ended");
    let (id, data) = told;
    let gone = || {
        // A zombie process is still listed in `/proc`, but its `exe` link cannot be read.
        let program = std::fs::read_link(format!("/proc/{id}/exe"));
        program.is_err().then_some(())
    };
    wait_for(gone);
    // The seventh line ends with the number of the System V shared memory segment that marks the cluster as in use.
    let notes = std::fs::read_to_string(data.join("postmaster.pid")).expect("a killed server leaves it");
    let memory = notes.lines().nth(6).and_then(|line| line.split_whitespace().last()).expect("a number");
    let _ = std::process::Command::new("ipcrm").args(["-m", memory]).status();
    let _ = std::fs::remove_dir_all(data.parent().expect("a folder"));
}

/// Waits until the server has ended. Returns the error of `check`.
fn until_it_ended(instance: &mut dyn Instance) -> String {
    wait_for(|| instance.check().err()).to_string()
}

/// Polls for at most a minute.
fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not happen within a minute");
}

#[test]
fn a_full_disk_is_told_in_the_servers_words() {
    if !rustix::process::geteuid().is_root() {
        return skipped("mounting a tmpfs needs root");
    }
    let (directory, places) = places();
    let mount = |size: &str| {
        let mut command = std::process::Command::new("mount");
        command.args(["-t", "tmpfs", "-o", size, "none"]).arg(&places.data);
        command.status().is_ok_and(|status| status.success())
    };
    /// Unmounts the filesystem on drop, even after a panic.
    struct Mounted<'a>(&'a Path);
    impl Drop for Mounted<'_> {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg(self.0).status();
        }
    }
    if !mount("size=16m") {
        return skipped("no tmpfs can be mounted");
    }
    {
        let _mounted = Mounted(&places.data);
        match postgres::start(&quick(), &places, &Arc::default()) {
            Err(OltpError::Missing { program, .. }) => return skipped(&program),
            Err(error) => {
                let told = error.to_string();
                assert!(told.contains("initdb") && told.contains("No space left on device"), "{told}");
            }
            Ok(_) => panic!("it started"),
        }
    }
    assert!(mount("size=100m"));
    let mounted = Mounted(&places.data);
    let mut instance = server(&quick(), &places).expect("PostgreSQL is there");
    let told = instance.database().load(&Scale::warehouses(4), SEED, &AtomicBool::new(false), &|_| {});
    let seen = told.expect_err("it does not fit");
    let told = seen.to_string();
    // SQLSTATE 53100 is `disk_full`. Its message is "No space left on device", or the number of bytes written if part
    // of a block still fitted.
    let words = told.contains("No space left on device") || told.contains("wrote only");
    assert!(told.contains("loading") && told.contains("SQLSTATE 53100") && words, "{told}");
    // The server may have survived or ended. In both cases the error names its log.
    let told = instance::why(std::slice::from_mut(&mut instance), seen).to_string();
    assert!(told.contains("postgres.log"), "{told}");
    drop(instance);
    drop(mounted);
    drop(directory);
}
