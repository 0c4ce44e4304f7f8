//! `lowtide fit` on input that cannot be fitted: the error names the line or the option, nothing panics or
//! runs on, and only a signal counts as an interruption.

mod common;

use common::{Lab, Running, assert_says, told};
use rustix::process::Signal;
use std::time::Duration;

/// Levels of a drive of 160 GB.
const LEVELS: &str = "data,throughput\n20GiB,200\n40GiB,198\n60GiB,190\n80GiB,160\n100GiB,120\n";

fn lab(table: &str) -> Lab {
    let lab = Lab::new();
    lab.write("t.csv", table);
    lab
}

/// Fits a table with more arguments, and expects it to be refused as bad input with these words.
fn refused(table: &str, more: &[&str], says: &[&str]) {
    let arguments = [&["fit", "t.csv", "--capacity", "160GB"], more].concat();
    let error = lab(table).refuses(&arguments, 2);
    assert_says(&error, says);
    assert!(!error.contains("interrupted"), "{error}");
}

/// Symptom: `--block 0B` divided by zero; `--block 3B` made map units of three bytes, simulated without end
/// and ignored Ctrl-C. Cause: sizes were used before they were checked, and a drive's description was not
/// validated. Fix: `limits`.
#[test]
fn blocks_that_no_drive_maps_are_refused_with_what_is_accepted() {
    let accepted = "a multiple of 512B, from 512B to 16MiB";
    for block in ["0B", "3B", "511B", "513B", "32MiB", "16383PiB"] {
        refused(LEVELS, &["--block", block], &[&format!("--block {block}"), accepted]);
    }
    for block in ["1536B", "5KiB"] {
        let says = ["no whole map units", "512B, 1KiB, 2KiB and multiples of 4KiB"];
        refused(LEVELS, &["--block", block], &says);
    }
}

/// Symptom: `--predict 0B` panicked in the small model of the drive, which had no data to write to.
#[test]
fn sizes_that_cannot_be_predicted_are_refused() {
    let predict =
        |size: &str, told: &str| refused(LEVELS, &["--predict", size], &[&format!("--predict {size}"), told]);
    predict("0B", "too few");
    predict("4KiB", "too few");
    predict("200GiB", "do not fit 160GB of capacity");
    let many = ["50GiB"; 101].join(",");
    refused(LEVELS, &["--predict", &many], &["101 sizes", "100 at most"]);
}

/// Symptom: `--capacity 16TiB` ended with "interrupted" and exit code 130. Cause: `None` stood both for an
/// interruption and for a drive that cannot exist.
#[test]
fn capacities_that_cannot_be_modelled_say_why_and_are_no_interruption() {
    let lab = lab(LEVELS);
    for (capacity, told) in [
        ("0B", "--capacity 0B"),
        ("20MiB", "20GiB of data do not fit"),
        ("16TiB", "more than 2^32 map units"),
        ("16383PiB", "more than 2^32 map units"),
    ] {
        let error = lab.refuses(&["fit", "t.csv", "--capacity", capacity], 2);
        assert!(
            told == "20GiB of data do not fit" || common::flat(&error).contains(told),
            "{capacity}: {error}"
        );
        assert!(!error.contains("interrupted"), "{error}");
    }
    let error = lab.refuses(&["fit", "t.csv"], 2);
    assert_says(&error, &["how much the host may address is not known", "--capacity"]);
}

/// Symptom: a level of 35 GB/s among others of 200 MB/s panicked, and so did one of 1e300. Cause: no drive of
/// the family is so fast, and negative or infinite costs were simulated. Fix: levels are checked against the
/// family's link, costs against its floor.
#[test]
fn levels_that_no_drive_has_are_refused_with_their_line() {
    let with = |line: &str| format!("{LEVELS}{line}\n");
    refused(
        &with("130GiB,35000"),
        &[],
        &["line 7", "35000 MiB/s", "the link of the assumed drive carries 19073 MiB/s"],
    );
    refused(&with("160GiB,100"), &[], &["line 7", "do not fit 160GB of capacity"]);
    refused(&with("130GiB,0"), &[], &["line 7", "a level of 0 MiB/s"]);
    refused(&with("130GiB,1e300"), &[], &["line 7", "1e300 MiB/s", "from 0.001 to"]);
    refused(&with("130GiB,1e-300"), &[], &["line 7"]);
    refused(&with("130GiB,NaN"), &[], &["line 7", "`NaN` in column `throughput`"]);
    refused(&with("130GiB,inf"), &[], &["line 7"]);
    refused(&with("130GiB,-5"), &[], &["line 7", "`-5`"]);
    refused(&with("1KiB,50"), &[], &["line 7", "hold no request of 16KiB"]);
    refused(&with("1MiB,50"), &[], &["line 7", "1MiB of data are too few"]);
    let deviations = |row: &str| format!("utilisation,throughput,deviation\n0.5,100,2\n0.6,95,2\n{row}\n");
    refused(&deviations("0.2,1e300,50"), &[], &["line 4", "1e300 MiB/s"]);
    refused(&deviations("0.2,100,1e300"), &[], &["line 4", "a deviation of"]);
    refused(&deviations("0.2,100,1e-9"), &[], &["line 4", "from 0.01 % to 100 %"]);
    refused("data,throughput,data\n1GiB,2,3GiB\n", &[], &["`data` stands there twice"]);
    let many: String = (1..=101).map(|n| format!("{n}GiB,100\n")).collect();
    refused(&format!("data,throughput\n{many}"), &[], &["101 levels", "100 at most"]);
}

#[test]
fn settings_that_cannot_be_are_refused_with_their_key() {
    refused(LEVELS, &["--fix", "raw=100GiB"], &["--fix raw=100GiB", "more than the capacity of 160GB"]);
    refused(LEVELS, &["--fix", "raw=15PiB"], &["--fix raw=15PiB", "2^32 map units"]);
    refused(LEVELS, &["--fix", "write-cost=1ns"], &["--fix write-cost", "the link of the assumed drive"]);
    refused(LEVELS, &["--fix", "map-reach=1TiB"], &["--fix map-reach=1TiB", "more than the capacity"]);
    refused(LEVELS, &["--fix", "wirte-cost=1us"], &["did you mean `write-cost`?"]);
    refused(LEVELS, &["--like", "sata-7k2-1tb"], &["not one flash drive"]);
    let rows: String = (0..40).map(|n| format!("{n},{}\n", if n < 20 { 100 } else { 40 })).collect();
    let timeline = format!("time,throughput\n{rows}");
    refused(&timeline, &[], &["a timeline is of one size", "--data"]);
    refused(&timeline, &["--data", "0B"], &["a timeline is of one size"]);
    refused(&timeline, &["--data", "200GiB"], &["do not fit 160GB of capacity"]);
    refused("time,throughput\n1e300,5\n2e300,5\n", &["--data", "50GiB"], &["line 2", "a time of"]);
}

/// A search with hardly any budget finds nothing, says why, and is not an interruption.
#[test]
fn a_budget_that_does_not_suffice_is_told() {
    refused(LEVELS, &["--budget", "1000"], &["nothing fits", "--budget"]);
    refused(LEVELS, &["--budget", "0"], &["--budget 0"]);
}

/// A table that needs hours of simulation ends soon after a signal, and reports that it was interrupted.
#[test]
fn a_signal_ends_a_fit_in_the_middle_of_a_simulation() {
    let rows: String = (20..120).map(|n| format!("{n}GiB,{}\n", 220 - n)).collect();
    let lab = lab(&format!("data,throughput\n{rows}"));
    let arguments = ["fit", "t.csv", "--capacity", "160GB", "--block", "512B", "-o", "d.toml"];
    let mut child = Running(lab.command(&arguments).spawn().expect("lowtide starts"));
    // Long enough for the simulation to have begun, and far from its end.
    std::thread::sleep(Duration::from_secs(2));
    assert!(!child.ended(), "it ended before the signal");
    child.signal(Signal::INT);
    let begin = std::time::Instant::now();
    assert_eq!(child.wait(), Some(130));
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?} after the signal", begin.elapsed());
    assert!(!lab.names().contains(&"d.toml".to_owned()), "a device file was written");
}

/// A fit that takes seconds, from the table to the device file.
#[test]
fn a_small_fit_gives_a_device_file_and_the_same_one_again() {
    let lab = lab(LEVELS);
    let arguments = [
        "fit",
        "t.csv",
        "--capacity",
        "160GB",
        "--threads",
        "16",
        "--block",
        "64KiB",
        "--fix",
        "policy=greedy",
    ];
    let once = lab.ok(&[&arguments[..], &["-o", "d.toml"]].concat());
    assert_says(&once, &["raw capacity", "us a unit"]);
    let file = lab.read("d.toml");
    let (code, out, err) = told(&lab.run(&[&arguments[..], &["-o", "d.toml"]].concat()));
    assert_eq!((code, out), (Some(0), once), "{err}");
    assert_eq!(lab.read("d.toml"), file);
    lab.ok(&["devices", "show", "./d.toml"]);
}
