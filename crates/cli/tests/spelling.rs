//! Verbs without their group, as older versions had them, and mistyped verbs.
//!
//! Unit tests of `args::spelling` cover the rules.

mod common;

use common::{Lab, decoded};

#[test]
fn the_old_spelling_does_the_same() {
    let lab = Lab::new();
    lab.ok("run ./tiny.toml --scale 1/256");
    for (old, new) in [
        ("show", "store show"),
        ("show 1 --format csv", "store show 1 --format csv"),
        ("show 9", "store show 9"),
        ("export", "store export"),
        ("baseline list", "store baseline list"),
        ("stat no.sock", "drive stat no.sock"),
        ("powercut no.sock", "drive powercut no.sock"),
        ("power-on", "drive power-on"),
        ("record --help", "drive record --help"),
        ("help serve", "help drive serve"),
    ] {
        assert_eq!(decoded(&lab.run(old)), decoded(&lab.run(new)), "{old}");
    }
}

#[test]
fn no_help_and_no_completion_has_the_old_spelling() {
    let lab = Lab::new();
    let help = lab.ok("--help");
    for verb in ["serve", "power-on", "merge", "export"] {
        assert!(!help.contains(&format!("  {verb} ")), "{help}");
    }
    let script = lab.ok("completions bash");
    let top = script.lines().find(|line| line.contains("opts=\"") && line.contains(" validate "));
    let top = top.expect("the verbs at the top level");
    assert!(top.contains(" drive ") && !top.contains(" power-on ") && !top.contains(" merge "), "{top}");
}

#[test]
fn a_mistyped_verb_is_named_across_groups() {
    let lab = Lab::new();
    for (wrong, right) in [
        ("pwoer-on x", "a similar subcommand exists: 'lowtide drive power-on'"),
        ("drive mrege a.db", "a similar subcommand exists: 'lowtide store merge'"),
        ("rnu", "a similar subcommand exists: 'lowtide run'"),
    ] {
        lab.refuses(wrong, 2, &["unrecognized subcommand", right]);
    }
}
