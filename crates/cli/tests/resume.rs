//! A killed or interrupted campaign keeps its rows, can be resumed, and ends with the rows of an uninterrupted
//! campaign.

mod common;

use common::{Lab, done_and_begun, wait_until};
use rustix::process::Signal;

/// Five cells of `hours` virtual hours each. With `purge = "none"` they share their history.
fn experiment(purge: &str, hours: u32) -> String {
    format!(
        r#"name = "long"
target.device = "intel-320-160gb"

[before-each-cell]
purge = "{purge}"
fill = "sequential"

[workload]
pattern = "random-write"
block = "16KiB"
duration = "{hours}h"
interval = "10min"

[sweep]
file_size = ["40GiB", "60GiB", "80GiB", "50GiB", "70GiB"]
"#
    )
}

/// Rounds that share their history and end as soon as they are steady, followed by two cells.
fn rounds(hours: u32) -> String {
    format!(
        r#"name = "long"
target.device = "intel-320-160gb"

[workload]
pattern = "random-write"
block = "16KiB"
duration = "{hours}h"
interval = "10min"

[[step]]
name = "rounds"
purge-before = "secure-erase"
precondition = {{ times = 1 }}
sweep = {{ file_size = ["40GiB", "60GiB"] }}
repeat = {{ times = 25, track = {{ of = "iops", where = {{ file_size = "60GiB" }} }} }}

[[step]]
name = "after"
sweep = {{ file_size = ["50GiB", "70GiB"] }}
"#
    )
}

/// Ends a campaign of `experiment(hours)` with `signal` once a cell is done and another has begun, and resumes it.
fn break_and_resume(experiment: impl Fn(u32) -> String, signal: Signal, code: Option<i32>) {
    let lab = Lab::new();
    let run = |store| format!("run ./long.toml --scale 1/256 --jobs 1 --store {store}");
    let mut hours = 15;
    loop {
        lab.write("long.toml", experiment(hours));
        let store = lab.path("broken.db");
        let mut child = lab.start(&run("broken.db"));
        let caught = wait_until(&mut child, || {
            let (done, begun) = done_and_begun(&store);
            done > 0 && begun > 0
        });
        if caught && !child.has_ended() {
            child.signal(signal);
            assert_eq!(child.wait(), code, "{signal:?}");
            break;
        }
        // A fast machine may finish before the signal: try again with longer cells.
        hours *= 2;
        lab.names().iter().filter(|name| name.starts_with("broken")).for_each(|name| lab.remove(name));
    }
    let (done, begun) = done_and_begun(&lab.path("broken.db"));
    assert!(done > 0, "cells are done");
    let partial = lab.exports("broken.db").0;

    let resume = run("broken.db") + " --resume";
    let (_, progress) = lab.ends(&resume, 0);
    assert!(!progress.contains(": failed"), "{progress}");
    lab.ok(&run("unbroken.db"));
    let (csv, json) = lab.exports("unbroken.db");
    assert!(partial.lines().count() < csv.lines().count(), "{done} done, {begun} begun: it was complete");
    let kept = partial.lines().all(|line| csv.lines().any(|whole| whole == line));
    assert!(kept, "rows from before the signal differ from those of an uninterrupted campaign");
    assert!(lab.exports("broken.db") == (csv, json), "the resumed campaign differs");
    // A second resume measures nothing.
    lab.ok(&resume);
    assert!(lab.exports("broken.db") == lab.exports("unbroken.db"));
    assert_eq!(lab.ok("store show --store broken.db --format csv").lines().count(), 2, "one campaign");
}

#[test]
fn a_killed_campaign_of_independent_cells_resumes() {
    break_and_resume(|hours| experiment("secure-erase", hours), Signal::KILL, None);
}

#[test]
fn a_killed_campaign_of_cells_that_share_history_resumes() {
    break_and_resume(|hours| experiment("none", hours), Signal::KILL, None);
}

#[test]
fn an_interrupted_campaign_keeps_everything_and_resumes() {
    break_and_resume(|hours| experiment("none", hours), Signal::INT, Some(130));
}

#[test]
fn killed_rounds_resume_and_end_with_the_same_round() {
    break_and_resume(rounds, Signal::KILL, None);
}

#[test]
fn interrupted_rounds_resume_and_end_with_the_same_round() {
    break_and_resume(rounds, Signal::INT, Some(130));
}

#[test]
fn the_advice_after_an_interrupt_names_the_store() {
    let lab = Lab::new();
    lab.write("long.toml", experiment("secure-erase", 400));
    let mut child = lab.start(&["run", "./long.toml", "--scale", "1/256", "--store", "my store.db"]);
    let store = lab.path("my store.db");
    child.reaches("rows", || done_and_begun(&store).1 > 0);
    child.signal(Signal::INT);
    // Some programs signal a process and its group, so an immediate second signal does not count as a second Ctrl-C.
    std::thread::sleep(std::time::Duration::from_millis(20));
    child.interrupt();
    let error = child.error();
    let again = "resume with: lowtide run ./long.toml --scale 1/256 --seed 1 --store 'my store.db' --resume";
    assert!(error.contains(again), "{error}");
    let rows = lab.ok(&["store", "export", "--store", "my store.db"]).lines().count();
    let begun = done_and_begun(&store).1;
    assert!(begun > 0 && rows > 1, "measured rows are lost: {begun} cells, {rows} lines");
}

#[test]
fn another_experiment_does_not_resume() {
    let lab = Lab::new();
    lab.ok("run ./tiny.toml --scale 1/256");
    let before = lab.exports("lowtide.db");
    for change in [
        "--scale 1/256 --set threads=2",
        "--scale 1/256 --seed 2",
        "--scale 1/128",
        "--scale 1/256 --set repeat.times=2",
    ] {
        let says = [
            "has no campaign of `tiny` with this experiment, device, seed and scale",
            "run without `--resume` to begin one",
        ];
        lab.refuses(&format!("run ./tiny.toml --resume {change}"), 2, &says);
    }
    assert!(lab.exports("lowtide.db") == before);
    lab.refuses("run ./tiny.toml --scale 1/256 --resume --store none.db", 2, &["there is no store none.db"]);
}
