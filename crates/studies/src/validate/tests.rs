//! Tests of comparisons and claims, with expected values computed by hand.

mod databases;

use super::*;
use lowtide_core::{Bytes, Latency, Nanos, Seed};
use lowtide_files::catalogue::Published;
use lowtide_lab::experiment::{Experiment, Level};
use lowtide_record::FactorLevel;
use lowtide_record::analysis::Verdict;
use lowtide_record::{Cell, Percentiles, Row, Status};
use lowtide_report::Checked;
use std::borrow::Cow;

const SECOND: u64 = 1_000_000_000;

/// An experiment with two sizes, each measured twice.
const HEAD: &str = r#"
    name = "t"
    target.device = "intel-320-160gb"
    [workload]
    pattern = "random-write"
    block = "1MiB"
    duration = "4s"
    interval = "1s"
    [sweep]
    file_size = ["10GiB", "20GiB"]
    [repeat]
    times = 2
"#;

/// MiB per second: two repetitions of 10 GiB, then two of 20 GiB.
const MIB: [[u64; 4]; 4] = [[80, 60, 50, 50], [84, 64, 52, 52], [40, 20, 25, 25], [42, 22, 26, 26]];

fn campaign(text: &str, scale: u64) -> Campaign {
    let experiment = Experiment::parse("t.toml", text, &[]).unwrap_or_else(|error| panic!("{error:?}"));
    let step = &experiment.steps[0];
    let points: Vec<Vec<Level>> = step.points().flat_map(|point| [point.clone(), point]).collect();
    let cell = |(index, (point, mib)): (usize, (&Vec<Level>, &[u64; 4]))| Cell {
        index: index as u32,
        factors: point.iter().map(FactorLevel::from).collect(),
        repetition: index as u32 % 2 + 1,
        status: Status::Done,
        data: Bytes::gib(10),
        capacity: Bytes::gib(100),
        threads: 1,
        read_share: 0.0,
        rows: mib.iter().enumerate().map(|(second, mib)| row(second as u64, *mib)).collect::<Vec<_>>().into(),
        read_latency: Default::default(),
        write_latency: Default::default(),
        verdict: Some(Verdict::NoSteadyState { reason: "too short".to_owned() }),
        ..Cell::default()
    };
    let cells = points.iter().zip(&MIB).enumerate().map(cell).collect();
    Campaign {
        name: "t".to_owned(),
        title: String::new(),
        experiment: text.to_owned(),
        resolved: None,
        target: String::new(),
        devices: Vec::new(),
        seed: 1,
        scale,
        version: String::new(),
        started_at: String::new(),
        command: String::new(),
        environment: Vec::new(),
        cells,
    }
}

/// An interval of one second with `mib` completed writes of a MiB, each with a latency of `mib` ms.
fn row(second: u64, mib: u64) -> Row {
    Row {
        start_ns: second * SECOND,
        end_ns: (second + 1) * SECOND,
        reads: 0,
        read_bytes: 0,
        writes: mib,
        write_bytes: mib << 20,
        read: Percentiles::default(),
        write: Percentiles { mean_ns: mib as f64 * 1e6, ..Percentiles::default() },
        ..Row::default()
    }
}

/// The latencies of the intervals that [`row`] creates.
fn latency(cell: u32, from_ns: u64, to_ns: u64) -> Option<Latency> {
    let mut all = Latency::default();
    for (second, mib) in MIB[cell as usize].iter().enumerate() {
        if (from_ns..to_ns).contains(&(second as u64 * SECOND)) {
            (0..*mib).for_each(|_| all.record(Nanos::from_millis(*mib)));
        }
    }
    Some(all)
}

fn checked(claim: &str, scale: u64) -> Checked {
    let text = format!("{HEAD}\n[[claim]]\nname = \"c\"\nsays = \"so\"\nstudy = \"e02\"\n{claim}");
    claims(&campaign(&text, scale), &latency).expect("it parses").remove(0)
}

/// Asserts that a measure of the first cell equals `number` within 0.1 %.
fn is(keys: &str, number: f64) {
    let (low, high) = (number * 0.999, number * 1.001);
    let only = "where = { file_size = \"10GiB\", repetition = 1 }";
    let claim = checked(&format!("{keys}\n{only}\nat-least = {low}\nat-most = {high}"), 1);
    assert!(claim.holds, "{keys}: {number} wanted, {claim:?}");
}

#[test]
fn every_measure_is_what_it_says() {
    is("measure = 'mean'", 60.0);
    is("measure = 'mean-after'\nafter = '2s'", 50.0);
    is("measure = 'start'", 80.0);
    is("measure = 'minimum'", 50.0);
    is("measure = 'maximum'", 80.0);
    is("measure = 'maximum'\nafter = '1s'", 60.0);
    is("measure = 'level'", 50.0);
    is("measure = 'elapsed'", 4.0);
    is("measure = 'mean'\nof = 'iops'", 60.0);
    is("measure = 'mean'\nunit = 'MB/s'", 60.0 * 1.048_576);
    // Mean over all writes: (80·80 + 60·60 + 50·50 + 50·50) / 240.
    is("measure = 'mean'\nof = 'mean-latency'", 62.5);
    is("measure = 'mean'\nof = 'p99'", 80.0);
    is("measure = 'level'\nof = 'p50'\nunit = 's'", 0.05);
}

#[test]
fn forms_hold_means_against_means_and_pairs_against_pairs() {
    let other = "where = { file_size = '20GiB' }\nagainst = { file_size = '10GiB' }\nmeasure = 'level'";
    for (keys, number) in [("ratio", 0.5), ("percent", 50.0), ("drop-percent", 50.0)] {
        let claim = checked(
            &format!("{other}\nform = '{keys}'\nat-least = {}\nat-most = {}", number * 0.999, number * 1.001),
            1,
        );
        assert!(claim.holds, "{claim:?}");
    }
    let each = |check: &str| checked(&format!("{other}\nform = 'ratio'\neach = true\n{check}"), 1);
    assert!(each("at-most = 0.5").holds);
    assert!(!each("at-least = 0.501").holds);
    let uneven = checked(
        "measure = 'mean'\nform = 'ratio'\neach = true\nagainst = { repetition = 1, file_size = '10GiB' }\nat-least = 0",
        1,
    );
    assert_eq!((uneven.holds, uneven.found.as_str()), (false, "4 cells cannot be paired with 1"));
}

#[test]
fn an_order_holds_within_its_tolerance() {
    let falls = |keys: &str| checked(&format!("measure = 'level'\norder = 'falling'\n{keys}"), 1);
    assert!(falls("where = { repetition = 1 }").holds);
    let all = falls("");
    assert!(!all.holds, "50, 52, 25, 26: {all:?}");
    assert!(falls("tolerance = 0.05").holds);
    assert!(!checked("measure = 'level'\norder = 'rising'\nwhere = { repetition = 2 }", 1).holds);
    let alone = falls("where = { repetition = 1, file_size = '10GiB' }");
    assert!(!alone.holds, "one number has no order");
}

#[test]
fn what_cannot_be_judged_fails_with_the_reason() {
    let settled = checked("measure = 'settled'\nat-least = 0", 1);
    assert!(!settled.holds && settled.found.contains("no steady state: too short"), "{settled:?}");
    let none = checked("measure = 'mean'\nat-least = 0\nwhere = { threads = 3 }", 1);
    assert!(!none.holds && none.found.contains("no such cell"), "{none:?}");
    let late = checked("measure = 'mean'\nafter = '9s'\nat-least = 0", 1);
    assert!(!late.holds && late.found.contains("nothing was measured"), "{late:?}");
}

#[test]
fn times_are_given_back_unscaled() {
    let elapsed = checked("measure = 'elapsed'\nat-least = 32\nat-most = 32", 8);
    assert!(elapsed.holds, "{elapsed:?}");
    // 16 s of the full experiment are 2 s at a scale of 1/8.
    let after =
        checked("measure = 'mean-after'\nafter = '16s'\nwhere = { file_size = '10GiB' }\nat-most = 52", 8);
    assert!(after.holds, "{after:?}");
}

/// Changes the published numbers, and checks that the model values stay the same.
#[test]
fn what_is_found_does_not_depend_on_what_was_published() {
    let text = format!(
        "{HEAD}
        [[published]]
        study = \"e02\"
        line = 1
        measure = \"start\"
        where = {{ file_size = \"10GiB\" }}
        [[published]]
        study = \"e02\"
        line = 5
        measure = \"minimum\"
        bound = \"at-least\"
        [[published]]
        study = \"e02\"
        line = 8
        measure = \"level\"
        form = \"drop-percent\"
        where = {{ file_size = \"20GiB\" }}
        against = {{ file_size = \"10GiB\" }}
        [[published]]
        study = \"e02\"
        line = 9
        measure = \"stable-by\"
        bound = \"at-most\"
        [[published]]
        study = \"e02\"
        line = 7
        measure = \"settled\""
    );
    let campaign = campaign(&text, 1);
    let mut experiment = Resolved::of(&campaign).expect("it reads back").expect("it ran here");
    let before = compared(&experiment, &campaign, &latency);
    for comparison in &mut experiment.published {
        let row = comparison.published.clone();
        comparison.published = Cow::Owned(Published { value: row.value * 1.37 + 11.0, ..row.into_owned() });
    }
    let after = compared(&experiment, &campaign, &latency);
    let models = |all: &[Comparison]| all.iter().map(|it| (it.model, it.missing.clone())).collect::<Vec<_>>();
    assert_eq!(models(&before), models(&after));
    assert_eq!(before.iter().filter(|it| it.model.is_some()).count(), 4);
    assert!(before.iter().zip(&after).all(|(before, after)| before.published < after.published));
    assert_eq!(before[0].model, Some(82.0));
    assert_eq!(before[1].model, Some(20.0), "the cell nearest to breaking the bound");
    assert!(before[4].missing.as_deref().is_some_and(|why| why.contains("no steady state")));
}

/// Symptom: `validate e11` started hours of runs on real servers without being asked to. Cause: the name of a study
/// selected all its experiments. Fix: real servers need `--real-servers`.
#[test]
fn real_servers_are_chosen_only_where_they_are_asked_for() {
    let names = |names: &[&str], real_servers| -> Vec<String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let chosen = choose(&names, Seed::new(1), 1, real_servers).expect("known names");
        chosen.taken.into_iter().map(|one| one.name).collect()
    };
    let without = names(&["e11"], false);
    assert!(without.contains(&"dbt2-mtron-modelled".to_owned()), "{without:?}");
    assert!(!without.contains(&"dbt2-mtron".to_owned()), "{without:?}");
    assert!(names(&["e11"], true).contains(&"dbt2-mtron".to_owned()));
    assert!(!names(&[], false).contains(&"tpcc-buffer-pool".to_owned()));
    let all = choose(&[], Seed::new(1), 1, false).expect("all");
    let left_out: Vec<&str> = all.left_out.iter().map(|one| one.name.as_str()).collect();
    assert!(left_out.contains(&"tpcc-buffer-pool") && left_out.contains(&"dbt2-mtron"), "{left_out:?}");
    assert!(all.taken.iter().all(|one| one.plan.target.is_simulated()));
    let alone = choose(&["dbt2-mtron".to_owned()], Seed::new(1), 1, false);
    assert!(matches!(alone, Err(ChooseError::RealServers { longest: Some(_), .. })), "{alone:?}");
}
