//! Why there is no steady state, as a value and as one sentence for people. Not here: the rules themselves.

use lowtide_core::Bytes;
use std::fmt;

/// Why a series has no steady window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// Not enough has been written since the purge.
    Honeymoon {
        /// Host bytes written since the last purge.
        written: Bytes,
        /// Host bytes after which a window may begin.
        needed: Bytes,
        /// Whether the need is guessed, raw capacity being unknown.
        blind: bool,
    },
    /// Too few intervals after the transient.
    Short {
        /// Intervals there are.
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
    /// The level changes over the window and has further to go than allowed.
    Drift {
        /// Change in percent an hour; negative when falling.
        percent_per_hour: f64,
        /// Percent that the mean of the window may lie away from the final level.
        reach_percent: f64,
    },
    /// No drift is seen, but the window is too short to rule one out.
    Undecided {
        /// Percent that the mean of the window may lie away from the final level.
        reach_percent: f64,
        /// Percent allowed.
        limit_percent: f64,
    },
    /// Even ten batches are correlated: ups and downs about as long as the window.
    Wandering {
        /// Seconds of one batch.
        batch_s: f64,
    },
    /// The confidence interval is too wide.
    Wide {
        /// Half width in percent of the mean.
        percent: f64,
        /// Half width allowed.
        limit_percent: f64,
    },
    /// A rule of another kind was asked for and never held.
    Rule {
        /// Its name.
        name: &'static str,
    },
    /// Held once, and needs to hold a second time before a running measurement is ended.
    Unconfirmed,
}

/// A size for people: two digits or more, in GiB where it is that large.
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

/// A percentage and the limit it exceeds, with the digits it takes to tell them apart.
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
    fn sentences_carry_their_figures() {
        let moon = Reason::Honeymoon { written: Bytes::gib(96), needed: Bytes::gib(171), blind: false };
        assert_eq!(
            moon.to_string(),
            "still in the honeymoon: 96 GiB written of the 171 GiB the drive can take before garbage collection"
        );
        let drift = Reason::Drift { percent_per_hour: -4.04, reach_percent: 12.3 };
        assert_eq!(
            drift.to_string(),
            "falling by 4.0 % an hour, and may end 12 % from this mean: measure longer"
        );
        let wide = Reason::Wide { percent: 3.1, limit_percent: 1.5 };
        assert_eq!(wide.to_string(), "confidence interval ±3.1 % is wider than ±1.5 %: measure longer");
        let close = Reason::Wide { percent: 1.52, limit_percent: 1.5 };
        assert_eq!(close.to_string(), "confidence interval ±1.52 % is wider than ±1.50 %: measure longer");
        let little = Reason::LittleWritten { written: Bytes::mib(300), needed: Bytes::mib(2560) };
        assert_eq!(
            little.to_string(),
            "too short: 300 MiB written after the transient, at least 2.5 GiB needed"
        );
    }
}
