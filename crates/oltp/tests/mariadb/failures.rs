//! Tests of failures: servers that do not start or that die during a run, full disks, and directories and tables that
//! lowtide must not touch.
//!
//! Unit tests of the crate cover the classification of statement errors.

use crate::{Loaded, SEED, number, places_in, quick, run, scale, server, skipped};
use lowtide_engines::{Engine, Settings};
use lowtide_oltp::{Failure, OltpError, instance, mariadb};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time limit of every wait.
const LIMIT: Duration = Duration::from_secs(120);

/// If this environment variable is set, the test binary holds a server until the binary is killed.
const HOLD: &str = "LOWTIDE_TEST_HOLD";

fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn runs(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn started(settings: &Settings, folder: &Path) -> Result<(), OltpError> {
    mariadb::start(settings, &places_in(folder), &Arc::default()).map(drop)
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let with = |name: &str, value: &str| Settings {
        options: vec![(name.to_owned(), value.to_owned())],
        ..quick(Engine::Mariadb)
    };
    let error = match started(&with("innodb_data_file_path", "nonsense"), folder.path()) {
        Err(error @ OltpError::Missing { .. }) => return skipped(&error.to_string()),
        other => other.expect_err("no such file"),
    };
    let OltpError::Server { line, log, .. } = &error else { panic!("{error}") };
    assert!(line.starts_with("[ERROR]") && !line.contains("Aborting"), "{error}");
    assert!(log.starts_with(folder.path().canonicalize().expect("a path")), "{error}");

    let error = started(&with("innodb_io_capacty", "200"), folder.path()).expect_err("mistyped");
    assert!(error.to_string().contains("did you mean `innodb_io_capacity`?"), "{error}");

    // The data directory has a page size that differs from the settings. The error quotes the server's log.
    let folder = tempfile::tempdir().expect("a folder");
    let instance = server(&quick(Engine::Mariadb), &places_in(folder.path())).expect("MariaDB is here");
    instance.stop().expect("stopped");
    let error =
        started(&with("innodb_page_size", "8192"), folder.path()).expect_err("made with another size");
    let OltpError::Server { what, line, .. } = &error else { panic!("{error}") };
    assert!(what.starts_with("did not start: it ended with exit status"), "{error}");
    assert!(line.contains("16384") || line.contains("page size"), "{error}");
    // With the original page size, the server starts again.
    let instance = server(&quick(Engine::Mariadb), &places_in(folder.path())).expect("MariaDB is here");
    instance.stop().expect("stopped");
}

/// The server's root has no password, so directory permissions must protect its socket.
#[test]
fn nobody_else_reaches_a_server_of_ours() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let mut places = places_in(folder.path());
    places.log = Some(folder.path().join("log"));
    std::fs::create_dir(folder.path().join("log")).expect("made");
    let Some(instance) = server(&quick(Engine::Mariadb), &places) else { return };
    for name in ["data", "log", "run"] {
        let mode = std::fs::metadata(folder.path().join(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{name}");
    }
    assert_eq!(number(&*instance.database(), "SELECT 1"), 1, "and lowtide does");
}

/// Environment variables for other servers change neither lowtide's server nor its socket.
#[test]
fn the_environment_says_nothing_to_a_server_of_ours() {
    let own = std::env::current_exe().expect("this program");
    let output = Command::new(own)
        .args(["--exact", "failures::nobody_else_reaches_a_server_of_ours"])
        .envs([
            ("MYSQL_HOME", "/nowhere"),
            ("MYSQL_UNIX_PORT", "/nowhere/socket"),
            ("MYSQL_GROUP_SUFFIX", "_x"),
        ])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_delivery_that_cannot_have_its_warehouse_to_itself_is_tried_again() {
    let Some(loaded) = Loaded::new(&quick(Engine::MariadbMyisam)) else { return };
    let database = loaded.instance.database();
    let mut session = database.session().expect("a session");
    // The database's own connection takes the lock, and later kills the query that waits for it.
    assert_eq!(number(&*database, "SELECT GET_LOCK('lowtide delivery 3', 0)"), 1);
    let orders = number(&*database, "SELECT count(*) FROM new_order");
    let delivery = lowtide_engines::tpcc::Delivery { warehouse: 3, carrier: 1 };
    let delivery = lowtide_engines::tpcc::Transaction::Delivery(delivery);
    let outcome = std::thread::scope(|scope| {
        let waits = scope.spawn(|| session.run(&delivery));
        let waiting =
            "SELECT COALESCE(max(id), 0) FROM information_schema.processlist WHERE state = 'User lock'";
        wait_for("a delivery that waits", || number(&*database, waiting) > 0);
        database.execute(&format!("KILL QUERY {}", number(&*database, waiting))).expect("ended");
        waits.join().expect("no panic")
    });
    assert!(matches!(outcome, Err(Failure::Conflict(_))), "{outcome:?}");
    assert_eq!(number(&*database, "SELECT count(*) FROM new_order"), orders);
    database.execute("DO RELEASE_LOCK('lowtide delivery 3')").expect("released");
    assert_eq!(session.run(&delivery), Ok(lowtide_oltp::Outcome::Delivered { skipped: 0 }));
}

#[test]
fn programs_that_are_not_there_are_missed_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings { programs: Some(folder.path().to_owned()), ..quick(Engine::Mariadb) };
    let error = started(&settings, folder.path()).expect_err("an empty folder");
    assert!(matches!(error, OltpError::Missing { .. }), "{error}");
    assert!(error.to_string().starts_with("`mariadbd` or `mysqld` is not on this machine"), "{error}");
}

/// A tmpfs of `mib` MiB, unmounted on drop.
struct Small(tempfile::TempDir);

impl Small {
    fn new(mib: u32) -> Option<Small> {
        let folder = tempfile::tempdir().expect("a folder");
        let options = format!("size={mib}m,mode=755");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(Small(folder)),
            other => {
                skipped(&format!("a tmpfs cannot be mounted: {other:?}"));
                None
            }
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_drive_that_is_full_is_said_to_be_full() {
    let Some(small) = Small::new(4) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut places = places_in(folder.path());
    places.data = small.0.path().join("data");
    std::fs::create_dir(&places.data).expect("made");
    match mariadb::start(&quick(Engine::Mariadb), &places, &Arc::default()).map(drop) {
        Err(error @ OltpError::Missing { .. }) => return skipped(&error.to_string()),
        Err(OltpError::Server { what, line, .. }) => {
            assert_eq!(std::fs::read_dir(&places.data).expect("read").count(), 0, "something is left behind");
            assert!(what.starts_with("could not make the directory"), "{what}");
            assert!(line.contains("No space left") || line.contains("28") || line.contains("full"), "{line}");
        }
        other => panic!("{other:?}"),
    }
    drop(small);

    // The server fits on this filesystem, but the load does not.
    let Some(small) = Small::new(210) else { return };
    places.data = small.0.path().join("data");
    std::fs::create_dir(&places.data).expect("made");
    let mut instance = server(&quick(Engine::Mariadb), &places).expect("it fits");
    let large = lowtide_engines::tpcc::Scale::warehouses(4);
    let error = instance
        .database()
        .load(&large, SEED, &AtomicBool::new(false), &|_| {})
        .expect_err("it does not fit");
    let OltpError::Sql { what, message } = &error else { panic!("{error}") };
    assert!(what.starts_with("loading ") && message.contains("full"), "{error}");
    let told = instance::why(std::slice::from_mut(&mut instance), error).to_string();
    assert!(told.contains("loading ") && told.contains("the log of the server says [ERROR]"), "{told}");
}

#[test]
fn a_server_that_is_killed_is_missed_by_terminals_and_by_the_instance() {
    let Some(mut loaded) = Loaded::new(&quick(Engine::Mariadb)) else { return };
    let database = loaded.instance.database();
    let process = loaded.instance.process().expect("a process").to_string();
    let mut session = database.session().expect("a session");
    let error = std::thread::scope(|scope| {
        let terminals = scope.spawn(|| run(&*database, 8, u64::MAX));
        wait_for("orders", || number(&*database, "SELECT count(*) FROM orders WHERE o_id > 60") > 20);
        assert!(Command::new("kill").args(["-9", &process]).status().expect("kill runs").success());
        terminals.join().expect("no panic").expect_err("the server is gone")
    });
    assert!(!matches!(error, OltpError::Interrupted), "{error}");
    let asked = lowtide_engines::tpcc::StockLevel { warehouse: 3, district: 1, threshold: 15 };
    let lost =
        session.run(&lowtide_engines::tpcc::Transaction::StockLevel(asked)).expect_err("the server is gone");
    assert!(matches!(lost, Failure::Lost(_)), "{lost:?}");
    // The server's threads end one after another, so wait until the process has ended.
    wait_for("the end of the server", || loaded.instance.check().is_err());
    let error = loaded.instance.check().expect_err("it was killed").to_string();
    assert!(error.contains("was killed by signal 9"), "{error}");
    assert!(loaded.instance.stop().is_err());
}

#[test]
fn a_server_that_is_killed_while_it_is_loaded_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut instance) = server(&quick(Engine::Mariadb), &places_in(folder.path())) else { return };
    let process = instance.process().expect("a process").to_string();
    let killed = AtomicBool::new(false);
    let kill = |share: f64| {
        if share > 0.05 && !killed.swap(true, Ordering::Relaxed) {
            assert!(Command::new("kill").args(["-9", &process]).status().expect("kill runs").success());
        }
    };
    let large = lowtide_engines::tpcc::Scale::warehouses(2);
    let seen = instance.database().load(&large, SEED, &AtomicBool::new(false), &kill).expect_err("killed");
    let told = instance::why(std::slice::from_mut(&mut instance), seen).to_string();
    assert!(told.contains("was killed by signal 9: ") && told.contains("server.log"), "{told}");
}

#[test]
fn a_load_that_is_interrupted_stops_and_can_be_made_again() {
    let Some(loaded) = Loaded::new(&quick(Engine::Mariadb)) else { return };
    let database = loaded.instance.database();
    let interrupt = AtomicBool::new(false);
    let large = lowtide_engines::tpcc::Scale::warehouses(2);
    let loading =
        database.load(&large, SEED, &interrupt, &|share| interrupt.store(share > 0.1, Ordering::Relaxed));
    assert!(matches!(loading, Err(OltpError::Interrupted)), "{loading:?}");
    database.load(&scale(), SEED, &AtomicBool::new(false), &|_| {}).expect("loaded");
    assert_eq!(number(&*database, "SELECT count(*) FROM stock"), 1_200);
}

#[test]
fn a_directory_with_something_else_in_it_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let places = places_in(folder.path());
    std::fs::write(places.data.join("diary"), "dear").expect("written");
    match mariadb::start(&quick(Engine::Mariadb), &places, &Arc::default()).map(drop) {
        Err(error @ OltpError::Missing { .. }) => skipped(&error.to_string()),
        other => assert!(other.expect_err("not empty").to_string().contains("is not empty")),
    }
    assert_eq!(std::fs::read_to_string(places.data.join("diary")).expect("there"), "dear");
}

#[test]
fn tables_of_others_are_not_dropped() {
    let Some(loaded) = Loaded::new(&quick(Engine::Mariadb)) else { return };
    let database = loaded.instance.database();
    database.execute("DROP TABLE customer").expect("dropped");
    database.execute("CREATE TABLE customer (name VARCHAR(20)) COMMENT = 'ours'").expect("made");
    let error =
        database.load(&scale(), SEED, &AtomicBool::new(false), &|_| {}).expect_err("it is not lowtide's");
    assert!(error.to_string().contains("the table `customer` is there already"), "{error}");
    assert_eq!(number(&*database, "SELECT count(*) FROM customer"), 0);
}

/// Helper of the next test: holds a server until the process is killed. Does nothing without `HOLD` in the
/// environment.
#[test]
fn holds_a_server() {
    let Some(folder) = std::env::var_os(HOLD).map(std::path::PathBuf::from) else { return };
    let instance = server(&quick(Engine::Mariadb), &places_in(&folder)).expect("MariaDB is here");
    let process = instance.process().expect("a process").to_string();
    std::fs::write(folder.join("new"), process).expect("written");
    std::fs::rename(folder.join("new"), folder.join("process")).expect("renamed");
    std::thread::sleep(10 * LIMIT);
}

#[test]
fn a_server_ends_with_the_process_that_started_it() {
    let folder = tempfile::tempdir().expect("a folder");
    if let Err(error @ OltpError::Missing { .. }) = started(&quick(Engine::Mariadb), folder.path()) {
        return skipped(&error.to_string());
    }
    let name = "failures::holds_a_server";
    let own = std::env::current_exe().expect("this program");
    let mut holder =
        Command::new(own).args(["--exact", name]).env(HOLD, folder.path()).spawn().expect("started");
    let file = folder.path().join("process");
    wait_for("the server", || file.exists());
    let process = std::fs::read_to_string(&file).expect("a number");
    assert!(runs(&process), "it runs");
    holder.kill().expect("killed");
    holder.wait().expect("ended");
    wait_for("the end of the server", || !runs(&process));
}
