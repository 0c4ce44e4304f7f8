//! Unusual names and paths, damaged stores, and two processes that use one store.

mod common;

use common::{Lab, assert_says, done_and_begun};
use rustix::process::Signal;

#[test]
fn one_process_at_a_time_writes_to_a_store_and_others_may_read() {
    let lab = Lab::new();
    let mut first = lab.start("run ./tiny.toml --scale 1/256 --set duration=9000h");
    let store = lab.path("lowtide.db");
    first.reaches("rows", || done_and_begun(&store).1 > 0);
    for run in ["run ./tiny.toml --scale 1/256", "run ./reads.toml --scale 1/256 --resume"] {
        let (_, error) = lab.ends(run, 1);
        assert_says(&error, &["the store lowtide.db is in use: another lowtide is writing to it"]);
    }
    lab.prints("store show", &["tiny", "0 of 2"]);
    assert!(lab.ok("store export").lines().count() > 1);
    first.signal(Signal::TERM);
    assert_eq!(first.wait(), Some(130));
    lab.ok("run ./tiny.toml --scale 1/256");
}

#[test]
fn names_may_contain_any_character() {
    let lab = Lab::new();
    let name = "../../é 漢字, \\\"q\\\" <b>\\n|x";
    lab.make_directory("dir é, x");
    lab.write("dir é, x/t?#%.toml", common::TINY.replace("\"tiny\"", &format!("\"{name}\"")));
    let store = ["--store", "dir é, x/s?#%.db"];
    let run = ["run", "dir é, x/t?#%.toml", "--scale", "1/256", "--report", "dir é, x/-r"];
    lab.ok(&[&run[..], &store].concat());
    let csv = lab.ok(&[&["store", "export"][..], &store].concat());
    let exported = lab.json(&[&["store", "export"][..], &store].concat());
    assert_eq!(exported["name"], "../../é 漢字, \"q\" <b>\n|x");
    assert!(csv.contains("\"\"q\"\""), "{csv}");
    for format in ["table", "csv", "json", "markdown"] {
        lab.ok(&[&["store", "show", "--format", format][..], &store].concat());
    }
    assert!(!lab.read("dir é, x/-r").contains("\"q\" <b>"), "names are escaped in the report");
}

#[test]
fn a_store_may_be_a_link_or_new_and_empty() {
    let lab = Lab::new();
    std::os::unix::fs::symlink("real.db", lab.path("link.db")).expect("a link can be made");
    lab.ok("run ./tiny.toml --scale 1/256 --store link.db");
    assert!(lab.exports("real.db") == lab.exports("link.db"));
    lab.write("empty.db", "");
    lab.ok("run ./tiny.toml --scale 1/256 --store empty.db");
    assert!(lab.exports("real.db") == lab.exports("empty.db"));
    let names = lab.names();
    assert!(names.iter().all(|name| !name.ends_with("-wal") && !name.ends_with("-shm")), "{names:?}");
}

#[test]
fn a_damaged_store_is_an_error_and_no_panic() {
    let lab = Lab::new();
    lab.ok("run ./tiny.toml --scale 1/256");
    let whole = lab.read_bytes("lowtide.db");
    for (number, keep) in [whole.len() / 2, 4096, 100, 20].into_iter().enumerate() {
        let name = format!("cut{number}.db");
        lab.write(&name, &whole[..keep]);
        let (code, _, error) = common::decoded(&lab.run(&format!("store show 1 --store {name}")));
        assert!(matches!(code, Some(1 | 2)) && !error.contains("panicked"), "{keep} bytes: {code:?} {error}");
    }
    let store = rusqlite::Connection::open(lab.path("lowtide.db")).expect("the store opens");
    for (column, value) in [("verdict", "{}"), ("factors", "x"), ("wear", "[[1]]"), ("counters_before", "1")]
    {
        let old: String = store
            .query_row(&format!("SELECT {column} FROM cell WHERE cell = 0"), [], |row| row.get(0))
            .expect("a value");
        let set =
            |value: &str| store.execute(&format!("UPDATE cell SET {column} = ?1 WHERE cell = 0"), [value]);
        set(value).expect("written");
        let (_, error) = lab.ends("store show 1", 1);
        assert_says(&error, &["damaged: tiny: cell 0 ("]);
        set(&old).expect("written");
    }
    store.execute("UPDATE histogram SET hdr = x'00'", []).expect("written");
    assert_says(&lab.ends("store show 1", 1).1, &["damaged: tiny: cell 0 (", "histogram"]);
}

#[test]
fn many_jobs_are_as_many_as_there_are_cells() {
    let lab = Lab::new();
    lab.ok("run ./tiny.toml --scale 1/256 --jobs 65535");
}
