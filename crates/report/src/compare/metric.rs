//! The metrics of a comparison: throughput or new orders, operations per second, latencies, write amplification.
//!
//! `reading` takes their values from cells.

use lowtide_record::Quantity;
use std::fmt;

/// A metric of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Bytes per second, of cells without a database.
    Throughput,
    /// New orders per minute, of cells with a database.
    NewOrders,
    /// Operations per second.
    Iops,
    /// NAND bytes per host byte.
    WriteAmplification,
    /// Latency of a class of operations.
    Latency(Operations, Statistic),
}

/// A class of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operations {
    /// Reads and writes together.
    All,
    /// Reads.
    Reads,
    /// Writes.
    Writes,
}

/// A statistic of a latency distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The median.
    P50,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
}

use Metric::Latency;
use Operations::{All, Reads, Writes};
use Statistic::{Mean, P50, P95, P99, P999};

/// Every metric with its name in thresholds and tables.
const NAMES: [(Metric, &str); 19] = [
    (Metric::Throughput, "throughput"),
    (Metric::Iops, "iops"),
    (Metric::WriteAmplification, "write_amplification"),
    (Latency(All, Mean), "latency_mean"),
    (Latency(All, P50), "latency_p50"),
    (Latency(All, P95), "latency_p95"),
    (Latency(All, P99), "latency_p99"),
    (Latency(All, P999), "latency_p999"),
    (Latency(Reads, Mean), "read_latency_mean"),
    (Latency(Reads, P50), "read_latency_p50"),
    (Latency(Reads, P95), "read_latency_p95"),
    (Latency(Reads, P99), "read_latency_p99"),
    (Latency(Reads, P999), "read_latency_p999"),
    (Latency(Writes, Mean), "write_latency_mean"),
    (Latency(Writes, P50), "write_latency_p50"),
    (Latency(Writes, P95), "write_latency_p95"),
    (Latency(Writes, P99), "write_latency_p99"),
    (Latency(Writes, P999), "write_latency_p999"),
    (Metric::NewOrders, "new_orders"),
];

impl Metric {
    /// Every metric.
    pub fn all() -> impl Iterator<Item = Metric> {
        NAMES.into_iter().map(|(metric, _)| metric)
    }

    /// The name of every metric.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().map(|(_, name)| name)
    }

    /// The metric of levels of this quantity.
    pub const fn of_level(quantity: Quantity) -> Metric {
        match quantity {
            Quantity::Throughput => Metric::Throughput,
            Quantity::NewOrders => Metric::NewOrders,
        }
    }

    /// The name in thresholds and tables: `throughput`, `read_latency_p99`.
    pub fn name(self) -> &'static str {
        let named = NAMES.into_iter().find(|(metric, _)| *metric == self);
        named.expect("every metric is listed").1
    }

    /// The metric of this name.
    pub fn named(name: &str) -> Option<Metric> {
        NAMES.into_iter().find(|(_, known)| *known == name).map(|(metric, _)| metric)
    }

    /// The rounding error of a ratio: histograms keep three digits.
    pub(super) fn resolution(self) -> f64 {
        if matches!(self, Latency(..)) { 0.001 } else { 0.0 }
    }
}

impl Statistic {
    /// The percentile, in percent; `None` for the mean.
    pub(super) fn percent(self) -> Option<f64> {
        match self {
            Mean => None,
            P50 => Some(50.0),
            P95 => Some(95.0),
            P99 => Some(99.0),
            P999 => Some(99.9),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for metric in Metric::all() {
            assert_eq!(Metric::named(metric.name()), Some(metric));
        }
        assert_eq!(Metric::named("speed"), None);
    }
}
