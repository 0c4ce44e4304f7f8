//! `[[published]]`: which measured number is put beside which published one.
//!
//! The published number is looked up here, once. Leaves out the verdict: the report compares.

use super::error::Problems;
use super::level::{FactorName, Level};
use super::read::{Entry, Table};
use super::schema;
use super::step::Step;
use super::sweep::factor_name;
use super::words::words;
use crate::catalogue::{self, Published};
use lowtide_core::Nanos;
use toml::de::DeValue;

/// What is measured, to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Throughput of the steady window.
    Settled,
    /// Throughput of the first interval.
    Start,
    /// The lowest throughput of any interval.
    Minimum,
    /// Throughput of the whole measurement.
    Mean,
    /// Throughput of all that comes after a time.
    MeanAfter(Nanos),
    /// By how much the settled throughput is lower than that of the cells in `against`, in percent.
    DropPercent,
    /// The time by which throughput has settled.
    StableBy,
}

words! {
    /// The words of `measure`.
    MeasureWord, "measure";
    /// See [`Measure::Settled`].
    Settled = "settled",
    /// See [`Measure::Start`].
    Start = "start",
    /// See [`Measure::Minimum`].
    Minimum = "minimum",
    /// See [`Measure::Mean`].
    Mean = "mean",
    /// See [`Measure::MeanAfter`].
    MeanAfter = "mean-after",
    /// See [`Measure::DropPercent`].
    DropPercent = "drop-percent",
    /// See [`Measure::StableBy`].
    StableBy = "stable-by",
}

words! {
    /// A published number that is one-sided.
    Bound, "bound";
    /// The measured number is at least the published one.
    AtLeast = "at-least",
    /// The measured number is at most the published one.
    AtMost = "at-most",
}

/// Which levels of a factor are meant.
#[derive(Debug, Clone, PartialEq)]
pub enum Accept {
    /// Any of these.
    OneOf(Vec<Level>),
    /// Numbers from the first to the second, both included.
    Between(Level, Level),
}

/// Which cells are meant: all conditions hold. No condition means every cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selection {
    /// The factors and the levels that are accepted.
    pub conditions: Vec<(FactorName, Accept)>,
}

impl Selection {
    /// Whether a point of a sweep is meant. A factor that is not varied meets no condition.
    pub fn includes(&self, point: &[Level]) -> bool {
        self.conditions.iter().all(|(name, accept)| {
            let level = point.iter().find(|level| level.factor() == *name);
            level.is_some_and(|level| match accept {
                Accept::OneOf(levels) => levels.contains(level),
                Accept::Between(from, to) => level.number() >= from.number() && level.number() <= to.number(),
            })
        })
    }
}

/// One comparison with a published number.
///
/// Where several cells are meant, a bound holds for each of them, `stable-by` is the latest, and every other
/// measure is the mean over them.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The published row.
    pub published: &'static Published,
    /// The measure.
    pub measure: Measure,
    /// The step whose cells are meant; every step's where absent.
    pub step: Option<String>,
    /// The cells that are meant.
    pub cells: Selection,
    /// The cells that `drop-percent` starts from.
    pub against: Option<Selection>,
    /// Whether the number is one-sided.
    pub bound: Option<Bound>,
    /// What to know when reading it; may be empty.
    pub note: String,
}

impl Comparison {
    /// Whether the cell at `point` of the step is meant.
    pub fn includes(&self, step: &Step, point: &[Level]) -> bool {
        self.in_step(step) && self.cells.includes(point)
    }

    /// Whether the cell at `point` of the step is one that `drop-percent` starts from.
    pub fn starts_from(&self, step: &Step, point: &[Level]) -> bool {
        self.in_step(step) && self.against.as_ref().is_some_and(|cells| cells.includes(point))
    }

    fn in_step(&self, step: &Step) -> bool {
        self.step.is_none() || self.step == step.name
    }
}

/// Reads the comparisons; cells that a changed sweep no longer has are no error.
pub(super) fn read(tables: Vec<Table<'_>>, steps: &[Step], problems: &mut Problems<'_>) -> Vec<Comparison> {
    tables.iter().filter_map(|table| one(table, steps, problems)).collect()
}

fn one(table: &Table<'_>, steps: &[Step], problems: &mut Problems<'_>) -> Option<Comparison> {
    table.only(&schema::PUBLISHED, problems);
    let published = published(table, problems);
    let measure = measure(table, problems);
    let step = table.get("step").map(|entry| step_name(&entry, steps, problems));
    let cells = table.get("where").map(|entry| selection(&entry, problems));
    let against = table.get("against").map(|entry| selection(&entry, problems));
    match (table.get("against"), measure) {
        (None, Some(Measure::DropPercent)) => {
            let message = "`drop-percent` compares two cells, and `against` is missing";
            let help = "write for example `against = { file_size = \"10GiB\" }`: the cells it drops from";
            problems.add(table.span.clone(), message, "here", help);
        }
        (Some(entry), Some(measure)) if measure != Measure::DropPercent => {
            let message = "`against` belongs to the measure `drop-percent`";
            problems.add(
                entry.key_span,
                message,
                "has no effect",
                "remove it, or write `measure = \"drop-percent\"`",
            );
        }
        _ => {}
    }
    let bound = table.get("bound").map(|entry| entry.word(problems));
    let note = table.get("note").map(|entry| entry.string("\"…\"", problems));
    // A key that is absent takes its default; one that is wrong ends the comparison.
    Some(Comparison {
        published: published?,
        measure: measure?,
        step: step.map_or(Some(None), |step| step.map(Some))?,
        cells: cells.unwrap_or_else(|| Some(Selection::default()))?,
        against: against.map_or(Some(None), |against| against.map(Some))?,
        bound: bound.map_or(Some(None), |bound| bound.map(Some))?,
        note: note.unwrap_or_else(|| Some(String::new()))?,
    })
}

fn published(table: &Table<'_>, problems: &mut Problems<'_>) -> Option<&'static Published> {
    let study_entry = table.require("study", "\"e02\"", problems);
    let line_entry = table.require("line", "1", problems);
    let study_entry = study_entry?;
    let study = match catalogue::study(&study_entry.text("\"e02\"", problems)?) {
        Ok(study) => study,
        Err(unknown) => return study_entry.refuse(&unknown, unknown.accepted(), problems),
    };
    let line_entry = line_entry?;
    let line = line_entry.count(problems)? as usize;
    let row = study.rows.get(line - 1);
    row.or_else(|| {
        let fault = format!("{} has no row {line}", study.path);
        line_entry.refuse(
            fault,
            format!("a row from 1 to {}; the heading does not count", study.rows.len()),
            problems,
        )
    })
}

fn measure(table: &Table<'_>, problems: &mut Problems<'_>) -> Option<Measure> {
    let word = table.require("measure", "\"settled\"", problems)?.word(problems)?;
    let after = table.get("after");
    if let (Some(after), true) = (&after, word != MeasureWord::MeanAfter) {
        let message = "`after` belongs to the measure `mean-after`";
        let help = "remove it, or write `measure = \"mean-after\"`";
        problems.add(after.key_span.clone(), message, "has no effect", help);
    }
    Some(match word {
        MeasureWord::Settled => Measure::Settled,
        MeasureWord::Start => Measure::Start,
        MeasureWord::Minimum => Measure::Minimum,
        MeasureWord::Mean => Measure::Mean,
        MeasureWord::MeanAfter => {
            Measure::MeanAfter(table.require("after", "\"2500s\"", problems)?.some_time(problems)?)
        }
        MeasureWord::DropPercent => Measure::DropPercent,
        MeasureWord::StableBy => Measure::StableBy,
    })
}

fn step_name(entry: &Entry<'_>, steps: &[Step], problems: &mut Problems<'_>) -> Option<String> {
    let given = entry.text("\"second pass\"", problems)?;
    let names: Vec<&str> = steps.iter().filter_map(|step| step.name.as_deref()).collect();
    if names.contains(&given.as_str()) {
        return Some(given);
    }
    let near = lowtide_core::suggest::nearest(&given, names.iter().copied());
    let hint = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
    let steps = if names.is_empty() { "none; add `[[step]]` tables".to_owned() } else { names.join(", ") };
    entry.refuse(format!("unknown step `{given}`{hint}"), format!("steps: {steps}"), problems)
}

fn selection(entry: &Entry<'_>, problems: &mut Problems<'_>) -> Option<Selection> {
    let table = entry.table(problems)?;
    let entries = table.in_order();
    let mut conditions = Vec::with_capacity(entries.len());
    for entry in &entries {
        let Some(name) = factor_name(entry, problems) else { continue };
        if let Some(accept) = accept(name, entry, problems) {
            conditions.push((name, accept));
        }
    }
    (conditions.len() == entries.len()).then_some(Selection { conditions })
}

fn accept(name: FactorName, entry: &Entry<'_>, problems: &mut Problems<'_>) -> Option<Accept> {
    if let (DeValue::Table(_), true) = (entry.value, name.is_numeric()) {
        let range = entry.table(problems)?;
        range.only(&schema::Keys { table: "a range of cells", keys: &["from", "to"] }, problems);
        let mut end = |key: &str| name.read(&range.require(key, "…", problems)?, problems);
        let (from, to) = (end("from"), end("to"));
        return Some(Accept::Between(from?, to?));
    }
    let levels: Option<Vec<Level>> = match entry.elements() {
        None => Some(vec![name.read(entry, problems)?]),
        Some(elements) => elements.iter().map(|element| name.read(element, problems)).collect(),
    };
    match levels? {
        levels if levels.is_empty() => {
            entry.refuse("no level at all", "a level, a list or `{ from, to }`", problems)
        }
        levels => Some(Accept::OneOf(levels)),
    }
}
