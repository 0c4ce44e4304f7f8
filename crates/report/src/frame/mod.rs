//! A campaign as columns of plain values for programs. Each column has a name, a unit and a description.
//!
//! ```text
//!   record::Campaign, Store ──► Frame: cells | intervals | steady | transactions | histograms
//! ```
//!
//! Numeric factors have the values written in the experiment. Measured values are not scaled back.

mod factors;
mod tables;

pub use tables::{cells, histograms, intervals, planned, steady, transactions};

use std::sync::Arc;

/// Columns of the same length.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Frame {
    /// The columns; names differ.
    pub columns: Vec<Column>,
}

/// A column with its description.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name, with the unit if a reader could mistake it: `latency_ns_p99`.
    pub name: String,
    /// The unit: `B`, `s`, `ns`, `MiB/s`; may be empty.
    pub unit: &'static str,
    /// The description, one line.
    pub doc: String,
    /// The values.
    pub values: Values,
}

/// The values of a column; `None` for an unknown value.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Words.
    Text(Vec<Option<Arc<str>>>),
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Numbers.
    Real(Vec<Option<f64>>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
}

impl Values {
    /// The number of values.
    pub fn count(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Whole(values) => values.len(),
            Values::Real(values) => values.len(),
            Values::Flag(values) => values.len(),
        }
    }

    /// Returns whether all values are `None`.
    fn are_absent(&self) -> bool {
        match self {
            Values::Text(values) => values.iter().all(Option::is_none),
            Values::Whole(values) => values.iter().all(Option::is_none),
            Values::Real(values) => values.iter().all(Option::is_none),
            Values::Flag(values) => values.iter().all(Option::is_none),
        }
    }

    /// The values of `rows`, in that order.
    fn at(&self, rows: &[usize]) -> Values {
        fn pick<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
            rows.iter().map(|row| values[*row].clone()).collect()
        }
        match self {
            Values::Text(values) => Values::Text(pick(values, rows)),
            Values::Whole(values) => Values::Whole(pick(values, rows)),
            Values::Real(values) => Values::Real(pick(values, rows)),
            Values::Flag(values) => Values::Flag(pick(values, rows)),
        }
    }
}

impl Column {
    fn new(name: &str, unit: &'static str, doc: &str, values: Values) -> Self {
        Column { name: name.to_owned(), unit, doc: doc.to_owned(), values }
    }

    fn text<'t>(name: &str, doc: &str, values: impl Iterator<Item = Option<&'t str>>) -> Self {
        let mut known: std::collections::BTreeMap<&str, Arc<str>> = Default::default();
        let mut shared = |text: &'t str| Arc::clone(known.entry(text).or_insert_with(|| text.into()));
        Column::new(name, "", doc, Values::Text(values.map(|value| value.map(&mut shared)).collect()))
    }

    fn whole(name: &str, unit: &'static str, doc: &str, values: impl Iterator<Item = Option<u64>>) -> Self {
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        Column::new(name, unit, doc, Values::Whole(values.map(|value| value.map(signed)).collect()))
    }

    fn real(name: &str, unit: &'static str, doc: &str, values: impl Iterator<Item = Option<f64>>) -> Self {
        let finite = values.map(|value| value.filter(|number| number.is_finite()));
        Column::new(name, unit, doc, Values::Real(finite.collect()))
    }
}

impl Frame {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.count())
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Drops the columns among `names` that have no values.
    fn without_absent(mut self, names: &[&str]) -> Self {
        self.columns.retain(|it| !names.contains(&it.name.as_str()) || !it.values.are_absent());
        self
    }
}
