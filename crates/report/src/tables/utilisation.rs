//! The utilisation table: settled levels of several devices at the same fill.
//!
//! A single curve over the fill has no such table, because the answer table already shows it. The rows are the fills
//! that at least two curves share.

use crate::answer::{Answer, quantity_of};
use crate::sweep::{groups, slug};
use crate::table::{Column, Table, Value};

const MOST_CURVES: usize = 6;

/// Settled levels by fill, one column per curve; with two curves, the advantage of the second.
pub(crate) fn utilisation(answers: &[Answer<'_>]) -> Option<Table> {
    let quantity = quantity_of(answers);
    let groups = groups(answers, |a| a.fill())?;
    if groups.len() < 2 || groups.len() > MOST_CURVES {
        return None;
    }
    let rounded = |a: &Answer<'_>| (a.fill().unwrap_or(0.0) * 100.0).round() as i64;
    let find = |g: usize, fill: i64| groups[g].answers.iter().find(|a| rounded(a) == fill);
    let mut fills: Vec<i64> = groups.iter().flat_map(|g| g.answers.iter().map(|a| rounded(a))).collect();
    fills.sort_unstable();
    fills.dedup();
    fills.retain(|fill| (0..groups.len()).filter(|g| find(*g, *fill).is_some()).count() >= 2);
    if fills.is_empty() {
        return None;
    }

    let mut columns = vec![Column::percent("fill", "fill").naming()];
    for group in &groups {
        let key = format!("settled_{}_{}", quantity.key(), slug(&group.label));
        columns.push(Column::number(&key, &group.label, quantity.unit()));
    }
    let two = groups.len() == 2;
    if two {
        columns.push(Column::percent("advantage", "advantage"));
    }
    let rows = fills
        .iter()
        .map(|fill| {
            let settled: Vec<_> = (0..groups.len()).map(|g| find(g, *fill).and_then(|a| a.settled)).collect();
            let mut row = vec![Value::Number(*fill as f64 / 100.0)];
            row.extend(settled.iter().map(|settled| Value::estimate(*settled)));
            if two {
                let ratio = settled[0].zip(settled[1]).map(|(a, b)| b.mean / a.mean);
                row.push(Value::number(ratio));
            }
            row
        })
        .collect();
    let note = if two {
        format!("Advantage: {} as a percentage of {}.", groups[1].label, groups[0].label)
    } else {
        String::new()
    };
    Some(Table::new("utilisation", "At the same utilisation", columns, rows).with_note(note))
}
