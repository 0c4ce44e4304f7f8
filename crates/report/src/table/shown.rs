//! Values of a table as text for people, with one precision per column.

use super::{Column, Digits, Table, Value};
use crate::number;

/// The strongest shade in percent at which text stays readable.
const MOST_SHADE: f64 = 55.0;

impl Table {
    /// The values as text for people.
    pub fn formatted(&self) -> Vec<Vec<String>> {
        let decimals: Vec<Option<usize>> = (0..self.columns.len()).map(|c| self.decimals(c)).collect();
        let show_row = |row: &Vec<Value>| -> Vec<String> {
            let values = row.iter().zip(self.columns.iter().zip(&decimals));
            values.map(|(value, (column, decimals))| show(value, column, *decimals)).collect()
        };
        self.rows.iter().map(show_row).collect()
    }

    /// The shade of each value in percent, by its logarithm between the extremes of all shaded columns; `None` for an
    /// unshaded value.
    pub fn shades(&self) -> Vec<Vec<Option<u32>>> {
        let place = |value: &Value| Some((value.magnitude().filter(|v| *v > 0.0)?).ln());
        let shaded = |row: &[Value]| -> Vec<Option<f64>> {
            let values = self.columns.iter().zip(row);
            values.map(|(column, value)| place(value).filter(|_| column.shaded)).collect()
        };
        let places: Vec<Vec<Option<f64>>> = self.rows.iter().map(|row| shaded(row)).collect();
        let all = || places.iter().flatten().flatten().copied();
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        let percent = |place: f64| (MOST_SHADE * (place - low) / (high - low).max(1e-9)).round() as u32;
        places.iter().map(|row| row.iter().map(|place| place.map(percent)).collect()).collect()
    }

    /// The decimals of a column; `None` if each number has its own.
    fn decimals(&self, column: usize) -> Option<usize> {
        match self.columns[column].digits {
            Digits::Fixed(decimals) | Digits::Signed(decimals) => return Some(decimals),
            Digits::Each => return None,
            Digits::Column => {}
        }
        let scale = self.columns[column].scale;
        let values = || self.rows.iter().map(|row| &row[column]);
        let positive = |values: Vec<f64>| {
            let mut positive: Vec<f64> = values.into_iter().filter(|v| *v > 0.0).map(|v| v * scale).collect();
            positive.sort_by(f64::total_cmp);
            positive
        };
        let median = |sorted: &[f64]| sorted[(sorted.len() - 1) / 2];
        let sizes = positive(values().filter_map(Value::magnitude).collect());
        let (first, last) = (*sizes.first()?, *sizes.last()?);
        if last / first >= 1000.0 {
            return None;
        }
        let half = |value: &Value| if let Value::Estimate(_, half) = value { Some(*half) } else { None };
        let halves = positive(values().filter_map(half).collect());
        let of_mean = number::decimals_for(median(&sizes));
        if halves.is_empty() {
            return Some(of_mean);
        }
        Some(number::decimals_for_half_width(median(&halves)).min(of_mean.max(1)))
    }
}

fn show(value: &Value, column: &Column, decimals: Option<usize>) -> String {
    let scale = column.scale;
    let one = |v: f64| {
        let text = decimals.map_or_else(|| number::significant(v * scale), |d| number::fixed(v * scale, d));
        let signed = matches!(column.digits, Digits::Signed(_))
            && v > 0.0
            && text.contains(|c| ('1'..='9').contains(&c));
        if signed { format!("+{text}") } else { text }
    };
    match value {
        Value::Empty => String::new(),
        Value::Text(text) | Value::Missing(text) => text.clone(),
        Value::Flag(set, [yes, no]) => (if *set { *yes } else { *no }).to_owned(),
        Value::Number(v) => one(*v),
        Value::Time(ns) => number::span(*ns),
        Value::Size(bytes) => number::size(*bytes),
        Value::Estimate(mean, half) => match decimals {
            Some(d) => number::estimate_with(mean * scale, half * scale, d),
            None => number::estimate(mean * scale, half * scale),
        },
        Value::Ratio { ratio, low, high, significant, .. } => {
            let [ratio, low, high] =
                [ratio, low, high].map(|v| number::fixed(*v, if *v < 9.9995 { 3 } else { 1 }));
            // A ratio without a mark gets a space in its place, so that the columns stay aligned.
            let mark = if *significant { '*' } else { number::NBSP };
            format!("{ratio}{}[{low},{}{high}]{mark}", number::NBSP, number::NBSP)
        }
        Value::Bounded(v, bound) => bound.map_or_else(|| one(*v), |b| format!("{} {}", b.sign(), one(*v))),
    }
}
