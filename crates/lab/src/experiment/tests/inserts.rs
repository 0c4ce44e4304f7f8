//! Tests of `[inserts]`: the resolved load, and the errors of invalid tables.

use super::{bad, good};
use crate::experiment::Placement;
use crate::plan::Plan;
use lowtide_core::{Bytes, Nanos, Seed};

const INSERTS: &str = r#"
name = "inserts"

[target]
device = "intel-320-160gb"

[inserts]
connections = 4
data-per-connection = "1GiB"
database = "8GiB"
place = "drawn"
insert = "60us"
hand-off = "40us"

[sweep]
data_files = [1, 4]
"#;

#[test]
fn the_table_says_what_the_engine_does_and_a_sweep_varies_its_files() {
    let experiment = good(INSERTS, &["log-size=256MiB"]);
    let step = &experiment.steps[0];
    let files: Vec<_> = step
        .points()
        .map(|point| {
            let inserts =
                experiment.settings(step, &point).load.work.inserts().cloned().expect("there are inserts");
            assert_eq!(inserts.place, Placement::Drawn);
            assert_eq!(inserts.engine.log.size, Bytes::mib(256));
            assert_eq!(inserts.engine.row.hand_off, Nanos::from_micros(40));
            assert_eq!(inserts.engine.data(), Bytes::gib(4));
            inserts.engine.data_files
        })
        .collect();
    assert_eq!(files, [1, 4]);
}

#[test]
fn a_plan_holds_the_rows_and_scales_them() {
    let plan = |scale| Plan::new(good(INSERTS, &[]), Seed::new(1), scale).expect("it fits");
    assert_eq!(plan(1).cells[0].data, Bytes::gib(4));
    assert_eq!(plan(16).cells[0].data, Bytes::mib(256));
    let large = INSERTS.replace("1GiB", "40GiB").replace("8GiB", "200GiB");
    let refused = Plan::new(good(&large, &[]), Seed::new(1), 1).expect_err("160 GiB of rows do not fit");
    assert!(refused.to_string().contains("do not fit on intel-320-160gb"), "{refused}");
}

#[test]
fn what_contradicts_itself_is_refused_at_its_key() {
    for (line, other, fault) in [
        ("database = \"8GiB\"", "database = \"2GiB\"", "4GiB of rows do not fit into 2GiB"),
        ("place = \"drawn\"", "place = \"draw\"", "did you mean `drawn`?"),
        ("insert = \"60us\"", "insrt = \"60us\"", "did you mean `insert`?"),
        ("insert = \"60us\"", "memory = \"64MiB\"", "full before a checkpoint begins"),
        ("insert = \"60us\"", "data_files = 2", "`data_files` is given twice"),
        ("[sweep]", "[workload]\nblock = \"4KiB\"\n[sweep]", "two loads"),
    ] {
        let text = bad(&INSERTS.replace(line, other));
        assert!(text.contains(fault), "{text}");
    }
}
