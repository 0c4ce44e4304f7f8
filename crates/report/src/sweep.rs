//! How the cells of a campaign differ: which factors vary, which of them drives an axis, what is left to
//! tell the curves apart.
//!
//! Not here: values of the axes; the caller says what is on x.

use super::number;
use crate::answer::Answer;
pub(crate) use lowtide_record::factors::{identity, varying};
use lowtide_record::{Cell, FactorLevel, LevelKind};

/// A curve: the cells that differ only in what is on x (and in repetition).
pub(crate) struct Group<'s, 'a> {
    /// What sets it apart: `random-read, threads 16`; empty where there is only one group.
    pub label: String,
    /// Its cells, by growing x.
    pub answers: Vec<&'s Answer<'a>>,
}

/// The value of a factor as a number: bytes, nanoseconds or a count; `None` where it is none.
pub(crate) fn number_of(cell: &Cell, factor: &str) -> Option<f64> {
    cell.factor(factor)?.number()
}

/// The value of a factor for people: `256 MiB`, `16`.
pub(crate) fn value_of(cell: &Cell, factor: &str) -> Option<String> {
    let factor = cell.factor(factor)?;
    let size = factor.number().filter(|_| factor.kind == LevelKind::Size);
    Some(size.map_or_else(|| factor.level.clone(), number::size))
}

/// The factors that vary and have numbers in all cells, in sweep order.
pub(crate) fn with_numbers(answers: &[Answer<'_>]) -> Vec<String> {
    let mut names = varying(answers.iter().map(|a| a.cell));
    names.retain(|name| answers.iter().all(|a| number_of(a.cell, name).is_some()));
    names
}

/// What the cell is called among its like: its values of the varying factors.
pub(crate) fn short_label(cell: &Cell, varying: &[String], repeated: bool) -> String {
    let mut parts: Vec<String> = identity(cell)
        .iter()
        .filter(|factor| varying.contains(&factor.name))
        .map(FactorLevel::describe)
        .collect();
    if repeated {
        parts.push(format!("repetition {}", cell.repetition));
    }
    if parts.is_empty() { cell.label() } else { parts.join(", ") }
}

/// The curves over `x`; `None` where `x` is the same in every cell, or no factor with numbers drives it.
pub(crate) fn groups<'s, 'a>(
    answers: &'s [Answer<'a>],
    x: impl Fn(&Answer<'a>) -> Option<f64>,
) -> Option<Vec<Group<'s, 'a>>> {
    let varying = varying(answers.iter().map(|a| a.cell));
    let driver = varying.iter().find(|name| {
        let numeric = answers.iter().all(|a| number_of(a.cell, name).is_some());
        numeric
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
    let mut groups: Vec<Group<'s, 'a>> = Vec::new();
    for answer in answers {
        let label = if others.is_empty() { String::new() } else { short_label(answer.cell, &others, false) };
        match groups.iter_mut().find(|group| group.label == label) {
            Some(group) => group.answers.push(answer),
            None => groups.push(Group { label, answers: vec![answer] }),
        }
    }
    groups
}

/// `label` as part of a key or a file name: lower case letters and digits, the rest `_`.
pub(crate) fn slug(label: &str) -> String {
    let mapped: String =
        label.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    mapped.split('_').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_")
}
