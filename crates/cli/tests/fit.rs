//! `lowtide fit` on input that cannot be fitted: the error names the line or the option, no input causes a panic or a
//! long run, and only a signal counts as an interruption.

mod common;

use common::Lab;
use rustix::process::Signal;
use std::time::Duration;

/// Levels of a drive of 160 GB.
const LEVELS: &str = "data,throughput\n20GiB,200\n40GiB,198\n60GiB,190\n80GiB,160\n100GiB,120\n";

fn lab(table: &str) -> Lab {
    Lab::with(&[("t.csv", table)])
}

/// Fits a table with more arguments, and expects it to be refused as bad input with these words.
fn refused(table: &str, more: &str, says: &[&str]) {
    let error = lab(table).refuses(&format!("fit t.csv --capacity 160GB {more}"), 2, says);
    assert!(!error.contains("interrupted"), "{error}");
}

/// Symptom: `--block 0B` divided by zero; `--block 3B` made map units of three bytes, simulated without end
/// and ignored Ctrl-C. Cause: sizes were used before they were checked, and a drive's description was not
/// validated. Fix: `limits`.
#[test]
fn blocks_that_no_drive_maps_are_refused_with_what_is_accepted() {
    let accepted = "a multiple of 512B, from 512B to 16MiB";
    for block in ["0B", "3B", "511B", "513B", "32MiB", "16383PiB"] {
        refused(LEVELS, &format!("--block {block}"), &[&format!("--block {block}"), accepted]);
    }
    for block in ["1536B", "5KiB"] {
        let says = ["no whole map units", "512B, 1KiB, 2KiB and multiples of 4KiB"];
        refused(LEVELS, &format!("--block {block}"), &says);
    }
}

/// Symptom: `--predict 0B` caused a panic. Cause: the small model of the drive had no data to overwrite.
#[test]
fn sizes_that_cannot_be_predicted_are_refused() {
    for (size, says) in [("0B", "too few"), ("4KiB", "too few"), ("200GiB", "do not fit 160GB of capacity")] {
        let predict = format!("--predict {size}");
        refused(LEVELS, &predict, &[&predict, says]);
    }
    let many = ["50GiB"; 101].join(",");
    refused(LEVELS, &format!("--predict {many}"), &["101 sizes", "100 at most"]);
}

/// Symptom: `--capacity 16TiB` ended with "interrupted" and exit code 130. Cause: `None` stood both for an
/// interruption and for a drive that cannot exist.
#[test]
fn impossible_capacities_are_refused_with_the_reason_and_are_no_interruption() {
    let lab = lab(LEVELS);
    for (capacity, says) in [
        ("0B", "--capacity 0B"),
        ("20MiB", ""),
        ("16TiB", "more than 2^32 map units"),
        ("16383PiB", "more than 2^32 map units"),
    ] {
        let error = lab.refuses(&format!("fit t.csv --capacity {capacity}"), 2, &[says]);
        assert!(!error.contains("interrupted"), "{error}");
    }
    lab.refuses("fit t.csv", 2, &["how much the host may address is not known", "--capacity"]);
}

/// Symptom: a level of 35 GB/s among levels of 200 MB/s caused a panic, as did a level of 1e300. Cause: no drive of
/// the family is so fast, and negative or infinite costs were simulated. Fix: levels are checked against the family's
/// link, and costs against its floor.
#[test]
fn levels_that_no_drive_reaches_are_refused_with_their_line() {
    let with = |line: &str| format!("{LEVELS}{line}\n");
    let link = ["line 7", "35000 MiB/s", "the link of the assumed drive carries 19073 MiB/s"];
    refused(&with("130GiB,35000"), "", &link);
    refused(&with("160GiB,100"), "", &["line 7", "do not fit 160GB of capacity"]);
    refused(&with("130GiB,0"), "", &["line 7", "a level of 0 MiB/s"]);
    refused(&with("130GiB,1e300"), "", &["line 7", "1e300 MiB/s", "from 0.001 to"]);
    refused(&with("130GiB,1e-300"), "", &["line 7"]);
    refused(&with("130GiB,NaN"), "", &["line 7", "`NaN` in column `throughput`"]);
    refused(&with("130GiB,inf"), "", &["line 7"]);
    refused(&with("130GiB,-5"), "", &["line 7", "`-5`"]);
    refused(&with("1KiB,50"), "", &["line 7", "hold no request of 16KiB"]);
    refused(&with("1MiB,50"), "", &["line 7", "1MiB of data are too few"]);
    let deviations = |row: &str| format!("utilisation,throughput,deviation\n0.5,100,2\n0.6,95,2\n{row}\n");
    refused(&deviations("0.2,1e300,50"), "", &["line 4", "1e300 MiB/s"]);
    refused(&deviations("0.2,100,1e300"), "", &["line 4", "a deviation of"]);
    refused(&deviations("0.2,100,1e-9"), "", &["line 4", "from 0.01 % to 100 %"]);
    refused("data,throughput,data\n1GiB,2,3GiB\n", "", &["`data` stands there twice"]);
    let many: String = (1..=101).map(|n| format!("{n}GiB,100\n")).collect();
    refused(&format!("data,throughput\n{many}"), "", &["101 levels", "100 at most"]);
}

#[test]
fn impossible_settings_are_refused_with_their_key() {
    refused(LEVELS, "--fix raw=100GiB", &["--fix raw=100GiB", "more than the capacity of 160GB"]);
    refused(LEVELS, "--fix raw=15PiB", &["--fix raw=15PiB", "2^32 map units"]);
    refused(LEVELS, "--fix write-cost=1ns", &["--fix write-cost", "the link of the assumed drive"]);
    refused(LEVELS, "--fix map-reach=1TiB", &["--fix map-reach=1TiB", "more than the capacity"]);
    refused(LEVELS, "--fix wirte-cost=1us", &["did you mean `write-cost`?"]);
    refused(LEVELS, "--like sata-7k2-1tb", &["not one flash drive"]);
    let rows: String = (0..40).map(|n| format!("{n},{}\n", if n < 20 { 100 } else { 40 })).collect();
    let timeline = format!("time,throughput\n{rows}");
    refused(&timeline, "", &["a timeline is of one size", "--data"]);
    refused(&timeline, "--data 0B", &["a timeline is of one size"]);
    refused(&timeline, "--data 200GiB", &["do not fit 160GB of capacity"]);
    refused("time,throughput\n1e300,5\n2e300,5\n", "--data 50GiB", &["line 2", "a time of"]);
}

/// A search with a tiny budget finds nothing, reports why, and is not an interruption.
#[test]
fn an_insufficient_budget_is_reported() {
    refused(LEVELS, "--budget 1000", &["nothing fits", "--budget"]);
    refused(LEVELS, "--budget 0", &["--budget 0"]);
}

/// A signal ends a fit that would take hours, and the interruption is reported.
#[test]
fn a_signal_ends_a_fit_in_the_middle_of_a_simulation() {
    let rows: String = (20..120).map(|n| format!("{n}GiB,{}\n", 220 - n)).collect();
    let lab = lab(&format!("data,throughput\n{rows}"));
    let mut child = lab.start("fit t.csv --capacity 160GB --block 512B -o d.toml");
    // After two seconds the simulation has begun, and is far from its end.
    std::thread::sleep(Duration::from_secs(2));
    assert!(!child.has_ended(), "it ended before the signal");
    child.signal(Signal::INT);
    let begin = std::time::Instant::now();
    assert_eq!(child.wait(), Some(130));
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?} after the signal", begin.elapsed());
    assert!(!lab.names().contains(&"d.toml".to_owned()), "a device file was written");
}

/// Fits a small table in a few seconds, and checks the device file.
#[test]
fn a_small_fit_gives_a_device_file_and_the_same_one_again() {
    let lab = lab(LEVELS);
    let fit = "fit t.csv --capacity 160GB --threads 16 --block 64KiB --fix policy=greedy -o d.toml";
    let first = lab.prints(fit, &["raw capacity", "us a unit"]);
    let file = lab.read("d.toml");
    assert_eq!((lab.ok(fit), lab.read("d.toml")), (first, file));
    lab.ok("devices show ./d.toml");
}
