//! Parts of a campaign, measured apart, are the campaign that was measured in one go.

mod common;

use common::{Lab, SCALE};

/// The tiny experiment, or a part of it, in a store.
fn run(lab: &Lab, store: &str, seed: &str, part: Option<&str>) {
    let [scale, share] = SCALE;
    let part = part.map(|part| ["--part", part]);
    let words = ["run", "./tiny.toml", scale, share, "--seed", seed, "--store", store];
    let all: Vec<&str> = words.into_iter().chain(part.into_iter().flatten()).collect();
    lab.ok(&all);
}

#[test]
fn parts_become_the_campaign_that_one_run_gives() {
    let lab = Lab::new();
    run(&lab, "whole.db", "7", None);
    run(&lab, "1.db", "7", Some("1/2"));
    run(&lab, "2.db", "7", Some("2/2"));
    assert_ne!(lab.exports("1.db"), lab.exports("whole.db"), "a part is not the whole");
    let said = lab.ok(&["store", "merge", "1.db", "2.db", "-o", "all.db"]);
    assert!(said.contains("2 of 2"), "{said}");
    assert_eq!(lab.exports("all.db"), lab.exports("whole.db"), "seed 7");
    assert_eq!(
        lab.ok(&["store", "show", "--store", "all.db"]).lines().count(),
        3,
        "one campaign below a head of two lines"
    );
}

#[test]
fn merging_again_adds_nothing_and_other_campaigns_stay_apart() {
    let lab = Lab::new();
    run(&lab, "7.db", "7", None);
    run(&lab, "8.db", "8", None);
    run(&lab, "part.db", "7", Some("2/2"));
    lab.ok(&["store", "merge", "7.db", "8.db", "-o", "all.db"]);
    let before = lab.ok(&["store", "show", "--store", "all.db"]);
    let said = lab.ok(&["store", "merge", "8.db", "part.db", "7.db", "-o", "all.db"]);
    assert!(said.matches("+0 cells").count() == 3, "{said}");
    assert_eq!(lab.ok(&["store", "show", "--store", "all.db"]), before);
    assert_eq!(before.lines().count(), 4, "two campaigns below a head:\n{before}");
    // A part that resumes in the merged store has nothing left to do.
    let [scale, share] = SCALE;
    lab.ok(&["run", "./tiny.toml", scale, share, "--seed", "8", "--store", "all.db", "--resume"]);
    assert_eq!(lab.ok(&["store", "show", "--store", "all.db"]), before);
}

/// Wall time: the same plan measured twice is two measurements.
#[test]
fn what_was_measured_twice_with_other_numbers_stays_two_campaigns() {
    let lab = Lab::new();
    lab.write(
        "host.toml",
        "name = \"host\"\ntitle = \"h\"\n[target]\ndirectory = \".\"\n[workload]\npattern = \"random-write\"\n\
         block = \"4KiB\"\nfile_size = \"4MiB\"\nduration = \"1s\"\ninterval = \"100ms\"\n",
    );
    lab.ok(&["run", "./host.toml", "--store", "a.db"]);
    lab.ok(&["run", "./host.toml", "--store", "b.db"]);
    let said = lab.ok(&["store", "merge", "a.db", "b.db", "-o", "all.db"]);
    assert_eq!(said.matches("new").count(), 2, "{said}");
}

#[test]
fn what_cannot_be_merged_is_refused_and_leaves_nothing() {
    let lab = Lab::new();
    run(&lab, "a.db", "7", None);
    let error = lab.refuses(&["store", "merge", "a.db", "missing.db", "-o", "all.db"], 2);
    assert!(error.contains("there is no store missing.db"), "{error}");
    assert!(!lab.path("all.db").exists());
    std::fs::hard_link(lab.path("a.db"), lab.path("hard.db")).expect("a link can be made");
    std::os::unix::fs::symlink("a.db", lab.path("link.db")).expect("a link can be made");
    for output in ["a.db", "hard.db", "link.db"] {
        let error = lab.refuses(&["store", "merge", "a.db", "-o", output], 2);
        assert!(error.contains("cannot be merged into itself"), "{error}");
    }
    let error = lab.refuses(&["run", "./tiny.toml", "--part", "3/2"], 2);
    assert!(error.contains("K from 1 to N"), "{error}");
}
