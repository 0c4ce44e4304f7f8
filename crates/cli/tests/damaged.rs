//! A store with one histogram that does not decode: commands name its cell and leave it out, show the others,
//! and the run that measured the cell measures it again.

mod common;

use common::{Lab, SCALE, assert_says};
use rusqlite::Connection;

const SEED: &str = "7";

fn run(lab: &Lab, more: &[&str]) {
    let [scale, share] = SCALE;
    let words = ["run", "./tiny.toml", scale, share, "--seed", SEED, "--store", "all.db"];
    lab.ok(&[&words, more].concat());
}

#[test]
fn one_bad_histogram_leaves_the_rest_of_a_campaign_readable() {
    let lab = Lab::new();
    run(&lab, &[]);
    let whole = lab.exports("all.db");
    let store = Connection::open(lab.path("all.db")).expect("a store");
    let harm = "UPDATE histogram SET hdr = x'00' WHERE cell = 0 AND start_ns =
                (SELECT max(start_ns) FROM histogram WHERE cell = 0)";
    assert_eq!(store.execute(harm, []).expect("is harmed"), 1);
    drop(store);

    let named = [
        "damaged: tiny: cell 0 (file_size 40GiB): the histogram of `write` at",
        "does not decode",
        "`--resume`",
    ];
    let (_, said) = lab.ends(&["report", "--store", "all.db", "-o", "page.html"], 1);
    assert_says(&said, &named);
    let page = lab.read("page.html");
    assert!(page.contains("damaged in the store, the histogram of") && page.contains("60GiB"), "seed {SEED}");
    let (shown, said) = lab.ends(&["store", "show", "1", "--store", "all.db"], 1);
    assert_says(&said, &named);
    assert!(shown.contains("1 damaged in the store"), "{shown}");
    let (rows, said) = lab.ends(&["store", "export", "--store", "all.db", "--format", "csv"], 1);
    assert_says(&said, &named);
    let of = |csv: &str, cell: &str| csv.lines().filter(|line| line.starts_with(cell)).count();
    assert_eq!((of(&rows, "tiny,0,"), of(&rows, "tiny,1,")), (0, of(&whole.0, "tiny,1,")));

    run(&lab, &["--resume"]);
    assert!(lab.exports("all.db") == whole, "it is measured again: seed {SEED}");
}

#[test]
fn a_part_that_is_bad_is_refused_whole() {
    let lab = Lab::new();
    run(&lab, &[]);
    let store = Connection::open(lab.path("all.db")).expect("a store");
    store.execute_batch("DELETE FROM interval; DELETE FROM histogram").expect("is harmed");
    drop(store);
    let error = lab.refuses(&["store", "merge", "all.db", "-o", "new.db"], 2);
    assert_says(
        &error,
        &["all.db cannot be merged: cell 0: it is done but has no intervals", "measured again"],
    );
}
