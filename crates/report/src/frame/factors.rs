//! The columns that say which cell a row is of: its number, step, factors and repetition.

use super::{Column, Values};
use lowtide_core::{Bytes, Nanos};
use lowtide_record::{FactorLevel, LevelKind};

/// What names a cell.
pub(super) struct Named {
    pub index: u32,
    pub step: Option<String>,
    pub factors: Vec<FactorLevel>,
    pub repetition: u32,
}

/// Columns of every table: no factor is called like them.
const OWN: [&str; 3] = ["cell", "step", "repetition"];

/// The columns for these cells, and the names of those that are factors.
pub(super) fn columns(cells: &[Named]) -> (Vec<Column>, Vec<String>) {
    let mut columns =
        vec![Column::whole("cell", "", "the cell's number", cells.iter().map(|it| Some(it.index.into())))];
    if cells.iter().any(|it| it.step.is_some()) {
        let steps = cells.iter().map(|it| it.step.as_deref());
        columns.push(Column::text("step", "the step or pass of the experiment", steps));
    }
    let mut names: Vec<&str> = Vec::new();
    for factor in cells.iter().flat_map(|cell| &cell.factors) {
        if !names.contains(&factor.name.as_str()) {
            names.push(&factor.name);
        }
    }
    let factors: Vec<Column> = names.into_iter().map(|name| factor(name, cells)).collect();
    let called = factors.iter().map(|column| column.name.clone()).collect();
    columns.extend(factors);
    let repetitions = cells.iter().map(|it| Some(it.repetition.into()));
    columns.push(Column::whole("repetition", "", "which repetition, from 1", repetitions));
    (columns, called)
}

/// A factor, as numbers where it is one.
fn factor(name: &str, cells: &[Named]) -> Column {
    let factors = || cells.iter().map(|cell| cell.factors.iter().find(|factor| factor.name == name));
    let written = || factors().map(|factor| factor.map(|it| it.level.as_str()));
    let mut kinds = factors().flatten().map(|factor| factor.kind);
    let first = kinds.next().unwrap_or(LevelKind::Word);
    let kind = if kinds.all(|kind| kind == first) { first } else { LevelKind::Word };
    let whole = |read: fn(&str) -> Option<u64>| all(written(), read);
    let read = match kind {
        LevelKind::Size => whole(|text| text.parse().ok().map(Bytes::get))
            .map(|all| ("B", "bytes", Column::whole("", "", "", all.into_iter()).values)),
        LevelKind::Count => whole(|text| text.parse().ok())
            .map(|all| ("", "a count", Column::whole("", "", "", all.into_iter()).values)),
        LevelKind::Time => all(written(), |text| text.parse().ok().map(Nanos::as_secs_f64))
            .map(|all| ("s", "seconds", Values::Real(all))),
        LevelKind::Number => {
            all(written(), |text| text.parse().ok()).map(|all| ("", "a number", Values::Real(all)))
        }
        LevelKind::Flag => {
            all(written(), |text| text.parse().ok()).map(|all| ("", "yes or no", Values::Flag(all)))
        }
        LevelKind::Word => None,
    };
    let (unit, what, values) =
        read.unwrap_or_else(|| ("", "as written", Column::text("", "", written()).values));
    let name = if OWN.contains(&name) { format!("factor_{name}") } else { name.to_owned() };
    Column::new(&name, unit, &format!("factor of the experiment, {what}"), values)
}

/// All of them read, or nothing where one is something else.
fn all<'t, T>(
    texts: impl Iterator<Item = Option<&'t str>>,
    read: fn(&str) -> Option<T>,
) -> Option<Vec<Option<T>>> {
    texts
        .map(|text| match text {
            None => Some(None),
            Some(text) => read(text).map(Some),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_lab::experiment::untyped;

    fn cells(name: &str, values: &[&str]) -> Vec<Named> {
        let factors = values.iter().map(|level| vec![untyped(name, (*level).to_owned())]);
        factors.map(|factors| Named { index: 0, step: None, factors, repetition: 1 }).collect()
    }

    #[test]
    fn factors_are_numbers_where_they_are_and_words_where_one_is_not() {
        let read = |name, values: &[&str]| factor(name, &cells(name, values)).values;
        assert_eq!(
            read("file_size", &["1GiB", "10GB"]),
            Values::Whole(vec![Some(1 << 30), Some(10_000_000_000)])
        );
        assert_eq!(read("threads", &["4", "16"]), Values::Whole(vec![Some(4), Some(16)]));
        assert_eq!(read("idle", &["0s", "1500ms"]), Values::Real(vec![Some(0.0), Some(1.5)]));
        assert_eq!(read("utilisation", &["0.5"]), Values::Real(vec![Some(0.5)]));
        assert_eq!(read("doublewrite", &["true", "false"]), Values::Flag(vec![Some(true), Some(false)]));
        let words = |all: &[&str]| Values::Text(all.iter().map(|it| Some((*it).into())).collect());
        assert_eq!(read("pattern", &["random-write"]), words(&["random-write"]));
        // As another program wrote it, which was imported.
        assert_eq!(read("threads", &["4", "many"]), words(&["4", "many"]));
        assert_eq!(read("jobs", &["4"]), Values::Whole(vec![Some(4)]));
        assert_eq!(factor("cell", &cells("cell", &["x"])).name, "factor_cell");
    }
}
