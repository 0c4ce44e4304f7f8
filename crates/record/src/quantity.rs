//! The quantity that a level measures, with its names and units.

/// A quantity measured per unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quantity {
    /// Bytes read and written per second, in MiB/s.
    #[default]
    Throughput,
    /// New orders per minute (clause 5.4.2 of TPC-C), including the rollbacks that the benchmark specifies.
    NewOrders,
}

impl Quantity {
    /// Its name: `throughput`.
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::Throughput => "throughput",
            Quantity::NewOrders => "new orders",
        }
    }
    /// Its name in a sentence: `throughput`, `rate of new orders`.
    pub const fn noun(self) -> &'static str {
        match self {
            Quantity::Throughput => "throughput",
            Quantity::NewOrders => "rate of new orders",
        }
    }
    /// Its unit, spelt out: `MiB/s`, `new orders a minute`.
    pub const fn spelt(self) -> &'static str {
        match self {
            Quantity::Throughput => "MiB/s",
            Quantity::NewOrders => "new orders a minute",
        }
    }
    /// Its unit: `MiB/s`.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::Throughput => "MiB/s",
            Quantity::NewOrders => "NOTPM",
        }
    }
    /// A value on a progress line: `30.2 MiB/s`, `12345 NOTPM`.
    pub fn running(self, value: f64) -> String {
        format!("{value:.*} {}", self.decimals(), self.unit())
    }
    const fn decimals(self) -> usize {
        match self {
            Quantity::Throughput => 1,
            Quantity::NewOrders => 0,
        }
    }
    /// A settled level on a progress line: `30.2 ± 0.3 MiB/s`.
    pub fn settled(self, mean: f64, half_width: f64) -> String {
        format!("{mean:.*} ± {}", self.decimals(), self.running(half_width))
    }
    /// Its component of keys in JSON and CSV: `mib_per_s`.
    pub const fn key(self) -> &'static str {
        match self {
            Quantity::Throughput => "mib_per_s",
            Quantity::NewOrders => "notpm",
        }
    }
}
