//! `lowtide run --adaptive`: the curve from few sizes is as close as requested to the curve of all sizes, depends
//! only on the seed, and can be resumed after an interruption.
//!
//! The tests in `crates/studies/src/adaptive/tests.rs` cover curves without a drive.

mod common;

use common::{Lab, assert_says, done_and_begun, wait_until};
use rusqlite::Connection;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::Path;

/// A cell of a store: its status, device time in seconds, and level in MiB/s, measured or predicted.
#[derive(Debug, Clone, PartialEq)]
struct Size {
    status: String,
    took_s: f64,
    level: f64,
    half_width: f64,
}

/// The sizes of the last campaign of a store, by bytes of data.
fn sizes(store: &Path) -> BTreeMap<i64, Size> {
    let store = Connection::open(store).expect("the store opens");
    let mut statement = store
        .prepare(
            "SELECT c.data_bytes, c.status, coalesce(d.took_ns, 0) / 1e9, p.level_mib_per_s, c.verdict,
             (SELECT sum(write_bytes) / (sum(end_ns - start_ns) / 1e9) / 1048576.0 FROM interval i WHERE i.campaign = c.campaign
              AND i.cell = c.cell AND i.start_ns >= 0.75 *
                (SELECT max(end_ns) FROM interval j WHERE j.campaign = c.campaign AND j.cell = c.cell)),
             coalesce((p.high_mib_per_s - p.low_mib_per_s) / 2, 0)
             FROM cell c LEFT JOIN device_time d USING (campaign, cell) LEFT JOIN predicted p USING (campaign, cell)
             WHERE c.campaign = (SELECT max(id) FROM campaign)",
        )
        .expect("a store has these tables");
    let rows = statement.query_map([], |row| {
        let (predicted, verdict, end): (Option<f64>, Option<String>, Option<f64>) =
            (row.get(3)?, row.get(4)?, row.get(5)?);
        let verdict: Option<serde_json::Value> =
            verdict.map(|text| serde_json::from_str(&text).expect("a verdict is JSON"));
        let settled = verdict.and_then(|it| it["steady"]["mean"].as_f64());
        let level = predicted.or(settled).or(end).unwrap_or(0.0);
        let size = Size { status: row.get(1)?, took_s: row.get(2)?, level, half_width: row.get(6)? };
        Ok((row.get(0)?, size))
    });
    rows.and_then(Iterator::collect).expect("cells are read")
}

/// The error of each size against the complete sweep, as a share of the level.
fn errors(adaptive: &BTreeMap<i64, Size>, whole: &BTreeMap<i64, Size>) -> Vec<f64> {
    adaptive.iter().map(|(data, size)| size.level / whole[data].level - 1.0).collect()
}

#[test]
fn a_third_of_the_device_time_gives_the_curve_of_an_intel_320_within_five_percent() {
    let lab = Lab::new();
    let run = "run size-curve --scale 1/16 --seed 1";
    lab.ok(&format!("{run} --store whole.db"));
    let text = lab.ok(&format!("{run} --adaptive --store some.db"));
    let (whole, some) = (sizes(&lab.path("whole.db")), sizes(&lab.path("some.db")));
    let time = |all: &BTreeMap<i64, Size>| all.values().map(|size| size.took_s).sum::<f64>();
    let (share, errors) = (time(&some) / time(&whole), errors(&some, &whole));
    println!("seed 1: {:.1} % of the device time, errors {errors:.4?}\n{text}", 100.0 * share);
    assert_eq!((whole.len(), some.len()), (29, 29));
    assert!(share <= 0.35, "{share} of the device time");
    let worst = errors.iter().fold(0.0, |worst: f64, error| worst.max(error.abs()));
    assert!(worst <= 0.05, "the worst size is {worst} away");
    let predicted: Vec<&Size> = some.values().filter(|size| size.status == "spared").collect();
    assert!(predicted.len() >= 15, "{some:?}");
    for size in &predicted {
        assert!(
            size.took_s == 0.0 && size.half_width > 0.0 && size.half_width <= 0.05 * size.level,
            "{size:?}"
        );
    }
    let measured = 29 - predicted.len();
    assert_says(&text, &[&format!("{measured} of 29 sizes measured"), "spared", "predicted", "device time"]);
    let page = lab.read("report.html");
    assert!(page.contains("predicted") && page.contains("Dashed: sizes that were not measured"));
}

/// A short sweep of seven sizes.
const SHORT: &str = common::experiment!(
    "short",
    "secure-erase",
    r#"pattern = "random-write"
block = "16KiB"
until = "steady"
max = "5h"
interval = "1min"
[sweep]
file_size = { from = "20GiB", to = "140GiB", step = "20GiB" }
"#
);
const ADAPTIVE: &str = "run ./short.toml --adaptive --scale 1/128";

#[test]
fn choices_and_predictions_depend_on_the_seed_and_not_on_the_number_of_jobs() {
    let lab = Lab::with(&[("short.toml", SHORT)]);
    let run = |store: &str, jobs: u32, seed: u32| {
        lab.ok(&format!("{ADAPTIVE} --store {store} --jobs {jobs} --seed {seed}"));
        (sizes(&lab.path(store)), lab.exports(store))
    };
    let one = run("a.db", 1, 5);
    assert!(one == run("b.db", 2, 5), "seed 5, one and two jobs");
    assert_ne!(one.1, run("c.db", 2, 6).1, "seeds 5 and 6");
    let (csv, json) = &one.1;
    assert!(json.contains("\"predicted\":{"), "the export says what is predicted");
    let spared = one.0.values().filter(|size| size.status == "spared").count();
    assert!(spared > 0 && !csv.contains("spared"), "raw intervals are those of measured cells alone");
    lab.prints("store show --store a.db", &[&format!("{} of 7, {spared} predicted", 7 - spared)]);
    let shown = lab.ok("store show 1 --store a.db");
    assert_says(&shown, &["spared", "predicted", "Adaptive:"]);
}

#[test]
fn a_killed_campaign_resumes_with_the_choices_of_an_uninterrupted_one() {
    let lab = Lab::new();
    let mut scale = 128;
    let run =
        |scale: u32, store| format!("run ./short.toml --adaptive --scale 1/{scale} --jobs 1 --store {store}");
    lab.write("short.toml", SHORT);
    loop {
        let mut child = lab.start(&run(scale, "broken.db"));
        let store = lab.path("broken.db");
        let caught = wait_until(&mut child, || done_and_begun(&store).0 > 2);
        if caught && !child.has_ended() {
            child.signal(Signal::KILL);
            child.wait();
            break;
        }
        // A fast machine may finish before the kill: try again with a larger drive.
        assert!(scale > 8, "it always ends before it can be killed");
        scale /= 2;
        lab.names().iter().filter(|name| name.starts_with("broken")).for_each(|name| lab.remove(name));
    }
    let broken_run = run(scale, "broken.db");
    let before = sizes(&lab.path("broken.db"));
    lab.ok("store merge broken.db -o both.db");
    lab.ok(&format!("{broken_run} --resume"));
    lab.ok(&run(scale, "unbroken.db"));
    let (broken, unbroken) = (sizes(&lab.path("broken.db")), sizes(&lab.path("unbroken.db")));
    assert_eq!(broken, unbroken);
    assert!(lab.exports("broken.db") == lab.exports("unbroken.db"));
    for (data, size) in before.iter().filter(|(_, size)| size.status == "done") {
        assert_eq!(*size, broken[data], "cells that were done before the kill are kept");
    }
    // A merge of the killed and the complete campaign has the predictions of the complete one.
    lab.ok("store merge unbroken.db -o both.db");
    assert_eq!(sizes(&lab.path("both.db")), unbroken);
    // Another resume measures nothing and records the facts only once.
    lab.ok(&format!("{broken_run} --resume"));
    assert_eq!(sizes(&lab.path("broken.db")), unbroken);
    let store = Connection::open(lab.path("broken.db")).expect("the store opens");
    let facts: i64 = store
        .query_row("SELECT count(*) FROM environment WHERE key = 'adaptive'", [], |row| row.get(0))
        .expect("facts are read");
    assert_eq!(facts, 1);
    // The same precision in another notation gives the same predictions.
    lab.ok(&format!("{broken_run} --resume --precision 0.05"));
    assert_eq!(sizes(&lab.path("broken.db")), unbroken);
    // A complete sweep and another precision are other campaigns.
    for other in ["", "--adaptive --precision 10%"] {
        let run = format!("run ./short.toml --scale 1/{scale} --store broken.db --resume {other}");
        let says = ["was begun with `--adaptive --precision 5%`", "resume it with `--adaptive"];
        lab.refuses(&run, 2, &says);
    }
}

#[test]
fn experiments_without_a_curve_are_refused_with_what_is_accepted() {
    let lab = Lab::with(&[("short.toml", SHORT)]);
    let refuses = |text: &str, wanted: &[&str]| {
        lab.write("bad.toml", text);
        lab.refuses("run ./bad.toml --adaptive --scale 1/128", 2, wanted);
    };
    let with = |from: &str, to: &str| {
        assert!(SHORT.contains(from), "{from}");
        SHORT.replace(from, to)
    };
    let sizes = "file_size = { from = \"20GiB\", to = \"140GiB\", step = \"20GiB\" }";
    refuses(&with(sizes, "file_size = [\"20GiB\", \"40GiB\", \"60GiB\"]"), &["3 sizes", "4 are the least"]);
    refuses(&with(sizes, "threads = [1, 2, 4, 8, 16]"), &["0 sizes", "`file_size` or `utilisation`"]);
    refuses(
        &with("purge = \"secure-erase\"", "purge = \"none\""),
        &["each must begin on a drive as new", "secure-erase"],
    );
    refuses(
        &with("until = \"steady\"\nmax = \"5h\"", "duration = \"5h\"\nsteady = \"snia\""),
        &["rule `snia`", "`steady = \"lowtide\"`"],
    );
    refuses(&(SHORT.to_owned() + "[repeat]\ntimes = 2\n"), &["sizes are measured once"]);
    refuses(&(SHORT.to_owned() + "[[event]]\nat = \"1min\"\nfails = 0.1\n"), &[]);
    let oltp = "name = \"o\"\ntarget.device = \"intel-320-160gb\"\n[oltp]\nengine = \"innodb-model\"\nduration = \"1min\"\n\
                interval = \"5s\"\n[sweep]\nwarehouses = [128, 256, 384, 512]\n";
    refuses(oltp, &["databases", "`[workload]`"]);
    for (more, wanted) in [
        ("--precision 5%", "--adaptive"),
        ("--adaptive --precision 0", "from 0.5% to 50%"),
        ("--adaptive --part 1/2", "cannot be used with"),
    ] {
        lab.refuses(&format!("run ./short.toml --scale 1/128 {more}"), 2, &[wanted]);
    }
}

#[test]
fn each_level_of_another_factor_has_its_own_curve() {
    let lab = Lab::new();
    lab.write("threads.toml", SHORT.to_owned() + "threads = [1, 4]\n");
    let text = lab.ok("run ./threads.toml --adaptive --precision 10% --scale 1/128");
    let store = Connection::open(lab.path("lowtide.db")).expect("the store opens");
    let done: i64 = store
        .query_row("SELECT count(*) FROM cell WHERE status = 'done'", [], |row| row.get(0))
        .expect("cells are counted");
    assert!((6..14).contains(&done), "{done} of 14 cells\n{text}");
}
