//! The rated erase cycles of a block ([`Cycles`]): one number, or the range that the maker gives.
//!
//! # Not modelled
//! The end of a block's life: no model retires blocks.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Rated erase cycles: a range with both ends at least 1, which are equal if one number is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cycles {
    fewest: u32,
    most: u32,
}

/// The error for a range that is not one of cycles.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a number of erase cycles: write `3000`, or a range from the fewest such as `5000..10000`"
)]
pub struct CyclesError(String);

impl Cycles {
    /// A range of cycles.
    ///
    /// # Errors
    /// [`CyclesError`] if `fewest` is 0 or greater than `most`.
    pub fn new(fewest: u32, most: u32) -> Result<Cycles, CyclesError> {
        if fewest == 0 || fewest > most {
            return Err(CyclesError(format!("{fewest}..{most}")));
        }
        Ok(Cycles { fewest, most })
    }

    /// The lower end.
    pub fn fewest(self) -> u32 {
        self.fewest
    }

    /// The upper end.
    pub fn most(self) -> u32 {
        self.most
    }
}

impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fewest == self.most {
            true => write!(f, "{}", self.most),
            false => write!(f, "{}..{}", self.fewest, self.most),
        }
    }
}

impl FromStr for Cycles {
    type Err = CyclesError;

    fn from_str(text: &str) -> Result<Self, CyclesError> {
        let number = |part: &str| part.trim().replace('_', "").parse().ok();
        let (fewest, most) = text.split_once("..").unwrap_or((text, text));
        let parsed = number(fewest).zip(number(most.trim_start_matches('=')));
        parsed
            .and_then(|(fewest, most)| Cycles::new(fewest, most).ok())
            .ok_or_else(|| CyclesError(text.to_owned()))
    }
}

/// The notation of a device file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of erase cycles such as `3000`, or a range such as `[5000, 10000]`")]
enum Written {
    One(u32),
    Range([u32; 2]),
}

impl<'de> Deserialize<'de> for Cycles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (fewest, most) = match Written::deserialize(deserializer)? {
            Written::One(cycles) => (cycles, cycles),
            Written::Range([fewest, most]) => (fewest, most),
        };
        Cycles::new(fewest, most).map_err(|_| {
            D::Error::custom(format!(
                "[{fewest}, {most}] are no erase cycles: at least 1, and the fewest first: `[5000, 10000]`"
            ))
        })
    }
}

impl Serialize for Cycles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.fewest == self.most {
            true => self.most.serialize(serializer),
            false => [self.fewest, self.most].serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_range_parse_and_print_back() {
        for text in ["3000", "5000..10000"] {
            assert_eq!(text.parse::<Cycles>().map(|cycles| cycles.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("5_000..=10_000".parse(), Cycles::new(5000, 10_000));
        for text in ["", "0", "many", "10000..5000", "1..", "-3", "4294967296"] {
            let error = text.parse::<Cycles>().expect_err(text).to_string();
            assert!(error.contains("such as `5000..10000`"), "{error}");
        }
    }
}
