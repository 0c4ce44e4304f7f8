//! `lowtide validate`: its summary, its files, and its refusals.

mod common;

use common::{Lab, json};

/// The study of one disk array.
const ONE: &str = "validate raid10-random-write --scale 1/16";

#[test]
fn json_ends_with_a_summary_and_nothing_is_left_behind() {
    let lab = Lab::new();
    let before = lab.names();
    let out = lab.ok(&format!("{ONE} --format json"));
    let lines: Vec<_> = out.lines().map(json).collect();
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
    let out = lab.ok(&format!("{ONE} --report near.html --keep numbers"));
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    assert!(lab.read("near.html").contains("Published numbers and the models"));
    assert!(lab.path("numbers/raid10-random-write.db").exists());
    // No campaign is added to an existing store.
    let says = ["numbers/raid10-random-write.db", "empty directory"];
    lab.refuses(&format!("{ONE} --keep numbers"), 2, &says);
}

#[test]
fn an_unknown_study_is_refused_with_those_there_are() {
    let lab = Lab::new();
    lab.refuses("validate e99", 2, &["e99", "e06", "x25-e-overeating"]);
    lab.refuses(
        "validate dbt2-mtron",
        2,
        &["dbt2-mtron", "real database servers", "at most", "--real-servers"],
    );
}
