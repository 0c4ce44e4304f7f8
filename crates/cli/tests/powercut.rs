//! `lowtide powercut oltp`: rows, formats, exit codes, refusals, and a server on an attached drive.
//!
//! The tests of `lowtide_powercut` cover the settings that lose data.

mod common;

#[path = "common/attached.rs"]
mod attached;
#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use attached::can_attach;
use common::{Lab, assert_says, json};
use loopback::skipped;
use std::path::Path;

#[test]
fn one_row_is_an_object_that_ends_with_the_results_and_is_deterministic() {
    let lab = Lab::new();
    let durable = "powercut oltp --engine sqlite --durability full --cuts 40 --format json";
    let text = lab.ok(durable);
    let found = json(&text);
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
    let positions = last.map(|key| text.find(&format!("\"{key}\"")).expect("a key"));
    assert!(positions.is_sorted() && !text[positions[2]..].contains(','), "{text}");
    assert_eq!(lab.ok(durable), text, "the same seed gives the same bytes");
}

#[test]
fn each_combination_of_lists_or_of_all_is_a_row() {
    let lab = Lab::new();
    let lists = "powercut oltp --durability full,none --cache protected,lying --cuts 20 --format csv";
    let (csv, err) = lab.ends(lists, 0);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 5, "{csv}");
    assert!(lines[0].ends_with("cuts,transactions_lost,corrupt"), "{csv}");
    assert_says(&err, &["sqlite none on simulated, lying: 20 cuts"]);
    let table = lab.ok("powercut oltp --all --cuts 2");
    assert_eq!(table.lines().count(), 2 + 3 * 2 * 3, "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn impossible_combinations_are_refused() {
    let lab = Lab::new();
    for (arguments, says) in [
        ("--engine mysql", ["possible values", "mariadb"]),
        ("--engine mariadb-myisam", ["no transactions", "postgresql"]),
        ("--engine postgres --filesystem simulated", ["use xfs or ext4", ""]),
        ("--filesystem xfs --barrier off", ["nobarrier", "ext4"]),
        ("--device intel-320-160g", ["did you mean `intel-320-160gb`", ""]),
        ("--device cloud-gp3-3000 --scale 1 --cache volatile", ["always protected", ""]),
        ("--cuts 0", ["0 is not in", ""]),
        ("--all --durability full", ["cannot be used with", ""]),
    ] {
        lab.refuses(&format!("powercut oltp {arguments}"), 2, &says);
    }
    lab.refuses("drive powercut", 2, &["SOCKET"]);
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
    let found = lab.json("powercut oltp --engine mariadb --cache volatile --cuts 2");
    assert_eq!(found["filesystem"], "xfs", "{found}");
    assert!(found["transactions_acknowledged"].as_u64() > Some(50), "{found}");
    assert_eq!((&found["transactions_lost"], &found["corrupt"]), (&0.into(), &0.into()), "{found}");
    let found = lab.json("powercut oltp --filesystem ext4 --cache volatile --cuts 2");
    assert_eq!(found["corrupt"], 0, "{found}");
}
