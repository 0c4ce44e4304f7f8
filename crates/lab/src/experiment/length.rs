//! The end of a measurement and the interval of its time series: `duration`, `until` or `requests`, and `interval`.
//!
//! The rule for steady state is in `lowtide_record::analysis`.

use super::read::{Entry, Table};
use super::words::words;
use lowtide_core::Nanos;
use serde::{Deserialize, Serialize};

words! {
    /// A value of `until`.
    Until, "condition";
    /// The steady level is known to the requested precision.
    Steady = "steady",
}

/// The end of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Length {
    /// After this time.
    For(Nanos),
    /// After this number of requests.
    Requests(u64),
    /// As soon as the steady level is known to a relative precision, or after `max`.
    UntilSteady {
        /// The maximum duration.
        max: Nanos,
        /// Half the width of the confidence interval, as a share of the mean, in (0, 1).
        precision: f64,
    },
}

impl Length {
    /// All requests of a trace. The number is larger than that of any trace.
    pub(super) const ENTIRE_TRACE: Length = Length::Requests(u64::MAX);

    /// The maximum duration; `None` if the measurement ends after a number of requests.
    pub fn longest(self) -> Option<Nanos> {
        match self {
            Length::For(time) | Length::UntilSteady { max: time, .. } => Some(time),
            Length::Requests(_) => None,
        }
    }
}

/// Reads `duration`, `requests`, or `until` with its limits.
pub(super) fn read(table: &Table<'_>) -> Option<Length> {
    let help = "`duration = \"1h\"`, or `until = \"steady\"` with `max = \"4h\"`, or `requests = 1000000`";
    let mut ends = table.in_order();
    ends.retain(|entry| ["duration", "until", "requests"].contains(&entry.name.as_str()));
    if let [first, second, ..] = ends.as_slice() {
        let message = format!("two ends: `{}` and `{}`", first.name, second.name);
        let label = format!("or `{}`, not both", first.name);
        table.problems.add(second.key_span.clone(), message, label, help);
        return None;
    }
    let max = table.value_or("max", Nanos::from_secs(4 * 3600), Entry::some_time);
    let precision = table.value_or("precision", 0.015, |entry| {
        let precision = entry.number("0.015")?;
        if precision > 0.0 && precision < 1.0 {
            return Some(precision);
        }
        let help = "a share between 0 and 1, such as `0.015`";
        entry.refuse(format!("{precision} is not a precision"), help)
    });
    let Some(end) = ends.pop() else {
        table.problems.add(table.span.clone(), "a workload without an end", "here", help);
        return None;
    };
    if end.name == "until" {
        end.word::<Until>()?;
        return Some(Length::UntilSteady { max: max?, precision: precision? });
    }
    for key in ["max", "precision"] {
        let message = format!("`{key}` belongs to `until`, which is absent");
        table.refuse_key(key, message, &format!("remove it, or write {help}"));
    }
    if end.name == "duration" {
        return end.some_time().map(Length::For);
    }
    match end.integer()? {
        number @ 1.. => Some(Length::Requests(number as u64)),
        number => {
            end.refuse(format!("{number} requests"), "a whole number of requests from 1, such as `2000000`")
        }
    }
}

/// Reads `interval`. The default is ten seconds, or a tenth of a shorter measurement, or one second if the
/// measurement ends after a number of requests.
pub(super) fn interval(table: &Table<'_>, length: Length) -> Option<Nanos> {
    let Some(entry) = table.get("interval") else {
        return Some(match length.longest() {
            Some(longest) => Nanos::from_secs(10).min(Nanos::new((longest.get() / 10).max(1))),
            None => Nanos::from_secs(1),
        });
    };
    let interval = entry.some_time()?;
    if let Some(longest) = length.longest().filter(|longest| interval > *longest) {
        let fault = format!("{interval} is longer than the whole measurement, {longest}");
        return entry.refuse(fault, format!("a span of time up to {longest}"));
    }
    Some(interval)
}
