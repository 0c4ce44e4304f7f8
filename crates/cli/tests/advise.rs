//! `lowtide advise`: a choice that meets the rate when its experiment is run, reasons against the others, and what is refused.

mod common;

use common::{Lab, assert_says};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("one JSON object")
}

/// The command that the first lines of a written experiment name, as words after `lowtide`.
fn command(experiment: &str) -> Vec<String> {
    let line = experiment.lines().find_map(|line| line.split_once("figures again: lowtide "));
    let (_, command) = line.expect("it says how it is run");
    command.split_whitespace().map(str::to_owned).collect()
}

/// The settled level of the only cell, and half its interval, of a run of a written experiment.
fn run_again(lab: &Lab, experiment: &str, column: &str) -> (f64, f64) {
    let words = command(experiment);
    let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
    arguments.extend(["--format", "json"]);
    let answer = json(&lab.ok(&arguments));
    let row = &answer["tables"]["cells"]["rows"][0];
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {answer}"));
    (number(column), number(&format!("{column}_half_width")))
}

/// A question about two small drives.
fn writes<'a>(data: &'a str, rate: &'a str, years: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let devices = "intel-320-160gb,intel-x25-e-32gb";
    let question = [
        "advise", "--data", data, "--writes", rate, "--years", years, "--device", devices, "--scale", "1/64",
    ];
    [&question[..], more].concat()
}

#[test]
fn the_choice_meets_the_rate_when_its_experiment_is_run() {
    let lab = Lab::new();
    let more = ["--price", "intel-320-160gb=299", "-o", "check.toml"];
    let ask = |more: &[&'static str]| writes("100GB", "8MB/s", "1", more);
    let (table, _) = lab.ends(&ask(&more), 0);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert_says(
        &table,
        &["intel-320-160gb", "Checked with seed 2", "Too small: intel-x25-e-32gb (32 GB)", "modelled"],
    );
    let first = lab.read("check.toml");
    let answer = json(&lab.ok(&ask(&[&more[..], &["--format", "json"]].concat())));
    assert_eq!(lab.read("check.toml"), first, "the same question gets the same answer");
    let row = &answer["tables"]["candidates"]["rows"][0];
    assert_eq!((&row["device"], &row["chosen"]), (&"intel-320-160gb".into(), &true.into()), "{answer}");
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
    let asked = 8e6 / f64::from(1 << 20);
    assert!(number("level_mib_per_s_low") >= asked && number("years") >= 1.0, "{row}");
    assert!(number("fill_most") >= number("fill") && number("fill_most") <= 1.0, "{row}");
    // 299 dollars over a year, and 8 MB/s of it.
    assert_eq!(number("usd_per_year"), 299.0 / number("years").min(1.0));
    let requests = 8e6 / 16384.0 * 86_400.0 * 365.0;
    assert!(
        (number("usd_per_million") / (number("usd_per_year") / requests * 1e6) - 1.0).abs() < 1e-9,
        "{row}"
    );
    assert_eq!(row["nand_bytes_per_day"], 8e6 * 86_400.0 * number("write_amplification"));
    let (mean, half) = run_again(&lab, &first, "settled_mib_per_s");
    assert!(mean - half >= asked, "{mean} ± {half} MiB/s of {asked}");
    assert_says(&table, &[&format!("of the size: {mean:.1} MiB/s")]);
    let csv = lab.ok(&ask(&[&more[..], &["--format", "csv"]].concat()));
    assert_eq!(csv.lines().count(), 3, "a heading and two candidates: {csv}");
}

#[test]
fn a_database_gets_memory_enough_to_meet_its_rate() {
    let lab = Lab::new();
    let ask = [
        "advise",
        "--data",
        "1GB",
        "--tpmc",
        "1500",
        "--terminals",
        "4",
        "--scale",
        "1/4",
        "--device",
        "raid10-8x-sas-15k-73gb,sata-7k2-1tb",
        "--price",
        "sata-7k2-1tb=100",
        "--format",
        "json",
        "-o",
        "check.toml",
    ];
    let (out, err) = lab.ends(&ask, 0);
    let answer = json(&out);
    let rows = answer["tables"]["candidates"]["rows"].as_array().expect("rows").clone();
    let chosen = rows.iter().find(|row| row["chosen"] == true).unwrap_or_else(|| panic!("{out}\n{err}"));
    let low = chosen["level_notpm_low"].as_f64().expect("measured");
    assert!(low >= 1500.0, "{chosen}");
    let pool = chosen["pool_bytes"].as_f64().expect("memory");
    let parts = [16.0, 8.0, 4.0, 2.0, 1.0].map(|part: f64| (1e9 / part / 1_048_576.0).floor() * 1_048_576.0);
    assert!(parts.contains(&pool), "{pool} of {parts:?}");
    assert!((chosen["memory_usd"].as_f64().expect("paid for") - pool / 1e9 * 5.0).abs() < 1e-9, "{chosen}");
    let (mean, half) = run_again(&lab, &lab.read("check.toml"), "settled_notpm");
    assert!(mean - half >= 1500.0, "{mean} ± {half}");
}

#[test]
fn where_nothing_meets_it_the_nearest_is_told() {
    let lab = Lab::new();
    let (slow, err) = lab.ends(&writes("100GB", "2GB/s", "1", &["-o", "check.toml"]), 1);
    assert_says(
        &slow,
        &["Nothing that comes into question", "What comes nearest is intel-320-160gb", "of 1907 MiB/s"],
    );
    assert_says(&err, &["nothing is chosen, so check.toml is not written"]);
    assert!(!lab.path("check.toml").exists());
    let (short, _) = lab.ends(&writes("100GB", "8MB/s", "50", &[]), 1);
    assert_says(&short, &["of 50 years"]);
    let dear = ["--price", "intel-320-160gb=299", "--budget", "200"];
    let (dear, _) = lab.ends(&writes("100GB", "8MB/s", "1", &dear), 1);
    assert_says(&dear, &["299 of 200 dollars"]);
    let (large, _) = lab.ends(&writes("2TB", "8MB/s", "1", &[]), 1);
    assert_says(&large, &["None holds 2 TB: the largest, intel-320-160gb, holds 160 GB"]);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let lab = Lab::new();
    let ask = |more: &[&str]| lab.refuses(&[&["advise"][..], more].concat(), 2);
    assert_says(&ask(&["--data", "100GB"]), &["--writes", "--requests", "--tpmc"]);
    let two = ["--data", "100GB", "--writes", "20MB/s", "--tpmc", "100"];
    assert_says(&ask(&two), &["cannot be used with"]);
    let with = |more: &[&str]| ask(&[&["--data", "100GB", "--writes", "20MB/s"][..], more].concat());
    assert_says(&with(&["--device", "intel-320-160g"]), &["did you mean `intel-320-160gb`?"]);
    assert_says(&with(&["--price", "intel-320=3"]), &["`intel-320`, which is no candidate"]);
    assert_says(
        &with(&["--working-set", "200GB"]),
        &["a working set of 200GB is more than the 100GB of data"],
    );
    assert_says(&with(&["--reads", "70%"]), &["--reads is a share of --requests"]);
    assert_says(&with(&["--cores", "4"]), &["--cores is of a database"]);
    assert_says(
        &with(&["--price", "mtron-32gb=3", "--price", "mtron-32gb=4"]),
        &["two prices for mtron-32gb"],
    );
    let tpcc = |more: &[&str]| ask(&[&["--tpmc", "1000"][..], more].concat());
    assert_says(&tpcc(&["--data", "10GB", "--working-set", "1GB"]), &["follows from its warehouses"]);
    assert_says(&tpcc(&["--data", "10GB", "--block", "4KiB"]), &["cannot be used with"]);
    assert_says(&tpcc(&["--data", "50MB"]), &["less than a warehouse"]);
    let daily = ["--data", "100GB", "--writes", "0.5DWPD"];
    assert_says(&ask(&daily), &["drive writes per day are of one drive"]);
    let reads = ["--data", "100GB", "--requests", "100/s", "--reads", "100%"];
    assert_says(&ask(&reads), &["a load of reads alone"]);
    let odd = ["--data", "100GB", "--requests", "100/s", "--block", "1000B", "--device", "intel-320-160gb"];
    assert_says(&ask(&odd), &["512"]);
    assert_says(&ask(&["--data", "1MB", "--writes", "20MB/s"]), &["fewer than 4096 requests"]);
    let absent = ["--output", "absent/check.toml"];
    assert_says(&with(&absent), &["there is no directory"]);
}
