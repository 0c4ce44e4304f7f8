//! The record of a database, which complements the record of its device.
//!
//! The load is in the crate `lowtide-oltp`.

use super::Percentiles;
use lowtide_core::Distribution;
use lowtide_engines::tpcc::Kind;
use lowtide_engines::{Interval, Tally};
use serde::{Deserialize, Serialize};

/// The transactions of an interval, by kind in the order of [`Kind::ALL`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transactions {
    /// The outcomes of each kind.
    pub kinds: [Done; Kind::ALL.len()],
}

/// The outcomes of one kind of transaction in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Done {
    /// Committed transactions.
    pub committed: u64,
    /// Rollbacks that the benchmark specifies.
    pub rolled_back: u64,
    /// Attempts that conflicted with another transaction and were retried.
    pub retries: u64,
    /// Latency of committed and rolled back transactions, from the first attempt.
    pub latency: Percentiles,
}

impl Transactions {
    /// The transactions of an interval.
    pub fn of(interval: &Interval) -> Self {
        let done = |tally: &Tally| Done {
            committed: tally.committed,
            rolled_back: tally.rolled_back,
            retries: tally.retries,
            latency: Percentiles::of(&tally.latency),
        };
        Transactions { kinds: std::array::from_fn(|kind| done(&interval.kinds[kind])) }
    }
    /// The outcomes of New-Order.
    pub fn new_order(&self) -> &Done {
        &self.kinds[Kind::NewOrder as usize]
    }
    /// Completed New-Order transactions.
    pub fn new_orders(&self) -> u64 {
        self.new_order().ended()
    }
    /// Completed transactions of all kinds.
    pub fn ended(&self) -> u64 {
        self.kinds.iter().map(Done::ended).sum()
    }
}

impl Done {
    /// Completed transactions: committed or rolled back.
    pub fn ended(&self) -> u64 {
        self.committed + self.rolled_back
    }
}

/// The suffix of the name of a modelled database.
pub const MODELLED: &str = " (modelled)";

/// The record of the database of a cell. Fields that are not known yet are empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Oltp {
    /// The name and version of the database.
    pub database: String,
    /// Warehouses, over all instances.
    pub warehouses: u32,
    /// Concurrent instances.
    pub instances: u32,
    /// `true` if the activity of the device was not visible, for example on a filesystem without a disk. The rows
    /// then have no device numbers.
    pub device_unseen: bool,
    /// Bytes that the loaded database occupies on its device.
    pub loaded_bytes: u64,
    /// The settings of the database, under the database's own names.
    pub settings: Vec<(String, String)>,
    /// Requested settings that the database does not support.
    pub ignored: Vec<String>,
    /// Sums over the measurement.
    pub said: Totals,
    /// The database's own counters over the measurement.
    pub counted: Vec<Counted>,
    /// The consistency conditions, before and after the measurement.
    pub conditions: Vec<Condition>,
    /// Latency by kind of transaction, in the order of [`Kind::ALL`], over the measured window.
    #[serde(skip)]
    pub latency: [Distribution; Kind::ALL.len()],
}

/// Sums over the measurement of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Totals {
    /// Completed transactions.
    pub transactions: u64,
    /// Statements sent for these transactions.
    pub statements: u64,
    /// Processor time of the terminals, in nanoseconds.
    pub client_cpu_ns: u64,
    /// Processor time of the servers, in nanoseconds; 0 if unknown.
    pub server_cpu_ns: u64,
    /// Order lines.
    pub lines: u64,
    /// Order lines supplied by a remote warehouse.
    pub remote_lines: u64,
    /// Payments.
    pub payments: u64,
    /// Payments by customers of a remote warehouse.
    pub remote_payments: u64,
    /// Districts without new orders in a delivery.
    pub skipped_deliveries: u64,
}

/// A counter of the database, or of the kernel for the database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counted {
    /// Its source: `innodb_metrics`, `pg_stat_wal`, `/proc/PID/io`.
    pub from: String,
    /// Its name in the source.
    pub name: String,
    /// `count`, `bytes`, `ns` or `level`.
    pub unit: String,
    /// The increase during the measurement; for a level, the value at the end.
    pub value: f64,
}

/// The result of a consistency condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Condition {
    /// Its name.
    pub name: String,
    /// Rows that violated it before the measurement; `None` if it was not checked.
    pub before: Option<i64>,
    /// Rows that violated it after the measurement; `None` if it was not checked.
    pub after: Option<i64>,
}
