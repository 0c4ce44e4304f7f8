//! A table that no renderer owns: columns with a stable key and a unit, and typed values.
//!
//! People get rounded numbers with one precision per column ([`Table::formatted`]); machines get the values
//! ([`Table::records`]). Not here: layout; that is `render`.

mod shown;

use crate::comparison::Bound;
use serde_json::{Map, Value as Json};

/// A table of the report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The key in JSON and the name of the part in CSV: `cells`.
    pub key: String,
    /// The heading.
    pub title: String,
    /// Sentences below the table; empty where there is nothing to say.
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
    /// Unit as shown to people; empty where there is none.
    pub unit: String,
    /// The stored value is multiplied by this to be shown in `unit`.
    pub scale: f64,
    /// On which side values are set.
    pub align: Align,
    /// How many decimals people see.
    pub digits: Digits,
    /// The column names the row, so a split table repeats it.
    pub names_row: bool,
    /// On a page its values are shaded, together with those of the table's other such columns.
    pub shaded: bool,
    /// Its words take the room that the other columns leave.
    pub wide: bool,
}

/// On which side of a column values are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// How many decimals of a column's numbers people see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digits {
    /// The same for the whole column, chosen from its values.
    Column,
    /// About three significant digits each: for columns of mixed units.
    Each,
    /// This many.
    Fixed(usize),
    /// This many, with a sign: for differences.
    Signed(usize),
}

/// One value of a [`Table`].
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// Nothing to say.
    #[default]
    Empty,
    /// Words.
    Text(String),
    /// A number.
    Number(f64),
    /// Nanoseconds, which people read in the unit that fits. Machines find theirs under the column's key with `_unit`
    /// behind it.
    Time(f64),
    /// Bytes, the same way.
    Size(f64),
    /// A mean and half its 95 % confidence interval.
    Estimate(f64, f64),
    /// A number that may be only a bound.
    Bounded(f64, Option<Bound>),
    /// A ratio with its 95 % confidence interval, the chance of such a one where the truth is 1, and whether that is
    /// little.
    Ratio {
        /// The ratio.
        ratio: f64,
        /// Lower end of the interval.
        low: f64,
        /// Upper end.
        high: f64,
        /// Marked for people.
        significant: bool,
        /// The chance, 0 to 1.
        probability: f64,
    },
    /// Yes or no, and the words for yes and no.
    Flag(bool, [&'static str; 2]),
    /// Why there is no number, in a column of numbers: `no steady state`. Machines find it under the column's key
    /// with `_missing` behind it.
    Missing(String),
}

impl Value {
    /// A number, or nothing.
    pub fn number(value: Option<f64>) -> Value {
        value.filter(|v| v.is_finite()).map_or(Value::Empty, Value::Number)
    }
    /// Words; nothing where they are empty.
    pub fn text(text: impl Into<String>) -> Value {
        let text = text.into();
        if text.is_empty() { Value::Empty } else { Value::Text(text) }
    }
    fn magnitude(&self) -> Option<f64> {
        match self {
            Value::Number(v) | Value::Estimate(v, _) | Value::Bounded(v, _) => Some(v.abs()),
            Value::Ratio { ratio, .. } => Some(ratio.abs()),
            Value::Empty
            | Value::Text(_)
            | Value::Time(_)
            | Value::Size(_)
            | Value::Flag(..)
            | Value::Missing(_) => None,
        }
    }
}

impl Column {
    /// A column of words.
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
    /// A column of numbers that are shown as they are stored.
    pub fn number(key: &str, name: &str, unit: &str) -> Column {
        Column {
            unit: unit.to_owned(),
            align: Align::Right,
            digits: Digits::Column,
            ..Column::text(key, name)
        }
    }
    /// The same column, its values multiplied by `scale` when shown.
    pub fn scaled(self, scale: f64) -> Column {
        Column { scale, ..self }
    }
    /// The same column with a fixed choice of decimals.
    pub fn digits(self, digits: Digits) -> Column {
        Column { digits, ..self }
    }
    /// The same column, repeated where the table is split.
    pub fn naming(self) -> Column {
        Column { names_row: true, ..self }
    }
    /// The same column, its values shaded on a page.
    pub fn shaded(self) -> Column {
        Column { shaded: true, ..self }
    }
    /// The same column, its words as wide as there is room.
    pub fn wide(self) -> Column {
        Column { wide: true, ..self }
    }
    /// Heading and unit on one line: `settled (MiB/s)`.
    pub fn heading(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.unit) }
    }
}

impl Table {
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

    /// Every row as a JSON object: numbers unrounded, empty values absent.
    pub fn records(&self) -> Vec<Map<String, Json>> {
        self.rows
            .iter()
            .map(|row| self.columns.iter().zip(row).flat_map(|(c, v)| fields(&c.key, v)).collect())
            .collect()
    }

    /// The keys of [`Table::records`] in column order, whether or not a row has them.
    pub fn record_keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for (c, column) in self.columns.iter().enumerate() {
            keys.push(column.key.clone());
            for row in &self.rows {
                for (key, _) in fields(&column.key, &row[c]) {
                    if !keys.contains(&key) {
                        keys.push(key);
                    }
                }
            }
        }
        keys
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
        Table {
            columns: vec![
                Column::text("size", "size"),
                Column::number("settled_mib_per_s", "settled", "MiB/s"),
                Column::number("latency_ns_p99", "p99", "ms").scaled(1e-6),
                Column::number("nothing", "nothing", ""),
            ],
            rows: vec![
                vec![
                    Value::text("10GiB"),
                    Value::Estimate(100.37, 0.26),
                    Value::Number(2_864_000.0),
                    Value::Empty,
                ],
                vec![Value::text("140GiB"), Value::Estimate(15.2, 0.31), Value::Empty, Value::Empty],
                vec![Value::text("150GiB"), Value::Missing("failed".to_owned()), Value::Empty, Value::Empty],
            ],
            ..Table::default()
        }
    }

    #[test]
    fn a_column_has_one_precision_and_empty_columns_go() {
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
    fn shades_go_by_the_logarithm_over_all_shaded_columns() {
        let value = |v: f64| vec![Value::text("row"), Value::Number(v), Value::Number(10.0 * v)];
        let table = Table {
            columns: vec![
                Column::text("row", "row"),
                Column::number("a", "a", "").shaded(),
                Column::number("b", "b", "").shaded(),
            ],
            rows: vec![value(1.0), value(10.0)],
            ..Table::default()
        };
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
