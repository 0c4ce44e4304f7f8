//! Write rates: `40MiB/s`, `5TB/day` or `0.5DWPD`.
//!
//! The distribution over the day is irrelevant, because only the mean causes wear.

use crate::number::significant;
use lowtide_core::Bytes;
use lowtide_core::suggest::nearest;
use std::fmt;
use std::str::FromStr;

/// The accepted time units, with their seconds.
const PER: [(&str, f64); 11] = [
    ("s", 1.0),
    ("min", 60.0),
    ("h", 3600.0),
    ("hour", 3600.0),
    ("d", DAY_S),
    ("day", DAY_S),
    ("week", 7.0 * DAY_S),
    ("month", YEAR_DAYS / 12.0 * DAY_S),
    ("year", YEAR_DAYS * DAY_S),
    ("y", YEAR_DAYS * DAY_S),
    ("a", YEAR_DAYS * DAY_S),
];

/// Seconds per day.
const DAY_S: f64 = 86_400.0;

/// Days per year in ratings of drive writes per day.
pub const YEAR_DAYS: f64 = 365.0;

/// The mean rate of host writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WriteRate {
    /// Bytes per day.
    BytesPerDay(f64),
    /// Drive writes per day, as a multiple of the capacity.
    Dwpd(f64),
}

/// A text that is not a write rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not a write rate: {reason}")]
pub struct RateError {
    /// The text as given.
    pub value: String,
    /// The reason.
    pub reason: String,
}

impl RateError {
    /// The accepted forms, in one line.
    pub const ACCEPTED: &str = "a size per s, min, h, day, week, month or year, such as `40MiB/s` or `5TB/day`; \
                                or drive writes per day, such as `0.5DWPD`";
}

impl WriteRate {
    /// Bytes per day on a drive of this capacity.
    pub fn bytes_per_day(self, capacity: Bytes) -> f64 {
        match self {
            WriteRate::BytesPerDay(bytes) => bytes,
            WriteRate::Dwpd(times) => times * capacity.get() as f64,
        }
    }
}

impl FromStr for WriteRate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let fail = |reason: String| RateError { value: text.to_owned(), reason };
        let trimmed = text.trim();
        let lower = trimmed.to_lowercase();
        let rate = if let Some(number) = lower.strip_suffix("dwpd") {
            let times = number.trim().parse::<f64>().ok().filter(|times| times.is_finite());
            WriteRate::Dwpd(times.ok_or_else(|| fail("`DWPD` needs a number, such as `0.5DWPD`".to_owned()))?)
        } else {
            let (size, time) = trimmed
                .split_once('/')
                .ok_or_else(|| fail("it has neither `/` with a time nor `DWPD`".to_owned()))?;
            let size: Bytes = size.parse().map_err(|error| fail(format!("{error}")))?;
            let time = time.trim();
            let Some((_, seconds)) = PER.iter().find(|(name, _)| *name == time) else {
                let near = nearest(time, PER.iter().map(|(name, _)| *name));
                let hint = near.map(|near| format!("; did you mean `/{near}`?")).unwrap_or_default();
                return Err(fail(format!("`{time}` is not a unit of time{hint}")));
            };
            WriteRate::BytesPerDay(size.get() as f64 * DAY_S / seconds)
        };
        match rate {
            WriteRate::BytesPerDay(n) | WriteRate::Dwpd(n) if n > 0.0 => Ok(rate),
            _ => Err(fail("nothing is written, so there is no wear".to_owned())),
        }
    }
}

impl fmt::Display for WriteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteRate::BytesPerDay(bytes) => {
                let mib_per_s = bytes / DAY_S / Bytes::mib(1).get() as f64;
                write!(f, "{}/day ({} MiB/s)", super::words::decimal(*bytes), significant(mib_per_s))
            }
            WriteRate::Dwpd(times) => write!(f, "{times} DWPD"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_parse() {
        let day =
            |text: &str| text.parse::<WriteRate>().expect(text).bytes_per_day(Bytes::new(160_000_000_000));
        assert_eq!(day("5TB/day"), 5e12);
        assert_eq!(day("5 TB / d"), 5e12);
        assert_eq!(day("40MiB/s"), 40.0 * 1_048_576.0 * 86_400.0);
        assert_eq!(day("0.5DWPD"), 80e9);
        assert_eq!(day("0.5 dwpd"), 80e9);
        assert_eq!(day("365TB/year"), 1e12);
        assert_eq!(day("10GiB/day"), 10.0 * 1_073_741_824.0);
    }

    #[test]
    fn invalid_rates_are_rejected_with_the_nearest_valid_one() {
        for (text, says) in [
            ("40MiB", "neither `/` with a time"),
            ("40mib/s", "did you mean `40MiB`?"),
            ("40MiB/dayy", "did you mean `/day`?"),
            ("0B/s", "nothing is written"),
            ("xDWPD", "needs a number"),
            ("infDWPD", "needs a number"),
            ("-1DWPD", "nothing is written"),
            ("", "neither `/`"),
        ] {
            let error = text.parse::<WriteRate>().expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
