//! The answer table: one row per cell, settled throughput first.
//!
//! Cells that failed or were not measured keep their row, and say so where the answer would be.

use super::{factor_column, latency_unit};
use crate::record::{Campaign, Cell, Status};
use crate::report::answer::Answer;
use crate::report::sweep::{identity, short_label, varying};
use crate::report::table::{Column, Digits, Table, Value};
use lowtide_core::Latency;

/// More cells than this with the same trouble are counted, not named.
const MOST_NAMED: usize = 8;

/// The answer of each cell of a campaign.
pub(crate) fn cells(campaign: &Campaign) -> Table {
    let factors = factor_names(campaign);
    let repeated = campaign.cells.iter().any(|c| c.repetition > 1);
    let answers: Vec<Option<Answer<'_>>> = campaign
        .cells
        .iter()
        .map(|cell| (cell.status == Status::Done).then(|| Answer::of(cell, campaign.scale)))
        .collect();

    let mut columns: Vec<Column> = factors
        .iter()
        .map(|name| {
            let identities: Vec<Option<String>> =
                campaign.cells.iter().map(|cell| value_of(cell, name)).collect();
            factor_column(name, identities.iter().flatten().map(String::as_str))
        })
        .collect();
    if factors.is_empty() {
        columns.push(Column::number("cell", "cell", "").digits(Digits::Fixed(0)).naming());
    }
    if repeated {
        columns.push(Column::number("repetition", "repetition", "").digits(Digits::Fixed(0)).naming());
    }
    columns.extend(answer_columns(&answers));

    let rows = campaign
        .cells
        .iter()
        .zip(&answers)
        .map(|(cell, answer)| {
            let mut row: Vec<Value> =
                factors.iter().map(|n| Value::text(value_of(cell, n).unwrap_or_default())).collect();
            if factors.is_empty() {
                row.push(Value::Number(f64::from(cell.index)));
            }
            if repeated {
                row.push(Value::Number(f64::from(cell.repetition)));
            }
            row.extend(answer_values(cell, answer.as_ref()));
            row
        })
        .collect();

    Table {
        key: "cells".to_owned(),
        title: "The answer, cell by cell".to_owned(),
        note: note(campaign, &answers),
        columns,
        rows,
    }
    .without_empty_columns()
}

fn factor_names(campaign: &Campaign) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in campaign.cells.iter().flat_map(identity) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn value_of(cell: &Cell, name: &str) -> Option<String> {
    identity(cell).into_iter().find(|(n, _)| n == name).map(|(_, value)| value)
}

fn answer_columns(answers: &[Option<Answer<'_>>]) -> Vec<Column> {
    let longest = answers.iter().flatten().filter_map(|a| a.latency_ns(95.0)).fold(0.0, f64::max);
    let (unit, scale) = latency_unit(longest);
    let throughput = |key, name| Column::number(key, name, "MiB/s");
    let latency = |key, name| Column::number(key, name, unit).scaled(scale);
    let share = |key, name| Column::number(key, name, "%").scaled(100.0).digits(Digits::Fixed(0));
    vec![
        share("fill", "fill"),
        throughput("settled_mib_per_s", "settled"),
        throughput("end_mib_per_s", "end"),
        throughput("fresh_mib_per_s", "fresh"),
        throughput("lowest_mib_per_s", "lowest"),
        share("settled_share_of_fresh", "settled/fresh"),
        Column::number("write_amplification", "write ampl.", "").digits(Digits::Fixed(2)),
        Column::number("host_cpu_ns_per_operation", "host CPU per I/O", "µs")
            .scaled(1e-3)
            .digits(Digits::Fixed(2)),
        latency("latency_ns_p50", "p50"),
        latency("latency_ns_p95", "p95"),
        latency("latency_ns_p99", "p99"),
        latency("read_latency_ns_p99", "read p99"),
        latency("write_latency_ns_p99", "write p99"),
        Column::number("iops", "IOPS", "1/s").digits(Digits::Fixed(0)),
    ]
}

fn answer_values(cell: &Cell, answer: Option<&Answer<'_>>) -> Vec<Value> {
    let fill = (cell.capacity.get() > 0).then(|| cell.fill());
    let Some(a) = answer else {
        let word = if cell.status == Status::Failed { "failed" } else { "not measured" };
        let mut row = vec![Value::number(fill), Value::Missing(word.to_owned())];
        row.resize(14, Value::Empty);
        return row;
    };
    let mixed = cell.read_latency.count() > 0 && cell.write_latency.count() > 0;
    let p99 = |latency: &Latency| Value::number(mixed.then(|| latency.percentile(99.0).get() as f64));
    vec![
        Value::number(fill),
        a.settled.map_or_else(
            || Value::Missing("no steady state".to_owned()),
            |e| Value::Estimate(e.mean, e.half_width),
        ),
        Value::number(a.end),
        Value::number(a.fresh),
        Value::number(a.lowest),
        Value::number(a.share_of_fresh()),
        Value::number(a.write_amplification),
        Value::number(a.host_cpu_ns_per_operation),
        Value::number(a.latency_ns(50.0)),
        Value::number(a.latency_ns(95.0)),
        Value::number(a.latency_ns(99.0)),
        p99(&cell.read_latency),
        p99(&cell.write_latency),
        Value::number(a.iops),
    ]
}

fn note(campaign: &Campaign, answers: &[Option<Answer<'_>>]) -> String {
    let varying = varying(&campaign.cells);
    let repeated = campaign.cells.iter().any(|c| c.repetition > 1);
    let mut notes = Vec::new();
    if answers.iter().flatten().next().is_some() {
        notes.push(
            "Settled: mean of the steady window ± half its 95 % confidence interval. End: mean of the last quarter \
             of the measurement. Fresh: mean of the first 5 % of the intervals, at most 60 s. Lowest: the slowest \
             interval. Latency and write amplification are those of the steady window, or of the last quarter \
             where there is none."
                .to_owned(),
        );
    }
    for (_, memory) in campaign.environment.iter().filter(|(key, _)| key == "host-memory") {
        notes.push(format!("Host memory of the driver, at full size, {memory}."));
    }
    // Cells with the same trouble share a sentence.
    let mut troubles: Vec<(String, Vec<String>)> = Vec::new();
    for (cell, answer) in campaign.cells.iter().zip(answers) {
        let trouble = match answer.as_ref().map(|a| &a.unsettled) {
            Some(Some(reason)) => format!("no steady state, {}", reason.trim_end_matches('.')),
            None if cell.status == Status::Failed => {
                format!(
                    "failed, {}",
                    cell.failure.as_deref().unwrap_or("no reason was kept").trim_end_matches('.')
                )
            }
            _ => continue,
        };
        let label = short_label(cell, &varying, repeated);
        match troubles.iter_mut().find(|(known, _)| *known == trouble) {
            Some((_, labels)) => labels.push(label),
            None => troubles.push((trouble, vec![label])),
        }
    }
    notes.extend(troubles.iter().map(|(trouble, labels)| {
        let who =
            if labels.len() > MOST_NAMED { format!("{} cells", labels.len()) } else { labels.join("; ") };
        format!("{who}: {trouble}.")
    }));
    notes.join(" ")
}
