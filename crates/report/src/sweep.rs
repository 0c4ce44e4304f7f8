//! The differences between the cells of a campaign: the factors that vary, the factor that drives an axis, and
//! the labels that distinguish curves.
//!
//! The values on an axis are the caller's choice.

use super::group::{distinct, grouped};
use super::number;
use crate::answer::Answer;
pub(crate) use lowtide_record::factors::{identity, varying};
use lowtide_record::{Cell, LevelKind};

/// A curve: cells that differ only in x and in repetition.
pub(crate) struct Group<'s, 'a> {
    /// The label that distinguishes the curve: `random-read, threads 16`; empty for a single curve.
    pub label: String,
    /// The cells, in ascending order of x.
    pub answers: Vec<&'s Answer<'a>>,
}

/// The value of a factor as a number: bytes, nanoseconds or a count; `None` if it is not numeric.
pub(crate) fn number_of(cell: &Cell, factor: &str) -> Option<f64> {
    cell.factor(factor)?.number()
}

/// The value of a factor for people: `256 MiB`, `16`.
pub(crate) fn value_of(cell: &Cell, factor: &str) -> Option<String> {
    let factor = cell.factor(factor)?;
    let size = factor.number().filter(|_| factor.kind == LevelKind::Size);
    Some(size.map_or_else(|| factor.level.clone(), number::size))
}

/// The varying factors with numeric values in all cells, in sweep order.
pub(crate) fn with_numbers(answers: &[Answer<'_>]) -> Vec<String> {
    let mut names = varying(answers.iter().map(|a| a.cell));
    names.retain(|name| are_numeric(answers, name));
    names
}

fn are_numeric(answers: &[Answer<'_>], factor: &str) -> bool {
    answers.iter().all(|a| number_of(a.cell, factor).is_some())
}

/// The names of all factors of the cells, in sweep order.
pub(crate) fn factor_names(cells: &[Cell]) -> Vec<String> {
    distinct(cells.iter().flat_map(identity).map(|factor| factor.name))
}

/// Labels cells by the factors that vary among them.
pub(crate) struct Labels {
    varying: Vec<String>,
    repeated: bool,
}

impl Labels {
    /// Labels that include the repetition if any cell is a repetition.
    pub fn of<'c>(cells: impl IntoIterator<Item = &'c Cell, IntoIter: Clone>) -> Labels {
        let cells = cells.into_iter();
        Labels { repeated: cells.clone().any(|cell| cell.repetition > 1), varying: varying(cells) }
    }

    /// Labels for the cells of `answers`.
    pub fn of_answers(answers: &[Answer<'_>]) -> Labels {
        Labels::of(answers.iter().map(|answer| answer.cell))
    }

    /// Labels without the repetition.
    pub fn without_repetition(answers: &[Answer<'_>]) -> Labels {
        Labels { repeated: false, ..Labels::of_answers(answers) }
    }

    /// The values of the varying factors: `random-read, threads 16`.
    pub fn label(&self, cell: &Cell) -> String {
        short_label(cell, &self.varying, self.repeated)
    }
}

fn short_label(cell: &Cell, varying: &[String], repeated: bool) -> String {
    let factors = identity(cell).into_iter().filter(|factor| varying.contains(&factor.name));
    let mut parts: Vec<String> = factors.map(|factor| factor.describe()).collect();
    if repeated {
        parts.push(format!("repetition {}", cell.repetition));
    }
    if parts.is_empty() { cell.label() } else { parts.join(", ") }
}

/// The curves over `x`; `None` if `x` is the same in every cell or no numeric factor drives it.
pub(crate) fn groups<'s, 'a>(
    answers: &'s [Answer<'a>],
    x: impl Fn(&Answer<'a>) -> Option<f64>,
) -> Option<Vec<Group<'s, 'a>>> {
    let varying = varying(answers.iter().map(|a| a.cell));
    let driver = varying.iter().find(|name| {
        are_numeric(answers, name)
            && split(answers, &varying, name).iter().any(|group| {
                let xs: Vec<Option<f64>> = group.answers.iter().map(|a| x(a)).collect();
                xs.iter().any(|value| *value != xs[0])
            })
    })?;
    let mut groups = split(answers, &varying, driver);
    for group in &mut groups {
        group.answers.retain(|a| x(a).is_some());
        group.answers.sort_by(|a, b| x(a).unwrap_or(0.0).total_cmp(&x(b).unwrap_or(0.0)));
    }
    groups.retain(|group| !group.answers.is_empty());
    Some(groups)
}

fn split<'s, 'a>(answers: &'s [Answer<'a>], varying: &[String], driver: &str) -> Vec<Group<'s, 'a>> {
    let others: Vec<String> = varying.iter().filter(|name| *name != driver).cloned().collect();
    let label = |answer: &Answer<'_>| match others.is_empty() {
        true => String::new(),
        false => short_label(answer.cell, &others, false),
    };
    let groups = grouped(answers.iter().map(|answer| (label(answer), answer)));
    groups.into_iter().map(|(label, answers)| Group { label, answers }).collect()
}

/// `label` as part of a key or a file name: lower-case letters and digits, with `_` in place of all other characters.
pub(crate) fn slug(label: &str) -> String {
    let mapped: String =
        label.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    mapped.split('_').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_")
}
