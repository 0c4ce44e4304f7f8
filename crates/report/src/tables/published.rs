//! The published comparison: what others measured, what this campaign says, and whether that proves anything.

use crate::comparison::Comparison;
use crate::table::{Align, Column, Digits, Table, Value};

/// The caveat, and why there is no number where there is none.
pub(crate) fn remark(comparison: &Comparison) -> String {
    let parts: Vec<&str> = comparison.missing.iter().map(String::as_str).collect();
    let note = Some(comparison.note.as_str()).filter(|note| !note.is_empty());
    parts.into_iter().chain(note).collect::<Vec<_>>().join("; ")
}

/// The comparison table of a campaign; `None` where there is nothing to compare with.
pub(crate) fn published(comparisons: &[Comparison], simulated: bool) -> Option<Table> {
    table(comparisons, simulated, false)
}

/// The comparison table of a study, whose rows are named by their number in it.
pub(crate) fn study(comparisons: &[Comparison]) -> Option<Table> {
    table(comparisons, true, true)
}

fn table(comparisons: &[Comparison], simulated: bool, numbered: bool) -> Option<Table> {
    if comparisons.is_empty() {
        return None;
    }
    // Long names of cells would be repeated in every part of a table too wide for a terminal.
    let named = |column: Column| if numbered { column } else { column.naming() };
    let row = |it: &Comparison| if numbered { Value::number(Some(f64::from(it.line))) } else { Value::Empty };
    let columns = vec![
        Column::text("study", "study").naming(),
        Column::number("row", "row", "").digits(Digits::Fixed(0)).naming(),
        named(Column {
            align: if numbered { Align::Left } else { Align::Right },
            ..Column::text("where", "where")
        }),
        named(Column::text("metric", "what")),
        Column::number("published", "published", "").digits(Digits::Each),
        Column::number("model", if simulated { "model" } else { "measured" }, "").digits(Digits::Each),
        Column::text("unit", "unit"),
        Column::number("error_percent", "error", "%").digits(Digits::Signed(0)),
        Column::text("used_to_fit", "fitted?"),
        Column::text("note", "remark"),
        Column::text("source", "source"),
    ];
    let one_study = comparisons.iter().all(|c| c.study == comparisons[0].study);
    let one_source = comparisons.iter().all(|c| c.source == comparisons[0].source);
    let rows = comparisons
        .iter()
        .map(|c| {
            let unless = |hidden: bool, text: &str| if hidden { Value::Empty } else { Value::text(text) };
            vec![
                unless(one_study, &c.study),
                row(c),
                Value::text(&c.where_label),
                Value::text(&c.metric),
                Value::Bounded(c.published, c.bound),
                Value::number(c.model),
                Value::text(&c.unit),
                Value::number(c.error_percent),
                Value::Flag(c.used_to_fit, ["fitted", ""]),
                Value::text(remark(c)),
                unless(one_source, &c.source),
            ]
        })
        .collect();
    let mut notes = Vec::new();
    if one_source && !comparisons[0].source.is_empty() {
        notes.push(format!("Source: {}.", comparisons[0].source.trim_end_matches('.')));
    }
    if comparisons.iter().any(|c| c.used_to_fit) {
        notes.push("Numbers marked fitted were used to choose the device's parameters: agreement there proves nothing.".to_owned());
    }
    if comparisons.iter().any(|c| c.bound.is_some()) {
        notes.push("≥ and ≤ mark published bounds: no error is given where the bound is kept.".to_owned());
    }
    let title = if one_study {
        format!("Beside the published numbers: {}", comparisons[0].study)
    } else {
        "Beside the published numbers".to_owned()
    };
    Some(
        Table { key: "published".to_owned(), title, note: notes.join(" "), columns, rows }
            .without_empty_columns(),
    )
}
