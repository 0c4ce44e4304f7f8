//! Exit codes of a measured campaign: 4 without the required steady state, 5 for a regression.

mod common;

use common::{Lab, assert_says};

#[test]
fn a_required_steady_state_that_is_missing_is_code_4() {
    let lab = Lab::new();
    let (answer, _) = lab.ends("run ./tiny.toml --scale 1/256 --require-steady", 4);
    assert_says(&answer, &["No steady state in any of the 2 cells."]);
    lab.ends("run ./reads.toml --scale 1/256 --require-steady", 0);
    lab.ends("run ./tiny.toml --scale 1/256", 0);
}

#[test]
fn a_regression_is_code_5() {
    let lab = Lab::new();
    lab.ok("run ./reads.toml --scale 1/256");
    lab.ok("run ./reads.toml --scale 1/256 --set threads=1 --store slow.db");
    lab.ok("run ./reads.toml --scale 1/256 --seed 2");
    for (arguments, code) in [
        ("1 slow.db:1 --fail-below 5%", 5),
        ("1 slow.db:1 --fail-below 5", 5),
        ("1 slow.db:1 --fail-below 90%", 0),
        ("1 2 --fail-below 5%", 0),
        ("slow.db:1 1 --fail-below 5%", 0),
        ("1 2 slow.db:1 --fail-below 5%", 5),
        ("1 slow.db:1", 0),
    ] {
        lab.ends(&format!("compare {arguments}"), code);
    }
    for limit in ["nan", "-5%", "100%", "x"] {
        lab.refuses(&format!("compare 1 2 --fail-below={limit}"), 2, &["write a share such as `5%`"]);
    }
}

#[test]
fn a_missing_or_unknown_verb_is_code_2() {
    let lab = Lab::new();
    let (_, error) = lab.ends("", 2);
    assert_says(&error, &["Usage: lowtide"]);
    lab.refuses("rnu", 2, &["unrecognized subcommand 'rnu'", "Usage: lowtide"]);
}
