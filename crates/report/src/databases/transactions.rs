//! Transactions by kind: counts, outcomes and latencies.

use super::{Activity, called};
use crate::answer::Answer;
use crate::number::latency_unit;
use crate::sweep::Labels;
use crate::table::{Column, Digits, Table, Value};
use lowtide_engines::tpcc::Kind;

/// The table, with a row for each kind of each cell; `None` if there is no database.
pub(crate) fn transactions(answers: &[Answer<'_>]) -> Option<Table> {
    let databases: Vec<(&Answer<'_>, Activity<'_>)> =
        answers.iter().filter_map(|answer| Some((answer, Activity::of(answer)?))).collect();
    if databases.is_empty() {
        return None;
    }
    let several = answers.len() > 1;
    let labels = Labels::of_answers(answers);
    let slowest = databases.iter().flat_map(|(_, it)| Kind::ALL.map(|kind| it.latency_ns(kind, 95.0)));
    let (unit, scale) = latency_unit(slowest.flatten().fold(0.0, f64::max));
    let latency = |key, name| Column::each(key, name, unit).scaled(scale);
    let mut columns = Vec::new();
    columns.extend(several.then(|| Column::text("cell", "cell").naming()));
    columns.extend([
        Column::text("kind", "kind").naming(),
        Column::count("ended", "ended"),
        Column::number("share", "share", "%").scaled(100.0).digits(Digits::Fixed(1)),
        Column::count("rolled_back", "rolled back"),
        Column::count("retries", "retried"),
        latency("latency_ns_mean", "mean"),
        latency("latency_ns_p50", "p50"),
        latency("latency_ns_p95", "p95"),
        latency("latency_ns_p99", "p99"),
        latency("latency_ns_max", "max"),
    ]);
    let row = |answer: &Answer<'_>, activity: &Activity<'_>, kind: Kind| {
        let done = &activity.kinds[kind as usize];
        let latency = &activity.oltp.latency[kind as usize];
        let known = latency.count() > 0;
        let mut row = Vec::new();
        row.extend(several.then(|| Value::text(labels.label(answer.cell))));
        row.extend([
            Value::text(called(kind)),
            Value::Number(done.ended() as f64),
            Value::number(activity.per_transaction(done.ended())),
            Value::Number(done.rolled_back as f64),
            Value::Number(done.retries as f64),
            Value::number(known.then(|| latency.mean_ns())),
            Value::number(activity.latency_ns(kind, 50.0)),
            Value::number(activity.latency_ns(kind, 95.0)),
            Value::number(activity.latency_ns(kind, 99.0)),
            Value::number(known.then(|| latency.max().get() as f64)),
        ]);
        row
    };
    let rows =
        databases.iter().flat_map(|(answer, it)| Kind::ALL.map(|kind| row(answer, it, kind))).collect();
    let note = "Over the steady window, or the last quarter of the measurement if there is none. Rolled back: required by \
                the benchmark for one New-Order in a hundred. Retried: attempts that conflicted with another transaction. \
                Latency covers the time from the first attempt to the end.";
    let table = Table::new("transactions", "The transactions by kind", columns, rows);
    Some(table.with_note(note).without_empty_columns())
}
