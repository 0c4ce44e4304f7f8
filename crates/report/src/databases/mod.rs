//! What a report says of databases, beside their levels: what was asked in the measured window, what a transaction cost,
//! whether the data are still right, and where the time went.
//!
//! Rates and latencies are those of the measured window; statements, processor time, remote shares and what the database
//! counted are sums over the whole measurement. Not here: levels, which are told as those of block devices are.

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

/// More cells than this have their transactions by kind folded away.
const FEW: usize = 3;

/// What was asked of the database of a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// What is known of the database.
    pub oltp: &'a Oltp,
    /// Length of the measured window.
    pub window_s: f64,
    /// Length of the whole measurement.
    pub whole_s: f64,
    /// What became of each kind in the window, in the order of [`Kind::ALL`]; latencies are in `oltp`.
    pub kinds: [Done; Kind::ALL.len()],
    /// Bytes that the device read in the window; `None` where nobody saw.
    pub read_bytes: Option<u64>,
    /// Bytes that the device wrote in the window; `None` where nobody saw.
    pub write_bytes: Option<u64>,
}

impl<'a> Asked<'a> {
    /// What was asked; `None` of a cell without a database, or where nothing was measured.
    pub fn of(answer: &Answer<'a>) -> Option<Asked<'a>> {
        let cell = answer.cell;
        let oltp = cell.oltp.as_deref()?;
        let (from_ns, to_ns, _) = cell.window();
        let whole_s: f64 = cell.rows.iter().map(|row| row.seconds()).sum();
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
        let asked = Asked {
            oltp,
            window_s: window().map(|row| row.seconds()).sum(),
            whole_s,
            kinds,
            read_bytes: seen(|row| row.read_bytes),
            write_bytes: seen(|row| row.write_bytes),
        };
        (asked.window_s > 0.0).then_some(asked)
    }

    /// Transactions of all kinds that came to their end in the window.
    pub fn ended(&self) -> u64 {
        self.kinds.iter().map(Done::ended).sum()
    }
    /// The same per minute.
    pub fn per_minute(&self) -> f64 {
        self.ended() as f64 / self.window_s * 60.0
    }
    /// Something of the window per transaction; `None` where none ended.
    pub fn per_transaction(&self, amount: u64) -> Option<f64> {
        (self.ended() > 0).then(|| amount as f64 / self.ended() as f64)
    }
    /// Whether the database is a model of one.
    pub fn is_modelled(&self) -> bool {
        self.oltp.database.ends_with(MODELLED)
    }
    /// Attempts that were made again, per transaction that ended; `None` of a model, which has none.
    pub fn retries(&self) -> Option<f64> {
        if self.is_modelled() {
            return None;
        }
        self.per_transaction(self.kinds.iter().map(|done| done.retries).sum())
    }
    /// Something of the whole measurement per transaction; `None` where none ended, or nobody could tell (0).
    pub fn per_transaction_of_all(&self, amount: u64) -> Option<f64> {
        let transactions = self.oltp.said.transactions;
        (transactions > 0 && amount > 0).then(|| amount as f64 / transactions as f64)
    }
    /// A percentile of the latency of a kind over the window, in nanoseconds; `None` where none ended.
    pub fn latency_ns(&self, kind: Kind, percent: f64) -> Option<f64> {
        let latency = &self.oltp.latency[kind as usize];
        (latency.count() > 0).then(|| latency.percentile(percent).get() as f64)
    }
    /// Processors that terminals and servers kept busy, over the whole measurement.
    pub fn busy_cores(&self) -> f64 {
        let said = &self.oltp.said;
        (said.client_cpu_ns + said.server_cpu_ns) as f64 / 1e9 / self.whole_s
    }
}

/// What the device of a cell costs by its file, in US dollars.
pub(crate) fn price_usd(campaign: &Campaign, cell: &Cell) -> Option<f64> {
    device::of_cell(campaign, cell)?.price_usd.filter(|price| *price > 0.0)
}

/// The tables of a campaign of databases: those that everybody reads, and those for a closer look.
pub(crate) fn tables(answers: &[Answer<'_>]) -> (Vec<Table>, Vec<Table>) {
    let (mut tables, mut details) = (Vec::new(), Vec::new());
    let place = if answers.len() <= FEW { &mut tables } else { &mut details };
    place.extend(transactions(answers));
    let place = if answers.len() == 1 { &mut tables } else { &mut details };
    place.extend(counted(answers));
    details.extend(settings(answers));
    (tables, details)
}

/// What a kind of transaction is called: `New-Order`.
pub(crate) fn called(kind: Kind) -> &'static str {
    match kind {
        Kind::NewOrder => "New-Order",
        Kind::Payment => "Payment",
        Kind::OrderStatus => "Order-Status",
        Kind::Delivery => "Delivery",
        Kind::StockLevel => "Stock-Level",
    }
}
