//! Unit types: [`Bytes`], [`Nanos`] (a span of time) and [`VirtualTime`] (an instant of simulated time).
//!
//! Each type is a newtype with a private field, so that bytes cannot be added to nanoseconds. Sizes and spans are
//! parsed from, and printed as, text with a unit (`10GiB`, `160GB`, `10s`, `1h`). There is no calendar time, because
//! pure crates never know the date.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;

/// An error in the text of a size or a span of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not a {what}: {accepted}")]
pub struct UnitError {
    /// The text as given.
    pub value: String,
    /// `size` or `span of time`.
    pub what: &'static str,
    /// The accepted form, or the reason for the rejection.
    pub accepted: String,
}

const SIZE_UNITS: [(&str, u64); 12] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
];

const TIME_UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Parses `<number><unit>` in integer arithmetic: `1.5GiB` is 1 610 612 736. A fraction of the base unit is dropped.
fn parse(text: &str, units: &[(&str, u64)], what: &'static str, example: &str) -> Result<u64, UnitError> {
    let names =
        || units.iter().map(|(name, _)| *name).filter(|name| *name != "KB").collect::<Vec<_>>().join(", ");
    let fail = |accepted: String| UnitError { value: text.to_owned(), what, accepted };
    let text_trimmed = text.trim();
    let split = text_trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text_trimmed.len());
    let (number, unit) = text_trimmed.split_at(split);
    let (number, unit) = (number.replace('_', ""), unit.trim());
    if number.is_empty() {
        return Err(fail(format!("write a number and a unit, such as `{example}`")));
    }
    if unit.is_empty() && number != "0" {
        return Err(fail(format!("a unit is missing; write for example `{example}` (units: {})", names())));
    }
    let factor = match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => *factor,
        None if unit.is_empty() => 1,
        None => {
            let hint = crate::suggest::nearest(unit, units.iter().map(|(name, _)| *name))
                .map(|name| format!("; did you mean `{number}{name}`?"))
                .unwrap_or_default();
            return Err(fail(format!("unknown unit `{unit}`, use one of {}{hint}", names())));
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if fraction.contains('.') {
        return Err(fail(format!("more than one decimal point; write for example `{example}`")));
    }
    let too_large = || fail("too large for 64 bits".to_owned());
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
    let mut value = whole.checked_mul(factor).ok_or_else(too_large)?;
    if !fraction.is_empty() {
        let digits = fraction.len().min(18) as u32;
        let scale = 10u128.pow(digits);
        let part: u128 = fraction[..digits as usize].parse().map_err(|_| too_large())?;
        value = value.checked_add((part * u128::from(factor) / scale) as u64).ok_or_else(too_large)?;
    }
    Ok(value)
}

macro_rules! text_serde {
    ($type:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_string())
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// A number of bytes. Printed with the largest binary or decimal unit that is exact, whichever gives the smaller
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// `n` bytes.
    pub const fn new(n: u64) -> Self {
        Bytes(n)
    }
    /// `n` × 1024 bytes.
    pub const fn kib(n: u64) -> Self {
        Bytes(n << 10)
    }
    /// `n` × 1024² bytes.
    pub const fn mib(n: u64) -> Self {
        Bytes(n << 20)
    }
    /// `n` × 1024³ bytes.
    pub const fn gib(n: u64) -> Self {
        Bytes(n << 30)
    }
    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The size in MiB, for display and statistics.
    pub fn as_mib(self) -> f64 {
        self.0 as f64 / (1u64 << 20) as f64
    }
    /// The size in GiB, for display and statistics.
    pub fn as_gib(self) -> f64 {
        self.0 as f64 / (1u64 << 30) as f64
    }
    /// Rounds down to a multiple of `unit`.
    pub const fn align_down(self, unit: Bytes) -> Self {
        Bytes(self.0 - self.0 % unit.0)
    }
    /// Rounds up to a multiple of `unit`.
    pub const fn align_up(self, unit: Bytes) -> Self {
        Bytes(self.0.div_ceil(unit.0) * unit.0)
    }
    /// Subtracts `other`; the result is at least zero.
    pub const fn saturating_sub(self, other: Bytes) -> Self {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &SIZE_UNITS, "size", "16KiB").map(Bytes)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0B");
        }
        let exact = |wanted: &[&str]| {
            SIZE_UNITS
                .iter()
                .filter(|(name, _)| wanted.contains(name))
                .rfind(|(_, factor)| self.0.is_multiple_of(*factor))
                .map(|(name, factor)| (self.0 / factor, *name))
        };
        let binary = exact(&["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
        let decimal = exact(&["B", "kB", "MB", "GB", "TB", "PB"]);
        let (number, unit) = match (binary, decimal) {
            (Some(b), Some(d)) => {
                if d.0 < b.0 {
                    d
                } else {
                    b
                }
            }
            (b, d) => b.or(d).unwrap_or((self.0, "B")),
        };
        f.pad(&format!("{number}{unit}"))
    }
}

text_serde!(Bytes);

/// A span of time in whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(u64);

impl Nanos {
    /// No time.
    pub const ZERO: Nanos = Nanos(0);

    /// `n` nanoseconds.
    pub const fn new(n: u64) -> Self {
        Nanos(n)
    }
    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Nanos(n * 1_000)
    }
    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Nanos(n * 1_000_000)
    }
    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Nanos(n * 1_000_000_000)
    }
    /// The number of nanoseconds.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The span in seconds, for display and statistics.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl FromStr for Nanos {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &TIME_UNITS, "span of time", "10s").map(Nanos)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.pad("0s");
        }
        let (name, factor) = TIME_UNITS
            .iter()
            .rfind(|(_, factor)| self.0.is_multiple_of(*factor))
            .expect("every number is a multiple of one nanosecond");
        f.pad(&format!("{}{name}", self.0 / factor))
    }
}

text_serde!(Nanos);

/// An instant of virtual time, in nanoseconds since the simulated device was powered on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VirtualTime(u64);

impl VirtualTime {
    /// The instant of power-on.
    pub const START: VirtualTime = VirtualTime(0);

    /// `n` nanoseconds after power-on.
    pub const fn from_nanos(n: u64) -> Self {
        VirtualTime(n)
    }
    /// Nanoseconds since power-on.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The span from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: VirtualTime) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for VirtualTime {
    type Output = VirtualTime;
    fn add(self, span: Nanos) -> VirtualTime {
        VirtualTime(self.0 + span.0)
    }
}

macro_rules! arithmetic {
    ($type:ident) => {
        impl Add for $type {
            type Output = $type;
            fn add(self, other: $type) -> $type {
                $type(self.0 + other.0)
            }
        }
        impl AddAssign for $type {
            fn add_assign(&mut self, other: $type) {
                self.0 += other.0;
            }
        }
        impl Sub for $type {
            type Output = $type;
            fn sub(self, other: $type) -> $type {
                $type(self.0 - other.0)
            }
        }
        impl Mul<u64> for $type {
            type Output = $type;
            fn mul(self, factor: u64) -> $type {
                $type(self.0 * factor)
            }
        }
        impl Div<u64> for $type {
            type Output = $type;
            fn div(self, divisor: u64) -> $type {
                $type(self.0 / divisor)
            }
        }
        impl std::iter::Sum for $type {
            fn sum<I: Iterator<Item = $type>>(values: I) -> $type {
                $type(values.map(|value| value.0).sum())
            }
        }
    };
}
arithmetic!(Bytes);
arithmetic!(Nanos);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_parse_in_both_bases() {
        assert_eq!("16KiB".parse(), Ok(Bytes::kib(16)));
        assert_eq!("160GB".parse(), Ok(Bytes::new(160_000_000_000)));
        assert_eq!("1.5 GiB".parse(), Ok(Bytes::new(3 << 29)));
        assert_eq!("0".parse(), Ok(Bytes::ZERO));
    }

    #[test]
    fn a_bad_unit_says_what_is_accepted_and_what_is_near() {
        let error = "16kib".parse::<Bytes>().unwrap_err().to_string();
        assert!(error.contains("did you mean `16KiB`?"), "{error}");
        let error = "10".parse::<Nanos>().unwrap_err().to_string();
        assert!(error.contains("a unit is missing"), "{error}");
        assert!("".parse::<Bytes>().is_err());
        assert!("1.2.3GiB".parse::<Bytes>().is_err());
        assert!("99999999999PiB".parse::<Bytes>().is_err());
    }

    #[test]
    fn printing_picks_the_shortest_exact_unit() {
        assert_eq!(Bytes::new(160_000_000_000).to_string(), "160GB");
        assert_eq!(Bytes::gib(10).to_string(), "10GiB");
        assert_eq!(Nanos::from_secs(3600).to_string(), "1h");
        assert_eq!(Nanos::from_micros(65).to_string(), "65us");
        assert_eq!(Nanos::from_secs(90).to_string(), "90s");
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(n in any::<u64>()) {
            prop_assert_eq!(Bytes::new(n).to_string().parse(), Ok(Bytes::new(n)));
            prop_assert_eq!(Nanos::new(n).to_string().parse(), Ok(Nanos::new(n)));
        }
    }
}
