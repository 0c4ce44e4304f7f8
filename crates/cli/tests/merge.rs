//! `lowtide store merge`: the merged parts of a campaign equal the campaign that was measured in one run.

mod common;

use common::Lab;

/// Runs the tiny experiment, or a part of it, into a store.
fn run(lab: &Lab, store: &str, seed: u64, part: &str) {
    lab.ok(&format!("run ./tiny.toml --scale 1/256 --seed {seed} --store {store} {part}"));
}

#[test]
fn parts_become_the_campaign_that_one_run_gives() {
    let lab = Lab::new();
    run(&lab, "whole.db", 7, "");
    run(&lab, "1.db", 7, "--part 1/2");
    run(&lab, "2.db", 7, "--part 2/2");
    assert_ne!(lab.exports("1.db"), lab.exports("whole.db"), "a part is not the whole");
    lab.prints("store merge 1.db 2.db -o all.db", &["2 of 2"]);
    assert_eq!(lab.exports("all.db"), lab.exports("whole.db"), "seed 7");
    let listed = lab.ok("store show --store all.db");
    assert_eq!(listed.lines().count(), 3, "one campaign below a heading of two lines");
}

#[test]
fn merging_again_adds_nothing_and_other_campaigns_stay_apart() {
    let lab = Lab::new();
    run(&lab, "7.db", 7, "");
    run(&lab, "8.db", 8, "");
    run(&lab, "part.db", 7, "--part 2/2");
    lab.ok("store merge 7.db 8.db -o all.db");
    let before = lab.ok("store show --store all.db");
    let text = lab.ok("store merge 8.db part.db 7.db -o all.db");
    assert!(text.matches("+0 cells").count() == 3, "{text}");
    assert_eq!(lab.ok("store show --store all.db"), before);
    assert_eq!(before.lines().count(), 4, "two campaigns below a head:\n{before}");
    // A resume in the merged store has nothing to do.
    run(&lab, "all.db", 8, "--resume");
    assert_eq!(lab.ok("store show --store all.db"), before);
}

/// Two measurements of the same plan in wall time give different numbers.
#[test]
fn campaigns_with_different_numbers_stay_apart() {
    let lab = Lab::new();
    lab.write(
        "host.toml",
        "name = \"host\"\ntitle = \"h\"\n[target]\ndirectory = \".\"\n[workload]\npattern = \"random-write\"\n\
         block = \"4KiB\"\nfile_size = \"4MiB\"\nduration = \"1s\"\ninterval = \"100ms\"\n",
    );
    lab.ok("run ./host.toml --store a.db");
    lab.ok("run ./host.toml --store b.db");
    let text = lab.ok("store merge a.db b.db -o all.db");
    assert_eq!(text.matches("new").count(), 2, "{text}");
}

#[test]
fn a_refused_merge_leaves_nothing() {
    let lab = Lab::new();
    run(&lab, "a.db", 7, "");
    lab.refuses("store merge a.db missing.db -o all.db", 2, &["there is no store missing.db"]);
    assert!(!lab.path("all.db").exists());
    std::fs::hard_link(lab.path("a.db"), lab.path("hard.db")).expect("a link can be made");
    std::os::unix::fs::symlink("a.db", lab.path("link.db")).expect("a link can be made");
    for output in ["a.db", "hard.db", "link.db"] {
        lab.refuses(&format!("store merge a.db -o {output}"), 2, &["cannot be merged into itself"]);
    }
    lab.refuses("run ./tiny.toml --part 3/2", 2, &["K from 1 to N"]);
}
