//! Analysis of a time series: the steady level with a confidence interval, or the reason why the series is not
//! steady.
//!
//! ```text
//!   rows ─► Series ─► honeymoon ─► truncate ─► drift ─► batch ─► Verdict      (confidence: the rule of lowtide)
//!                 ├─► snia, fio ─► Estimate                                  (other rules, for comparison)
//!                 └─► departure ─► Departure                                 (the end of a steady level)
//! ```
//!
//! All functions are pure functions of a [`Series`]. [`steady`] judges a finished measurement, [`Online`] a running
//! measurement, and a [`Ratio`] compares two levels. The equations are in `docs/models/steady-state.md`.
//! `lowtide_report::compare` chooses the cells to compare.

mod batch;
mod compare;
mod confidence;
mod departure;
mod drift;
mod fio;
mod honeymoon;
mod line;
mod many;
mod online;
mod reason;
mod sections;
mod series;
mod snia;
mod truncate;

#[cfg(test)]
mod coverage;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod tests;

pub use crate::{Estimate, Verdict};
pub use compare::{Level, Ratio, geometric_mean};
pub use confidence::Confidence;
pub use departure::{Departure, departures};
pub use fio::FioSlope;
pub use many::holm;
pub use online::Online;
pub use reason::Reason;
pub use series::{Context, Medium, Point, Series, SeriesError};
pub use snia::{Snia, Window};

/// A rule for steady state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Criterion {
    /// lowtide's rule: after the honeymoon and the transient, without drift, and with a narrow confidence interval.
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

/// Judges a series by a steady-state criterion.
///
/// The rules of SNIA and fio return the first window that satisfies them, as if the measurement had ended there.
pub fn steady(series: &Series, criterion: &Criterion) -> Verdict {
    let estimate = match criterion {
        Criterion::Confidence(rule) => confidence::judge(series, rule),
        Criterion::Snia(rule) => rule.answer(series).ok_or(Reason::Rule { name: "snia" }),
        Criterion::FioSlope(rule) => rule.answer(series).ok_or(Reason::Rule { name: "fio-slope" }),
    };
    match estimate {
        Ok(estimate) => Verdict::Steady(estimate),
        Err(reason) => Verdict::NoSteadyState { reason: reason.to_string() },
    }
}
