//! The comparison of two sides, cell by cell: throughput, difference, advantage.
//!
//! The advantage is the other side as a percentage of the base, as the published utilisation tables print it:
//! 117 % is a little faster, 50 % is half.

use super::{factor_column, latency_unit};
use crate::analysis::Estimate;
use crate::report::compare::{Difference, Side, pair};
use crate::report::table::{Column, Digits, Table, Value};

/// The table of `other` against `base`.
pub(crate) fn compare(base: &Side<'_>, other: &Side<'_>, key: &str) -> Table {
    let pairs = pair(base, other);
    let mut names: Vec<String> = Vec::new();
    for (name, _) in pairs.iter().flat_map(|p| &p.identity) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let value =
        |p: &Difference, name: &String| p.identity.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    let mut columns: Vec<Column> = names
        .iter()
        .map(|name| {
            let values: Vec<String> = pairs.iter().filter_map(|p| value(p, name)).collect();
            factor_column(name, values.iter().map(String::as_str))
        })
        .collect();
    columns.push(Column::number("repetition", "repetition", "").digits(Digits::Fixed(0)).naming());
    let longest = pairs
        .iter()
        .flat_map(|p| [p.base_latency_ns_p95, p.other_latency_ns_p95])
        .flatten()
        .fold(0.0, f64::max);
    let (unit, scale) = latency_unit(longest);
    let percent = |key, name, digits| Column::number(key, name, "%").digits(digits);
    columns.extend([
        percent("fill", "fill", Digits::Fixed(0)).scaled(100.0),
        Column::number("base_settled_mib_per_s", &base.name, "MiB/s"),
        Column::number("other_settled_mib_per_s", &other.name, "MiB/s"),
        percent("difference_percent", "difference", Digits::Signed(1)),
        percent("advantage", "advantage", Digits::Column).scaled(100.0),
        Column::text("significant", "significant?"),
        Column::number("base_latency_ns_p95", &format!("p95 {}", base.name), unit).scaled(scale),
        Column::number("other_latency_ns_p95", &format!("p95 {}", other.name), unit).scaled(scale),
    ]);
    let repeated = pairs.iter().any(|p| p.repetition > 1);
    let rows = pairs
        .iter()
        .map(|p| {
            let mut row: Vec<Value> =
                names.iter().map(|name| Value::text(value(p, name).unwrap_or_default())).collect();
            row.extend([
                Value::number(repeated.then(|| f64::from(p.repetition))),
                Value::number(p.fill),
                settled(p.base),
                settled(p.other),
                Value::number(p.difference_percent()),
                p.advantage()
                    .zip(p.advantage_half_width())
                    .map_or(Value::Empty, |(a, h)| Value::Estimate(a, h)),
                p.significant().map_or(Value::Empty, |s| Value::Flag(s, ["yes", "not significant"])),
                Value::number(p.base_latency_ns_p95),
                Value::number(p.other_latency_ns_p95),
            ]);
            row
        })
        .collect();
    Table {
        key: key.to_owned(),
        title: format!("{} against {}", other.name, base.name),
        note: note(base, other),
        columns,
        rows,
    }
    .without_empty_columns()
}

fn settled(estimate: Option<Estimate>) -> Value {
    estimate.map_or_else(
        || Value::Missing("no steady state".to_owned()),
        |e| Value::Estimate(e.mean_mib_per_s, e.half_width_mib_per_s),
    )
}

fn note(base: &Side<'_>, other: &Side<'_>) -> String {
    let mut note = format!(
        "Advantage: {} as a percentage of {}, ± half the 95 % confidence interval. Not significant: the interval \
         includes 100 %.",
        other.name, base.name
    );
    let alone = |a: &Side<'_>, b: &Side<'_>| {
        a.answers
            .iter()
            .filter(|(id, x)| {
                !b.answers.iter().any(|(i, y)| i == id && x.cell.repetition == y.cell.repetition)
            })
            .count()
    };
    for (count, side) in [(alone(base, other), base), (alone(other, base), other)] {
        if count > 0 {
            let cells = if count == 1 { "cell" } else { "cells" };
            note.push_str(&format!(" {count} {cells} of {} without a match left out.", side.name));
        }
    }
    note
}
