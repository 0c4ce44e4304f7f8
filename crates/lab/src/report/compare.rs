//! Comparing cells pair by pair: two campaigns, or two values of one factor inside a campaign.
//!
//! A difference counts as significant where the 95 % confidence interval of the ratio leaves out 1. The
//! interval comes from the two settled means by first-order error propagation; the means are taken as
//! independent. Leaves out pooling over repetitions: each repetition is paired with its like.

use super::answer::Answer;
use super::sweep::{describe, identity};
use crate::analysis::Estimate;
use crate::record::Campaign;
use std::fmt;

/// Two cells that differ only in what is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// What the two have in common: `("file_size", "100GiB")`.
    pub identity: Vec<(String, String)>,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Settled throughput on the side compared against.
    pub base: Option<Estimate>,
    /// Settled throughput on the other side.
    pub other: Option<Estimate>,
    /// 95th percentile of latency on the side compared against, in nanoseconds.
    pub base_latency_ns_p95: Option<f64>,
    /// 95th percentile of latency on the other side, in nanoseconds.
    pub other_latency_ns_p95: Option<f64>,
    /// Data as a share of the capacity, where both sides agree.
    pub fill: Option<f64>,
}

impl Difference {
    /// The other side's throughput as a share of the base's: 1.17 is an advantage of 117 %.
    pub fn advantage(&self) -> Option<f64> {
        let (base, other) = (self.base?.mean_mib_per_s, self.other?.mean_mib_per_s);
        (base > 0.0).then(|| other / base)
    }
    /// Half the 95 % confidence interval of [`Difference::advantage`].
    pub fn advantage_half_width(&self) -> Option<f64> {
        let relative =
            |e: Estimate| (e.mean_mib_per_s > 0.0).then(|| e.half_width_mib_per_s / e.mean_mib_per_s);
        Some(self.advantage()? * relative(self.base?)?.hypot(relative(self.other?)?))
    }
    /// (other − base) / base, in percent.
    pub fn difference_percent(&self) -> Option<f64> {
        self.advantage().map(|advantage| (advantage - 1.0) * 100.0)
    }
    /// Whether the difference is larger than chance explains; `None` where a side has no steady state.
    pub fn significant(&self) -> Option<bool> {
        Some((self.advantage()? - 1.0).abs() > self.advantage_half_width()?)
    }
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
    /// The answers, with what identifies each on this side.
    pub answers: Vec<(Vec<(String, String)>, Answer<'a>)>,
}

impl<'a> Side<'a> {
    /// All measured cells of a campaign.
    pub fn campaign(campaign: &'a Campaign) -> Side<'a> {
        let answers = Answer::of_all(campaign).into_iter().map(|a| (identity(a.cell), a)).collect();
        Side { name: campaign.name.clone(), answers }
    }
    /// The answers that have one value of one factor.
    pub fn value(answers: &[Answer<'a>], factor: &str, value: &str) -> Side<'a> {
        let has = |a: &&Answer<'a>| identity(a.cell).iter().any(|(n, v)| n == factor && v == value);
        let others = |a: &Answer<'a>| identity(a.cell).into_iter().filter(|(n, _)| n != factor).collect();
        let answers = answers.iter().filter(has).map(|a| (others(a), a.clone())).collect();
        Side { name: describe(factor, value), answers }
    }
}

/// The differences between two campaigns, for the cells that both measured.
pub fn differences(base: &Campaign, other: &Campaign) -> Vec<Difference> {
    pair(&Side::campaign(base), &Side::campaign(other))
}

pub(crate) fn pair(base: &Side<'_>, other: &Side<'_>) -> Vec<Difference> {
    let mut pairs = Vec::new();
    for (identity, a) in &base.answers {
        let like = |(i, b): &&(Vec<(String, String)>, Answer<'_>)| {
            i == identity && b.cell.repetition == a.cell.repetition
        };
        let Some((_, b)) = other.answers.iter().find(like) else { continue };
        let same = |x: f64, y: f64| (x - y).abs() < 0.005;
        pairs.push(Difference {
            identity: identity.clone(),
            repetition: a.cell.repetition,
            base: a.settled,
            other: b.settled,
            base_latency_ns_p95: a.latency_ns(95.0),
            other_latency_ns_p95: b.latency_ns(95.0),
            fill: a.fill().filter(|x| b.fill().is_some_and(|y| same(*x, y))),
        });
    }
    pairs
}
