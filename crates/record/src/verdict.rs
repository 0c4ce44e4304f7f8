//! What the steady-state analysis of a cell found ([`Verdict`]).
//!
//! Not here: how it is found (`analysis`).

use serde::{Deserialize, Serialize};

/// What the steady-state analysis of a cell found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A steady window, its mean and the confidence interval of the mean.
    Steady(Estimate),
    /// No steady state; why.
    NoSteadyState {
        /// One sentence for people.
        reason: String,
    },
}

/// A mean with its 95 % confidence interval, over a window of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Estimate {
    /// Mean rate over the window, in the unit of what the cell is judged by ([`super::Quantity`]).
    #[serde(alias = "mean-mib-per-s")]
    pub mean: f64,
    /// Half the width of the 95 % confidence interval, in the same unit.
    #[serde(alias = "half-width-mib-per-s")]
    pub half_width: f64,
    /// Where the window begins, in nanoseconds since the measurement began.
    pub from_ns: u64,
    /// Where the window ends.
    pub to_ns: u64,
    /// Batches the confidence interval rests on.
    pub batches: u32,
}
