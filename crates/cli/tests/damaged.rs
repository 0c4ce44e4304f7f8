//! A store with one histogram that does not decode: commands name and omit its cell, and a resumed run measures the
//! cell again.

mod common;

use common::{Lab, assert_says};
use rusqlite::Connection;

/// The run whose store is damaged; its seed is 7.
const RUN: &str = "run ./tiny.toml --scale 1/256 --seed 7 --store all.db";

#[test]
fn one_bad_histogram_leaves_the_other_cells_of_a_campaign_readable() {
    let lab = Lab::new();
    lab.ok(RUN);
    let whole = lab.exports("all.db");
    let store = Connection::open(lab.path("all.db")).expect("a store");
    let damage = "UPDATE histogram SET hdr = x'00' WHERE cell = 0 AND start_ns =
                (SELECT max(start_ns) FROM histogram WHERE cell = 0)";
    assert_eq!(store.execute(damage, []).expect("the store can be changed"), 1);
    drop(store);

    let named = [
        "damaged: tiny: cell 0 (file_size 40GiB): the histogram of `write` at",
        "does not decode",
        "`--resume`",
    ];
    let output = |verb: &str| {
        let (out, err) = lab.ends(&format!("{verb} --store all.db"), 1);
        assert_says(&err, &named);
        out
    };
    output("report -o page.html");
    let page = lab.read("page.html");
    assert!(page.contains("damaged in the store, the histogram of") && page.contains("60GiB"), "{page}");
    let shown = output("store show 1");
    assert!(shown.contains("1 damaged in the store"), "{shown}");
    let rows = output("store export --format csv");
    let of = |csv: &str, cell: &str| csv.lines().filter(|line| line.starts_with(cell)).count();
    assert_eq!((of(&rows, "tiny,0,"), of(&rows, "tiny,1,")), (0, of(&whole.0, "tiny,1,")));

    lab.ok(&format!("{RUN} --resume"));
    assert!(lab.exports("all.db") == whole, "the cell is measured again: seed 7");
}

#[test]
fn a_damaged_part_is_not_merged() {
    let lab = Lab::new();
    lab.ok(RUN);
    let store = Connection::open(lab.path("all.db")).expect("a store");
    store.execute_batch("DELETE FROM interval; DELETE FROM histogram").expect("the store can be changed");
    drop(store);
    let says = ["all.db cannot be merged: cell 0: it is done but has no intervals", "measured again"];
    lab.refuses("store merge all.db -o new.db", 2, &says);
}
