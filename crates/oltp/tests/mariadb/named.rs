//! Tests of servers that lowtide did not start: connecting by address, leaving settings unchanged, and lost
//! connections.
//!
//! The tests start a server and connect to it by address. Unit tests of the crate cover the parsing of addresses.

use crate::proxy::Proxy;
use crate::{Loaded, SEED, network, number, quick, scale};
use lowtide_engines::{Engine, Settings};
use lowtide_oltp::{instance, mariadb};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

fn socket(loaded: &Loaded) -> PathBuf {
    let found = loaded.instance.settings().iter().find(|(name, _)| name == "socket");
    PathBuf::from(&found.expect("a socket").1)
}

/// Starts a server and a proxy to it. The address names a user with a password and the port of the proxy.
fn through_a_network() -> Option<(Loaded, Proxy, String)> {
    let loaded = Loaded::new(&quick(Engine::Mariadb))?;
    let database = loaded.instance.database();
    database.execute("CREATE USER bench@localhost IDENTIFIED BY 'secret'").expect("made");
    database.execute("GRANT ALL ON tpcc.* TO bench@localhost").expect("granted");
    let proxy = Proxy::to(&socket(&loaded));
    let address = format!("mariadb://bench:secret@127.0.0.1:{}/tpcc", proxy.port());
    Some((loaded, proxy, address))
}

#[test]
fn a_server_that_somebody_else_runs_is_reached_by_its_address() {
    let Some(loaded) = Loaded::new(&quick(Engine::Mariadb)) else { return };
    let socket = number(&*loaded.instance.database(), "SELECT LENGTH(@@socket)");
    let path =
        loaded.instance.settings().iter().find(|(name, _)| name == "socket").expect("a socket").1.clone();
    assert_eq!(path.len() as i64, socket);
    let address = format!("mariadb://root@{}/tpcc", path.replace('/', "%2F"));
    let database = mariadb::connect(&address, &Arc::default()).expect("connected");
    assert_eq!(number(&*database, "SELECT count(*) FROM warehouse"), 3);
    let error = mariadb::connect(&address.replace("tpcc", "nowhere"), &Arc::default())
        .map(drop)
        .expect_err("no such database");
    assert!(error.to_string().contains("Unknown database 'nowhere'"), "{error}");
    let error = mariadb::connect("mariadb://root@%2Fnowhere/tpcc", &Arc::default())
        .map(drop)
        .expect_err("no such socket");
    assert!(error.to_string().contains("connecting to mariadb://root@%2Fnowhere/tpcc"), "{error}");
}

#[test]
fn a_lost_connection_is_named() {
    let Some((_loaded, proxy, address)) = through_a_network() else { return };
    network::a_lost_connection_is_named(&proxy, &address, &scale(), SEED);
}

#[test]
fn an_interrupt_ends_a_load_that_nobody_answers() {
    let Some((_loaded, proxy, address)) = through_a_network() else { return };
    network::an_interrupt_ends_a_load_that_nobody_answers(&proxy, &address, &scale(), SEED);
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    network::a_server_that_says_nothing_is_given_up("mariadb");
}

/// On a server that lowtide did not start, a load must not change global settings, not even temporarily.
#[test]
fn a_load_leaves_the_settings_of_others_alone() {
    let Some(loaded) = Loaded::new(&quick(Engine::Mariadb)) else { return };
    let own = loaded.instance.database();
    let address = format!("mariadb://root@{}/tpcc", socket(&loaded).to_string_lossy().replace('/', "%2F"));
    let database = instance::connect(&address, &Arc::default()).expect("connected");
    let seen = Mutex::new(Vec::new());
    let look = |_: f64| {
        let names = ["innodb_io_capacity", "innodb_io_capacity_max", "innodb_max_dirty_pages_pct"];
        let values = names.map(|name| number(&*own, &format!("SELECT CAST(@@GLOBAL.{name} AS SIGNED)")));
        seen.lock().expect("no panic").push(values);
    };
    look(0.0);
    database.load(&scale(), SEED, &AtomicBool::new(false), &look).expect("loaded");
    let seen = seen.into_inner().expect("no panic");
    assert!(seen.len() > 5 && seen.iter().all(|values| *values == seen[0]), "{seen:?}");
}

/// The server's defaults for new sessions do not affect lowtide's sessions.
#[test]
fn what_a_server_tells_new_sessions_does_not_matter() {
    let options = [("sql_mode", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT"), ("autocommit", "0")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let Some(loaded) = Loaded::new(&Settings { options, ..quick(Engine::Mariadb) }) else { return };
    let database = loaded.instance.database();
    crate::transactions::assert_consistent(&*database);
    crate::run(&*database, 4, 200).unwrap_or_else(|error| panic!("{SEED:?}: {error}"));
    crate::transactions::assert_consistent(&*database);
}

#[test]
fn more_terminals_than_a_server_takes_are_refused_before_they_begin() {
    let options = vec![("max_connections".to_owned(), "20".to_owned())];
    let Some(loaded) = Loaded::new(&Settings { options, ..quick(Engine::Mariadb) }) else { return };
    let told = crate::run(&*loaded.instance.database(), 40, 1).expect_err("too many").to_string();
    assert!(told.starts_with("40 terminals need as many sessions, and the server takes 19"), "{told}");
}
