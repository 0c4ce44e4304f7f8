//! Tests of `trace` in `[workload]`: the keys that a trace replaces or excludes, and its check by the plan.

use crate::experiment::{Experiment, Length, ReplayPace};
use crate::plan::Plan;
use lowtide_core::trace::Pacing;
use lowtide_core::{Bytes, Nanos, Seed};
use std::path::Path;

const TRACED: &str =
    "name = \"t\"\ntarget.device = \"intel-320-160gb\"\n[workload]\ntrace = \"requests.log\"\n";

fn told(text: &str, set: &[&str]) -> String {
    let set: Vec<_> = set.iter().map(|text| text.parse().expect("an override")).collect();
    let error = Experiment::parse("t.toml", text, &set).expect_err(text);
    error.problems().map(|problem| problem.message().to_owned()).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_trace_needs_no_other_key() {
    let experiment = Experiment::parse("t.toml", TRACED, &[]).expect("valid");
    let load = &experiment.load;
    let replay = load.work.trace().expect("a trace");
    assert_eq!(
        (replay.path.as_path(), replay.pace, replay.wrap),
        (Path::new("requests.log"), ReplayPace::Recorded, false)
    );
    assert_eq!((load.interval, load.pacing()), (Nanos::from_secs(1), Some(Pacing::Recorded)));
    let fast = format!("{TRACED}pace = \"as-fast-as-possible\"\ndepth = 8\nrequests = 100\nwrap = true\n");
    let experiment = Experiment::parse("t.toml", &fast, &[]).expect("valid");
    assert_eq!(experiment.load.pacing(), Some(Pacing::AsFastAsPossible { depth: 8 }));
    assert_eq!(experiment.load.length, Length::Requests(100));
}

#[test]
fn keys_that_a_trace_replaces_are_refused() {
    for (more, expected) in [
        ("block = \"4KiB\"\n", "`block` with `trace`, which has every request"),
        ("duration = \"1s\"\n", "`duration` with `trace`, which has every request"),
        ("pace = \"recrded\"\n", "unknown pace `recrded`: did you mean `recorded`?"),
        ("wrap = 1\n", "`wrap` takes true or false, not a whole number"),
        ("[sweep]\nthreads = [1, 2]\n", "the factor `threads` with `trace`"),
    ] {
        assert_eq!(told(&format!("{TRACED}{more}"), &[]), expected, "{more}");
    }
    let without = TRACED.replace(
        "trace = \"requests.log\"",
        "pattern = \"random-read\"\nblock = \"4KiB\"\nduration = \"1s\"\nwrap = true",
    );
    assert_eq!(told(&without, &[]), "`wrap` belongs to `trace`, which is absent");
}

#[test]
fn an_override_with_a_trace_replaces_the_pattern() {
    let text = "name = \"t\"\ntarget.device = \"intel-320-160gb\"\n[workload]\npattern = \"random-mixed\"\nmix = 0.5\n\
                block = \"4KiB\"\nthreads = 4\nrate = 100\nuntil = \"steady\"\nmax = \"1h\"\n";
    let set = ["trace=a.log".parse().expect("an override"), "depth=2".parse().expect("an override")];
    let experiment = Experiment::parse("t.toml", text, &set).expect("valid");
    assert_eq!(experiment.load.work.trace().expect("a trace").path, Path::new("a.log"));
    let again = Experiment::parse("t.toml", experiment.text(), &[]).expect("the text alone gives the same");
    assert_eq!(again.load, experiment.load);
}

#[test]
fn the_plan_reads_the_trace_and_refuses_one_that_does_not_fit() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("requests.log");
    let text = TRACED.replace("requests.log", path.to_str().expect("plain"));
    let plan = |more: &str, scale| {
        let experiment = Experiment::parse("t.toml", &format!("{text}{more}"), &[]).expect("valid");
        Plan::new(experiment, Seed::new(1), scale).map_err(|error| error.to_string())
    };
    let missing = plan("", 1).map(drop).expect_err("no file");
    assert!(missing.contains("it cannot be read"), "{missing}");
    std::fs::write(&path, "fio version 3 iolog\n0 a read 0 4096\n9 a write 1048576 4096\n20 a sync 0 0\n")
        .expect("written");
    let planned = plan("file_size = \"2MiB\"\n", 1).expect("plans");
    let load = &planned.cells[0].settings.load;
    assert_eq!((load.length, load.workload().read_share), (Length::Requests(3), 0.5));
    assert!(planned.environment().contains(&(
        "trace".to_owned(),
        "1 reads, 1 writes, 0 trims, 1 flushes in 0.000 s, up to 1028KiB".to_owned()
    )));
    let beyond = plan("file_size = \"1MiB\"\n", 1).map(drop).expect_err("too small");
    assert_eq!(beyond, "the trace reaches up to byte 1052672, but there are 1MiB of data");
    let wrapped = plan("file_size = \"1MiB\"\nwrap = true\n", 1).expect("plans");
    let replay = wrapped.cells[0].settings.load.work.trace().expect("a trace");
    assert!(replay.trace.as_ref().expect("read").end() <= Bytes::mib(1));
    assert!(plan("", 8).map(drop).expect_err("scaled").contains("not divided"));
    let identity = planned.identity();
    std::fs::write(&path, "fio version 3 iolog\n0 a read 0 4096\n9 a write 1048576 4096\n21 a sync 0 0\n")
        .expect("written");
    let other = plan("file_size = \"2MiB\"\n", 1).expect("plans");
    assert_ne!(other.identity(), identity, "another trace is another plan");
}
