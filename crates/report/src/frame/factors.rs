//! The columns that identify the cell of a row: number, step, factors and repetition.

use super::{Column, Values};
use crate::group::distinct;
use lowtide_core::{Bytes, Nanos};
use lowtide_record::{FactorLevel, LevelKind};

/// The identity of a cell.
pub(super) struct Named {
    pub index: u32,
    pub step: Option<String>,
    pub factors: Vec<FactorLevel>,
    pub repetition: u32,
}

/// Columns of every table; a factor of this name gets a prefix.
const OWN: [&str; 3] = ["cell", "step", "repetition"];

/// The columns for these cells, and the names of the factor columns.
pub(super) fn columns(cells: &[Named]) -> (Vec<Column>, Vec<String>) {
    let mut columns =
        vec![Column::whole("cell", "", "the cell's number", cells.iter().map(|it| Some(it.index.into())))];
    if cells.iter().any(|it| it.step.is_some()) {
        let steps = cells.iter().map(|it| it.step.as_deref());
        columns.push(Column::text("step", "the step or pass of the experiment", steps));
    }
    let names = distinct(cells.iter().flat_map(|cell| &cell.factors).map(|it| it.name.as_str()));
    let factors: Vec<Column> = names.into_iter().map(|name| factor(name, cells)).collect();
    let factor_names = factors.iter().map(|column| column.name.clone()).collect();
    columns.extend(factors);
    let repetitions = cells.iter().map(|it| Some(it.repetition.into()));
    columns.push(Column::whole("repetition", "", "which repetition, from 1", repetitions));
    (columns, factor_names)
}

/// The column of a factor: numbers if all its levels are numeric, else text.
fn factor(name: &str, cells: &[Named]) -> Column {
    let factors = || cells.iter().map(|cell| cell.factors.iter().find(|factor| factor.name == name));
    let written = || factors().map(|factor| factor.map(|it| it.level.as_str()));
    let mut kinds = factors().flatten().map(|factor| factor.kind);
    let first = kinds.next().unwrap_or(LevelKind::Word);
    let kind = if kinds.all(|kind| kind == first) { first } else { LevelKind::Word };
    let whole = |read: fn(&str) -> Option<u64>| {
        Some(Column::whole("", "", "", all(written(), read)?.into_iter()).values)
    };
    let (unit, kind_doc, read) = match kind {
        LevelKind::Size => ("B", "bytes", whole(|text| text.parse().ok().map(Bytes::get))),
        LevelKind::Count => ("", "a count", whole(|text| text.parse().ok())),
        LevelKind::Time => {
            let seconds = all(written(), |text| text.parse().ok().map(Nanos::as_secs_f64));
            ("s", "seconds", seconds.map(Values::Real))
        }
        LevelKind::Number => ("", "a number", all(written(), |text| text.parse().ok()).map(Values::Real)),
        LevelKind::Flag => ("", "yes or no", all(written(), |text| text.parse().ok()).map(Values::Flag)),
        LevelKind::Word => ("", "", None),
    };
    let (unit, kind_doc, values) = match read {
        Some(values) => (unit, kind_doc, values),
        None => ("", "as written", Column::text("", "", written()).values),
    };
    let name = if OWN.contains(&name) { format!("factor_{name}") } else { name.to_owned() };
    Column::new(&name, unit, &format!("factor of the experiment, {kind_doc}"), values)
}

/// The parsed texts; `None` if any text does not parse.
fn all<'t, T>(
    texts: impl Iterator<Item = Option<&'t str>>,
    read: fn(&str) -> Option<T>,
) -> Option<Vec<Option<T>>> {
    texts.map(|text| text.map_or(Some(None), |text| read(text).map(Some))).collect()
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
    fn factors_are_numbers_unless_a_level_is_not_numeric() {
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
        // An imported record has the words of another program.
        assert_eq!(read("threads", &["4", "many"]), words(&["4", "many"]));
        assert_eq!(read("jobs", &["4"]), Values::Whole(vec![Some(4)]));
        assert_eq!(factor("cell", &cells("cell", &["x"])).name, "factor_cell");
    }
}
