//! The result of the steady-state analysis of a cell ([`Verdict`]).
//!
//! The analysis is in `analysis`.

use serde::{Deserialize, Serialize};

/// The result of the steady-state analysis of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A steady window, its mean and the confidence interval of the mean.
    Steady(Estimate),
    /// No steady state.
    NoSteadyState {
        /// The reason, as one sentence.
        reason: String,
    },
}

/// A mean with its 95 % confidence interval, over a window of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Estimate {
    /// Mean rate over the window, in the unit of the cell's [`super::Quantity`].
    #[serde(alias = "mean-mib-per-s")]
    pub mean: f64,
    /// Half the width of the 95 % confidence interval, in the same unit.
    #[serde(alias = "half-width-mib-per-s")]
    pub half_width: f64,
    /// Start of the window, in nanoseconds since the measurement began.
    pub from_ns: u64,
    /// End of the window, in nanoseconds since the measurement began.
    pub to_ns: u64,
    /// Number of batches behind the confidence interval.
    pub batches: u32,
}
