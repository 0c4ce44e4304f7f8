//! Reasons for the absence of a steady state, as values and as one sentence each.

use lowtide_core::Bytes;
use std::fmt;

/// The reason why a series has no steady window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// Not enough has been written since the purge.
    Honeymoon {
        /// Host bytes written since the last purge.
        written: Bytes,
        /// Host bytes after which a window may begin.
        needed: Bytes,
        /// `true` if `needed` is a guess because the raw capacity is unknown.
        blind: bool,
    },
    /// Too few intervals after the transient.
    Short {
        /// Intervals in the window.
        intervals: usize,
        /// Intervals needed.
        needed: usize,
    },
    /// Too little written after the transient.
    LittleWritten {
        /// Host bytes written in the window.
        written: Bytes,
        /// Host bytes needed in the window.
        needed: Bytes,
    },
    /// Nothing was read or written.
    Idle,
    /// The level changes over the window, and its final value may be too far from the window's mean.
    Drift {
        /// Change per hour in percent; negative if falling.
        percent_per_hour: f64,
        /// Possible distance of the final level from the mean of the window, in percent.
        reach_percent: f64,
    },
    /// No drift is observed, but the window is too short to rule out a drift.
    Undecided {
        /// Possible distance of the final level from the mean of the window, in percent.
        reach_percent: f64,
        /// The limit of that distance, in percent.
        limit_percent: f64,
    },
    /// Even ten batches are correlated: fluctuations last about as long as the window.
    Wandering {
        /// Length of one batch in seconds.
        batch_s: f64,
    },
    /// The confidence interval is too wide.
    Wide {
        /// Half width in percent of the mean.
        percent: f64,
        /// Limit of the half width, in percent of the mean.
        limit_percent: f64,
    },
    /// No window satisfied the rule of another program.
    Rule {
        /// The name of the rule.
        name: &'static str,
    },
    /// Steady at one judgement. A running measurement ends only after a second steady judgement.
    Unconfirmed,
}

/// A size for people, with at least two digits, in GiB from 1 GiB on.
fn size(bytes: Bytes) -> String {
    let gib = bytes.as_gib();
    match gib {
        _ if gib >= 10.0 => format!("{gib:.0} GiB"),
        _ if gib >= 1.0 => format!("{gib:.1} GiB"),
        _ => format!("{:.0} MiB", bytes.as_mib()),
    }
}

/// A percentage for people: two significant digits below 10.
fn percent(value: f64) -> String {
    if value < 9.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

/// A percentage and the limit that it exceeds, with enough digits to distinguish them.
fn beyond(value: f64, limit: f64) -> (String, String) {
    match (percent(value), percent(limit)) {
        (value_text, limit_text) if value_text == limit_text => {
            (format!("{value:.2} %"), format!("{limit:.2} %"))
        }
        texts => texts,
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Reason::Honeymoon { written, needed, blind } => {
                let (written, needed) = (size(written), size(needed));
                let guess = if blind { " (raw capacity is unknown, so the most it may have)" } else { "" };
                write!(
                    f,
                    "still in the honeymoon: {written} written of the {needed} the drive can take before garbage \
                     collection{guess}"
                )
            }
            Reason::Short { intervals, needed } => {
                write!(f, "too short: {intervals} intervals after the transient, at least {needed} needed")
            }
            Reason::LittleWritten { written, needed } => {
                let (written, needed) = (size(written), size(needed));
                write!(f, "too short: {written} written after the transient, at least {needed} needed")
            }
            Reason::Idle => f.write_str("nothing was read or written"),
            Reason::Drift { percent_per_hour, reach_percent } => {
                let way = if percent_per_hour < 0.0 { "falling" } else { "rising" };
                let (rate, reach) = (percent(percent_per_hour.abs()), percent(reach_percent));
                if reach_percent > 100.0 {
                    write!(f, "{way} by {rate} an hour, with no end in sight: measure longer")
                } else {
                    write!(f, "{way} by {rate} an hour, and may end {reach} from this mean: measure longer")
                }
            }
            Reason::Undecided { reach_percent, limit_percent } => {
                let (reach, limit) = beyond(reach_percent.min(100.0), limit_percent);
                let than = if reach_percent > 100.0 { "more than " } else { "" };
                write!(
                    f,
                    "too short: a slow drift could still move the level by {than}{reach} (allowed: {limit}): measure longer"
                )
            }
            Reason::Wandering { batch_s } => {
                write!(
                    f,
                    "wandering: ups and downs longer than {batch_s:.0} s do not average out: measure longer"
                )
            }
            Reason::Wide { percent: width, limit_percent } => {
                let (width, limit) = beyond(width, limit_percent);
                write!(f, "confidence interval ±{width} is wider than ±{limit}: measure longer")
            }
            Reason::Rule { name } => write!(f, "the rule `{name}` never held"),
            Reason::Unconfirmed => f.write_str("steady at one check, not yet at the next: measure longer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_contain_their_figures() {
        for (reason, text) in [
            (
                Reason::Honeymoon { written: Bytes::gib(96), needed: Bytes::gib(171), blind: false },
                "still in the honeymoon: 96 GiB written of the 171 GiB the drive can take before garbage collection",
            ),
            (
                Reason::Drift { percent_per_hour: -4.04, reach_percent: 12.3 },
                "falling by 4.0 % an hour, and may end 12 % from this mean: measure longer",
            ),
            (
                Reason::Wide { percent: 3.1, limit_percent: 1.5 },
                "confidence interval ±3.1 % is wider than ±1.5 %: measure longer",
            ),
            (
                Reason::Wide { percent: 1.52, limit_percent: 1.5 },
                "confidence interval ±1.52 % is wider than ±1.50 %: measure longer",
            ),
            (
                Reason::LittleWritten { written: Bytes::mib(300), needed: Bytes::mib(2560) },
                "too short: 300 MiB written after the transient, at least 2.5 GiB needed",
            ),
        ] {
            assert_eq!(reason.to_string(), text);
        }
    }
}
