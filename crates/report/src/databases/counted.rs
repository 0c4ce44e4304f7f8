//! Time and work that the database, and the kernel on its behalf, counted during the measurement.
//!
//! Sources with the most time come first, each with its largest counters by unit, because a database has hundreds of
//! counters. `export` has all of them.

use super::Activity;
use crate::answer::Answer;
use crate::group::distinct;
use crate::sweep::Labels;
use crate::table::{Column, Table, Value};
use lowtide_record::Counted;

/// Counters shown per source and unit.
const MOST: usize = 6;
/// The units in display order.
const UNITS: [&str; 4] = ["ns", "bytes", "count", "level"];

/// A table for each cell whose database has counters.
pub(crate) fn counted(answers: &[Answer<'_>]) -> Vec<Table> {
    let labels = Labels::of_answers(answers);
    let of_cell = |answer: &Answer<'_>| {
        let activity = Activity::of(answer)?;
        let (key, title) = match answers.len() {
            1 => ("counted".to_owned(), "Where the time went".to_owned()),
            _ => (
                format!("counted_{}", answer.cell.index),
                format!("Where the time went: {}", labels.label(answer.cell)),
            ),
        };
        table(&activity, key, title)
    };
    answers.iter().filter_map(of_cell).collect()
}

fn table(activity: &Activity<'_>, key: String, title: String) -> Option<Table> {
    let all = &activity.oltp.counted;
    let (shown, left_out) = chosen(all);
    if shown.is_empty() {
        return None;
    }
    let columns = vec![
        Column::text("from", "counted by").naming(),
        Column::text("name", "what").naming(),
        Column::each("per_second", "per second", ""),
        Column::each("per_transaction", "per transaction", ""),
        Column::each("at_end", "at the end", ""),
    ];
    let row = |counted: &&Counted| {
        let level = counted.unit == "level";
        let of =
            |amount: Option<f64>| amount.map_or(Value::Empty, |amount| in_own_unit(amount, &counted.unit));
        let transactions = activity.oltp.said.transactions as f64;
        vec![
            Value::text(&counted.from),
            Value::text(&counted.name),
            of((!level && activity.total_s > 0.0).then(|| counted.value / activity.total_s)),
            of((!level && transactions > 0.0).then(|| counted.value / transactions)),
            of(level.then_some(counted.value)),
        ]
    };
    let mut note =
        "Over the whole measurement; the sum of all servers. Unchanged counters are left out.".to_owned();
    if left_out > 0 {
        note.push_str(&format!(
            " The largest {MOST} of each kind and source; {left_out} more are in `lowtide store export --format json`."
        ));
    }
    let table = Table::new(key, title, columns, shown.iter().map(row).collect());
    Some(table.with_note(note).without_empty_columns())
}

/// The counters shown, by source and unit, the largest first; and the number of those left out.
fn chosen(all: &[Counted]) -> (Vec<&Counted>, usize) {
    let mut sources = distinct(all.iter().map(|counted| counted.from.as_str()));
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
        // The source with more time first, without the unchanged counter. Three of nine are left out.
        assert_eq!(names, ["waits", "time", "n8", "n7", "n6", "n5", "reads", "n4"]);
        assert_eq!(left_out, 3);
    }
}
