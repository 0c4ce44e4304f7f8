//! Tests of `--set`: the changes that it makes, the keys that it leaves alone, and its errors.

use super::{GOOD, good, parse, with};
use crate::experiment::{FactorName, Length, Level, Override, Target};
use lowtide_core::{Bytes, Nanos};
use proptest::prelude::*;

fn refused(text: &str, overrides: &[&str]) -> String {
    parse(text, overrides).expect_err("it is refused")
}

#[test]
fn a_key_that_is_there_is_replaced_and_one_that_is_not_is_written_into_its_table() {
    let experiment =
        good(GOOD, &["duration=60s", "threads=4", "fill=sequential", "title=\"A = b\"", "repeat.times=3"]);
    assert_eq!(experiment.load.length, Length::For(Nanos::from_secs(60)));
    assert_eq!((experiment.load.threads, experiment.repeat.times), (4, 3));
    assert_eq!(experiment.title, "A = b");
    insta::assert_snapshot!(experiment.text(), @r#"
    title = "A = b"
    name = "small"

    [target]
    device = "intel-320-160gb"

    [workload]
    threads = 4
    pattern = "random-write"
    block = "16KiB"
    duration = "60s"

    [sweep]
    file_size = ["10GiB", "20GiB"]

    [before-each-cell]
    fill = "sequential"

    [repeat]
    times = 3
    "#);
    let again = good(experiment.text(), &[]);
    assert_eq!(
        (&again.load, &again.steps, &again.title),
        (&experiment.load, &experiment.steps, &experiment.title)
    );
}

#[test]
fn a_device_is_set_by_name_or_as_a_table() {
    for value in ["mtron-32gb+sas-15k-73gb", "{ data = \"mtron-32gb\", log = \"sas-15k-73gb\" }"] {
        let experiment = good(GOOD, &[&format!("target.device={value}")]);
        assert_eq!(experiment.target, Target::Device("mtron-32gb+sas-15k-73gb".to_owned()));
    }
    let table = with("device = \"intel-320-160gb\"", "device = { data = \"mtron-32gb\" }");
    let experiment = good(&table, &["target.device=intel-320-160gb"]);
    assert_eq!(experiment.target, Target::Device("intel-320-160gb".to_owned()));
    let header = with("[target]\ndevice = \"intel-320-160gb\"", "[target.device]\ndata = \"mtron-32gb\"");
    assert_eq!(good(&header, &[]).target, Target::Device("mtron-32gb".to_owned()));
    let told = refused(&header, &["target.device=intel-320-160gb"]);
    assert!(told.contains("`target.device` is a table under its own header"), "{told}");
    let told = refused(&header, &["target.file=/tmp/x"]);
    assert!(told.contains("`target.device` is a table under its own header"), "{told}");
}

#[test]
fn a_short_key_means_the_factor_where_it_is_swept() {
    let experiment = good(GOOD, &["file_size=5GiB"]);
    assert_eq!(experiment.steps[0].sweep[0].levels, [Level::FileSize(Bytes::gib(5))]);
    let experiment = good(
        &with("[sweep]", "[[step]]\nname = \"a\"\nsweep = { threads = [1, 2] }\n[sweep]"),
        &["threads=8"],
    );
    assert_eq!(experiment.steps[0].factor(FactorName::Threads).expect("swept").levels, [Level::Threads(8)]);
    assert_eq!(experiment.load.threads, 1);
    let experiment = good(&with("[sweep]\nfile_size = [\"10GiB\", \"20GiB\"]", ""), &["file_size=5GiB"]);
    assert_eq!(experiment.load.file_size, Some(Bytes::gib(5)));
    assert!(experiment.steps[0].sweep.is_empty());
}

#[test]
fn one_of_several_exclusive_keys_takes_the_place_of_the_other() {
    let experiment = good(GOOD, &["until=steady", "max=2h", "directory=/data"]);
    let length = Length::UntilSteady { max: Nanos::from_secs(7200), precision: 0.015 };
    assert_eq!(experiment.load.length, length);
    assert_eq!(experiment.target, Target::Directory("/data".into()));
    let back = good(experiment.text(), &["duration=5s", "device=x"]);
    assert_eq!(back.load.length, Length::For(Nanos::from_secs(5)));
    assert!(!back.text().contains("max"), "{}", back.text());
}

#[test]
fn tables_in_one_line_are_written_into() {
    let text = with("[sweep]", "[before-each-cell]\nlayout = { files = 2 }\n[sweep]");
    let layout = |overrides: &[&str]| good(&text, overrides).steps[0].preparation.layout.clone();
    assert_eq!(layout(&["reserve=0.25"]).reserve, 0.25);
    assert_eq!(layout(&["layout.partition=120GB"]).partition, Some(Bytes::new(120_000_000_000)));
    assert_eq!(layout(&["layout={}", "files=4"]).files, 4);
    let own = with("[sweep]", "[before-each-cell.layout]\nfiles = 2 # two\n[sweep]");
    let experiment = good(&own, &["reserve=0.5", "purge=trim"]);
    assert_eq!(experiment.steps[0].preparation.layout.reserve, 0.5);
}

#[test]
fn an_unknown_key_is_told_the_nearest() {
    insta::assert_snapshot!(refused(GOOD, &["threds=4"]), @r#"
     × unknown key `threds`: did you mean `threads`?
      ╭─[--set threds=4:1:1]
    1 │ threds=4
      · ───┬──
      ·    ╰── no such key
      ╰────
     help: accepted: workload.pattern, workload.mix, workload.block,
           workload.blocks, workload.file_size, workload.utilisation,
           workload.threads, workload.depth, workload.streams, workload.sync,
           workload.zipf, workload.hot-cold, workload.zones, workload.rate,
           workload.arrival, workload.burst, workload.pause, workload.duration,
           workload.until, workload.requests, workload.max, workload.precision,
           workload.interval, workload.steady, workload.trace, workload.pace,
           workload.wrap
    "#);
    insta::assert_snapshot!(refused(GOOD, &["workload.threds=4"]), @r#"
     × unknown key `workload.threds`: did you mean `workload.threads`?
      ╭─[--set workload.threds=4:1:1]
    1 │ workload.threds=4
      · ───────┬───────
      ·        ╰── no such key
      ╰────
     help: accepted: workload.pattern, workload.mix, workload.block,
           workload.blocks, workload.file_size, workload.utilisation,
           workload.threads, workload.depth, workload.streams, workload.sync,
           workload.zipf, workload.hot-cold, workload.zones, workload.rate,
           workload.arrival, workload.burst, workload.pause, workload.duration,
           workload.until, workload.requests, workload.max, workload.precision,
           workload.interval, workload.steady, workload.trace, workload.pace,
           workload.wrap
    "#);
}

#[test]
fn a_bad_value_is_told_at_the_override() {
    insta::assert_snapshot!(refused(GOOD, &["duration=60s", "threads=x"]), @r#"
     × `threads` takes a whole number, not a string
      ╭─[--set threads=x:1:9]
    1 │ threads=x
      ·         ┬
      ·         ╰── a string
      ╰────
     help: write for example `threads = 4`
    "#);
    insta::assert_snapshot!(refused(GOOD, &["file_size=[\"10GiB\", \"10 minutes\"]"]), @r#"
     × `file_size`: `10 minutes` is not a size
      ╭─[--set file_size=["10GiB", "10 minutes"]:1:21]
    1 │ file_size=["10GiB", "10 minutes"]
      ·                     ──────┬─────
      ·                           ╰── here
      ╰────
     help: unknown unit `minutes`, use one of B, KiB, MiB, GiB, TiB, PiB, kB, MB,
           GB, TB, PB
    "#);
    insta::assert_snapshot!(refused(GOOD, &["file_size=[\"10GiB\""]), @r#"
     × this is not TOML: unclosed array, expected `]`
      ╭─[--set file_size=["10GiB":1:11]
    1 │ file_size=["10GiB"
      ·           ────┬───
      ·               ╰── here
      ╰────
     help: write a TOML value, such as `4`, `"10GiB"` or `["10GiB", "20GiB"]`
    "#);
}

#[test]
fn a_fault_in_the_file_keeps_its_line_after_an_override() {
    let told = refused(&with("\"16KiB\"", "\"16 KB\"\nthreads = 0"), &["title=x", "name=y", "fill=random"]);
    assert!(told.contains("[small.toml:9:11]"), "{told}");
}

#[test]
fn what_is_no_override_is_told_how_to_write_one() {
    insta::assert_snapshot!(refused(GOOD, &["threads"]), @r#"
     × an override without `=`
      ╭─[--set threads:1:1]
    1 │ threads
      · ───────
      ╰────
     help: write `key=value`, such as `threads=4`
    "#);
    assert!(refused(GOOD, &["=4"]).contains("without a key"));
    assert!(refused(GOOD, &["threads="]).contains("without a value"));
    assert!(refused(GOOD, &["step.0.fill=none"]).contains("cannot be set from the command line"));
    let header = with("[sweep]", "[before-each-cell.layout]\nfiles = 2\n[sweep]");
    assert!(refused(&header, &["layout={files=1}"]).contains("is a table under its own header here"));
}

proptest! {
    #[test]
    fn what_is_printed_parses_back(key in "[a-z][a-z_.-]{0,20}", value in "[^\\s]([^\\n]{0,20}[^\\s])?") {
        let first: Override = format!(" {key} = {value} ").parse().expect("well formed");
        let again: Override = first.to_string().parse().expect("well formed");
        prop_assert_eq!(&first, &again);
        prop_assert_eq!((first.key(), first.value()), (key.as_str(), value.as_str()));
    }

    /// Any value of an override gives an experiment or an error that can be rendered, never a panic.
    #[test]
    fn any_value_is_taken_or_refused(
        key in prop::sample::select(vec!["threads", "file_size", "duration", "name", "layout", "device", "until", "mix"]),
        value in prop_oneof!["\\PC{1,12}", "[\\[\\]{}\"'0-9a-z=., ]{1,16}"],
    ) {
        let set = format!("{key}={value}");
        if let Ok(experiment) = parse(GOOD, &[&set]) {
            prop_assert!(parse(experiment.text(), &[]).is_ok(), "{}", experiment.text());
        }
    }

    /// Any text in place of a line of the file gives an experiment or an error that can be rendered.
    #[test]
    fn any_text_is_taken_or_refused(line in 0usize..12, text in "\\PC{0,30}") {
        let lines: Vec<&str> = GOOD.lines().enumerate().map(|(at, own)| if at == line { &*text } else { own }).collect();
        let _ = parse(&lines.join("\n"), &[]);
    }
}
