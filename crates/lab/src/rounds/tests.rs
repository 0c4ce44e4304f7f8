//! Tests of rounds: courses that become steady, courses that do not, and values out of order.

use super::*;
use crate::experiment::Experiment;
use crate::plan::Plan;
use lowtide_core::Seed;

const TEXT: &str = r#"
    name = "t"
    target.device = "intel-320-160gb"
    [workload]
    pattern = "random-mixed"
    duration = "1min"
    [sweep]
    mix = [0.5, 0.0]
    block = ["8KiB", "4KiB"]
    [repeat]
    times = 8
    track = { of = "iops", where = { mix = 0.0 } }
"#;

fn plan(text: &str) -> Plan {
    Plan::new(Experiment::parse("test.toml", text, &[]).expect("valid"), Seed::new(1), 1).expect("plans")
}

fn row(start_s: u64, writes: u64) -> Row {
    let (start_ns, end_ns) = (start_s * 1_000_000_000, (start_s + 1) * 1_000_000_000);
    let write = lowtide_record::Percentiles { mean_ns: 1e9 / writes as f64, ..Default::default() };
    Row { start_ns, end_ns, writes, write_bytes: writes * 4096, write, ..Row::default() }
}

/// Gives [`Rounds`] the value `values(cell)` of every needed cell, in plan order. Returns the number of needed cells,
/// and the skipped cells.
fn run(plan: &Plan, values: impl Fn(&PlannedCell) -> u64) -> (usize, Vec<u32>) {
    let mut rounds = Rounds::new(plan);
    let (mut count, mut skipped) = (0, Vec::new());
    for cell in &plan.cells {
        if rounds.needs(cell) {
            count += 1;
            skipped.extend(rounds.measured(cell, &[row(0, values(cell))]));
        }
    }
    (count, skipped)
}

#[test]
fn the_rounds_end_with_the_round_in_which_every_tracked_point_is_steady() {
    let plan = plan(TEXT);
    assert_eq!(plan.cells.len(), 8 * 4);
    // Steady from the first round on: ends after five rounds of four cells.
    assert_eq!(run(&plan, |_| 1000), (20, (20..32).collect::<Vec<u32>>()));
    // One of the two tracked points falls by a tenth a round until round 3: rounds 3 to 7 are steady.
    let (count, _) = run(&plan, |cell| match (cell.index % 4, cell.repetition) {
        (3, round @ ..=3) => 1000 - 100 * u64::from(round),
        (3, _) => 700,
        _ => 1000,
    });
    // (800 − 700) over an average of 720 is 13.9 %, but the line falls by 80: 11.1 %.
    assert_eq!(count, 28);
    // A point that is not tracked need not be steady, and a tracked point that never settles needs every round.
    let untracked_rises =
        |cell: &PlannedCell| if cell.index % 4 < 2 { 1 + u64::from(cell.repetition) } else { 1000 };
    assert_eq!(run(&plan, untracked_rises).0, 20);
    assert_eq!(run(&plan, |cell| 1000 >> cell.repetition).0, 32);
}

#[test]
fn values_may_come_out_of_order() {
    let plan = plan(TEXT);
    let mut rounds = Rounds::new(&plan);
    let steady = |rounds: &mut Rounds, cell: usize| rounds.measured(&plan.cells[cell], &[row(0, 500)]);
    for cell in (0..20).filter(|cell| *cell != 3) {
        assert!(steady(&mut rounds, cell).is_empty(), "round 1 is not whole");
    }
    assert_eq!(steady(&mut rounds, 3).len(), 12);
    assert!(rounds.needs(&plan.cells[19]) && !rounds.needs(&plan.cells[20]));
}

#[test]
fn only_the_beginning_of_a_cell_counts() {
    let rows: Vec<Row> = (0..4).map(|s| row(s, 100 * (s + 1))).collect();
    assert_eq!(value(Of::Iops, &rows, u64::MAX), Some(250.0));
    assert_eq!(value(Of::Iops, &rows, 2_000_000_000), Some(150.0));
    assert_eq!(value(Of::Throughput, &rows, 1), Some(100.0 * 4096.0 / f64::from(1 << 20)));
    // Latency is weighed by requests: (100 of 10 ms + 200 of 5 ms) / 300.
    let latency = value(Of::MeanLatency, &rows, 2_000_000_000).expect("measured");
    assert!((latency - 2e9 / 300.0).abs() < 1.0, "{latency}");
    assert_eq!(value(Of::Iops, &[], u64::MAX), None);
    assert_eq!(value(Of::MeanLatency, &[Row { writes: 0, ..row(0, 1) }], u64::MAX), None);
}

#[test]
fn impossible_rounds_are_refused() {
    let refused = |from: &str, to: &str| {
        let error = Experiment::parse("test.toml", &TEXT.replace(from, to), &[]).expect_err(to);
        error
            .problems()
            .map(|problem| format!("{:?}", miette::Report::new(problem.clone())))
            .collect::<String>()
    };
    assert!(refused("times = 8", "times = 4").contains("`track` with 4 rounds"));
    assert!(refused("times = 8", "times = 8\norder = \"shuffled\"").contains("which has no rounds"));
    assert!(refused("mix = 0.0 }", "mix = 0.3 }").contains("selects no point"));
    assert!(refused("of = \"iops\"", "of = \"p99\"").contains("not tracked from round to round"));
    assert!(refused("of = \"iops\"", "off = \"iops\"").contains("did you mean `of`"));
    let purged = refused("[sweep]", "[before-each-cell]\npurge = \"secure-erase\"\n[sweep]");
    assert!(purged.contains("each cell is purged"), "{purged}");
}
