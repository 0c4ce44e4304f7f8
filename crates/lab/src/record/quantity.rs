//! What a level is a rate of, and the unit people know it by.

/// What is counted per time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quantity {
    /// Bytes read and written per second, in MiB/s.
    #[default]
    Throughput,
    /// New orders per minute (clause 5.4.2 of TPC-C): those that were rolled back because they had to be are among them.
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
    /// Its unit: `MiB/s`.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::Throughput => "MiB/s",
            Quantity::NewOrders => "NOTPM",
        }
    }
    /// Its part of a key in JSON and CSV: `mib_per_s`.
    pub const fn key(self) -> &'static str {
        match self {
            Quantity::Throughput => "mib_per_s",
            Quantity::NewOrders => "notpm",
        }
    }
}
