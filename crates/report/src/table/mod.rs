//! A table without layout: columns with a stable key and a unit, and typed values.
//!
//! [`Table::formatted`] returns rounded numbers for people, with one precision per column; [`Table::records`] returns
//! the values for programs. Layout is the task of `render`.

mod shown;

use crate::comparison::Bound;
use crate::group::distinct;
use lowtide_record::analysis::{Estimate, Ratio};
use serde_json::{Map, Value as Json};

/// A table of the report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The key in JSON: `cells`.
    pub key: String,
    /// The heading.
    pub title: String,
    /// Sentences below the table; may be empty.
    pub note: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows; each has one value per column.
    pub rows: Vec<Vec<Value>>,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Key in JSON and CSV, with the unit of the stored value: `settled_mib_per_s`, `latency_ns_p99`.
    pub key: String,
    /// Heading for people.
    pub name: String,
    /// Unit as shown to people; may be empty.
    pub unit: String,
    /// The factor from the stored value to `unit`.
    pub scale: f64,
    /// The alignment of values.
    pub align: Align,
    /// The decimals that people see.
    pub digits: Digits,
    /// Whether the column identifies the row, so that each part of a split table repeats it.
    pub names_row: bool,
    /// Whether a page shades the values, on a scale shared by all shaded columns.
    pub shaded: bool,
    /// Whether the text takes the width that the other columns leave.
    pub wide: bool,
}

/// The alignment of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// The decimals of a column's numbers as people see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digits {
    /// One number of decimals for the column, chosen from its values.
    Column,
    /// About three significant digits for each number, for columns of mixed units.
    Each,
    /// A fixed number of decimals.
    Fixed(usize),
    /// A fixed number of decimals with a sign, for differences.
    Signed(usize),
}

/// One value of a [`Table`].
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// No value.
    #[default]
    Empty,
    /// Words.
    Text(String),
    /// A number.
    Number(f64),
    /// Nanoseconds, shown in the unit that fits. In JSON and CSV the field `{key}_unit` names the stored unit.
    Time(f64),
    /// Bytes, shown in the unit that fits, with the field `{key}_unit` as for `Time`.
    Size(f64),
    /// A mean and half its 95 % confidence interval.
    Estimate(f64, f64),
    /// A number, or a bound.
    Bounded(f64, Option<Bound>),
    /// A ratio with its 95 % confidence interval and its significance.
    Ratio {
        /// The ratio.
        ratio: f64,
        /// Lower end of the interval.
        low: f64,
        /// Upper end.
        high: f64,
        /// Whether the ratio is marked as different from 1.
        significant: bool,
        /// The probability of such a ratio if the true one is 1.
        probability: f64,
    },
    /// Yes or no, and the words for yes and no.
    Flag(bool, [&'static str; 2]),
    /// The reason for a missing number: `no steady state`. In JSON and CSV it is the field `{key}_missing`.
    Missing(String),
}

impl Value {
    /// A number; empty for `None` and for numbers that are not finite.
    pub fn number(value: Option<f64>) -> Value {
        value.filter(|v| v.is_finite()).map_or(Value::Empty, Value::Number)
    }
    /// Text; empty for an empty string.
    pub fn text(text: impl Into<String>) -> Value {
        let text = text.into();
        if text.is_empty() { Value::Empty } else { Value::Text(text) }
    }
    /// A ratio with its interval.
    pub fn ratio(ratio: &Ratio, significant: bool, probability: f64) -> Value {
        let Ratio { ratio, low, high, .. } = *ratio;
        Value::Ratio { ratio, low, high, significant, probability }
    }
    /// The settled level; empty for `None`.
    pub fn estimate(estimate: Option<Estimate>) -> Value {
        estimate.map_or(Value::Empty, |it| Value::Estimate(it.mean, it.half_width))
    }
    fn magnitude(&self) -> Option<f64> {
        match self {
            Value::Number(v) | Value::Estimate(v, _) | Value::Bounded(v, _) => Some(v.abs()),
            Value::Ratio { ratio, .. } => Some(ratio.abs()),
            _ => None,
        }
    }
}

impl Column {
    /// A column of text.
    pub fn text(key: &str, name: &str) -> Column {
        Column {
            key: key.to_owned(),
            name: name.to_owned(),
            unit: String::new(),
            scale: 1.0,
            align: Align::Left,
            digits: Digits::Each,
            names_row: false,
            shaded: false,
            wide: false,
        }
    }
    /// A column of numbers that are shown as stored.
    pub fn number(key: &str, name: &str, unit: &str) -> Column {
        Column {
            unit: unit.to_owned(),
            align: Align::Right,
            digits: Digits::Column,
            ..Column::text(key, name)
        }
    }
    /// A column of whole numbers.
    pub fn count(key: &str, name: &str) -> Column {
        Column::number(key, name, "").digits(Digits::Fixed(0))
    }
    /// A column of shares, shown as whole percentages.
    pub fn percent(key: &str, name: &str) -> Column {
        Column::number(key, name, "%").scaled(100.0).digits(Digits::Fixed(0))
    }
    /// A column of numbers with three significant digits each.
    pub fn each(key: &str, name: &str, unit: &str) -> Column {
        Column::number(key, name, unit).digits(Digits::Each)
    }
    /// The column with its values multiplied by `scale` for display.
    pub fn scaled(self, scale: f64) -> Column {
        Column { scale, ..self }
    }
    /// The column with a fixed choice of decimals.
    pub fn digits(self, digits: Digits) -> Column {
        Column { digits, ..self }
    }
    /// The column, repeated in each part of a split table.
    pub fn naming(self) -> Column {
        Column { names_row: true, ..self }
    }
    /// The column with shaded values on a page.
    pub fn shaded(self) -> Column {
        Column { shaded: true, ..self }
    }
    /// The column, with the width that the other columns leave.
    pub fn wide(self) -> Column {
        Column { wide: true, ..self }
    }
    /// Heading and unit on one line: `settled (MiB/s)`.
    pub fn heading(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.unit) }
    }
}

impl Table {
    /// A table without a note.
    pub fn new(
        key: impl Into<String>,
        title: impl Into<String>,
        columns: Vec<Column>,
        rows: Vec<Vec<Value>>,
    ) -> Table {
        Table { key: key.into(), title: title.into(), note: String::new(), columns, rows }
    }
    /// The table with sentences below it.
    pub fn with_note(self, note: impl Into<String>) -> Table {
        Table { note: note.into(), ..self }
    }
    /// Drops the columns that are empty in every row.
    pub fn without_empty_columns(mut self) -> Table {
        let keep: Vec<bool> =
            (0..self.columns.len()).map(|c| self.rows.iter().any(|row| row[c] != Value::Empty)).collect();
        let mut kept = keep.iter();
        self.columns.retain(|_| *kept.next().expect("one flag per column"));
        for row in &mut self.rows {
            let mut kept = keep.iter();
            row.retain(|_| *kept.next().expect("one flag per column"));
        }
        self
    }

    /// The rows as JSON objects: numbers unrounded, empty values absent.
    pub fn records(&self) -> Vec<Map<String, Json>> {
        self.rows
            .iter()
            .map(|row| self.columns.iter().zip(row).flat_map(|(c, v)| fields(&c.key, v)).collect())
            .collect()
    }

    /// The keys of [`Table::records`] in column order, of all rows.
    pub fn record_keys(&self) -> Vec<String> {
        let keys = self.columns.iter().enumerate().flat_map(|(c, column)| {
            let of_rows = self.rows.iter().flat_map(move |row| fields(&column.key, &row[c]));
            std::iter::once(column.key.clone()).chain(of_rows.map(|(key, _)| key))
        });
        distinct(keys)
    }
}

fn fields(key: &str, value: &Value) -> Vec<(String, Json)> {
    let first = |json: Json| (key.to_owned(), json);
    match value {
        Value::Empty => Vec::new(),
        Value::Text(text) => vec![first(Json::from(text.as_str()))],
        Value::Number(v) => vec![first(Json::from(*v))],
        Value::Time(v) => vec![first(Json::from(*v)), (format!("{key}_unit"), Json::from("ns"))],
        Value::Size(v) => vec![first(Json::from(*v)), (format!("{key}_unit"), Json::from("bytes"))],
        Value::Flag(set, _) => vec![first(Json::from(*set))],
        Value::Missing(why) => vec![(format!("{key}_missing"), Json::from(why.as_str()))],
        Value::Estimate(mean, half) => {
            vec![first(Json::from(*mean)), (format!("{key}_half_width"), Json::from(*half))]
        }
        Value::Ratio { ratio, low, high, significant, probability } => {
            let with = |end: &str, json: Json| (format!("{key}_{end}"), json);
            vec![
                first(Json::from(*ratio)),
                with("low", Json::from(*low)),
                with("high", Json::from(*high)),
                with("significant", Json::from(*significant)),
                with("probability", Json::from(*probability)),
            ]
        }
        Value::Bounded(v, None) => vec![first(Json::from(*v))],
        Value::Bounded(v, Some(bound)) => {
            vec![first(Json::from(*v)), (format!("{key}_bound"), Json::from(bound.word()))]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = vec![
            Column::text("size", "size"),
            Column::number("settled_mib_per_s", "settled", "MiB/s"),
            Column::number("latency_ns_p99", "p99", "ms").scaled(1e-6),
            Column::number("nothing", "nothing", ""),
        ];
        let row =
            |size: &str, settled: Value, p99: Value| vec![Value::text(size), settled, p99, Value::Empty];
        let rows = vec![
            row("10GiB", Value::Estimate(100.37, 0.26), Value::Number(2_864_000.0)),
            row("140GiB", Value::Estimate(15.2, 0.31), Value::Empty),
            row("150GiB", Value::Missing("failed".to_owned()), Value::Empty),
        ];
        Table::new("", "", columns, rows)
    }

    #[test]
    fn a_column_has_one_precision_and_empty_columns_are_dropped() {
        let table = table().without_empty_columns();
        assert_eq!(table.columns.len(), 3);
        assert_eq!(
            table.formatted(),
            [
                ["10GiB", "100.4\u{a0}±\u{a0}0.3", "2.86"],
                ["140GiB", "15.2\u{a0}±\u{a0}0.3", ""],
                ["150GiB", "failed", ""]
            ]
        );
    }

    #[test]
    fn shades_follow_the_logarithm_over_all_shaded_columns() {
        let value = |v: f64| vec![Value::text("row"), Value::Number(v), Value::Number(10.0 * v)];
        let columns = vec![
            Column::text("row", "row"),
            Column::number("a", "a", "").shaded(),
            Column::number("b", "b", "").shaded(),
        ];
        let table = Table::new("", "", columns, vec![value(1.0), value(10.0)]);
        assert_eq!(table.shades(), [[None, Some(0), Some(28)], [None, Some(28), Some(55)]]);
        let plain =
            Table { columns: vec![Column::text("row", "row")], rows: vec![vec![Value::Empty]], ..table };
        assert_eq!(plain.shades(), [[None]]);
    }

    #[test]
    fn records_keep_every_digit_and_name_the_half_width() {
        let table = table();
        assert_eq!(
            table.record_keys(),
            [
                "size",
                "settled_mib_per_s",
                "settled_mib_per_s_half_width",
                "settled_mib_per_s_missing",
                "latency_ns_p99",
                "nothing"
            ]
        );
        let first = &table.records()[0];
        assert_eq!(first["settled_mib_per_s"], 100.37);
        assert_eq!(first["latency_ns_p99"], 2_864_000.0);
        assert!(!first.contains_key("nothing"));
    }
}
