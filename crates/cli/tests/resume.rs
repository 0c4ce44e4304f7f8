//! A campaign that is killed or interrupted keeps what it measured, resumes, and ends with the rows of an unbroken one.

mod common;

use common::{Lab, Running, SCALE, assert_says, done_and_begun, wait_until};
use rustix::process::Signal;

/// Five cells, a few tenths of a second each where `hours` is right; `purge` decides whether they share history.
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

/// Rounds that share history and end when they are steady, after which nothing else follows; and two cells after them.
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

/// Ends a campaign of `experiment(hours)` by `signal` once a cell is done and another has begun, and resumes it.
fn break_and_resume(experiment: impl Fn(u32) -> String, signal: Signal, code: Option<i32>) {
    let [scale, share] = SCALE;
    let lab = Lab::new();
    let run = |store| ["run", "./long.toml", scale, share, "--jobs", "1", "--store", store];
    // A fast machine may be through before anyone looks: then the cells are made longer.
    let mut hours = 15;
    loop {
        lab.write("long.toml", experiment(hours));
        let store = lab.path("broken.db");
        let mut child = Running(lab.command(&run("broken.db")).spawn().expect("lowtide starts"));
        let caught = wait_until(&mut child, || {
            let (done, begun) = done_and_begun(&store);
            done > 0 && begun > 0
        });
        if caught && !child.ended() {
            child.signal(signal);
            assert_eq!(child.wait(), code, "how it ended by {signal:?}");
            break;
        }
        hours *= 2;
        lab.names().iter().filter(|name| name.starts_with("broken")).for_each(|name| {
            std::fs::remove_file(lab.path(name)).expect("the store can be removed");
        });
    }
    let (done, begun) = done_and_begun(&lab.path("broken.db"));
    assert!(done > 0, "cells are done");
    let partial = lab.exports("broken.db").0;

    let mut resume = run("broken.db").to_vec();
    resume.push("--resume");
    let (_, progress) = lab.ends(&resume, 0);
    assert!(!progress.contains(": failed"), "{progress}");
    lab.ok(&run("unbroken.db"));
    let (csv, json) = lab.exports("unbroken.db");
    assert!(
        partial.lines().count() < csv.lines().count(),
        "{done} done, {begun} begun: the campaign was broken off"
    );
    let kept = partial.lines().all(|line| csv.lines().any(|whole| whole == line));
    assert!(kept, "what was measured before the end is as in an unbroken campaign");
    assert!(lab.exports("broken.db") == (csv, json), "a resumed campaign has the rows of an unbroken one");
    // Everything is done: nothing is measured again.
    lab.ok(&resume);
    assert!(lab.exports("broken.db") == lab.exports("unbroken.db"));
    assert_eq!(
        lab.ok(&["store", "show", "--store", "broken.db", "--format", "csv"]).lines().count(),
        2,
        "one campaign"
    );
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
fn killed_rounds_resume_and_end_where_unbroken_ones_do() {
    break_and_resume(rounds, Signal::KILL, None);
}

#[test]
fn interrupted_rounds_resume_and_end_where_unbroken_ones_do() {
    break_and_resume(rounds, Signal::INT, Some(130));
}

#[test]
fn the_advice_after_an_interrupt_names_the_store() {
    let lab = Lab::new();
    lab.write("long.toml", experiment("secure-erase", 400));
    let command = lab.command(&["run", "./long.toml", "--scale", "1/256", "--store", "my store.db"]).spawn();
    let mut child = Running(command.expect("lowtide starts"));
    let store = lab.path("my store.db");
    assert!(wait_until(&mut child, || done_and_begun(&store).1 > 0), "it is running");
    child.signal(Signal::INT);
    // A program that signals the process and its group sends two, and means one.
    std::thread::sleep(std::time::Duration::from_millis(20));
    child.signal(Signal::INT);
    assert_eq!(child.wait(), Some(130));
    let mut error = String::new();
    let mut pipe = child.0.stderr.take().expect("standard error is a pipe");
    std::io::Read::read_to_string(&mut pipe, &mut error).expect("standard error is read");
    let again = "go on with: lowtide run ./long.toml --scale 1/256 --seed 1 --store 'my store.db' --resume";
    assert!(error.contains(again), "{error}");
    let (begun, rows) = (done_and_begun(&store).1, lab.exports("my store.db").0.lines().count());
    assert!(begun > 0 && rows > 1, "everything measured is kept: {begun} cells, {rows} lines");
}

#[test]
fn another_experiment_does_not_resume() {
    let [scale, share] = SCALE;
    let lab = Lab::new();
    lab.ok(&["run", "./tiny.toml", scale, share]);
    let before = lab.exports("lowtide.db");
    let changes: [&[&str]; 4] =
        [&["--set", "threads=2"], &["--seed", "2"], &["--scale", "1/128"], &["--set", "repeat.times=2"]];
    for change in changes {
        let mut arguments = vec!["run", "./tiny.toml", "--resume"];
        if change[0] != "--scale" {
            arguments.extend(SCALE);
        }
        arguments.extend(change);
        let error = lab.refuses(&arguments, 2);
        assert_says(&error, &["has no campaign of `tiny` with this experiment, device, seed and scale"]);
        assert_says(&error, &["run without `--resume` to begin one"]);
    }
    assert!(lab.exports("lowtide.db") == before);
    assert_says(
        &lab.refuses(&["run", "./tiny.toml", scale, share, "--resume", "--store", "none.db"], 2),
        &["there is no store none.db"],
    );
}
