//! One side of a comparison: a campaign, or the cells that have one value of a factor.
//!
//! Not here: what is measured there; `reading`.

use crate::answer::Answer;
use lowtide_record::factors::identity;
use lowtide_record::{FactorLevel, Quantity};
use std::fmt;

/// What identifies a point: step, factors and their values, in sweep order.
pub(crate) type Identity = Vec<FactorLevel>;

/// A point of one side: its identity and the answers of its repetitions.
pub(crate) type Cells<'s, 'a> = (Identity, Vec<&'s Answer<'a>>);

/// What a point is called: `100GiB, threads 4`; `the cell` where nothing varies.
pub(crate) fn label(identity: &Identity) -> String {
    let parts: Vec<String> = identity.iter().map(FactorLevel::describe).collect();
    if parts.is_empty() { "the cell".to_owned() } else { parts.join(", ") }
}

/// A campaign has no such factor, or only one value of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NothingToCompare {
    /// The factor asked for.
    pub factor: String,
    /// The factors that could be compared.
    pub accepted: Vec<String>,
}

impl fmt::Display for NothingToCompare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no two values of `{}` to compare", self.factor)?;
        if self.accepted.is_empty() {
            f.write_str("; no factor varies")
        } else {
            write!(f, "; factors that vary: {}", self.accepted.join(", "))
        }
    }
}

impl std::error::Error for NothingToCompare {}

/// One side of a comparison: a name and its cells.
pub(crate) struct Side<'a> {
    /// Name in headings.
    pub name: String,
    /// The answers, with what identifies each on this side apart from its repetition.
    answers: Vec<(Identity, Answer<'a>)>,
}

impl<'a> Side<'a> {
    /// The answers that have one value of one factor.
    pub fn value(answers: &[Answer<'a>], value: &FactorLevel) -> Side<'a> {
        let has = |a: &&Answer<'a>| identity(a.cell).contains(value);
        let others =
            |a: &Answer<'a>| identity(a.cell).into_iter().filter(|it| it.name != value.name).collect();
        let answers = answers.iter().filter(has).map(|a| (others(a), a.clone())).collect();
        Side { name: value.describe(), answers }
    }

    /// What its levels are rates of; the first cell decides.
    pub fn quantity(&self) -> Quantity {
        self.answers.first().map(|(_, answer)| answer.quantity).unwrap_or_default()
    }

    /// The answers by point, in order.
    pub fn points(&self) -> Vec<Cells<'_, 'a>> {
        let mut points: Vec<Cells<'_, 'a>> = Vec::new();
        for (identity, answer) in &self.answers {
            match points.iter_mut().find(|(known, _)| known == identity) {
                Some((_, answers)) => answers.push(answer),
                None => points.push((identity.clone(), vec![answer])),
            }
        }
        points
    }
}
