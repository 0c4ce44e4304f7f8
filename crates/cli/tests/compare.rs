//! `lowtide compare`, `store baseline` and `run --interleave`.

mod common;

use common::{Lab, READS, assert_says, done_and_begun, json};
use serde_json::Value;

/// [`READS`] at two depths, three times each.
fn depths(name: &str) -> String {
    READS.replace("\"reads\"", &format!("\"{name}\"")) + "\n[sweep]\ndepth = [1, 4]\n\n[repeat]\ntimes = 3\n"
}

fn lab() -> Lab {
    Lab::with(&[("depths.toml", &depths("depths"))])
}

/// The rows of a table of a report in JSON.
fn rows<'r>(report: &'r Value, table: &str) -> &'r Vec<Value> {
    report["tables"][table]["rows"].as_array().unwrap_or_else(|| panic!("no table {table} in {report:#}"))
}

#[test]
fn two_seeds_of_one_device_are_equal_and_a_slower_device_or_load_is_found() {
    let lab = lab();
    lab.ok("run ./depths.toml --scale 1/256");
    lab.ok("run ./depths.toml --scale 1/256 --seed 2");
    lab.ok("run ./depths.toml --scale 1/256 --seed 3 --set threads=3");
    let equal = lab.json("compare 1 2");
    for row in rows(&equal, "comparison") {
        assert_eq!(
            (&row["ratio_significant"], &row["rests_on"]),
            (&Value::Bool(false), &"3 + 3 runs".into())
        );
        assert!(row["ratio_low"].as_f64() <= Some(1.0) && row["ratio_high"].as_f64() >= Some(1.0), "{row}");
    }
    let fewer = lab.json("compare 1 3");
    let first = &rows(&fewer, "comparison")[0];
    assert_eq!(first["ratio_significant"], true, "{first}");
    // A die serves one read at a time: throughput is proportional to the requests in flight.
    assert!((first["ratio"].as_f64().expect("a ratio") - 0.75).abs() < 0.02, "{first}");

    // At 16 requests in flight the controller limits throughput to one request in 4 + 21.3 µs; 28.111 µs are a tenth
    // slower.
    let slower = "name = \"slower\"\ntitle = \"A tenth slower\"\nlike = \"intel-320-160gb\"\n\
                  [flash]\ncontroller.read-unit = \"24.111us\"\n";
    lab.write("slower.toml", slower);
    lab.ok("run ./depths.toml --scale 1/256 --seed 4 --target device:./slower.toml");
    let slower = lab.json("compare 1 4");
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
    let says = ["there is no metric `thruput`", "did you mean `throughput`?", "--fail-if:1:1"];
    lab.refuses(&["compare", "1", "2", "--fail-if", "thruput < 1"], 2, &says);
}

#[test]
fn cells_without_a_steady_state_are_compared_on_request() {
    let lab = lab();
    for seed in ["1", "2"] {
        lab.ok(&format!("run ./tiny.toml --scale 1/256 --seed {seed}"));
    }
    let (text, _) = lab.ends(&["compare", "1", "2", "--fail-if", "throughput < 0.9"], 1);
    assert_says(&text, &["no cell in common in which both settled", "`--unsettled` compares"]);
    let report = lab.json("compare 1 2 --unsettled");
    let ratio = rows(&report, "comparison")[0]["ratio"].as_f64().expect("a ratio");
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn baselines_are_set_listed_replaced_and_removed() {
    let lab = lab();
    lab.ok("run ./reads.toml --scale 1/256");
    lab.ok("run ./reads.toml --scale 1/256 --seed 2");
    lab.ok("run ./reads.toml --scale 1/256 --store other.db");
    let reports = |verb: &str, says| assert_says(&lab.ends(&format!("store baseline {verb}"), 0).1, &[says]);
    reports("set main 1", "@main is campaign 1 of lowtide.db");
    reports("set elsewhere other.db", "other.db");
    let says = ["has a baseline `@main` already: campaign 1", "`--replace`"];
    lab.refuses("store baseline set main 2", 2, &says);
    reports("set @main 2 --replace", "no longer campaign 1");
    let listed = lab.json("store baseline list");
    let names: Vec<&Value> = listed.as_array().expect("a list").iter().map(|it| &it["baseline"]).collect();
    assert_eq!(names, ["elsewhere", "main"]);
    assert_eq!((&listed[1]["campaign"], &listed[1]["experiment"]), (&2.into(), &"reads".into()));
    for base in ["@main", "@elsewhere", "lowtide.db:@main"] {
        lab.ok(&format!("compare {base} 1"));
    }
    lab.refuses("compare @mian 1", 2, &["no baseline `@mian`; did you mean `@main`?"]);
    lab.refuses(&["store", "baseline", "set", "a b", "1"], 2, &["`a b` is no name for a baseline"]);
    lab.refuses("store baseline set x 9", 2, &["has no campaign `9`"]);
    reports("remove main", "@main is removed; campaign 2 of lowtide.db is kept");
    lab.refuses("store baseline remove main", 2, &["no baseline `@main`"]);
    assert_eq!(lab.ok("store show --format csv").lines().count(), 3, "campaigns stay");
    lab.refuses("store baseline list --store none.db", 2, &["there is no store none.db"]);
}

#[test]
fn interleaved_models_have_the_numbers_of_separate_runs() {
    let lab = lab();
    lab.write("fewer.toml", depths("fewer").replace("threads = 4", "threads = 3"));
    let run = "run --interleave ./depths.toml ./fewer.toml --scale 1/256";
    let report = lab.json(run);
    let row = &rows(&report, "comparison")[0];
    assert_eq!((&row["rests_on"], &row["ratio_significant"]), (&"3 pairs".into(), &Value::Bool(true)));
    for (number, name) in [("1", "depths"), ("2", "fewer")] {
        lab.ok(&format!("run ./{name}.toml --scale 1/256 --store {name}.db"));
        let alone = lab.exports(&format!("{name}.db")).0;
        assert!(lab.ok(&format!("store export {number} --format csv")) == alone, "{name}");
    }
    // A resume has nothing to do, and a single experiment does not resume an interleaved campaign.
    let before = lab.exports("lowtide.db");
    lab.ok(&format!("{run} --resume"));
    assert!(lab.exports("lowtide.db") == before);
    assert_eq!(lab.ok("store show --format csv").lines().count(), 3, "two campaigns");
    lab.refuses("run ./depths.toml --scale 1/256 --resume", 2, &["has no campaign of `depths`"]);
}

/// Writes an experiment on small files: cells of half a second, each measured twice.
fn files(lab: &Lab, name: &str, sizes: &str) {
    std::fs::create_dir_all(lab.path("data")).expect("a folder can be made");
    let text = format!(
        "name = \"{name}\"\ntarget.directory = \"data\"\n[workload]\npattern = \"random-read\"\nblock = \"4KiB\"\n\
         duration = \"500ms\"\ninterval = \"100ms\"\n[sweep]\nfile_size = {sizes}\n[repeat]\ntimes = 2\n"
    );
    lab.write(&format!("{name}.toml"), text);
}

#[test]
fn interleaved_files_resume_after_an_interrupt() {
    let lab = lab();
    files(&lab, "a", "[\"1MiB\", \"2MiB\"]");
    files(&lab, "b", "[\"1MiB\", \"2MiB\"]");
    let run = "run --interleave ./a.toml ./b.toml --store turns.db";
    let mut child = lab.start(run);
    let store = lab.path("turns.db");
    child.reaches("a cell is done", || done_and_begun(&store).0 >= 1);
    child.interrupt();
    let (done, _) = done_and_begun(&store);
    assert!((1..8).contains(&done), "{done} of 8 cells are done");
    let (out, err) = lab.ends(&format!("{run} --resume --format json"), 0);
    assert_eq!(done_and_begun(&store), (8, 0));
    assert_says(&err, &["interleaved: each cell's target is prepared anew"]);
    assert!(rows(&json(&out), "comparison").len() == 2);
    assert!(common::names(&lab.path("data")).is_empty(), "no file is left");
    // Cells of the same factors were prepared one after another.
    let listed = lab.json("store show --store turns.db");
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    let report = lab.json("compare 1 2 --store turns.db --unsettled");
    assert!(rows(&report, "comparison").iter().all(|row| row["rests_on"] == "2 pairs"), "{report:#}");
}

#[test]
fn experiments_that_cannot_be_interleaved_are_refused_before_anything_is_written() {
    let lab = lab();
    files(&lab, "a", "[\"1MiB\"]");
    files(&lab, "b", "[\"2MiB\"]");
    for (arguments, says) in [
        ("--interleave ./a.toml ./b.toml", &["`a` and `b` have no cell in common", "file_size 2MiB"][..]),
        ("--interleave ./a.toml ./depths.toml", &["`depths` runs on a model and `a` on this machine"]),
        ("--interleave ./a.toml", &["required arguments were not provided"]),
        ("./a.toml ./b.toml", &["--interleave"]),
    ] {
        lab.refuses(&format!("run {arguments}"), 2, says);
    }
}
