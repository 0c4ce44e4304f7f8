//! The comparison of two sides: levels and other metrics point by point, means over all points, and judged limits.
//!
//! A ratio is the other side divided by the base, as in the published utilisation tables: 1.17 is a little faster,
//! 0.5 is half.

use super::factor_column;
use crate::compare::{Comparison, Finding, Judged, Metric, Missing, Pair, Reading, Scope};
use crate::group::distinct;
use crate::number;
use crate::table::{Column, Table, Value};

/// At most this many unmatched points are listed by name.
const MOST_LISTED: usize = 12;

/// The tables of a comparison, whose keys end in `suffix`.
pub(crate) fn compare(comparison: &Comparison, suffix: &str) -> Vec<Table> {
    let title = format!("{} against {}", comparison.other, comparison.base);
    let first = levels(comparison, format!("comparison{suffix}"), title.clone());
    let metrics = others(comparison);
    let mut tables = vec![first];
    if !metrics.is_empty() {
        tables.push(ratios(comparison, &metrics, format!("ratios{suffix}"), format!("{title}: ratios")));
    }
    let shown: Vec<Metric> = std::iter::once(comparison.level()).chain(metrics).collect();
    if comparison.pairs.len() > 1 {
        tables.push(overall(comparison, &shown, format!("overall{suffix}"), format!("{title}: overall")));
    }
    tables
}

fn levels(comparison: &Comparison, key: String, title: String) -> Table {
    let (mut columns, names) = identities(&comparison.pairs);
    let quantity = comparison.quantity;
    columns.extend([
        Column::percent("fill", "fill"),
        Column::number(&format!("base_{}", quantity.key()), &comparison.base, quantity.unit()),
        Column::number(&format!("other_{}", quantity.key()), &comparison.other, quantity.unit()),
        Column::number("ratio", "ratio", ""),
        Column::text("rests_on", "rests on"),
    ]);
    let row = |pair: &Pair| {
        let finding = pair.of(comparison.level());
        let mut row = identity_values(pair, &names);
        row.extend([
            Value::number(pair.fill),
            reading(&finding.base),
            reading(&finding.other),
            ratio(finding),
            Value::text(pair.rests_on.clone()),
        ]);
        row
    };
    let rows = comparison.pairs.iter().map(row).collect();
    Table::new(key, title, columns, rows).with_note(note(comparison)).without_empty_columns()
}

/// The metrics, except levels, that at least one pair has. Reads and writes are separate only if both were measured.
fn others(comparison: &Comparison) -> Vec<Metric> {
    let known = |metric: Metric| {
        comparison.pairs.iter().any(|pair| pair.of(metric).base.is_ok() && pair.of(metric).other.is_ok())
    };
    let named = |names: &[&str]| -> Vec<Metric> {
        names.iter().filter_map(|name| Metric::named(name)).filter(|metric| known(*metric)).collect()
    };
    let both = ["read_latency_p50", "write_latency_p50"];
    let mut metrics = named(&["iops", "latency_p50", "latency_p95", "latency_p99", "latency_p999"]);
    if named(&both).len() == both.len() {
        metrics.extend(named(&[
            "read_latency_p50",
            "read_latency_p99",
            "write_latency_p50",
            "write_latency_p99",
        ]));
    }
    metrics.extend(named(&["write_amplification"]));
    metrics
}

fn ratios(comparison: &Comparison, metrics: &[Metric], key: String, title: String) -> Table {
    let (mut columns, names) = identities(&comparison.pairs);
    columns.extend(metrics.iter().map(|metric| Column::number(metric.name(), &words(*metric), "")));
    let row = |pair: &Pair| {
        let mut row = identity_values(pair, &names);
        row.extend(metrics.iter().map(|metric| ratio(pair.of(*metric))));
        row
    };
    let note = "Percentiles are those of all requests of the window, never averages. Their uncertainty follows from \
                their scatter over parts of the window or over repetitions.";
    let rows = comparison.pairs.iter().map(row).collect();
    Table::new(key, title, columns, rows).with_note(note).without_empty_columns()
}

fn overall(comparison: &Comparison, metrics: &[Metric], key: String, title: String) -> Table {
    let columns = vec![
        Column::text("metric", "metric").naming(),
        Column::count("cells", "cells"),
        Column::number("ratio", "geometric mean of the ratios", ""),
        Column::count("significant_cells", "cells that differ"),
    ];
    let row = |metric: &Metric| {
        let mean = comparison.overall(*metric)?;
        let differ = comparison.pairs.iter().filter(|pair| pair.of(*metric).significant()).count();
        let (significant, probability) = (mean.below(1.0) || mean.above(1.0), mean.probability(1.0));
        Some(vec![
            Value::text(metric.name()),
            Value::Number(comparison.ratios(*metric).len() as f64),
            Value::ratio(&mean, significant, probability),
            Value::Number(differ as f64),
        ])
    };
    let note = "The interval covers these cells only. Cells that differ: after Holm's correction; without it, five in a \
                hundred equal cells would seem to differ.";
    Table::new(key, title, columns, metrics.iter().filter_map(row).collect()).with_note(note)
}

/// The limits with their outcomes; `None` for no limits.
pub(crate) fn thresholds(judged: &[Judged]) -> Option<Table> {
    if judged.is_empty() {
        return None;
    }
    let columns = vec![
        Column::text("threshold", "fails if").naming(),
        Column::text("campaign", "of"),
        Column::text("outcome", "outcome"),
        Column::text("why", "why"),
        Column::count("crossed", "crossed"),
        Column::count("undecided", "undecided"),
        Column::count("kept", "kept"),
        Column::count("not_judged", "not judged"),
        Column::text("worst", "nearest or beyond"),
        Column::number("worst_ratio", "its ratio", ""),
    ];
    let row = |it: &Judged| {
        let worst = it.worst.as_ref();
        let ratio = worst.map_or(Value::Empty, |(_, ratio)| {
            Value::ratio(ratio, false, ratio.probability(it.threshold.limit))
        });
        let of_cells = |count: usize| match it.threshold.scope {
            Scope::Each => Value::Number(count as f64),
            Scope::Overall => Value::Empty,
        };
        vec![
            Value::text(it.threshold.to_string()),
            Value::text(it.other.clone()),
            Value::text(it.outcome.word()),
            Value::text(it.reason.clone().unwrap_or_default()),
            of_cells(it.crossed),
            of_cells(it.undecided),
            of_cells(it.kept),
            of_cells(it.not_judged),
            Value::text(worst.map_or_else(String::new, |(label, _)| label.clone())),
            ratio,
        ]
    };
    let note = "Crossed: the whole 95 % interval lies beyond the limit, for several cells also after Holm's correction. \
                Undecided: the interval reaches beyond it.";
    let rows = judged.iter().map(row).collect();
    Some(Table::new("thresholds", "Limits", columns, rows).with_note(note).without_empty_columns())
}

/// The columns that identify the pairs, and their names.
fn identities(pairs: &[Pair]) -> (Vec<Column>, Vec<String>) {
    let names = distinct(pairs.iter().flat_map(|pair| &pair.identity).map(|factor| factor.name.clone()));
    let column = |name: &String| {
        let values: Vec<&str> = pairs.iter().filter_map(|pair| value(pair, name)).collect();
        factor_column(name, values.into_iter())
    };
    (names.iter().map(column).collect(), names)
}

fn identity_values(pair: &Pair, names: &[String]) -> Vec<Value> {
    names.iter().map(|name| Value::text(value(pair, name).unwrap_or_default())).collect()
}

fn value<'p>(pair: &'p Pair, name: &str) -> Option<&'p str> {
    pair.identity.iter().find(|it| it.name == name).map(|it| it.level.as_str())
}

fn reading(reading: &Result<Reading, Missing>) -> Value {
    match reading {
        Err(why) => Value::Missing(why.to_string()),
        Ok(Reading { value, level: Err(_) }) => Value::Number(*value),
        Ok(Reading { value, level: Ok(level) }) => Value::Estimate(*value, level.half_width()),
    }
}

fn ratio(finding: &Finding) -> Value {
    match &finding.ratio {
        Ok(it) => Value::ratio(it, finding.significant(), finding.probability),
        // The reading of the side without a value already shows the reason.
        Err(Missing::Nothing | Missing::NoSteadyState) => Value::Empty,
        Err(why) => Value::Missing(why.to_string()),
    }
}

fn note(comparison: &Comparison) -> String {
    let mut note = format!(
        "Ratio: {} divided by {}, with its 95 % confidence interval. *: differs from 1 after Holm's correction for \
         {}.",
        comparison.other,
        comparison.base,
        match comparison.pairs.len() {
            1 => "1 cell".to_owned(),
            count => format!("{count} cells"),
        },
    );
    let rests_on = |what: &str| comparison.pairs.iter().any(|pair| pair.rests_on.contains(what));
    for (basis, sentence) in [
        (
            "batches",
            " Batches: the interval rests on one run and does not include the variation between runs, which \
             `[repeat] times` measures.",
        ),
        ("runs", " Runs: the interval rests on the scatter of the repetitions."),
        ("pairs", " Pairs: the interval rests on the ratios of interleaved repetitions."),
    ] {
        note.push_str(if rests_on(basis) { sentence } else { "" });
    }
    let unsettled = |pair: &Pair| {
        let finding = pair.of(comparison.level());
        [&finding.base, &finding.other].iter().any(|side| matches!(side, Err(Missing::NoSteadyState)))
    };
    if comparison.pairs.iter().any(unsettled) {
        note.push_str(" `--unsettled` compares cells without a steady state by their last quarter.");
    }
    for (alone, name) in comparison.alone.iter().zip([&comparison.base, &comparison.other]) {
        if !alone.is_empty() {
            note.push_str(&format!(" Only {name} has: {}.", listed(alone)));
        }
    }
    note
}

/// The first points by name, and the number of all further points.
fn listed(points: &[crate::compare::Identity]) -> String {
    let mut labels: Vec<String> = points.iter().take(MOST_LISTED).map(crate::compare::label).collect();
    if points.len() > MOST_LISTED {
        labels.push(format!("and {} more", number::fixed((points.len() - MOST_LISTED) as f64, 0)));
    }
    labels.join("; ")
}

/// The heading of a metric.
fn words(metric: Metric) -> String {
    match metric {
        Metric::Iops => "IOPS".to_owned(),
        Metric::WriteAmplification => "write ampl.".to_owned(),
        _ => metric.name().replace("latency_", "").replace('_', " ").replace("p999", "p99.9"),
    }
}
