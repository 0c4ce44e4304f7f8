//! What is recorded of a database beside what its device did.
//!
//! Not here: how it was asked (crate `lowtide-oltp`).

use super::Percentiles;
use lowtide_core::Distribution;
use lowtide_engines::tpcc::Kind;
use lowtide_engines::{Interval, Tally};
use serde::{Deserialize, Serialize};

/// The transactions of an interval, by kind in the order of [`Kind::ALL`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transactions {
    /// What became of each kind.
    pub kinds: [Done; Kind::ALL.len()],
}

/// What became of one kind of transaction in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Done {
    /// Committed.
    pub committed: u64,
    /// Rolled back because they had to be.
    pub rolled_back: u64,
    /// Attempts that met another transaction and were made again.
    pub retries: u64,
    /// Latency of those committed and rolled back, from the first attempt.
    pub latency: Percentiles,
}

impl Transactions {
    /// Those of an interval of the terminals.
    pub fn of(interval: &Interval) -> Self {
        let done = |tally: &Tally| Done {
            committed: tally.committed,
            rolled_back: tally.rolled_back,
            retries: tally.retries,
            latency: Percentiles::of(&tally.latency),
        };
        Transactions { kinds: std::array::from_fn(|kind| done(&interval.kinds[kind])) }
    }
    /// What became of New-Order.
    pub fn new_order(&self) -> &Done {
        &self.kinds[Kind::NewOrder as usize]
    }
    /// New orders that came to their end.
    pub fn new_orders(&self) -> u64 {
        self.new_order().ended()
    }
    /// All transactions that came to their end.
    pub fn ended(&self) -> u64 {
        self.kinds.iter().map(Done::ended).sum()
    }
}

impl Done {
    /// Those that came to their end.
    pub fn ended(&self) -> u64 {
        self.committed + self.rolled_back
    }
}

/// What the name of a database ends with that is modelled.
pub const MODELLED: &str = " (modelled)";

/// What is known of the database of a cell. Parts that are not known yet are empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Oltp {
    /// What it is, with its version.
    pub database: String,
    /// Warehouses, over all instances.
    pub warehouses: u32,
    /// Instances side by side.
    pub instances: u32,
    /// Whether what its device did was not to be seen, as on a filesystem without a disk: then the rows say nothing of it.
    pub device_unseen: bool,
    /// Bytes of the loaded database, on its device.
    pub loaded_bytes: u64,
    /// The settings it ran with, as it calls them.
    pub settings: Vec<(String, String)>,
    /// What was asked for and it has no word for.
    pub ignored: Vec<String>,
    /// What was asked, over the whole measurement.
    pub said: Said,
    /// What the database counted of itself during the measurement.
    pub counted: Vec<Counted>,
    /// The conditions of consistency, before and after.
    pub conditions: Vec<Condition>,
    /// Latency by kind of transaction, in the order of [`Kind::ALL`], over the measured window.
    #[serde(skip)]
    pub latency: [Distribution; Kind::ALL.len()],
}

/// Sums over the whole measurement of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Said {
    /// Transactions that came to their end.
    pub transactions: u64,
    /// Statements sent for them.
    pub statements: u64,
    /// Processor time of the terminals, in nanoseconds.
    pub client_cpu_ns: u64,
    /// Processor time of the servers, in nanoseconds; 0 where nobody can tell.
    pub server_cpu_ns: u64,
    /// Order lines.
    pub lines: u64,
    /// Those that another warehouse supplied.
    pub remote_lines: u64,
    /// Payments.
    pub payments: u64,
    /// Those of customers of another warehouse.
    pub remote_payments: u64,
    /// Districts that a delivery found without new orders.
    pub skipped_deliveries: u64,
}

/// Something that the database, or the kernel for it, counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counted {
    /// Where it was read: `innodb_metrics`, `pg_stat_wal`, `/proc/PID/io`.
    pub from: String,
    /// Its name there.
    pub name: String,
    /// `count`, `bytes`, `ns` or `level`.
    pub unit: String,
    /// What was added during the measurement; of a level, what it was at the end.
    pub value: f64,
}

/// A condition of consistency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Condition {
    /// Its name.
    pub name: String,
    /// Rows that broke it before the measurement; `None` where it was not checked.
    pub before: Option<i64>,
    /// Rows that broke it after the measurement; `None` where it was not checked.
    pub after: Option<i64>,
}
