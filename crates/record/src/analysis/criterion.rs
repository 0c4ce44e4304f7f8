//! The rules by name: `confidence`, `snia` and `fio-slope`. Not here: what they do.

use super::{Confidence, FioSlope, Snia};
use std::str::FromStr;

/// A rule for steady state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Criterion {
    /// The rule of lowtide: past the honeymoon and the transient, without drift, with a narrow interval.
    Confidence(Confidence),
    /// The rule of the SNIA performance test specification.
    Snia(Snia),
    /// fio's limit on the slope, for comparison only.
    FioSlope(FioSlope),
}

impl Default for Criterion {
    fn default() -> Self {
        Criterion::Confidence(Confidence::default())
    }
}

impl Criterion {
    /// The names that parse.
    pub const NAMES: [&'static str; 3] = ["confidence", "snia", "fio-slope"];

    /// The name of the rule.
    pub fn name(&self) -> &'static str {
        match self {
            Criterion::Confidence(_) => "confidence",
            Criterion::Snia(_) => "snia",
            Criterion::FioSlope(_) => "fio-slope",
        }
    }
}

/// A name that is no rule's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a rule for steady state: use one of confidence, snia, fio-slope")]
pub struct UnknownCriterion(pub String);

impl FromStr for Criterion {
    type Err = UnknownCriterion;
    fn from_str(text: &str) -> Result<Self, UnknownCriterion> {
        match text {
            "confidence" => Ok(Criterion::default()),
            "snia" => Ok(Criterion::Snia(Snia::default())),
            "fio-slope" => Ok(Criterion::FioSlope(FioSlope::default())),
            _ => Err(UnknownCriterion(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_to_the_rule_of_that_name() {
        for name in Criterion::NAMES {
            assert_eq!(name.parse::<Criterion>().expect("a name").name(), name);
        }
        let error = "fio".parse::<Criterion>().unwrap_err().to_string();
        assert_eq!(error, "`fio` is not a rule for steady state: use one of confidence, snia, fio-slope");
    }
}
