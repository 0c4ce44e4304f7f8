//! `lowtide advise`: the chosen device meets the rate in the experiment that is written, rejected devices have
//! reasons, and contradictory questions are refused.

mod common;

use common::{Lab, assert_says};

/// Runs a written experiment by the command in its first lines; returns the settled level of its only cell and the
/// half-width of the interval.
fn run_again(lab: &Lab, experiment: &str, column: &str) -> (f64, f64) {
    let command = experiment.lines().find_map(|line| line.split_once("figures again: lowtide "));
    let answer = lab.json(command.expect("a command").1);
    let row = &answer["tables"]["cells"]["rows"][0];
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {answer}"));
    (number(column), number(&format!("{column}_half_width")))
}

/// A question about two small drives.
fn writes(data: &str, rate: &str, years: u32, more: &str) -> String {
    format!(
        "advise --data {data} --writes {rate} --years {years} --device intel-320-160gb,intel-x25-e-32gb --scale 1/64 {more}"
    )
}

#[test]
fn the_choice_meets_the_rate_when_its_experiment_is_run() {
    let lab = Lab::new();
    let question = writes("100GB", "8MB/s", 1, "--price intel-320-160gb=299 -o check.toml");
    let table = lab.ok(&question);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert_says(
        &table,
        &["intel-320-160gb", "Checked with seed 2", "Too small: intel-x25-e-32gb (32 GB)", "modelled"],
    );
    let first = lab.read("check.toml");
    let answer = lab.json(&question);
    assert_eq!(lab.read("check.toml"), first, "the same question gets the same answer");
    let row = &answer["tables"]["candidates"]["rows"][0];
    assert_eq!((&row["device"], &row["chosen"]), (&"intel-320-160gb".into(), &true.into()), "{answer}");
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
    let asked = 8e6 / f64::from(1 << 20);
    assert!(number("level_mib_per_s_low") >= asked && number("years") >= 1.0, "{row}");
    assert!(number("fill_most") >= number("fill") && number("fill_most") <= 1.0, "{row}");
    // 299 dollars per year, for a year of writes at 8 MB/s.
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
    let csv = lab.ok(&format!("{question} --format csv"));
    assert_eq!(csv.lines().count(), 3, "a heading and two candidates: {csv}");
}

#[test]
fn a_database_gets_enough_memory_for_its_rate() {
    let lab = Lab::new();
    let answer = lab.json(
        "advise --data 1GB --tpmc 1500 --terminals 4 --scale 1/4 -o check.toml \
         --device raid10-8x-sas-15k-73gb,sata-7k2-1tb --price sata-7k2-1tb=100",
    );
    let rows = answer["tables"]["candidates"]["rows"].as_array().expect("rows");
    let chosen = rows.iter().find(|row| row["chosen"] == true).unwrap_or_else(|| panic!("{answer}"));
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
fn if_no_device_meets_the_rate_the_nearest_is_named() {
    let lab = Lab::new();
    let (slow, err) = lab.ends(&writes("100GB", "2GB/s", 1, "-o check.toml"), 1);
    assert_says(
        &slow,
        &["Nothing that comes into question", "What comes nearest is intel-320-160gb", "of 1907 MiB/s"],
    );
    assert_says(&err, &["no device is chosen, so check.toml is not written"]);
    assert!(!lab.path("check.toml").exists());
    for (question, says) in [
        (writes("100GB", "8MB/s", 50, ""), "of 50 years"),
        (writes("100GB", "8MB/s", 1, "--price intel-320-160gb=299 --budget 200"), "299 of 200 dollars"),
        (writes("2TB", "8MB/s", 1, ""), "None holds 2 TB: the largest, intel-320-160gb, holds 160 GB"),
    ] {
        assert_says(&lab.ends(&question, 1).0, &[says]);
    }
}

#[test]
fn contradictory_questions_are_refused() {
    let lab = Lab::new();
    let writes = "--data 100GB --writes 20MB/s";
    for (arguments, says) in [
        ("--data 100GB".to_owned(), &["--writes", "--requests", "--tpmc"][..]),
        (format!("{writes} --tpmc 100"), &["cannot be used with"]),
        (format!("{writes} --device intel-320-160g"), &["did you mean `intel-320-160gb`?"]),
        (format!("{writes} --price intel-320=3"), &["`intel-320`, which is no candidate"]),
        (format!("{writes} --working-set 200GB"), &["a working set of 200GB is more than the 100GB of data"]),
        (format!("{writes} --reads 70%"), &["--reads needs --requests"]),
        (format!("{writes} --cores 4"), &["--cores needs --tpmc"]),
        (format!("{writes} --price mtron-32gb=3 --price mtron-32gb=4"), &["two prices for mtron-32gb"]),
        ("--tpmc 1000 --data 10GB --working-set 1GB".to_owned(), &["follows from its warehouses"]),
        ("--tpmc 1000 --data 10GB --block 4KiB".to_owned(), &["cannot be used with"]),
        ("--tpmc 1000 --data 50MB".to_owned(), &["less than a warehouse"]),
        ("--data 100GB --writes 0.5DWPD".to_owned(), &["--writes takes no drive writes per day"]),
        ("--data 100GB --requests 100/s --reads 100%".to_owned(), &["a load of reads alone"]),
        ("--data 100GB --requests 100/s --block 1000B --device intel-320-160gb".to_owned(), &["512"]),
        ("--data 1MB --writes 20MB/s".to_owned(), &["fewer than 4096 requests"]),
        (format!("{writes} --output absent/check.toml"), &["there is no directory"]),
    ] {
        lab.refuses(&format!("advise {arguments}"), 2, says);
    }
}
