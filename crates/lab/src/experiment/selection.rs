//! Selections of cells: `where = { file_size = "100GiB", repetition = 2 }`, in one step or in all steps.
//!
//! A condition is a level, a list of levels, or a range of numbers. A [`Selection`] matches points of a sweep, not
//! recorded cells.

use super::level::{FactorName, Level};
use super::read::{Entry, did_you_mean};
use super::schema;
use super::step::Step;
use super::sweep::factor_name;
use serde::{Deserialize, Serialize};
use toml::de::DeValue;

/// The key of a condition on repetitions, which are not a factor.
const REPETITION: &str = "repetition";

/// A condition on the level of a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Accept {
    /// One of these levels.
    OneOf(Vec<Level>),
    /// A number from the first level to the second, both included.
    Between(Level, Level),
}

/// A selection of the cells that meet all conditions. Without conditions it contains every cell.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Selection {
    /// The step of the cells; `None` for all steps.
    pub step: Option<String>,
    /// The factors and the accepted levels.
    pub conditions: Vec<(FactorName, Accept)>,
    /// The accepted repetitions; empty for all.
    pub repetitions: Vec<u32>,
}

impl Selection {
    /// Returns whether the selection contains a repetition of a point of the step's sweep. A factor that is not
    /// varied meets no condition.
    pub fn includes(&self, step: &Step, point: &[Level], repetition: u32) -> bool {
        (self.step.is_none() || self.step == step.name)
            && (self.repetitions.is_empty() || self.repetitions.contains(&repetition))
            && self.conditions.iter().all(|(name, accept)| {
                let level = point.iter().find(|level| level.factor() == *name);
                level.is_some_and(|level| match accept {
                    Accept::OneOf(levels) => levels.contains(level),
                    Accept::Between(from, to) => {
                        level.number() >= from.number() && level.number() <= to.number()
                    }
                })
            })
    }

    /// The selection for people: `second pass, 10GiB to 30GiB, repetition 2`.
    pub fn label(&self) -> String {
        fn list(items: &[impl ToString]) -> String {
            items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        let conditions = self.conditions.iter().map(|(name, accept)| {
            let text = match accept {
                Accept::OneOf(levels) => list(levels),
                Accept::Between(from, to) => format!("{from} to {to}"),
            };
            if name.names_itself() { text } else { format!("{name} {text}") }
        });
        let repetitions =
            (!self.repetitions.is_empty()).then(|| format!("repetition {}", list(&self.repetitions)));
        let parts: Vec<String> = self.step.iter().cloned().chain(conditions).chain(repetitions).collect();
        if parts.is_empty() { "every cell".to_owned() } else { parts.join(", ") }
    }
}

/// Reads the conditions for cells of `step`. Without an entry, the selection contains every cell of the step.
#[expect(clippy::option_option, reason = "an absent step and a bad one are different")]
pub(super) fn read(entry: Option<Entry<'_>>, step: Option<Option<String>>) -> Option<Selection> {
    let mut selection = Selection::default();
    let mut is_complete = true;
    if let Some(entry) = entry {
        for entry in entry.table()?.in_order() {
            if entry.name == REPETITION {
                let repetitions = repetitions(&entry);
                is_complete &= repetitions.is_some();
                selection.repetitions = repetitions.unwrap_or_default();
                continue;
            }
            let condition = factor_name(&entry).and_then(|name| Some((name, accept(name, &entry)?)));
            is_complete &= condition.is_some();
            selection.conditions.extend(condition);
        }
    }
    selection.step = step?;
    is_complete.then_some(selection)
}

/// The step named by the value of a key.
pub(super) fn step_name(entry: &Entry<'_>, steps: &[Step]) -> Option<String> {
    let given = entry.text("\"second pass\"")?;
    let names: Vec<&str> = steps.iter().filter_map(|step| step.name.as_deref()).collect();
    if names.contains(&given.as_str()) {
        return Some(given);
    }
    let hint = did_you_mean(&given, names.iter().copied());
    let steps = if names.is_empty() { "none; add `[[step]]` tables".to_owned() } else { names.join(", ") };
    entry.refuse(format!("unknown step `{given}`{hint}"), format!("steps: {steps}"))
}

fn accept(name: FactorName, entry: &Entry<'_>) -> Option<Accept> {
    if let (DeValue::Table(_), true) = (entry.value, name.is_numeric()) {
        let range = entry.table()?;
        range.only(&schema::CELL_RANGE);
        let end = |key: &str| name.read(&range.require(key, "…")?);
        let (from, to) = (end("from"), end("to"));
        return Some(Accept::Between(from?, to?));
    }
    let levels: Option<Vec<Level>> = match entry.elements() {
        None => Some(vec![name.read(entry)?]),
        Some(elements) => elements.iter().map(|element| name.read(element)).collect(),
    };
    match levels? {
        levels if levels.is_empty() => entry.refuse("no level at all", "a level, a list or `{ from, to }`"),
        levels => Some(Accept::OneOf(levels)),
    }
}

fn repetitions(entry: &Entry<'_>) -> Option<Vec<u32>> {
    match entry.elements() {
        None => Some(vec![entry.count()?]),
        Some(elements) if elements.is_empty() => {
            entry.refuse("no repetition at all", "a repetition from 1, or a list of them")
        }
        Some(elements) => elements.iter().map(|element| element.count()).collect(),
    }
}
