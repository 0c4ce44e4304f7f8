//! `lowtide validate`: what it prints last, that it leaves nothing behind, and what it refuses.

mod common;

use common::{Lab, assert_says};

/// The study of a single disk array, small enough for a test.
const ONE: [&str; 4] = ["validate", "raid10-random-write", "--scale", "1/16"];

#[test]
fn json_ends_with_a_summary_and_nothing_is_left_behind() {
    let lab = Lab::new();
    let before = lab.names();
    let out = lab.ok(&[&ONE[..], &["--format", "json"]].concat());
    let lines: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    let summary = lines.last().expect("there are lines");
    assert_eq!(summary["kind"], "summary");
    assert_eq!(summary["predicted_count"], 1, "{summary}");
    for key in ["predicted_median_abs_error_pct", "predicted_p90_abs_error_pct", "wall_s"] {
        assert!(summary[key].is_number(), "{key}: {summary}");
    }
    for key in ["fitted_count", "claims_passed", "claims_failed"] {
        assert_eq!(summary[key], 0, "{key}");
    }
    assert!(lines[0]["model"].is_number() && lines[0]["published"] == 23.0, "{}", lines[0]);
    assert_eq!(lab.names(), before);
}

#[test]
fn a_report_and_the_numbers_can_be_kept() {
    let lab = Lab::new();
    let out = lab.ok(&[&ONE[..], &["--report", "near.html", "--keep", "numbers"]].concat());
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    assert!(lab.read("near.html").contains("Published numbers and the models"));
    assert!(lab.path("numbers/raid10-random-write.db").exists());
    // A store that is there is not added to.
    let error = lab.refuses(&[&ONE[..], &["--keep", "numbers"]].concat(), 2);
    assert_says(&error, &["numbers/raid10-random-write.db", "empty directory"]);
}

#[test]
fn an_unknown_study_is_refused_with_those_there_are() {
    let lab = Lab::new();
    assert_says(&lab.refuses(&["validate", "e99"], 2), &["e99", "e06", "x25-e-overeating"]);
    let told = lab.refuses(&["validate", "dbt2-mtron"], 2);
    assert_says(&told, &["dbt2-mtron", "real database servers", "at most", "--real-servers"]);
}
