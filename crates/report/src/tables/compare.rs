//! The comparison of two sides: levels point by point, every other metric point by point, all points together, and
//! the limits that were judged.
//!
//! A ratio is the other side divided by the base, as the published utilisation tables have it: 1.17 is a little faster,
//! 0.5 is half.

use super::factor_column;
use crate::compare::{Comparison, Finding, Judged, Metric, Missing, Pair, Reading, Scope};
use crate::number;
use crate::table::{Column, Digits, Table, Value};

/// Names of points without a match that a note lists.
const MOST_LISTED: usize = 12;

/// The tables of a comparison; keys end in `suffix`.
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
    let finding = |pair: &Pair| pair.of(comparison.level()).clone();
    let (mut columns, names) = identities(&comparison.pairs);
    let quantity = comparison.quantity;
    columns.extend([
        Column::number("fill", "fill", "%").digits(Digits::Fixed(0)).scaled(100.0),
        Column::number(&format!("base_{}", quantity.key()), &comparison.base, quantity.unit()),
        Column::number(&format!("other_{}", quantity.key()), &comparison.other, quantity.unit()),
        Column::number("ratio", "ratio", ""),
        Column::text("rests_on", "rests on"),
    ]);
    let row = |pair: &Pair| {
        let finding = finding(pair);
        let mut row = identity_values(pair, &names);
        row.extend([
            Value::number(pair.fill),
            reading(&finding.base),
            reading(&finding.other),
            ratio(&finding),
            Value::text(pair.rests_on.clone()),
        ]);
        row
    };
    let rows = comparison.pairs.iter().map(row).collect();
    Table { key, title, note: note(comparison), columns, rows }.without_empty_columns()
}

/// The metrics besides levels that at least one pair has; read and write apart only where both are there.
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
    let note = "Percentiles are those of all requests of the window, never averages; how sure they are is told by their \
                scatter over parts of it or over repetitions."
        .to_owned();
    Table { key, title, note, columns, rows: comparison.pairs.iter().map(row).collect() }
        .without_empty_columns()
}

fn overall(comparison: &Comparison, metrics: &[Metric], key: String, title: String) -> Table {
    let columns = vec![
        Column::text("metric", "metric").naming(),
        Column::number("cells", "cells", "").digits(Digits::Fixed(0)),
        Column::number("ratio", "geometric mean of the ratios", ""),
        Column::number("significant_cells", "cells that differ", "").digits(Digits::Fixed(0)),
    ];
    let row = |metric: &Metric| {
        let mean = comparison.overall(*metric)?;
        let differ = comparison.pairs.iter().filter(|pair| pair.of(*metric).significant()).count();
        let (significant, probability) = (mean.below(1.0) || mean.above(1.0), mean.probability(1.0));
        Some(vec![
            Value::text(metric.name()),
            Value::Number(comparison.ratios(*metric).len() as f64),
            Value::Ratio { ratio: mean.ratio, low: mean.low, high: mean.high, significant, probability },
            Value::Number(differ as f64),
        ])
    };
    let note = "The interval is that of these cells. Cells that differ: after Holm's correction; without it, five in a \
                hundred that do not would seem to."
        .to_owned();
    Table { key, title, note, columns, rows: metrics.iter().filter_map(row).collect() }
}

/// The limits and what became of them; `None` without any.
pub(crate) fn thresholds(judged: &[Judged]) -> Option<Table> {
    if judged.is_empty() {
        return None;
    }
    let count = |key, name| Column::number(key, name, "").digits(Digits::Fixed(0));
    let columns = vec![
        Column::text("threshold", "fails if").naming(),
        Column::text("campaign", "of"),
        Column::text("outcome", "outcome"),
        Column::text("why", "why"),
        count("crossed", "crossed"),
        count("undecided", "undecided"),
        count("kept", "kept"),
        count("not_judged", "not judged"),
        Column::text("worst", "nearest or beyond"),
        Column::number("worst_ratio", "its ratio", ""),
    ];
    let row = |it: &Judged| {
        let worst = it.worst.as_ref();
        let ratio = worst.map_or(Value::Empty, |(_, ratio)| Value::Ratio {
            ratio: ratio.ratio,
            low: ratio.low,
            high: ratio.high,
            significant: false,
            probability: ratio.probability(it.threshold.limit),
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
    let note = "Crossed: the whole 95 % interval lies beyond the limit, of many cells also after Holm's correction. \
                Undecided: the interval reaches beyond it."
        .to_owned();
    let table = Table {
        key: "thresholds".to_owned(),
        title: "Limits".to_owned(),
        note,
        columns,
        rows: judged.iter().map(row).collect(),
    };
    Some(table.without_empty_columns())
}

/// The columns of what the pairs have in common, and their names.
fn identities(pairs: &[Pair]) -> (Vec<Column>, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    for lowtide_record::FactorLevel { name, .. } in pairs.iter().flat_map(|pair| &pair.identity) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
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
        Ok(it) => Value::Ratio {
            ratio: it.ratio,
            low: it.low,
            high: it.high,
            significant: finding.significant(),
            probability: finding.probability,
        },
        // That there is none is said of the side that has none, or of no metric of the cell.
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
    let rests = |what: &str| comparison.pairs.iter().any(|pair| pair.rests_on.contains(what));
    if rests("batches") {
        note.push_str(
            " Batches: the interval rests on one run, and what differs from run to run is not in it; `[repeat] times` \
             measures that.",
        );
    }
    if rests("runs") {
        note.push_str(" Runs: it rests on how the repetitions scatter.");
    }
    if rests("pairs") {
        note.push_str(" Pairs: it rests on the ratios of repetitions that were measured in turns.");
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

/// Points by name; of many the first.
fn listed(points: &[crate::compare::Identity]) -> String {
    let mut labels: Vec<String> = points.iter().take(MOST_LISTED).map(crate::compare::label).collect();
    if points.len() > MOST_LISTED {
        labels.push(format!("and {} more", number::fixed((points.len() - MOST_LISTED) as f64, 0)));
    }
    labels.join("; ")
}

/// What a metric is called in a heading.
fn words(metric: Metric) -> String {
    match metric {
        Metric::Iops => "IOPS".to_owned(),
        Metric::WriteAmplification => "write ampl.".to_owned(),
        _ => metric.name().replace("latency_", "").replace('_', " ").replace("p999", "p99.9"),
    }
}
