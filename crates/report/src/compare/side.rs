//! One side of a comparison: a campaign, or the cells with one value of a factor.

use crate::answer::Answer;
use crate::group::grouped;
use lowtide_record::factors::identity;
use lowtide_record::{FactorLevel, Quantity};

/// The identity of a point: step, factors and their values, in sweep order.
pub(crate) type Identity = Vec<FactorLevel>;

/// A point of one side: its identity and the answers of its repetitions.
pub(crate) type Cells<'s, 'a> = (Identity, Vec<&'s Answer<'a>>);

/// The label of a point: `100GiB, threads 4`; `the cell` if nothing varies.
pub(crate) fn label(identity: &Identity) -> String {
    let parts: Vec<String> = identity.iter().map(FactorLevel::describe).collect();
    if parts.is_empty() { "the cell".to_owned() } else { parts.join(", ") }
}

/// The campaign has fewer than two values of the factor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no two values of `{factor}` to compare; {}", varying(accepted))]
pub struct NothingToCompare {
    /// The requested factor.
    pub factor: String,
    /// The factors that could be compared.
    pub accepted: Vec<String>,
}

fn varying(factors: &[String]) -> String {
    match factors {
        [] => "no factor varies".to_owned(),
        factors => format!("factors that vary: {}", factors.join(", ")),
    }
}

/// One side of a comparison: a name and its cells.
pub(crate) struct Side<'a> {
    /// Name in headings.
    pub name: String,
    /// The answers with their identity on this side, which leaves out the repetition.
    answers: Vec<(Identity, Answer<'a>)>,
}

impl<'a> Side<'a> {
    /// The answers with this value of a factor.
    pub fn value(answers: &[Answer<'a>], value: &FactorLevel) -> Side<'a> {
        let has = |a: &&Answer<'a>| identity(a.cell).contains(value);
        let others =
            |a: &Answer<'a>| identity(a.cell).into_iter().filter(|it| it.name != value.name).collect();
        let answers = answers.iter().filter(has).map(|a| (others(a), a.clone())).collect();
        Side { name: value.describe(), answers }
    }

    /// The quantity of the levels, taken from the first cell.
    pub fn quantity(&self) -> Quantity {
        self.answers.first().map(|(_, answer)| answer.quantity).unwrap_or_default()
    }

    /// The answers by point, in order.
    pub fn points(&self) -> Vec<Cells<'_, 'a>> {
        grouped(self.answers.iter().map(|(identity, answer)| (identity.clone(), answer)))
    }
}
