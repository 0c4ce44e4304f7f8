//! Comparing by the command: limits, baselines, campaigns in turns.

mod common;

use common::{Lab, Running, SCALE, assert_says, done_and_begun, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// Reads at two depths, three times each.
const DEPTHS: &str = r#"name = "depths"
target.device = "intel-320-160gb"

[before-each-cell]
purge = "secure-erase"
fill = "sequential"

[workload]
pattern = "random-read"
block = "4KiB"
threads = 4
file_size = "20GiB"
duration = "40min"
interval = "30s"

[sweep]
depth = [1, 4]

[repeat]
times = 3
"#;

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("depths.toml", DEPTHS);
    lab
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The rows of a table of a report in JSON.
fn rows<'r>(report: &'r Value, table: &str) -> &'r Vec<Value> {
    report["tables"][table]["rows"].as_array().unwrap_or_else(|| panic!("no table {table} in {report:#}"))
}

#[test]
fn two_seeds_of_one_device_are_equal_and_a_slower_device_or_load_is_found() {
    let (lab, [scale, share]) = (lab(), SCALE);
    lab.ok(&["run", "./depths.toml", scale, share]);
    lab.ok(&["run", "./depths.toml", scale, share, "--seed", "2"]);
    lab.ok(&["run", "./depths.toml", scale, share, "--seed", "3", "--set", "threads=3"]);
    let equal = json(&lab.ok(&["compare", "1", "2", "--format", "json"]));
    for row in rows(&equal, "comparison") {
        assert_eq!(
            (&row["ratio_significant"], &row["rests_on"]),
            (&Value::Bool(false), &"3 + 3 runs".into())
        );
        assert!(row["ratio_low"].as_f64() <= Some(1.0) && row["ratio_high"].as_f64() >= Some(1.0), "{row}");
    }
    let fewer = json(&lab.ok(&["compare", "1", "3", "--format", "json"]));
    let first = &rows(&fewer, "comparison")[0];
    assert_eq!(first["ratio_significant"], true, "{first}");
    // One die is busy with one read: throughput is in proportion to the requests in flight.
    assert!((first["ratio"].as_f64().expect("a ratio") - 0.75).abs() < 0.02, "{first}");

    // At 16 requests in flight the controller is busy all the time, with 4 + 21.3 µs for each; 28.111 µs are a tenth slower.
    let slower = "name = \"slower\"\ntitle = \"A tenth slower\"\nlike = \"intel-320-160gb\"\n\
                  [flash]\ncontroller.read-unit = \"24.111us\"\n";
    lab.write("slower.toml", slower);
    let target = ["--seed", "4", "--target", "device:./slower.toml"];
    lab.ok(&[&["run", "./depths.toml", scale, share][..], &target].concat());
    let slower = json(&lab.ok(&["compare", "1", "4", "--format", "json"]));
    let busy = &rows(&slower, "comparison")[1];
    assert_eq!((&busy["depth"], &busy["ratio_significant"]), (&"4".into(), &Value::Bool(true)));
    assert!((busy["ratio"].as_f64().expect("a ratio") - 0.9).abs() < 0.002, "{busy}");
    lab.ends(&["compare", "1", "4", "--fail-if", "throughput < 0.95"], 5);

    let limits =
        ["--fail-if", "throughput < 0.9", "--fail-if", "latency_p99 > 110% overall", "--format", "json"];
    let judged = json(&lab.ends(&[&["compare", "1", "3"][..], &limits].concat(), 5).0);
    let outcomes: Vec<&Value> = rows(&judged, "thresholds").iter().map(|row| &row["outcome"]).collect();
    assert_eq!(outcomes, ["crossed", "kept"]);
    lab.ends(&[&["compare", "1", "2"][..], &limits].concat(), 0);
    let (text, _) = lab.ends(&["compare", "1", "2", "--fail-if", "write_amplification > 1.05"], 1);
    assert_says(&text, &["The limit write_amplification > 1.05 cannot be judged"]);
    let error = lab.refuses(&["compare", "1", "2", "--fail-if", "thruput < 1"], 2);
    assert_says(&error, &["there is no metric `thruput`", "did you mean `throughput`?", "--fail-if:1:1"]);
}

#[test]
fn cells_without_a_steady_state_are_compared_where_that_is_asked_for() {
    let (lab, [scale, share]) = (lab(), SCALE);
    for seed in ["1", "2"] {
        lab.ok(&["run", "./tiny.toml", scale, share, "--seed", seed]);
    }
    let (text, _) = lab.ends(&["compare", "1", "2", "--fail-if", "throughput < 0.9"], 1);
    assert_says(&text, &["no cell in common in which both settled", "`--unsettled` compares"]);
    let report = json(&lab.ok(&["compare", "1", "2", "--unsettled", "--format", "json"]));
    let ratio = rows(&report, "comparison")[0]["ratio"].as_f64().expect("a ratio");
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn baselines_are_set_listed_replaced_and_removed() {
    let (lab, [scale, share]) = (lab(), SCALE);
    lab.ok(&["run", "./reads.toml", scale, share]);
    lab.ok(&["run", "./reads.toml", scale, share, "--seed", "2"]);
    lab.ok(&["run", "./reads.toml", scale, share, "--store", "other.db"]);
    let said = |arguments: &[&str]| lab.ends(arguments, 0).1;
    assert_says(&said(&["store", "baseline", "set", "main", "1"]), &["@main is campaign 1 of lowtide.db"]);
    assert_says(&said(&["store", "baseline", "set", "elsewhere", "other.db"]), &["other.db"]);
    let twice = lab.refuses(&["store", "baseline", "set", "main", "2"], 2);
    assert_says(&twice, &["has a baseline `@main` already: campaign 1", "`--replace`"]);
    assert_says(&said(&["store", "baseline", "set", "@main", "2", "--replace"]), &["no longer campaign 1"]);
    let listed = json(&lab.ok(&["store", "baseline", "list", "--format", "json"]));
    let names: Vec<&Value> = listed.as_array().expect("a list").iter().map(|it| &it["baseline"]).collect();
    assert_eq!(names, ["elsewhere", "main"]);
    assert_eq!((&listed[1]["campaign"], &listed[1]["experiment"]), (&2.into(), &"reads".into()));
    for base in ["@main", "@elsewhere", "lowtide.db:@main"] {
        lab.ok(&["compare", base, "1"]);
    }
    assert_says(&lab.refuses(&["compare", "@mian", "1"], 2), &["no baseline `@mian`; did you mean `@main`?"]);
    assert_says(
        &lab.refuses(&["store", "baseline", "set", "a b", "1"], 2),
        &["`a b` is no name for a baseline"],
    );
    assert_says(&lab.refuses(&["store", "baseline", "set", "x", "9"], 2), &["has no campaign `9`"]);
    assert_says(&said(&["store", "baseline", "remove", "main"]), &["@main is forgotten; campaign 2"]);
    assert_says(&lab.refuses(&["store", "baseline", "remove", "main"], 2), &["no baseline `@main`"]);
    assert_eq!(lab.ok(&["store", "show", "--format", "csv"]).lines().count(), 3, "campaigns stay");
    assert_says(
        &lab.refuses(&["store", "baseline", "list", "--store", "none.db"], 2),
        &["there is no store none.db"],
    );
}

#[test]
fn a_model_in_turns_has_the_numbers_it_has_alone() {
    let (lab, [scale, share]) = (lab(), SCALE);
    lab.write("fewer.toml", DEPTHS.replace("\"depths\"", "\"fewer\"").replace("threads = 4", "threads = 3"));
    let run = ["run", "--interleave", "./depths.toml", "./fewer.toml", scale, share];
    let report = json(&lab.ok(&[&run[..], &["--format", "json"]].concat()));
    let row = &rows(&report, "comparison")[0];
    assert_eq!((&row["rests_on"], &row["ratio_significant"]), (&"3 pairs".into(), &Value::Bool(true)));
    for (number, name) in [("1", "depths"), ("2", "fewer")] {
        lab.ok(&["run", &format!("./{name}.toml"), scale, share, "--store", &format!("{name}.db")]);
        let alone = lab.exports(&format!("{name}.db")).0;
        assert!(
            lab.ok(&["store", "export", number, "--format", "csv"]) == alone,
            "{name} in turns is as alone"
        );
    }
    // Everything is done: going on changes nothing, and an experiment that ran alone is no campaign in turns.
    let before = lab.exports("lowtide.db");
    lab.ok(&[&run[..], &["--resume"]].concat());
    assert!(lab.exports("lowtide.db") == before);
    assert_eq!(lab.ok(&["store", "show", "--format", "csv"]).lines().count(), 3, "two campaigns");
    let alone = ["run", "./depths.toml", scale, share, "--resume"];
    assert_says(&lab.refuses(&alone, 2), &["has no campaign of `depths`"]);
}

/// Two cells of half a second on small files, twice.
fn files(lab: &Lab, name: &str, sizes: &str) {
    std::fs::create_dir_all(lab.path("data")).expect("a folder can be made");
    let text = format!(
        "name = \"{name}\"\ntarget.directory = \"data\"\n[workload]\npattern = \"random-read\"\nblock = \"4KiB\"\n\
         duration = \"500ms\"\ninterval = \"100ms\"\n[sweep]\nfile_size = {sizes}\n[repeat]\ntimes = 2\n"
    );
    lab.write(&format!("{name}.toml"), text);
}

#[test]
fn files_in_turns_are_interrupted_and_go_on() {
    let lab = lab();
    files(&lab, "a", "[\"1MiB\", \"2MiB\"]");
    files(&lab, "b", "[\"1MiB\", \"2MiB\"]");
    let run = ["run", "--interleave", "./a.toml", "./b.toml", "--store", "turns.db"];
    let mut child = Running(lab.command(&run).spawn().expect("lowtide starts"));
    let store = lab.path("turns.db");
    assert!(wait_until(&mut child, || done_and_begun(&store).0 >= 1), "a cell is done");
    child.signal(Signal::INT);
    assert_eq!(child.wait(), Some(130));
    let (done, _) = done_and_begun(&store);
    assert!((1..8).contains(&done), "{done} of 8 cells are done");
    let (out, err) = lab.ends(&[&run[..], &["--resume", "--format", "json"]].concat(), 0);
    assert_eq!(done_and_begun(&store), (8, 0));
    assert_says(&err, &["each cell's target is prepared anew"]);
    assert!(rows(&json(&out), "comparison").len() == 2);
    assert!(common::names(&lab.path("data")).is_empty(), "no file is left");
    // Which cell began first is seen by the order in which they were prepared: like cells lie side by side.
    let listed = json(&lab.ok(&["store", "show", "--store", "turns.db", "--format", "json"]));
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    let unsettled = ["compare", "1", "2", "--store", "turns.db", "--unsettled", "--format", "json"];
    let report = json(&lab.ok(&unsettled));
    assert!(rows(&report, "comparison").iter().all(|row| row["rests_on"] == "2 pairs"), "{report:#}");
}

#[test]
fn what_cannot_go_in_turns_is_refused_before_anything_is_written() {
    let lab = lab();
    files(&lab, "a", "[\"1MiB\"]");
    files(&lab, "b", "[\"2MiB\"]");
    let refused = |others: &[&str]| lab.refuses(&[&["run", "--interleave"], others].concat(), 2);
    assert_says(
        &refused(&["./a.toml", "./b.toml"]),
        &["`a` and `b` have no cell in common", "file_size 2MiB"],
    );
    assert_says(
        &refused(&["./a.toml", "./depths.toml"]),
        &["`depths` runs on a model and `a` on this machine"],
    );
    assert_says(&refused(&["./a.toml"]), &["required arguments were not provided"]);
    assert_says(&lab.refuses(&["run", "./a.toml", "./b.toml"], 2), &["--interleave"]);
}
