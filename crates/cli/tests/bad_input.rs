//! Input that cannot be used: the error says where it is, what it is, and what is accepted; nothing is left behind.

mod common;

use common::{Lab, SCALE, TINY, assert_says};

/// Runs the tiny experiment with one text in it replaced; it is refused at a line and column of the file.
fn refused_at(from: &str, to: &str, place: &str, says: &[&str]) {
    let lab = Lab::new();
    assert!(TINY.contains(from), "{from}");
    lab.write("bad.toml", TINY.replacen(from, to, 1));
    let [scale, share] = SCALE;
    let error = lab.refuses(&["run", "./bad.toml", scale, share], 2);
    assert_says(&error, &[&format!("./bad.toml:{place}]"), to.lines().next().unwrap_or_default()]);
    assert_says(&error, says);
    assert_eq!(lab.refuses(&["plan", "./bad.toml", scale, share], 2), error, "`plan` says the same");
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
fn numbers_that_are_none_are_refused() {
    refused_at("duration =", "threads = nan\nduration =", "14:11", &["`threads` takes a whole number"]);
    refused_at("duration =", "rate = inf\nduration =", "14:8", &["`rate`: not a finite number"]);
    refused_at("duration =", "threads = 1000000\nduration =", "14:11", &["a whole number from 1 to 65536"]);
    refused_at("40min", "99999999999h", "14:12", &["too large for 64 bits"]);
    refused_at("60GiB", "99999999999999999999GiB", "18:23", &["too large for 64 bits"]);
    refused_at("60GiB", "16383PiB", "18:23", &["do not fit on intel-320-160gb"]);
}

#[test]
fn an_unknown_device_is_named_with_the_nearest() {
    let nearest = "unknown device `intel-32-160gb`: did you mean `intel-320-160gb`?";
    refused_at("intel-320-160gb", "intel-32-160gb", "5:10", &[nearest, "devices: "]);
    let lab = Lab::new();
    assert_says(&lab.refuses(&["devices", "show", "intel-32-160gb"], 2), &[nearest]);
}

#[test]
fn everything_wrong_is_told_at_once() {
    let lab = Lab::new();
    lab.write("bad.toml", TINY.replace("1min", "0s").replace("16KiB", "7B").replace("purge", "prug"));
    let error = lab.refuses(&["run", "./bad.toml"], 2);
    assert_says(
        &error,
        &["unknown key `prug`", "`block`: 7B is not a multiple", "`interval`: no time at all"],
    );
    assert!(!error.contains("Error:"), "each problem looks like the first:\n{error}");
}

#[test]
fn an_unknown_experiment_is_named_with_the_nearest() {
    let lab = Lab::new();
    let unknown = "unknown experiment `intel-320-randm-write`: did you mean `intel-320-random-write`?";
    for verb in [&["run"][..], &["plan"], &["experiments", "show"]] {
        let error = lab.refuses(&[verb, &["intel-320-randm-write"]].concat(), 2);
        assert_says(&error, &[unknown, "or the path of your own file"]);
    }
    assert_says(&lab.refuses(&["run", "./none.toml"], 2), &["cannot read the experiment `./none.toml`"]);
    assert_says(&lab.refuses(&["run", "."], 2), &["unknown experiment `.`"]);
    assert_says(&lab.refuses(&["run", "./"], 2), &["cannot read the experiment `./`", "Is a directory"]);
    lab.write("empty.toml", "");
    assert_says(&lab.refuses(&["run", "./empty.toml"], 2), &["`name` is missing", "`target` is missing"]);
    lab.write("binary.toml", [0xff, 0xfe, 0]);
    assert_says(&lab.refuses(&["run", "./binary.toml"], 2), &["cannot read the experiment `./binary.toml`"]);
}

#[test]
fn an_unknown_set_is_named_with_the_nearest() {
    let lab = Lab::new();
    let error = lab.refuses(&["run", "./tiny.toml", "--set", "thread=4"], 2);
    assert_says(
        &error,
        &["--set thread=4", "unknown key `thread`: did you mean `threads`?", "workload.threads"],
    );
    let error = lab.refuses(&["run", "./tiny.toml", "--set", "threads"], 2);
    assert_says(&error, &["an override without `=`", "such as `threads=4`"]);
}

#[test]
fn a_bad_target_says_what_is_accepted() {
    let lab = Lab::new();
    for target in ["disk:/x", "device:", "dir:", ""] {
        let error = lab.refuses(&["run", "./tiny.toml", "--target", target], 2);
        assert_says(&error, &["device:NAME, file:PATH, dir:PATH or block:PATH"]);
    }
    let error = lab.refuses(&["run", "./tiny.toml", "--target", "intel-32-160gb"], 2);
    assert_says(&error, &["did you mean `intel-320-160gb`?"]);
    let error = lab.refuses(&["run", "./tiny.toml", "--target", "dir:none"], 2);
    assert_says(&error, &["none", "No such file or directory"]);
    let error = lab.refuses(&["run", "./tiny.toml", "--target", "dir:tiny.toml"], 2);
    assert_says(&error, &["tiny.toml is a file, but a directory is wanted here"]);
}

#[test]
fn a_bad_scale_or_number_of_jobs_says_what_is_accepted() {
    let lab = Lab::new();
    for scale in ["0", "1/0", "-1", "1.5", "1/x", "99999999999999999999"] {
        let scale = format!("--scale={scale}");
        assert_says(&lab.refuses(&["run", "./tiny.toml", &scale], 2), &["write a share such as `1/8`"]);
    }
    let error = lab.refuses(&["run", "./tiny.toml", "--scale", "1/1000000"], 2);
    assert_says(&error, &["use a larger share"]);
    assert_says(&lab.refuses(&["run", "./tiny.toml", "--jobs", "0"], 2), &["0 is not in 1..=65535"]);
}

#[test]
fn a_store_that_cannot_be_one_is_left_alone() {
    let lab = Lab::new();
    let [scale, share] = SCALE;
    std::fs::create_dir(lab.path("directory")).expect("a directory can be made");
    lab.write("text", "hello\n");
    lab.write("empty", "");
    let other = rusqlite::Connection::open(lab.path("other.db")).expect("a database can be made");
    other.execute_batch("CREATE TABLE precious (a); INSERT INTO precious VALUES (1);").expect("and written");
    drop(other);
    let content = std::fs::read(lab.path("other.db")).expect("the database is there");
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
        assert_says(&lab.refuses(&["run", "./tiny.toml", scale, share, "--store", store], 2), &[says]);
        if !store.contains("/x") {
            assert_says(&lab.refuses(&["store", "show", "--store", store], 2), &[says]);
        }
    }
    assert_says(&lab.refuses(&["store", "show", "--store", "empty"], 2), &["it is empty"]);
    assert_says(&lab.refuses(&["store", "show", "--store", "none.db"], 2), &["there is no store none.db"]);
    assert_eq!(lab.read("text"), "hello\n");
    assert_eq!(lab.read("empty"), "");
    assert!(content == std::fs::read(lab.path("other.db")).expect("the database is there"));
}

#[test]
fn a_report_that_cannot_be_one_is_refused_before_anything_is_measured() {
    let lab = Lab::new();
    let [scale, share] = SCALE;
    std::fs::create_dir(lab.path("directory")).expect("a directory can be made");
    let run = ["run", "./tiny.toml", scale, share, "--report"];
    for (report, says) in [
        ("directory", "directory is a directory, but the report is a file"),
        ("none/report.html", "there is no directory for the report none/report.html"),
        ("tiny.toml/report.html", "there is no directory for the report tiny.toml/report.html"),
    ] {
        assert_says(&lab.refuses(&[&run[..], &[report]].concat(), 2), &[says]);
    }
}

#[test]
fn an_unknown_campaign_is_named_with_the_nearest() {
    let lab = Lab::new();
    let [scale, share] = SCALE;
    lab.ok(&["run", "./tiny.toml", scale, share]);
    for verb in [&["store", "show"][..], &["report"], &["store", "export"], &["compare"]] {
        let refused = |campaign: &[&str]| lab.refuses(&[verb, campaign].concat(), 2);
        let error = refused(&["tiyn"]);
        assert_says(&error, &["the store lowtide.db has no campaign `tiyn`; did you mean `tiny`?"]);
        assert_says(&refused(&["2"]), &["no campaign `2`", "`lowtide store show` lists"]);
        assert_says(&refused(&["--", "-1"]), &["no campaign `-1`"]);
    }
    assert_says(&lab.refuses(&["compare", "1"], 2), &["one campaign is nothing to compare", "`--factor`"]);
    let error = lab.refuses(&["compare", "1", "--factor", "threads"], 2);
    assert_says(&error, &["no two values of `threads` to compare; factors that vary: file_size"]);
    let error = lab.refuses(&["compare", "1", "1", "--factor", "file_size"], 2);
    assert_says(&error, &["`--factor` compares inside one campaign"]);
}

#[test]
fn what_is_no_block_device_is_refused_with_the_reason() {
    let lab = Lab::new();
    for (path, reason) in [
        ("/dev/null", "/dev/null is not a block device, but a block device is wanted here"),
        ("/dev/x", "cannot inspect /dev/x: No such file or directory"),
        ("/tmp", "/tmp is a directory, but a block device is wanted here"),
    ] {
        let error = lab.refuses(&["run", "./tiny.toml", "--target", &format!("block:{path}")], 2);
        assert_says(&error, &[reason, "such as `/dev/disk/by-id/"]);
    }
    let error = lab.refuses(&["run", "./tiny.toml", "--target", "file:/dev/null"], 2);
    assert_says(&error, &["/dev/null is a character device"]);
}

#[test]
fn a_file_that_lowtide_did_not_make_stays_as_it_is() {
    let lab = Lab::new();
    lab.write("precious", "do not touch\n");
    std::os::unix::fs::symlink("precious", lab.path("link")).expect("a link can be made");
    for target in ["file:precious", "file:./link"] {
        let error = lab.refuses(&["run", "./tiny.toml", "--scale", "1/65536", "--target", target], 3);
        assert_says(&error, &["exists and was not made by lowtide, so it is not overwritten"]);
    }
    assert_eq!(lab.read("precious"), "do not touch\n");
}
