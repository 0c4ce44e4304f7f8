//! The same experiment, drive and seed give the same bytes, whatever the number of jobs.

mod common;

use common::Lab;

/// The exports of a campaign of the tiny experiment with a seed and a number of jobs.
fn campaign(lab: &Lab, store: &str, seed: u64, jobs: u32) -> (String, String) {
    lab.ok(&format!("run ./tiny.toml --scale 1/256 --seed {seed} --jobs {jobs} --store {store}"));
    lab.exports(store)
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_does_not() {
    let lab = Lab::new();
    let (csv, json) = campaign(&lab, "a.db", 7, 1);
    assert_eq!(csv.lines().count(), 1 + 2 * 40, "40 intervals of two cells and a head:\n{csv}");
    assert_eq!(json.lines().count(), 1);
    assert!((csv.clone(), json.clone()) == campaign(&lab, "b.db", 7, 1), "seed 7, again");
    assert!((csv.clone(), json.clone()) == campaign(&lab, "c.db", 7, 2), "seed 7, two jobs");
    let other = campaign(&lab, "d.db", 8, 1);
    assert_ne!(csv, other.0, "seeds 7 and 8");
    assert_ne!(json, other.1, "seeds 7 and 8");
}

#[test]
fn a_campaign_does_not_depend_on_what_the_store_holds_already() {
    let lab = Lab::new();
    lab.ok("run ./reads.toml --scale 1/256 --store used.db");
    assert!(campaign(&lab, "used.db", 7, 2) == campaign(&lab, "new.db", 7, 2), "seed 7");
}

#[test]
fn reports_of_the_same_numbers_are_the_same() {
    let lab = Lab::new();
    let answer = lab.ok("run ./tiny.toml --scale 1/256 --format csv");
    assert_eq!(answer, lab.ok("store show 1 --format csv"));
    lab.ok("report 1 -o again.html");
    assert!(lab.read("report.html") == lab.read("again.html"), "the report of `run` and that of `report`");
}

/// The last version of lowtide that wrote format 4 made `tests/data/store-of-format-4.*`, with the command `run(3,
/// …)`.
#[test]
fn a_store_of_format_4_has_the_same_numbers_here() {
    let run = |seed: u64, store: &str| {
        format!(
            "run intel-320-random-write --seed={seed} --scale=1/32 --set sweep.file_size=[\"20GiB\",\"100GiB\"] \
             --set workload.duration=10min --store {store}"
        )
    };
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let lab = Lab::new();
    let csv = std::fs::read_to_string(data.join("store-of-format-4.csv")).expect("it is in the repository");
    lab.write("old.db", std::fs::read(data.join("store-of-format-4.db")).expect("it is in the repository"));
    let old = lab.exports("old.db");
    assert!(old.0 == csv, "an old store is read");
    lab.ok(&run(3, "new.db"));
    // The JSON also has the device files, which may have new keys.
    assert!(lab.exports("new.db").0 == csv, "the same run gives the same bytes");
    let report =
        |store| lab.ok(&format!("report 1 --store {store} -o report.html")) + &lab.read("report.html");
    let without = |text: String| text.lines().filter(|line| !line.contains("started ")).collect::<String>();
    let reported = without(report("old.db"));
    // Adding a campaign migrates the store, and leaves its first campaign unchanged.
    lab.ok(&run(4, "old.db"));
    assert!(without(report("old.db")) == reported);
    assert!(lab.ok("export 1 --store old.db") == csv, "a migrated store");
}

/// A modelled database is measured like a simulated drive: in virtual time, from a seed.
#[test]
fn a_modelled_database_is_marked_and_gives_the_same_bytes() {
    let lab = Lab::new();
    for engine in ["innodb-model", "myisam-model"] {
        is_marked_and_gives_the_same_bytes(&lab, engine);
    }
}

fn is_marked_and_gives_the_same_bytes(lab: &Lab, engine: &str) {
    lab.write(
        "modelled.toml",
        format!(
            "name = \"modelled\"\ntitle = \"m\"\n[target]\ndevice = \"intel-x25-e-32gb\"\n\
             [oltp]\nengine = \"{engine}\"\nwarehouses = 4\nbuffer_pool = \"64MiB\"\nduration = \"1min\"\ninterval = \"5s\"\n\
             [sweep]\nterminals = [1, 8]\n"
        ),
    );
    let run = |store: &str, jobs: u32| {
        lab.ok(&format!("run ./modelled.toml --seed 3 --jobs {jobs} --store {store}"));
        lab.exports(store)
    };
    let (csv, json) = run(&format!("{engine}-a.db"), 1);
    let mark = format!("{engine} (modelled)");
    assert_eq!(csv.lines().count(), 1 + 2 * 12, "{csv}");
    assert!(json.contains(&mark), "{json}");
    assert!((csv, json) == run(&format!("{engine}-b.db"), 2), "seed 3");
    assert!(lab.read("report.html").contains(&mark), "the report lacks the mark");
}
