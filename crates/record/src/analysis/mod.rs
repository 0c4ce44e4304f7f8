//! Analysis of a time series: its steady level with a confidence interval, or the reason why there is none.
//!
//! ```text
//!   rows ─► Series ─► honeymoon ─► truncate ─► drift ─► batch ─► Verdict      (confidence: the rule of lowtide)
//!                 ├─► snia, fio ─► Estimate                                  (the rules of others, for comparison)
//!                 └─► departure ─► Departure                                 (where a steady level ended)
//! ```
//!
//! Pure functions over a [`Series`]; nothing here measures, waits or stores. [`steady`] judges a finished
//! measurement, [`Online`] a running one; a [`Ratio`] compares two levels. The equations are in
//! `docs/models/steady-state.md`. Not here: the choice of cells to compare (`lowtide_report::compare`).

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

/// Judges a series by a criterion.
///
/// The rules of others answer with the first window that satisfies them, as if the measurement had ended with
/// that window.
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
