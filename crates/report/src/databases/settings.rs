//! The settings that databases ran with, as each calls them, and what was asked for that it has no word for.
//!
//! Settings that several cells share stand once.

use crate::answer::Answer;
use crate::sweep::{short_label, varying};
use crate::table::{Column, Table, Value};

/// More cells than this are counted, not named.
const MOST_NAMED: usize = 4;

/// The table; `None` where no database said its settings.
pub(crate) fn settings(answers: &[Answer<'_>]) -> Option<Table> {
    let varying = varying(answers.iter().map(|a| a.cell));
    let repeated = answers.iter().any(|a| a.cell.repetition > 1);
    // Setting, value, and the cells that have both.
    let mut all: Vec<(&str, &str, Vec<String>)> = Vec::new();
    let mut ignored: Vec<(&str, Vec<String>)> = Vec::new();
    let mut cells = 0;
    for answer in answers {
        let Some(oltp) = answer.cell.oltp.as_deref() else { continue };
        cells += 1;
        let label = || short_label(answer.cell, &varying, repeated);
        for (name, value) in &oltp.settings {
            match all.iter_mut().find(|(n, v, _)| (*n, *v) == (name.as_str(), value.as_str())) {
                Some((.., labels)) => labels.push(label()),
                None => all.push((name, value, vec![label()])),
            }
        }
        for line in &oltp.ignored {
            match ignored.iter_mut().find(|(known, _)| *known == line) {
                Some((_, labels)) => labels.push(label()),
                None => ignored.push((line, vec![label()])),
            }
        }
    }
    if all.is_empty() && ignored.is_empty() {
        return None;
    }
    all.sort_by_key(|(name, ..)| *name);
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
    let set = all.iter().map(|(name, value, labels)| {
        vec![Value::text(*name), Value::text(*value), who(labels), Value::Empty]
    });
    let not_set = ignored
        .iter()
        .map(|(line, labels)| vec![Value::Empty, Value::Empty, who(labels), Value::text(*line)]);
    let rows = set.chain(not_set).collect();
    let note = if ignored.is_empty() {
        String::new()
    } else {
        "Ignored: asked for in the experiment, and the database has no word for it.".to_owned()
    };
    let title = "The settings of the database".to_owned();
    Some(Table { key: "settings".to_owned(), title, note, columns, rows }.without_empty_columns())
}
