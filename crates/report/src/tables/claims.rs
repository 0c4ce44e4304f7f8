//! The table of checked claims.

use crate::claim::Checked;
use crate::table::{Column, Table, Value};

/// The table of claims; `None` for no claims.
pub(crate) fn claims(claims: &[Checked]) -> Option<Table> {
    if claims.is_empty() {
        return None;
    }
    let columns = vec![
        Column::text("study", "study"),
        Column::text("name", "claim").naming(),
        Column::text("holds", "holds?"),
        Column::text("found", "found"),
        Column::text("check", "checked"),
        Column::text("says", "as published"),
        Column::text("left_out", "explained in"),
    ];
    let row = |claim: &Checked| {
        vec![
            Value::text(&claim.study),
            Value::text(&claim.name),
            Value::Flag(claim.holds, ["yes", "NO"]),
            Value::text(&claim.found),
            Value::text(&claim.check),
            Value::text(&claim.says),
            claim.left_out.as_deref().filter(|_| !claim.holds).map_or(Value::Empty, Value::text),
        ]
    };
    let rows = claims.iter().map(row).collect();
    Some(Table::new("claims", "Claims of the studies", columns, rows).without_empty_columns())
}
