//! The settings of databases under their own names, and requested settings that a database does not have.
//!
//! Settings shared by several cells appear once.

use crate::answer::Answer;
use crate::group::grouped;
use crate::sweep::Labels;
use crate::{Column, Table, Value};

/// Lists of more cells than this show only their number.
const MOST_NAMED: usize = 4;

/// The table; `None` if no settings are known.
pub(crate) fn settings(answers: &[Answer<'_>]) -> Option<Table> {
    let labels = Labels::of_answers(answers);
    let databases = || answers.iter().filter_map(|it| Some((it.cell, it.cell.oltp.as_deref()?)));
    let cells = databases().count();
    let mut all = grouped(databases().flat_map(|(cell, oltp)| {
        let label = labels.label(cell);
        oltp.settings.iter().map(move |(name, value)| ((name.as_str(), value.as_str()), label.clone()))
    }));
    let ignored = grouped(databases().flat_map(|(cell, oltp)| {
        let label = labels.label(cell);
        oltp.ignored.iter().map(move |line| (line.as_str(), label.clone()))
    }));
    if all.is_empty() && ignored.is_empty() {
        return None;
    }
    all.sort_by_key(|((name, _), _)| *name);
    let who = |labels: &[String]| match labels.len() {
        all if all == cells => Value::Empty,
        many if many > MOST_NAMED => Value::text(format!("{many} of {cells} cells")),
        _ => Value::text(labels.join("; ")),
    };
    let columns = vec![
        Column::text("setting", "setting").naming(),
        Column::text("value", "value"),
        Column::text("cells", "only in"),
        Column::text("ignored", "ignored"),
    ];
    let set = all.iter().map(|((name, value), labels)| {
        vec![Value::text(*name), Value::text(*value), who(labels), Value::Empty]
    });
    let not_set = ignored
        .iter()
        .map(|(line, labels)| vec![Value::Empty, Value::Empty, who(labels), Value::text(*line)]);
    let rows = set.chain(not_set).collect();
    let note = match ignored.is_empty() {
        true => "",
        false => "Ignored: requested in the experiment, but the database has no such setting.",
    };
    let table = Table::new("settings", "The settings of the database", columns, rows);
    Some(table.with_note(note).without_empty_columns())
}
