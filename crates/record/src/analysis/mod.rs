//! Analysis: from a time series to an answer, or to the words `no steady state`.
//!
//! ```text
//!   rows ─► Series ─► honeymoon ─► truncate ─► drift ─► batch ─► Verdict      (confidence: the rule of lowtide)
//!                 ├─► snia, fio ─► Answer                                    (the rules of others, beside it)
//!                 └─► departure ─► Departure                                 (where a steady level was left)
//! ```
//!
//! Pure functions over a [`Series`]; nothing here measures, waits or stores. [`steady`] judges a finished
//! measurement, [`Online`] a running one; a [`Ratio`] compares two answers. The equations are in
//! `docs/models/steady-state.md`. Not here: which cells are compared (`lowtide_report::compare`).

mod batch;
mod compare;
mod confidence;
mod criterion;
mod departure;
mod drift;
mod fio;
mod honeymoon;
mod many;
mod naive;
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
pub use confidence::{Confidence, possible_drift_percent};
pub use criterion::{Criterion, UnknownCriterion};
pub use departure::{Departure, departures};
pub use fio::FioSlope;
pub use honeymoon::{Interlock, interlock};
pub use many::holm;
pub use naive::Answer;
pub use online::{Online, Step};
pub use reason::Reason;
pub use series::{Context, Medium, Point, Series, SeriesError};
pub use snia::{Snia, Window};

/// Judges a series by a criterion.
///
/// The rules of others answer with the first window in which they held, as if the measurement had been ended
/// there.
pub fn steady(series: &Series, criterion: &Criterion) -> Verdict {
    let found = match criterion {
        Criterion::Confidence(rule) => confidence::judge(series, rule),
        Criterion::Snia(rule) => {
            rule.answer(series).map(Estimate::from).ok_or(Reason::Rule { name: criterion.name() })
        }
        Criterion::FioSlope(rule) => {
            rule.answer(series).map(Estimate::from).ok_or(Reason::Rule { name: criterion.name() })
        }
    };
    match found {
        Ok(estimate) => Verdict::Steady(estimate),
        Err(reason) => Verdict::NoSteadyState { reason: reason.to_string() },
    }
}
