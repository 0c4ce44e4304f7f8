//! Tests of the errors of invalid experiments.

use super::{bad, with};

#[test]
fn an_unknown_key_is_shown_in_its_line_with_the_nearest() {
    insta::assert_snapshot!(bad(&with("duration = \"1h\"", "duration = \"1h\"\nthreds = 4")), @r#"
     × unknown key `threds`: did you mean `threads`?
       ╭─[small.toml:10:1]
     9 │ duration = "1h"
    10 │ threds = 4
       · ───┬──
       ·    ╰── not a key of [workload]
    11 │
       ╰────
     help: valid keys of [workload]: pattern, mix, block, blocks, file_size,
           utilisation, threads, depth, streams, sync, zipf, hot-cold, zones,
           rate, arrival, burst, pause, duration, until, requests, max,
           precision, interval, steady, trace, pace, wrap
    "#);
}

#[test]
fn everything_wrong_is_told_at_once() {
    let text = with("block = \"16KiB\"", "block = 16\ndepth = 0").replace("random-write", "random-wirte");
    insta::assert_snapshot!(bad(&text), @r#"
      × unknown pattern `random-wirte`: did you mean `random-write`?
       ╭─[small.toml:7:11]
     6 │ [workload]
     7 │ pattern = "random-wirte"
       ·           ───────┬──────
       ·                  ╰── not a pattern
     8 │ block = 16
       ╰────
      help: accepted: sequential-read, sequential-write, random-read, random-
            write, sequential-mixed, sequential, random-mixed, random

    Error:
      × `block` takes a size with its unit, in quotes, not a whole number
       ╭─[small.toml:8:9]
     7 │ pattern = "random-wirte"
     8 │ block = 16
       ·         ─┬
       ·          ╰── a whole number
     9 │ depth = 0
       ╰────
      help: write for example `block = "16KiB"`

    Error:
      × `depth`: 0 is out of range
        ╭─[small.toml:9:9]
      8 │ block = 16
      9 │ depth = 0
        ·         ┬
        ·         ╰── here
     10 │ duration = "1h"
        ╰────
      help: a whole number from 1 to 65536
    "#);
}

#[test]
fn a_text_that_is_not_toml_is_told_where_it_breaks() {
    insta::assert_snapshot!(bad("name = small\n"), @r#"
     × this is not TOML: string values must be quoted, expected literal string
      ╭─[small.toml:1:8]
    1 │ name = small
      ·        ──┬──
      ·          ╰── here
      ╰────
     help: an experiment is a TOML file: `key = value` lines under `[table]`
           headers
    "#);
}

#[test]
fn a_size_in_minutes_is_told_the_units_of_sizes() {
    insta::assert_snapshot!(bad(&with("[\"10GiB\", \"20GiB\"]", "[\"10GiB\", \"10 minutes\"]")), @r#"
     × `file_size`: `10 minutes` is not a size
       ╭─[small.toml:12:23]
    11 │ [sweep]
    12 │ file_size = ["10GiB", "10 minutes"]
       ·                       ──────┬─────
       ·                             ╰── here
       ╰────
     help: unknown unit `minutes`, use one of B, KiB, MiB, GiB, TiB, PiB, kB, MB,
           GB, TB, PB
    "#);
}

#[test]
fn a_file_smaller_than_a_block_is_told_both_sizes() {
    insta::assert_snapshot!(bad(&with("[\"10GiB\", \"20GiB\"]", "[\"10GiB\", \"8KiB\"]")), @r#"
     × `file_size`: 8KiB is smaller than a block of 16KiB
       ╭─[small.toml:12:23]
    11 │ [sweep]
    12 │ file_size = ["10GiB", "8KiB"]
       ·                       ───┬──
       ·                          ╰── here
       ╰────
     help: at least 16KiB
    "#);
}

#[test]
fn an_unknown_factor_is_told_the_factors() {
    insta::assert_snapshot!(bad(&with("file_size =", "filesize =")), @r#"
     × unknown factor `filesize`: did you mean `file_size`?
       ╭─[small.toml:12:1]
    11 │ [sweep]
    12 │ filesize = ["10GiB", "20GiB"]
       · ────┬───
       ·     ╰── not a factor
       ╰────
     help: factors: file_size, utilisation, threads, depth, block, pattern, mix,
           zipf, reserve, partition, idle, pause, data_files, device, streams,
           sync, rate, filesystem, mount_options, scheduler, engine, programs,
           warehouses, terminals, instances, buffer_pool, durability,
           flush_method, doublewrite, flush_neighbours, io_capacity, read_ahead,
           log_size, log_device
    "#);
}

#[test]
fn two_targets_are_told_which_is_accepted() {
    let text = with("device = \"intel-320-160gb\"", "device = \"intel-320-160gb\"\nblock = \"/dev/sdx\"");
    insta::assert_snapshot!(bad(&text), @r#"
     × two targets: `device` and `block`
      ╭─[small.toml:5:1]
    4 │ device = "intel-320-160gb"
    5 │ block = "/dev/sdx"
      · ──┬──
      ·   ╰── the second
    6 │
      ╰────
     help: exactly one of: device, file, directory, block
    "#);
}

#[test]
fn an_absent_row_of_a_study_is_told_how_many_there_are() {
    let text = with("[sweep]", "[[published]]\nstudy = \"e02\"\nline = 11\nmeasure = \"settled\"\n\n[sweep]");
    insta::assert_snapshot!(bad(&text), @r#"
     × `line`: published/e02_intel320_random_write_xfs.csv has no row 11
       ╭─[small.toml:13:8]
    12 │ study = "e02"
    13 │ line = 11
       ·        ─┬
       ·         ╰── here
    14 │ measure = "settled"
       ╰────
     help: a row from 1 to 10; the heading does not count
    "#);
}

#[test]
fn a_factor_device_needs_a_device() {
    let text = with("device = \"intel-320-160gb\"", "directory = \"/data\"");
    let told = bad(&text.replace("[sweep]", "[sweep]\ndevice = [\"a\", \"b\"]"));
    assert!(told.contains("varies a target that is not a device"), "{told}");
}

#[test]
fn a_sequential_pattern_has_one_size() {
    let several = "blocks = [{ size = '1KiB', share = 0.5 }, { size = '8KiB', share = 0.5 }]";
    let text = with("block = \"16KiB\"", several);
    let told = bad(&text.replace("random-write", "sequential-write"));
    assert!(told.contains("`blocks` with a sequential pattern, which has one size"), "{told}");
    let told = bad(&text.replace("[sweep]", "[sweep]\nblock = [\"4KiB\"]"));
    assert!(told.contains("two block sizes: `blocks`, and the factor `block`"), "{told}");
}
