//! The tables of the report: results of each cell, published numbers, comparisons, utilisation.
//!
//! Layout is in `render`, sentences are in `verdict`.

mod cells;
mod claims;
mod compare;
mod databases;
mod not_compared;
mod published;
mod utilisation;

pub(crate) use cells::cells;
pub(crate) use claims::claims;
pub(crate) use compare::{compare, thresholds};
pub(crate) use not_compared::not_compared;
pub(crate) use published::{published, study};
pub(crate) use utilisation::utilisation;

use super::table::{Align, Column};

/// A column of a factor's values; sizes and counts are aligned as numbers.
fn factor_column<'v>(name: &str, mut values: impl Iterator<Item = &'v str>) -> Column {
    let numeric = values.all(|value| value.starts_with(|c: char| c.is_ascii_digit()));
    let column = Column::text(name, &name.replace('_', " ")).naming();
    if numeric { Column { align: Align::Right, ..column } } else { column }
}
