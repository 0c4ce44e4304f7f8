//! The exit codes of a campaign that was measured: 4 without a steady state that was demanded, 5 for a regression.

mod common;

use common::{Lab, SCALE, assert_says};

#[test]
fn a_steady_state_that_is_demanded_and_missing_is_code_4() {
    let lab = Lab::new();
    let [scale, share] = SCALE;
    let (answer, _) = lab.ends(&["run", "./tiny.toml", scale, share, "--require-steady"], 4);
    assert_says(&answer, &["No steady state in any of the 2 cells."]);
    lab.ends(&["run", "./reads.toml", scale, share, "--require-steady"], 0);
    lab.ends(&["run", "./tiny.toml", scale, share], 0);
}

#[test]
fn a_regression_is_code_5() {
    let lab = Lab::new();
    let [scale, share] = SCALE;
    lab.ok(&["run", "./reads.toml", scale, share]);
    lab.ok(&["run", "./reads.toml", scale, share, "--set", "threads=1", "--store", "slow.db"]);
    lab.ok(&["run", "./reads.toml", scale, share, "--seed", "2"]);
    let compare = |other: &str, limit: &str, code| {
        lab.ends(&["compare", "1", other, "--fail-below", limit], code);
    };
    compare("slow.db:1", "5%", 5);
    compare("slow.db:1", "5", 5);
    compare("slow.db:1", "90%", 0);
    compare("2", "5%", 0);
    lab.ends(&["compare", "slow.db:1", "1", "--fail-below", "5%"], 0);
    lab.ends(&["compare", "1", "2", "slow.db:1", "--fail-below", "5%"], 5);
    lab.ends(&["compare", "1", "slow.db:1"], 0);
    for limit in ["nan", "-5%", "100%", "x"] {
        let limit = format!("--fail-below={limit}");
        assert_says(&lab.refuses(&["compare", "1", "2", &limit], 2), &["write a share such as `5%`"]);
    }
}

#[test]
fn nothing_to_do_prints_help_and_is_code_2() {
    let lab = Lab::new();
    let (_, error) = lab.ends(&[], 2);
    assert_says(&error, &["Usage: lowtide"]);
    assert_says(&lab.refuses(&["rnu"], 2), &["unrecognized subcommand 'rnu'", "Usage: lowtide"]);
}
