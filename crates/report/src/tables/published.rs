//! The table of published numbers with the campaign's numbers, their errors and remarks.

use crate::comparison::Comparison;
use crate::table::{Align, Column, Digits, Table, Value};

/// The reason for a missing number, and the caveat.
fn remark(comparison: &Comparison) -> String {
    let note = Some(&comparison.note).filter(|note| !note.is_empty());
    let parts: Vec<&str> = comparison.missing.iter().chain(note).map(String::as_str).collect();
    parts.join("; ")
}

/// The comparison table of a campaign; `None` for no published numbers.
pub(crate) fn published(comparisons: &[Comparison], simulated: bool) -> Option<Table> {
    table(comparisons, simulated, false)
}

/// The comparison table of a study, with the row numbers of the study.
pub(crate) fn study(comparisons: &[Comparison]) -> Option<Table> {
    table(comparisons, true, true)
}

fn table(comparisons: &[Comparison], simulated: bool, numbered: bool) -> Option<Table> {
    if comparisons.is_empty() {
        return None;
    }
    // With row numbers, the long names of cells need not be repeated in every part of a split table.
    let named = |column: Column| if numbered { column } else { column.naming() };
    let row = |it: &Comparison| if numbered { Value::number(Some(f64::from(it.line))) } else { Value::Empty };
    let columns = vec![
        Column::text("study", "study").naming(),
        Column::count("row", "row").naming(),
        named(Column {
            align: if numbered { Align::Left } else { Align::Right },
            ..Column::text("where", "where")
        }),
        named(Column::text("metric", "what")),
        Column::each("published", "published", ""),
        Column::each("model", if simulated { "model" } else { "measured" }, ""),
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
        notes.push("≥ and ≤ mark published bounds: a bound that is kept has no error.".to_owned());
    }
    let title = if one_study {
        format!("Comparison with published numbers: {}", comparisons[0].study)
    } else {
        "Comparison with published numbers".to_owned()
    };
    let table = Table::new("published", title, columns, rows).with_note(notes.join(" "));
    Some(table.without_empty_columns())
}
