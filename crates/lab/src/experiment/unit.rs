//! Units of published numbers, and their conversion.
//!
//! Internally, throughput is in MiB/s, a rate per second, transactions per minute, and a time in seconds. The units
//! of sizes and times in experiments are in `lowtide_core`.

use serde::{Deserialize, Serialize};

/// The dimension of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dimension {
    /// Bytes per second; internally MiB/s.
    Throughput,
    /// Requests per second.
    Rate,
    /// Transactions per minute.
    Transactions,
    /// A latency or a span of time; internally seconds.
    Time,
    /// The ratio of two numbers.
    Ratio,
    /// The ratio of two numbers in percent.
    Percent,
}

/// A unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// Its dimension.
    pub dimension: Dimension,
    /// One internal unit, expressed in this unit.
    per_inner: f64,
}

const MIB: f64 = 1_048_576.0;

/// Every unit with its name.
const UNITS: [(&str, Dimension, f64); 20] = [
    ("MiB/s", Dimension::Throughput, 1.0),
    ("KiB/s", Dimension::Throughput, 1024.0),
    ("GiB/s", Dimension::Throughput, 1.0 / 1024.0),
    ("kB/s", Dimension::Throughput, MIB / 1e3),
    ("MB/s", Dimension::Throughput, MIB / 1e6),
    ("GB/s", Dimension::Throughput, MIB / 1e9),
    ("req/s", Dimension::Rate, 1.0),
    ("IO/s", Dimension::Rate, 1.0),
    ("IOPS", Dimension::Rate, 1.0),
    ("tx/min", Dimension::Transactions, 1.0),
    ("new-order tx/min", Dimension::Transactions, 1.0),
    ("tx/s", Dimension::Transactions, 1.0 / 60.0),
    ("us", Dimension::Time, 1e6),
    ("ms", Dimension::Time, 1e3),
    ("s", Dimension::Time, 1.0),
    ("min", Dimension::Time, 1.0 / 60.0),
    ("h", Dimension::Time, 1.0 / 3600.0),
    ("d", Dimension::Time, 1.0 / 86_400.0),
    ("x", Dimension::Ratio, 1.0),
    ("%", Dimension::Percent, 1.0),
];

impl Unit {
    /// The unit with this name.
    pub fn named(name: &str) -> Option<Unit> {
        Unit::all().find(|(known, _)| *known == name).map(|(_, unit)| unit)
    }

    /// Every unit by name.
    pub(super) fn all() -> impl Iterator<Item = (&'static str, Unit)> {
        UNITS.into_iter().map(|(name, dimension, per_inner)| (name, Unit { dimension, per_inner }))
    }

    /// Converts a number from the internal unit to this unit.
    pub fn from_inner(self, number: f64) -> f64 {
        number * self.per_inner
    }
}

impl Dimension {
    /// The default unit of the limits of a claim.
    pub const fn usual(self) -> &'static str {
        match self {
            Dimension::Throughput => "MiB/s",
            Dimension::Rate => "IO/s",
            Dimension::Transactions => "tx/min",
            Dimension::Time => "s",
            Dimension::Ratio => "x",
            Dimension::Percent => "%",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_converted_and_each_dimension_has_a_default() {
        let convert = |name: &str, number| Unit::named(name).expect("known").from_inner(number);
        assert!((convert("MB/s", 1000.0) - 1048.576).abs() < 1e-9);
        assert!((convert("GB/s", 1000.0) - 1.048_576).abs() < 1e-12);
        assert!((convert("ms", 0.25) - 250.0).abs() < 1e-9);
        assert!((convert("h", 7200.0) - 2.0).abs() < 1e-12);
        assert_eq!(convert("%", 12.0), 12.0);
        assert_eq!(convert("tx/s", 7200.0), 120.0);
        assert_eq!(Unit::named("tx/h"), None);
        for (name, unit) in Unit::all() {
            assert_eq!(
                Unit::named(unit.dimension.usual()).map(|it| it.dimension),
                Some(unit.dimension),
                "{name}"
            );
        }
    }
}
