//! `lowtide powercut oltp` from the outside: rows, formats, exit codes, what is refused; and a server on an attached drive.
//!
//! Not here: which settings lose data; the tests of `lowtide_powercut` cover that.

mod common;

#[path = "common/attached.rs"]
mod attached;
#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use attached::can_attach;
use common::{Lab, assert_says};
use loopback::skipped;
use serde_json::Value;
use std::path::Path;

const OLTP: [&str; 2] = ["powercut", "oltp"];

fn of(more: &[&'static str]) -> Vec<&'static str> {
    [&OLTP[..], more].concat()
}

/// The object of one row.
fn row(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn one_row_is_an_object_that_ends_with_what_counts_and_repeats() {
    let lab = Lab::new();
    let durable = of(&["--engine", "sqlite", "--durability", "full", "--cuts", "40", "--format", "json"]);
    let text = lab.ok(&durable);
    let found = row(&text);
    for (key, value) in [
        ("engine", "sqlite"),
        ("durability", "full"),
        ("filesystem", "simulated"),
        ("barrier", "on"),
        ("cache", "protected"),
        ("promised", "all"),
    ] {
        assert_eq!(found[key], value, "{text}");
    }
    let last = ["cuts", "transactions_lost", "corrupt"];
    assert_eq!(last.map(|key| found[key].as_u64()), [Some(40), Some(0), Some(0)], "{text}");
    let places = last.map(|key| text.find(&format!("\"{key}\"")).expect("it is there"));
    assert!(places.is_sorted() && !text[places[2]..].contains(','), "{text}");
    assert_eq!(lab.ok(&durable), text, "the same seed gives the same bytes");
}

#[test]
fn lists_and_all_are_a_row_each() {
    let lab = Lab::new();
    let lists =
        of(&["--durability", "full,none", "--cache", "protected,lying", "--cuts", "20", "--format", "csv"]);
    let (csv, told) = lab.ends(&lists, 0);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 5, "{csv}");
    assert!(lines[0].ends_with("cuts,transactions_lost,corrupt"), "{csv}");
    assert_says(&told, &["sqlite none on simulated, lying: 20 cuts"]);
    let table = lab.ok(&of(&["--all", "--cuts", "2"]));
    assert_eq!(table.lines().count(), 2 + 3 * 2 * 3, "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn what_cannot_be_is_refused() {
    let lab = Lab::new();
    for (arguments, told) in [
        (of(&["--engine", "mysql"]), &["possible values", "mariadb"][..]),
        (of(&["--engine", "mariadb-myisam"]), &["no transactions", "postgresql"]),
        (of(&["--engine", "postgres", "--filesystem", "simulated"]), &["take xfs or ext4"]),
        (of(&["--filesystem", "xfs", "--barrier", "off"]), &["nobarrier", "ext4"]),
        (of(&["--device", "intel-320-160g"]), &["did you mean `intel-320-160gb`"]),
        (of(&["--device", "cloud-gp3-3000", "--scale", "1", "--cache", "volatile"]), &["always protected"]),
        (of(&["--cuts", "0"]), &["0 is not in"]),
        (of(&["--all", "--durability", "full"]), &["cannot be used with"]),
        (vec!["drive", "powercut"], &["SOCKET"]),
    ] {
        assert_says(&lab.refuses(&arguments, 2), told);
    }
}

#[test]
fn a_server_on_an_attached_drive_keeps_what_it_promises() {
    if !can_attach() {
        return;
    }
    if !Path::new("/usr/sbin/mariadbd").exists() {
        return skipped("no server of mariadb");
    }
    let lab = Lab::new();
    let text =
        lab.ok(&of(&["--engine", "mariadb", "--cache", "volatile", "--cuts", "2", "--format", "json"]));
    let found = row(&text);
    assert_eq!(found["filesystem"], "xfs", "{text}");
    assert!(found["transactions_acknowledged"].as_u64() > Some(50), "{text}");
    assert_eq!((&found["transactions_lost"], &found["corrupt"]), (&0.into(), &0.into()), "{text}");
    // SQLite has its file to itself there.
    let text =
        lab.ok(&of(&["--filesystem", "ext4", "--cache", "volatile", "--cuts", "2", "--format", "json"]));
    assert_eq!(row(&text)["corrupt"], 0, "{text}");
}
