//! `[sweep]`: the factors of an experiment and their levels, in the order of the file.
//!
//! A factor's levels are one value, a list, or a range that includes both ends: `{ from, to, step }`, or
//! `{ from, to, factor }` for a geometric range. `Step::points` computes the points of a step, the product of its
//! factors.

use super::level::{FactorName, Fault, Level, Raw};
use super::read::{Entry, Table, did_you_mean};
use super::schema;
use serde::{Deserialize, Serialize};

/// The most levels of a factor. A larger number is probably a typing error.
const MOST_LEVELS: usize = 10_000;

/// A factor and its levels, at least one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// The factor's name.
    pub name: FactorName,
    /// Its levels, in the order in which they run.
    pub levels: Vec<Level>,
}

/// Reads a table of factors.
pub(super) fn read(table: &Table<'_>) -> Vec<Factor> {
    let factors = table.in_order().into_iter().filter_map(|entry| {
        let name = factor_name(&entry)?;
        let levels = levels(name, &entry)?;
        Some(Factor { name, levels })
    });
    factors.collect()
}

/// The factor named by a key. Records an unknown factor.
pub(super) fn factor_name(entry: &Entry<'_>) -> Option<FactorName> {
    let name = FactorName::from_name(&entry.name);
    if name.is_none() {
        let hint = did_you_mean(&entry.name, FactorName::NAMES.iter().copied());
        entry.problems.add(
            entry.key_span.clone(),
            format!("unknown factor `{}`{hint}", entry.name),
            "not a factor",
            format!("factors: {}", FactorName::NAMES.join(", ")),
        );
    }
    name
}

/// The levels of a factor: a value, a list or a range.
fn levels(name: FactorName, entry: &Entry<'_>) -> Option<Vec<Level>> {
    let is_device = matches!(name, FactorName::Device | FactorName::LogDevice);
    if let (toml::de::DeValue::Table(_), false) = (entry.value, is_device) {
        return range(name, entry);
    }
    let Some(elements) = entry.elements() else { return Some(vec![name.read(entry)?]) };
    if elements.is_empty() {
        return entry.refuse("a factor without levels", "a value, a list of them, or a range");
    }
    let mut levels = Vec::new();
    for element in &elements {
        let Some(level) = name.read(element) else { continue };
        if levels.contains(&level) {
            element.refuse::<()>(
                format!("{level} is listed twice"),
                "each level once; to measure a level again, set `times` in [repeat]",
            );
        }
        levels.push(level);
    }
    (levels.len() == elements.len()).then_some(levels)
}

fn range(name: FactorName, entry: &Entry<'_>) -> Option<Vec<Level>> {
    if !name.is_numeric() {
        return entry.refuse("a range of names", "a name, or a list of names");
    }
    let table = entry.table()?;
    if !table.only(&schema::RANGE) {
        return None;
    }
    let end = |key: &str| -> Option<(Raw, Entry<'_>)> {
        let entry = table.require(key, "…")?;
        Some((name.raw(&entry)?, entry))
    };
    let (from, to) = (end("from"), end("to"));
    let growth = growth(name, &table);
    let ((from, _), (to, to_entry), growth) = (from?, to?, growth?);
    if from > to {
        let fault = "a range that ends before it begins";
        return to_entry.refuse(fault, "`to` at least as large as `from`");
    }
    let Some(raws) = values(from, to, growth) else {
        let fault = format!("a range of more than {MOST_LEVELS} levels");
        return entry.refuse(fault, "a larger step, or a list");
    };
    let mut levels = Vec::with_capacity(raws.len());
    for raw in raws {
        match name.level(raw) {
            Ok(level) => levels.push(level),
            Err(Fault(fault, accepted)) => return entry.refuse(fault, accepted),
        }
    }
    Some(levels)
}

/// The change from one level of a range to the next.
#[derive(Debug, Clone, Copy)]
enum Growth {
    Add(Raw),
    Multiply(f64),
}

fn growth(name: FactorName, table: &Table<'_>) -> Option<Growth> {
    match (table.get("step"), table.get("factor")) {
        (Some(step), None) => match name.raw(&step)? {
            Raw::Whole(0) | Raw::Fraction(..=0.0) => step.refuse("a step of nothing", "a step above 0"),
            by => Some(Growth::Add(by)),
        },
        (None, Some(factor)) => match factor.number("2")? {
            by if by > 1.0 => Some(Growth::Multiply(by)),
            by => factor.refuse(format!("{by} does not grow"), "a factor above 1, such as `2`"),
        },
        (Some(_), Some(factor)) => {
            let fault = "a range grows by a step or by a factor, not by both";
            factor.refuse(fault, "remove `step` or `factor`")
        }
        (None, None) => {
            let message = "a range without `step` or `factor`";
            table.problems.add(
                table.span.clone(),
                message,
                "here",
                "add `step = …`, or `factor = 2` for doubling",
            );
            None
        }
    }
}

/// The values of a range; `None` if there are too many.
fn values(from: Raw, to: Raw, growth: Growth) -> Option<Vec<Raw>> {
    let mut values = Vec::new();
    let mut next = Some(from);
    while let Some(value) = next.filter(|value| *value <= to) {
        if values.len() == MOST_LEVELS {
            return None;
        }
        values.push(value);
        next = following(from, value, growth, values.len() as f64);
    }
    Some(values)
}

/// The value after `value`, the `n`th after `from`; `None` past the end of the number's range.
fn following(from: Raw, value: Raw, growth: Growth, n: f64) -> Option<Raw> {
    // A whole number grows by at least 1, however small the factor is.
    let times = |value: u64, by: f64| {
        let grown = (value as f64 * by).round();
        (grown < u64::MAX as f64).then_some((grown as u64).max(value + 1))
    };
    // A fraction is computed from `from` and rounded, so that 0.1 + 0.2 is 0.3.
    let tidy = |number: f64| (number * 1e9).round() / 1e9;
    match (value, growth) {
        (Raw::Whole(value), Growth::Add(Raw::Whole(by))) => value.checked_add(by).map(Raw::Whole),
        (Raw::Fraction(_), Growth::Add(Raw::Fraction(by))) => match from {
            Raw::Fraction(from) => Some(Raw::Fraction(tidy(from + by * n))),
            Raw::Whole(_) => None,
        },
        (Raw::Whole(value), Growth::Multiply(by)) => times(value, by).map(Raw::Whole),
        (Raw::Fraction(value), Growth::Multiply(by)) if value > 0.0 => Some(Raw::Fraction(tidy(value * by))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_both_ends_and_stop_before_passing_the_last() {
        let counts = |from, to, growth| values(Raw::Whole(from), Raw::Whole(to), growth).expect("few");
        assert_eq!(counts(1, 16, Growth::Multiply(2.0)), [1, 2, 4, 8, 16].map(Raw::Whole));
        assert_eq!(counts(10, 35, Growth::Add(Raw::Whole(10))), [10, 20, 30].map(Raw::Whole));
        assert_eq!(counts(1, 3, Growth::Multiply(1.1)), [1, 2, 3].map(Raw::Whole));
        assert_eq!(counts(7, 7, Growth::Add(Raw::Whole(1))), [Raw::Whole(7)]);
        let shares =
            values(Raw::Fraction(0.0), Raw::Fraction(0.3), Growth::Add(Raw::Fraction(0.1))).expect("few");
        assert_eq!(shares, [0.0, 0.1, 0.2, 0.3].map(Raw::Fraction));
        assert_eq!(values(Raw::Whole(1), Raw::Whole(1 << 40), Growth::Add(Raw::Whole(1))), None);
        let all = values(Raw::Whole(1 << 62), Raw::Whole(u64::MAX), Growth::Multiply(2.0)).expect("few");
        assert_eq!(all, [1 << 62, 1 << 63].map(Raw::Whole));
    }
}
