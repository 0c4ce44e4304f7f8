//! The published numbers that are not compared, with the reasons.

use crate::table::{Column, Table, Value};
use lowtide_lab::experiment::NotCompared;

/// The table, a row for each reason; `None` if every number is compared.
pub(crate) fn not_compared(excuses: &[NotCompared]) -> Option<Table> {
    let columns =
        vec![Column::text("study", "study"), Column::text("rows", "rows"), Column::text("why", "why not")];
    let row = |excuse: &NotCompared| {
        let lines: Vec<String> = excuse.rows.iter().map(|row| row.line.to_string()).collect();
        let study = excuse.rows.first().map_or(Value::Empty, |row| Value::text(&row.study));
        vec![study, Value::text(lines.join(", ")), Value::text(&excuse.why)]
    };
    let rows: Vec<Vec<Value>> = excuses.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table::new("not_compared", "Published and not compared", columns, rows))
}
