//! Factors of cells, and the factors that vary within a campaign.
//!
//! Comparisons and figures over factors are in the crate `lowtide-report`.

use super::Cell;
use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// A factor of a cell: its name and its level in that cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct FactorLevel {
    /// The factor's name: `file_size`.
    pub name: String,
    /// Its level as written: `10GiB`.
    pub level: String,
    /// The kind of the factor's levels.
    pub kind: LevelKind,
}

/// The kind of a factor's levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelKind {
    /// Bytes: `10GiB`.
    Size,
    /// A span of time: `30s`.
    Time,
    /// A whole number.
    Count,
    /// A number, including shares.
    Number,
    /// A word.
    Word,
    /// `true` or `false`.
    Flag,
}

/// A factor as stored: `["file_size","10GiB","size"]`. Stores up to format 4 lack the third element;
/// `lowtide_lab::store` adds it.
type Stored = (String, String, LevelKind);

impl From<FactorLevel> for Stored {
    fn from(FactorLevel { name, level, kind }: FactorLevel) -> Self {
        (name, level, kind)
    }
}

impl From<Stored> for FactorLevel {
    fn from((name, level, kind): Stored) -> Self {
        FactorLevel { name, level, kind }
    }
}

impl LevelKind {
    /// Guesses the kind of a level that an old store or another program recorded without a kind.
    pub fn of_text(level: &str) -> Self {
        match level {
            _ if level.parse::<bool>().is_ok() => LevelKind::Flag,
            _ if level.parse::<u64>().is_ok() => LevelKind::Count,
            _ if level.parse::<f64>().is_ok_and(f64::is_finite) => LevelKind::Number,
            _ if level.parse::<Bytes>().is_ok() => LevelKind::Size,
            _ if level.parse::<Nanos>().is_ok() => LevelKind::Time,
            _ => LevelKind::Word,
        }
    }
}

impl FactorLevel {
    /// Creates a factor whose levels are words.
    pub fn word(name: &str, level: &str) -> Self {
        FactorLevel { name: name.to_owned(), level: level.to_owned(), kind: LevelKind::Word }
    }

    /// The level as a number: bytes, nanoseconds, a count; `None` for words and flags.
    pub fn number(&self) -> Option<f64> {
        let number = match self.kind {
            LevelKind::Size => self.level.parse::<Bytes>().ok()?.get() as f64,
            LevelKind::Time => self.level.parse::<Nanos>().ok()?.get() as f64,
            LevelKind::Count | LevelKind::Number => self.level.parse().ok()?,
            LevelKind::Word | LevelKind::Flag => return None,
        };
        number.is_finite().then_some(number)
    }

    /// The level for people. The factor's name precedes numbers and flags, but not sizes, times and words.
    pub fn describe(&self) -> String {
        match self.kind {
            LevelKind::Count | LevelKind::Number | LevelKind::Flag => {
                format!("{} {}", self.name.replace('_', " "), self.level)
            }
            LevelKind::Size | LevelKind::Time | LevelKind::Word => self.level.clone(),
        }
    }
}

/// The step and the factors of a cell, which identify the cell except for its repetition.
pub fn identity(cell: &Cell) -> Vec<FactorLevel> {
    let step = cell.step.iter().map(|step| FactorLevel::word("step", step));
    step.chain(cell.factors.iter().cloned()).collect()
}

/// Names of the factors with more than one level, including `step`, in the order of first appearance.
pub fn varying<'c>(cells: impl IntoIterator<Item = &'c Cell>) -> Vec<String> {
    let mut seen: Vec<(String, Vec<Option<String>>)> = Vec::new();
    let identities: Vec<Vec<FactorLevel>> = cells.into_iter().map(identity).collect();
    for factor in identities.iter().flatten() {
        if !seen.iter().any(|(known, _)| *known == factor.name) {
            seen.push((factor.name.clone(), Vec::new()));
        }
    }
    for (name, values) in &mut seen {
        for identity in &identities {
            let value = identity.iter().find(|factor| factor.name == *name).map(|it| it.level.clone());
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    seen.into_iter().filter(|(_, values)| values.len() > 1).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_stored_with_its_kind() {
        let factor = FactorLevel { name: "idle".into(), level: "30s".into(), kind: LevelKind::Time };
        let text = serde_json::to_string(&factor).expect("plain");
        assert_eq!(text, r#"["idle","30s","time"]"#);
        assert_eq!(serde_json::from_str::<FactorLevel>(&text).expect("reads back"), factor);
        assert_eq!(factor.number(), Some(30e9));
    }

    #[test]
    fn the_kind_of_a_level_is_guessed_from_its_text() {
        for (text, kind) in [
            ("4", LevelKind::Count),
            ("0.5", LevelKind::Number),
            ("4KiB", LevelKind::Size),
            ("30s", LevelKind::Time),
            ("true", LevelKind::Flag),
            ("randwrite", LevelKind::Word),
            ("4k-drive", LevelKind::Word),
            ("inf", LevelKind::Word),
        ] {
            assert_eq!(LevelKind::of_text(text), kind, "{text}");
        }
    }
}
