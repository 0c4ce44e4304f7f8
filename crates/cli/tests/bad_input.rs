//! Invalid input: the error names the position, the value and the accepted values; no file is left behind.

mod common;

use common::{Lab, TINY, assert_says};

/// Runs the tiny experiment with `from` replaced by `to`; it is refused at a line and column of the file.
fn refused_at(from: &str, to: &str, position: &str, says: &[&str]) {
    assert!(TINY.contains(from), "{from}");
    let lab = Lab::with(&[("bad.toml", &TINY.replacen(from, to, 1))]);
    let error = lab.refuses("run ./bad.toml --scale 1/256", 2, &[]);
    assert_says(&error, &[&format!("./bad.toml:{position}]"), to.lines().next().unwrap_or_default()]);
    assert_says(&error, says);
    assert_eq!(lab.refuses("plan ./bad.toml --scale 1/256", 2, &[]), error, "`plan` says the same");
}

#[test]
fn an_unknown_key_is_named_with_the_nearest() {
    refused_at(
        "interval = ",
        "intervall = ",
        "15:1",
        &["unknown key `intervall`: did you mean `interval`?", "valid keys of [workload]: pattern, mix"],
    );
}

#[test]
fn a_wrong_unit_is_named_with_the_right_ones() {
    refused_at(
        "16KiB",
        "16Kg",
        "13:9",
        &["`16Kg` is not a size", "unknown unit `Kg`", "did you mean `16kB`?"],
    );
    refused_at("40min", "40moons", "14:12", &["`40moons` is not a span of time"]);
}

#[test]
fn data_larger_than_the_drive_is_marked_with_what_fits() {
    let says = ["600GiB of data do not fit on intel-320-160gb", "up to 149GiB fit"];
    refused_at("60GiB", "600GiB", "18:23", &says);
}

#[test]
fn an_interval_of_no_time_is_refused() {
    refused_at("1min", "0s", "15:12", &["`interval`: no time at all", "a span of time above 0"]);
}

#[test]
fn numbers_out_of_range_are_refused() {
    for (from, to, position, says) in [
        ("duration =", "threads = nan\nduration =", "14:11", "`threads` takes a whole number"),
        ("duration =", "rate = inf\nduration =", "14:8", "`rate`: not a finite number"),
        ("duration =", "threads = 1000000\nduration =", "14:11", "a whole number from 1 to 65536"),
        ("40min", "99999999999h", "14:12", "too large for 64 bits"),
        ("60GiB", "99999999999999999999GiB", "18:23", "too large for 64 bits"),
        ("60GiB", "16383PiB", "18:23", "do not fit on intel-320-160gb"),
    ] {
        refused_at(from, to, position, &[says]);
    }
}

#[test]
fn an_unknown_device_is_named_with_the_nearest() {
    let nearest = "unknown device `intel-32-160gb`: did you mean `intel-320-160gb`?";
    refused_at("intel-320-160gb", "intel-32-160gb", "5:10", &[nearest, "devices: "]);
    let lab = Lab::new();
    lab.refuses("devices show intel-32-160gb", 2, &[nearest]);
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let lab = Lab::new();
    lab.write("bad.toml", TINY.replace("1min", "0s").replace("16KiB", "7B").replace("purge", "prug"));
    let says = ["unknown key `prug`", "`block`: 7B is not a multiple", "`interval`: no time at all"];
    let error = lab.refuses("run ./bad.toml", 2, &says);
    assert!(!error.contains("Error:"), "each problem looks like the first:\n{error}");
}

#[test]
fn an_unknown_experiment_is_named_with_the_nearest() {
    let lab = Lab::new();
    let unknown = "unknown experiment `intel-320-randm-write`: did you mean `intel-320-random-write`?";
    for verb in ["run", "plan", "experiments show"] {
        let says = [unknown, "or the path of your own file"];
        lab.refuses(&format!("{verb} intel-320-randm-write"), 2, &says);
    }
    lab.refuses("run ./none.toml", 2, &["cannot read the experiment `./none.toml`"]);
    lab.refuses("run .", 2, &["unknown experiment `.`"]);
    lab.refuses("run ./", 2, &["cannot read the experiment `./`", "Is a directory"]);
    lab.write("empty.toml", "");
    lab.refuses("run ./empty.toml", 2, &["`name` is missing", "`target` is missing"]);
    lab.write("binary.toml", [0xff, 0xfe, 0]);
    lab.refuses("run ./binary.toml", 2, &["cannot read the experiment `./binary.toml`"]);
}

#[test]
fn an_unknown_set_is_named_with_the_nearest() {
    let lab = Lab::new();
    let says = ["--set thread=4", "unknown key `thread`: did you mean `threads`?", "workload.threads"];
    lab.refuses("run ./tiny.toml --set thread=4", 2, &says);
    lab.refuses("run ./tiny.toml --set threads", 2, &["an override without `=`", "such as `threads=4`"]);
}

#[test]
fn a_bad_target_says_what_is_accepted() {
    let lab = Lab::new();
    for target in ["disk:/x", "device:", "dir:", ""] {
        let accepted = "device:NAME, file:PATH, dir:PATH or block:PATH";
        lab.refuses(&["run", "./tiny.toml", "--target", target], 2, &[accepted]);
    }
    lab.refuses("run ./tiny.toml --target intel-32-160gb", 2, &["did you mean `intel-320-160gb`?"]);
    lab.refuses("run ./tiny.toml --target dir:none", 2, &["none", "No such file or directory"]);
    lab.refuses(
        "run ./tiny.toml --target dir:tiny.toml",
        2,
        &["tiny.toml is a file, but a directory is wanted here"],
    );
}

#[test]
fn a_bad_scale_or_number_of_jobs_says_what_is_accepted() {
    let lab = Lab::new();
    for scale in ["0", "1/0", "-1", "1.5", "1/x", "99999999999999999999"] {
        lab.refuses(&format!("run ./tiny.toml --scale={scale}"), 2, &["write a share such as `1/8`"]);
    }
    lab.refuses("run ./tiny.toml --scale 1/1000000", 2, &["use a larger share"]);
    lab.refuses("run ./tiny.toml --jobs 0", 2, &["0 is not in 1..=65535"]);
}

#[test]
fn a_file_that_is_no_store_is_left_alone() {
    let lab = Lab::new();
    lab.make_directory("directory");
    lab.write("text", "hello\n");
    lab.write("empty", "");
    let other = rusqlite::Connection::open(lab.path("other.db")).expect("a database can be made");
    other.execute_batch("CREATE TABLE precious (a); INSERT INTO precious VALUES (1);").expect("and written");
    drop(other);
    let content = lab.read_bytes("other.db");
    for (store, says) in [
        ("directory", "directory is not a store of this version of lowtide: it is a directory"),
        ("text", "text is not a store of this version of lowtide: it is not a database"),
        (
            "other.db",
            "other.db is not a store of this version of lowtide: it is a database of another program",
        ),
        ("/dev/null", "/dev/null is not a store of this version of lowtide: it is not a file"),
        ("none/x.db", "the store none/x.db cannot be used: it cannot be opened or created"),
        ("text/x.db", "does its directory exist, and may you write there?"),
    ] {
        lab.refuses(&format!("run ./tiny.toml --scale 1/256 --store {store}"), 2, &[says]);
        if !store.contains("/x") {
            lab.refuses(&format!("store show --store {store}"), 2, &[says]);
        }
    }
    lab.refuses("store show --store empty", 2, &["it is empty"]);
    lab.refuses("store show --store none.db", 2, &["there is no store none.db"]);
    assert_eq!(lab.read("text"), "hello\n");
    assert_eq!(lab.read("empty"), "");
    assert!(content == lab.read_bytes("other.db"));
}

#[test]
fn an_impossible_path_of_a_report_is_refused_before_anything_is_measured() {
    let lab = Lab::new();
    lab.make_directory("directory");
    for (report, says) in [
        ("directory", "directory is a directory, but the report is a file"),
        ("none/report.html", "there is no directory for the report none/report.html"),
        ("tiny.toml/report.html", "there is no directory for the report tiny.toml/report.html"),
    ] {
        lab.refuses(&format!("run ./tiny.toml --scale 1/256 --report {report}"), 2, &[says]);
    }
}

#[test]
fn an_unknown_campaign_is_named_with_the_nearest() {
    let lab = Lab::new();
    lab.ok("run ./tiny.toml --scale 1/256");
    for verb in ["store show", "report", "store export", "compare"] {
        let refused = |campaign, says: &[&str]| lab.refuses(&format!("{verb} {campaign}"), 2, says);
        refused("tiyn", &["the store lowtide.db has no campaign `tiyn`; did you mean `tiny`?"]);
        refused("2", &["no campaign `2`", "`lowtide store show` lists"]);
        refused("-- -1", &["no campaign `-1`"]);
    }
    lab.refuses("compare 1", 2, &["one campaign is nothing to compare", "`--factor`"]);
    let says = "no two values of `threads` to compare; factors that vary: file_size";
    lab.refuses("compare 1 --factor threads", 2, &[says]);
    lab.refuses("compare 1 1 --factor file_size", 2, &["`--factor` compares inside one campaign"]);
}

#[test]
fn a_path_that_is_no_block_device_is_refused_with_the_reason() {
    let lab = Lab::new();
    for (path, reason) in [
        ("/dev/null", "/dev/null is not a block device, but a block device is wanted here"),
        ("/dev/x", "cannot inspect /dev/x: No such file or directory"),
        ("/tmp", "/tmp is a directory, but a block device is wanted here"),
    ] {
        let run = format!("run ./tiny.toml --target block:{path}");
        lab.refuses(&run, 2, &[reason, "such as `/dev/disk/by-id/"]);
    }
    lab.refuses("run ./tiny.toml --target file:/dev/null", 2, &["/dev/null is a character device"]);
}

#[test]
fn a_file_that_lowtide_did_not_make_stays_as_it_is() {
    let lab = Lab::new();
    lab.write("precious", "do not touch\n");
    std::os::unix::fs::symlink("precious", lab.path("link")).expect("a link can be made");
    for target in ["file:precious", "file:./link"] {
        let run = format!("run ./tiny.toml --scale 1/65536 --target {target}");
        lab.refuses(&run, 3, &["exists and was not made by lowtide, so it is not overwritten"]);
    }
    assert_eq!(lab.read("precious"), "do not touch\n");
}
