//! The transactions by kind: how many, what became of them, how long they took.

use super::{Asked, called};
use crate::answer::Answer;
use crate::number::latency_unit;
use crate::sweep::{short_label, varying};
use crate::table::{Column, Digits, Table, Value};
use lowtide_engines::tpcc::Kind;

/// The table, a row for each kind of each cell; `None` where no database was asked.
pub(crate) fn transactions(answers: &[Answer<'_>]) -> Option<Table> {
    let asked: Vec<(&Answer<'_>, Asked<'_>)> =
        answers.iter().filter_map(|answer| Some((answer, Asked::of(answer)?))).collect();
    if asked.is_empty() {
        return None;
    }
    let several = answers.len() > 1;
    let varying = varying(answers.iter().map(|a| a.cell));
    let repeated = answers.iter().any(|a| a.cell.repetition > 1);
    let slowest = asked.iter().flat_map(|(_, it)| Kind::ALL.map(|kind| it.latency_ns(kind, 95.0)));
    let (unit, scale) = latency_unit(slowest.flatten().fold(0.0, f64::max));
    let latency = |key, name| Column::number(key, name, unit).scaled(scale).digits(Digits::Each);
    let count = |key, name| Column::number(key, name, "").digits(Digits::Fixed(0));
    let mut columns = Vec::new();
    columns.extend(several.then(|| Column::text("cell", "cell").naming()));
    columns.extend([
        Column::text("kind", "kind").naming(),
        count("ended", "ended"),
        Column::number("share", "share", "%").scaled(100.0).digits(Digits::Fixed(1)),
        count("rolled_back", "rolled back"),
        count("retries", "tried again"),
        latency("latency_ns_mean", "mean"),
        latency("latency_ns_p50", "p50"),
        latency("latency_ns_p95", "p95"),
        latency("latency_ns_p99", "p99"),
        latency("latency_ns_max", "max"),
    ]);
    let row = |answer: &Answer<'_>, asked: &Asked<'_>, kind: Kind| {
        let done = &asked.kinds[kind as usize];
        let latency = &asked.oltp.latency[kind as usize];
        let known = latency.count() > 0;
        let mut row = Vec::new();
        row.extend(several.then(|| Value::text(short_label(answer.cell, &varying, repeated))));
        row.extend([
            Value::text(called(kind)),
            Value::Number(done.ended() as f64),
            Value::number(asked.per_transaction(done.ended())),
            Value::Number(done.rolled_back as f64),
            Value::Number(done.retries as f64),
            Value::number(known.then(|| latency.mean_ns())),
            Value::number(asked.latency_ns(kind, 50.0)),
            Value::number(asked.latency_ns(kind, 95.0)),
            Value::number(asked.latency_ns(kind, 99.0)),
            Value::number(known.then(|| latency.max().get() as f64)),
        ]);
        row
    };
    let rows =
        asked.iter().flat_map(|(answer, asked)| Kind::ALL.map(|kind| row(answer, asked, kind))).collect();
    let note = "Of the steady window, or of the last quarter of the measurement where there is none. Rolled back: because \
                they had to be, one New-Order in a hundred. Tried again: attempts that met another transaction. Latency \
                is from the first attempt to the end."
        .to_owned();
    let title = "The transactions by kind".to_owned();
    Some(Table { key: "transactions".to_owned(), title, note, columns, rows }.without_empty_columns())
}
