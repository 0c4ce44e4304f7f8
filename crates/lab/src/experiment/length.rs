//! When a measurement ends, and how finely it is watched: `duration`, `until` or `requests`, and `interval`.
//!
//! Not here: how steady state is found; the analysis does that.

use super::error::Problems;
use super::read::Table;
use super::words::words;
use lowtide_core::Nanos;
use serde::{Deserialize, Serialize};

words! {
    /// The word `steady`, all that `until` accepts.
    Until, "condition";
    /// Until the steady state is known well enough.
    Steady = "steady",
}

/// When a measurement ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Length {
    /// After this time.
    For(Nanos),
    /// After so many requests.
    Requests(u64),
    /// As soon as the steady level is known to within a relative precision, or after `max`.
    UntilSteady {
        /// The longest it may take.
        max: Nanos,
        /// Half the width of the confidence interval, as a share of the mean, in (0, 1).
        precision: f64,
    },
}

impl Length {
    /// All requests of a trace: more than one may hold.
    pub(super) const WHOLE_TRACE: Length = Length::Requests(u64::MAX);

    /// The longest the measurement takes; `None` where requests are counted.
    pub fn longest(self) -> Option<Nanos> {
        match self {
            Length::For(time) | Length::UntilSteady { max: time, .. } => Some(time),
            Length::Requests(_) => None,
        }
    }
}

/// Reads `duration`, `requests`, or `until` with its limits.
pub(super) fn read(table: &Table<'_>, problems: &mut Problems<'_>) -> Option<Length> {
    let help = "`duration = \"1h\"`, or `until = \"steady\"` with `max = \"4h\"`, or `requests = 1000000`";
    let mut ends = table.in_order();
    ends.retain(|entry| ["duration", "until", "requests"].contains(&entry.name.as_str()));
    if let [first, second, ..] = ends.as_slice() {
        let message = format!("two ends: `{}` and `{}`", first.name, second.name);
        let label = format!("or `{}`, not both", first.name);
        problems.add(second.key_span.clone(), message, label, help);
        return None;
    }
    let max = table.get("max").map(|entry| entry.some_time(problems));
    let precision = table.get("precision").map(|entry| match entry.number("0.015", problems)? {
        precision if precision > 0.0 && precision < 1.0 => Some(precision),
        other => entry.refuse(
            format!("{other} is not a precision"),
            "a share between 0 and 1, such as `0.015`",
            problems,
        ),
    });
    let Some(end) = ends.pop() else {
        problems.add(table.span.clone(), "a workload without an end", "here", help);
        return None;
    };
    if end.name == "until" {
        end.word::<Until>(problems)?;
        let max = max.unwrap_or(Some(Nanos::from_secs(4 * 3600)))?;
        return Some(Length::UntilSteady { max, precision: precision.unwrap_or(Some(0.015))? });
    }
    for key in ["max", "precision"] {
        if let Some(entry) = table.get(key) {
            let message = format!("`{key}` belongs to `until`, which is absent");
            problems.add(entry.key_span, message, "has no effect", format!("remove it, or write {help}"));
        }
    }
    if end.name == "duration" {
        return end.some_time(problems).map(Length::For);
    }
    match end.integer(problems)? {
        number @ 1.. => Some(Length::Requests(number as u64)),
        number => end.refuse(
            format!("{number} requests"),
            "a whole number of requests from 1, such as `2000000`",
            problems,
        ),
    }
}

/// Ten seconds by default, or a tenth of a measurement shorter than that allows; a second where requests are
/// counted, of which nobody knows how long they take.
pub(super) fn interval(table: &Table<'_>, length: Length, problems: &mut Problems<'_>) -> Option<Nanos> {
    let Some(entry) = table.get("interval") else {
        return Some(match length.longest() {
            Some(longest) => Nanos::from_secs(10).min(Nanos::new((longest.get() / 10).max(1))),
            None => Nanos::from_secs(1),
        });
    };
    let interval = entry.some_time(problems)?;
    if let Some(longest) = length.longest().filter(|longest| interval > *longest) {
        let fault = format!("{interval} is longer than the whole measurement, {longest}");
        return entry.refuse(fault, format!("a span of time up to {longest}"), problems);
    }
    Some(interval)
}
