//! Where the time went: what the database, and the kernel for it, counted during the measurement.
//!
//! The sources with most time come first, and of each the largest of each unit: a database counts hundreds of things.
//! `export` has the rest.

use super::Asked;
use crate::answer::Answer;
use crate::sweep::{short_label, varying};
use crate::table::{Column, Digits, Table, Value};
use lowtide_record::Counted;

/// So many of each source and unit are shown.
const MOST: usize = 6;
/// The units, in the order in which they are shown.
const UNITS: [&str; 4] = ["ns", "bytes", "count", "level"];

/// A table for each cell whose database counted something.
pub(crate) fn counted(answers: &[Answer<'_>]) -> Vec<Table> {
    let varying = varying(answers.iter().map(|a| a.cell));
    let repeated = answers.iter().any(|a| a.cell.repetition > 1);
    let of_cell = |answer: &Answer<'_>| {
        let asked = Asked::of(answer)?;
        let (key, title) = match answers.len() {
            1 => ("counted".to_owned(), "Where the time went".to_owned()),
            _ => (
                format!("counted_{}", answer.cell.index),
                format!("Where the time went: {}", short_label(answer.cell, &varying, repeated)),
            ),
        };
        table(&asked, key, title)
    };
    answers.iter().filter_map(of_cell).collect()
}

fn table(asked: &Asked<'_>, key: String, title: String) -> Option<Table> {
    let all = &asked.oltp.counted;
    let (shown, left_out) = chosen(all);
    if shown.is_empty() {
        return None;
    }
    let own = |key: &str, name: &str| Column::number(key, name, "").digits(Digits::Each);
    let columns = vec![
        Column::text("from", "counted by").naming(),
        Column::text("name", "what").naming(),
        own("per_second", "a second"),
        own("per_transaction", "a transaction"),
        own("at_end", "at the end"),
    ];
    let row = |counted: &&Counted| {
        let level = counted.unit == "level";
        let of =
            |amount: Option<f64>| amount.map_or(Value::Empty, |amount| in_own_unit(amount, &counted.unit));
        let transactions = Some(asked.oltp.said.transactions as f64).filter(|count| *count > 0.0 && !level);
        vec![
            Value::text(&counted.from),
            Value::text(&counted.name),
            of((!level && asked.whole_s > 0.0).then(|| counted.value / asked.whole_s)),
            of(transactions.map(|count| counted.value / count)),
            of(level.then_some(counted.value)),
        ]
    };
    let mut note = "Over the whole measurement; of several servers, their sum. Only what changed.".to_owned();
    if left_out > 0 {
        note.push_str(&format!(
            " The largest {MOST} of each kind and source; {left_out} more are in `lowtide store export --format json`."
        ));
    }
    Some(Table { key, title, note, columns, rows: shown.iter().map(row).collect() }.without_empty_columns())
}

/// What is shown, by source and unit, the largest first; and how much is not.
fn chosen(all: &[Counted]) -> (Vec<&Counted>, usize) {
    let mut sources: Vec<&str> = Vec::new();
    for counted in all {
        if !sources.contains(&counted.from.as_str()) {
            sources.push(&counted.from);
        }
    }
    let times = |from: &str| {
        all.iter().filter(|it| it.from == from && it.unit == "ns").map(|it| it.value).sum::<f64>()
    };
    sources.sort_by(|a, b| times(b).total_cmp(&times(a)));
    let (mut shown, mut left_out) = (Vec::new(), 0);
    for from in sources {
        for unit in UNITS {
            let same =
                |it: &&Counted| it.from == from && it.unit == unit && it.value != 0.0 && it.value.is_finite();
            let mut group: Vec<&Counted> = all.iter().filter(same).collect();
            group.sort_by(|a, b| b.value.abs().total_cmp(&a.value.abs()).then_with(|| a.name.cmp(&b.name)));
            left_out += group.len().saturating_sub(MOST);
            shown.extend(group.into_iter().take(MOST));
        }
    }
    (shown, left_out)
}

fn in_own_unit(amount: f64, unit: &str) -> Value {
    match unit {
        "ns" => Value::Time(amount),
        "bytes" => Value::Size(amount),
        _ => Value::Number(amount),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(from: &str, name: &str, unit: &str, value: f64) -> Counted {
        Counted { from: from.to_owned(), name: name.to_owned(), unit: unit.to_owned(), value }
    }

    #[test]
    fn times_come_first_and_the_largest_of_each_unit() {
        let mut all =
            vec![one("b", "reads", "count", 5.0), one("a", "waits", "ns", 7.0), one("a", "still", "ns", 0.0)];
        all.extend((0..9).map(|n| one("b", &format!("n{n}"), "count", f64::from(n))));
        all.push(one("b", "time", "ns", 1.0));
        let (shown, left_out) = chosen(&all);
        let names: Vec<&str> = shown.iter().map(|it| it.name.as_str()).collect();
        // The source with more time, then the other. What stood still is not there, and three of nine are left out.
        assert_eq!(names, ["waits", "time", "n8", "n7", "n6", "n5", "reads", "n4"]);
        assert_eq!(left_out, 3);
    }
}
