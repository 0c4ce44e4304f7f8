//! Database results in addition to levels: transactions of the measured window, cost per transaction, consistency of
//! the data, and the database's own counters.
//!
//! Rates and latencies are of the measured window. Statements, processor time, remote shares and counters are sums
//! over the whole measurement. Levels are reported like those of block devices.

mod counted;
mod settings;
mod transactions;
mod verdict;

pub(crate) use counted::counted;
pub(crate) use settings::settings;
pub(crate) use transactions::transactions;
pub(crate) use verdict::{broken, sentences};

use super::table::Table;
use crate::answer::Answer;
use lowtide_engines::tpcc::Kind;
use lowtide_files::device;
use lowtide_record::{Campaign, Cell, Done, MODELLED, Oltp, Row};

/// With more cells than this, the table of transactions is a collapsed detail.
const FEW: usize = 3;

/// The activity of a cell's database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Activity<'a> {
    /// The facts of the database.
    pub oltp: &'a Oltp,
    /// Length of the measured window in seconds.
    pub window_s: f64,
    /// Length of the measurement in seconds.
    pub total_s: f64,
    /// Transactions in the window by kind, in the order of [`Kind::ALL`]; their latencies are in `oltp`.
    pub kinds: [Done; Kind::ALL.len()],
    /// Bytes that the device read in the window; `None` for an unobserved device.
    pub read_bytes: Option<u64>,
    /// Bytes that the device wrote in the window; `None` for an unobserved device.
    pub write_bytes: Option<u64>,
}

impl<'a> Activity<'a> {
    /// The activity; `None` for a cell without a database or without measured intervals.
    pub fn of(answer: &Answer<'a>) -> Option<Activity<'a>> {
        let cell = answer.cell;
        let oltp = cell.oltp.as_deref()?;
        let (from_ns, to_ns, _) = cell.window();
        let window = || cell.rows.iter().filter(|row| row.start_ns >= from_ns && row.end_ns <= to_ns);
        let mut kinds = [Done::default(); Kind::ALL.len()];
        for transactions in window().filter_map(|row| row.transactions.as_deref()) {
            for (sum, done) in kinds.iter_mut().zip(&transactions.kinds) {
                sum.committed += done.committed;
                sum.rolled_back += done.rolled_back;
                sum.retries += done.retries;
            }
        }
        let seen = |of: fn(&Row) -> u64| (!oltp.device_unseen).then(|| window().map(of).sum());
        let activity = Activity {
            oltp,
            window_s: window().map(|row| row.seconds()).sum(),
            total_s: cell.rows.iter().map(|row| row.seconds()).sum(),
            kinds,
            read_bytes: seen(|row| row.read_bytes),
            write_bytes: seen(|row| row.write_bytes),
        };
        (activity.window_s > 0.0).then_some(activity)
    }

    /// Transactions of all kinds that ended in the window.
    pub fn ended(&self) -> u64 {
        self.kinds.iter().map(Done::ended).sum()
    }
    /// Transactions of all kinds per minute.
    pub fn per_minute(&self) -> f64 {
        self.ended() as f64 / self.window_s * 60.0
    }
    /// An amount of the window per transaction; `None` if no transaction ended.
    pub fn per_transaction(&self, amount: u64) -> Option<f64> {
        (self.ended() > 0).then(|| amount as f64 / self.ended() as f64)
    }
    /// Returns whether the database is simulated.
    pub fn is_modelled(&self) -> bool {
        self.oltp.database.ends_with(MODELLED)
    }
    /// Retries per transaction; `None` for a simulated database, which has no retries.
    pub fn retries(&self) -> Option<f64> {
        if self.is_modelled() {
            return None;
        }
        self.per_transaction(self.kinds.iter().map(|done| done.retries).sum())
    }
    /// An amount of the whole measurement per transaction; `None` if no transaction ended or the amount is unknown
    /// (0).
    pub fn per_transaction_of_all(&self, amount: u64) -> Option<f64> {
        let transactions = self.oltp.said.transactions;
        (transactions > 0 && amount > 0).then(|| amount as f64 / transactions as f64)
    }
    /// A latency percentile of a kind over the window, in nanoseconds; `None` if no transaction ended.
    pub fn latency_ns(&self, kind: Kind, percent: f64) -> Option<f64> {
        let latency = &self.oltp.latency[kind as usize];
        (latency.count() > 0).then(|| latency.percentile(percent).get() as f64)
    }
    /// Processors kept busy by terminals and servers, averaged over the measurement.
    pub fn busy_cores(&self) -> f64 {
        let said = &self.oltp.said;
        (said.client_cpu_ns + said.server_cpu_ns) as f64 / 1e9 / self.total_s
    }
}

/// The device's price in US dollars, from its device file.
pub(crate) fn price_usd(campaign: &Campaign, cell: &Cell) -> Option<f64> {
    device::of_cell(campaign, cell)?.price_usd.filter(|price| *price > 0.0)
}

/// The tables of a campaign of databases: main tables and collapsed details.
pub(crate) fn tables(answers: &[Answer<'_>]) -> (Vec<Table>, Vec<Table>) {
    let (mut tables, mut details) = (Vec::new(), Vec::new());
    let by_kind = if answers.len() <= FEW { &mut tables } else { &mut details };
    by_kind.extend(transactions(answers));
    let counters = if answers.len() == 1 { &mut tables } else { &mut details };
    counters.extend(counted(answers));
    details.extend(settings(answers));
    (tables, details)
}

/// The TPC-C name of a kind of transaction: `New-Order`.
pub(crate) fn called(kind: Kind) -> &'static str {
    match kind {
        Kind::NewOrder => "New-Order",
        Kind::Payment => "Payment",
        Kind::OrderStatus => "Order-Status",
        Kind::Delivery => "Delivery",
        Kind::StockLevel => "Stock-Level",
    }
}
