//! The writer: one thread that owns the connection and writes the entries that running cells send.
//!
//! Cells may run on any number of threads. The measurement is in module `load`.

use super::tables::Tables;
use super::{Store, StoreError};
use lowtide_core::measure::Gap;
use lowtide_core::{Bytes, Counters, Interval, Latency, Nanos};
use lowtide_engines::tpcc::Kind;
use lowtide_record::analysis::Verdict;
use lowtide_record::column::{Column, Value as Number};
use lowtide_record::{Done, Oltp, Predicted, Row, Transactions};
use rusqlite::params;
use rusqlite::types::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between commits while rows arrive.
const COMMIT_EVERY: Duration = Duration::from_millis(500);
/// Capacity of the queue to the writer. Cells wait while it is full.
const QUEUE: usize = 1024;

/// A row with its serialised histograms.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The row.
    pub row: Row,
    /// By operation or kind of transaction.
    histograms: Vec<(&'static str, Vec<u8>)>,
}

impl Measured {
    /// The row and histograms of an interval.
    pub fn of(interval: &Interval) -> Self {
        Measured::new(Row::of(interval), &interval.read_latency, &interval.write_latency)
    }

    /// A row of another program. The histograms may be empty even if operations completed.
    pub fn new(row: Row, read: &Latency, write: &Latency) -> Self {
        Measured { row, histograms: counted([("read", read), ("write", write)]) }
    }

    /// The row of the device in an interval, with the transactions of that interval.
    pub fn of_terminals(row: Row, interval: &lowtide_engines::Interval) -> Self {
        let row = Row { transactions: Some(Box::new(Transactions::of(interval))), ..row };
        let kinds = Kind::ALL.iter().zip(&interval.kinds).map(|(kind, tally)| (kind.name(), &tally.latency));
        Measured { row, histograms: counted(kinds) }
    }
}

/// Serialises the histograms that are not empty.
fn counted<'a>(
    histograms: impl IntoIterator<Item = (&'static str, &'a Latency)>,
) -> Vec<(&'static str, Vec<u8>)> {
    let counted = histograms.into_iter().filter(|(_, latency)| latency.count() > 0);
    counted.map(|(name, latency)| (name, latency.to_bytes())).collect()
}

/// Facts known when the measurement of a cell begins.
#[derive(Debug, Clone)]
pub struct CellStart {
    /// The NAND capacity of the target, if known.
    pub raw_capacity: Option<Bytes>,
    /// Host bytes written since the last purge; `None` if unknown.
    pub written_before: Option<Bytes>,
    /// The device's counters.
    pub counters: Option<Counters>,
}

/// The end of a cell.
#[derive(Debug, Clone)]
pub enum CellEnd {
    /// The cell was measured to the end.
    Done {
        /// The result of the analysis.
        verdict: Verdict,
        /// Histogram of erase counts: `(erases, blocks)`.
        wear: Vec<(u64, u64)>,
    },
    /// The cell failed, for this reason.
    Failed(String),
}

/// A message from a running cell to the writer.
#[derive(Debug)]
pub enum Entry {
    /// The measurement begins.
    Start(u32, CellStart),
    /// The record of the cell's database, which replaces an earlier one.
    Oltp(u32, Box<Oltp>),
    /// An interval ended.
    Interval(u32, Box<Measured>),
    /// The cell ended.
    End(u32, CellEnd),
    /// A fact about the machine or the target: name and value.
    Fact(String, String),
    /// These cells are not needed, and will not be measured.
    Unneeded(Vec<u32>),
    /// The time for which the cell occupied its device.
    Took(u32, Nanos),
    /// A gap during which lowtide did not run.
    Gap(u32, Gap),
    /// The cell is skipped, and this level is predicted for it.
    Predicted(u32, Predicted),
}

/// The sending half of the queue, for the cells of one campaign.
#[derive(Debug, Clone)]
pub struct Sender {
    campaign: i64,
    queue: SyncSender<(i64, Entry)>,
}

impl Sender {
    /// Sends an entry. If the writer has failed, the entry is dropped, because the campaign is already being
    /// interrupted.
    pub fn send(&self, entry: Entry) {
        let _ = self.queue.send((self.campaign, entry));
    }
}

/// The writing thread of a store, for one campaign or several.
#[derive(Debug)]
pub struct Writer {
    queue: SyncSender<(i64, Entry)>,
    thread: JoinHandle<Result<Store, StoreError>>,
}

impl Writer {
    /// Starts writing. If the store fails, the writer sets `interrupt`, which ends the load; [`Writer::finish`] then
    /// returns the error.
    pub fn start(store: Store, interrupt: Arc<AtomicBool>) -> Writer {
        let (queue, receiver) = sync_channel(QUEUE);
        let thread = std::thread::spawn(move || {
            let written = write_all(store.tables(), &receiver);
            if written.is_err() {
                interrupt.store(true, Ordering::Relaxed);
                // Cells may send until they see the flag.
                while receiver.recv().is_ok() {}
            }
            written.map(|()| store)
        });
        Writer { queue, thread }
    }

    /// A sender for the cells of a campaign.
    pub fn sender(&self, campaign: i64) -> Sender {
        Sender { campaign, queue: self.queue.clone() }
    }

    /// Waits until everything is committed. All senders must have been dropped.
    ///
    /// # Errors
    /// [`StoreError`] if an entry could not be written.
    pub fn finish(self) -> Result<Store, StoreError> {
        drop(self.queue);
        self.thread.join().expect("the writer does not panic")
    }
}

fn write_all(tables: Tables<'_>, receiver: &Receiver<(i64, Entry)>) -> Result<(), StoreError> {
    let mut open_since: Option<Instant> = None;
    loop {
        let wait = open_since
            .map_or(Duration::from_secs(3600), |since| COMMIT_EVERY.saturating_sub(since.elapsed()));
        let received = receiver.recv_timeout(wait);
        let is_over = matches!(received, Err(RecvTimeoutError::Disconnected));
        if let Ok((campaign, entry)) = received {
            if open_since.is_none() {
                tables.execute("BEGIN IMMEDIATE", [])?;
                open_since = Some(Instant::now());
            }
            write(tables, campaign, &entry)?;
            if open_since.is_some_and(|since| since.elapsed() < COMMIT_EVERY) {
                continue;
            }
        }
        if open_since.take().is_some() {
            tables.execute("COMMIT", [])?;
        }
        if is_over {
            return Ok(());
        }
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("records serialise")
}

pub(super) fn write(tables: Tables<'_>, campaign: i64, entry: &Entry) -> Result<(), StoreError> {
    match entry {
        Entry::Start(cell, start) => tables.execute(
            "UPDATE cell SET raw_bytes = ?3, written_before_bytes = ?4, counters_before = ?5
             WHERE campaign = ?1 AND cell = ?2",
            params![
                campaign,
                cell,
                start.raw_capacity.map(|raw| raw.get() as i64),
                start.written_before.map(|written| written.get() as i64),
                start.counters.as_ref().map(json),
            ],
        ),
        Entry::Interval(cell, measured) => interval(tables, campaign, *cell, measured),
        Entry::Oltp(cell, oltp) => tables
            .execute("INSERT OR REPLACE INTO oltp VALUES (?1, ?2, ?3)", params![campaign, cell, json(oltp)]),
        Entry::Fact(name, value) => tables.add_fact(campaign, name, value),
        Entry::End(cell, CellEnd::Done { verdict, wear }) => tables.execute(
            "UPDATE cell SET status = 'done', failure = NULL, verdict = ?3, wear = ?4
             WHERE campaign = ?1 AND cell = ?2",
            params![campaign, cell, json(verdict), json(wear)],
        ),
        Entry::End(cell, CellEnd::Failed(reason)) => tables.execute(
            "UPDATE cell SET status = 'failed', failure = ?3 WHERE campaign = ?1 AND cell = ?2",
            params![campaign, cell, reason],
        ),
        Entry::Unneeded(cells) => cells.iter().try_for_each(|cell| {
            let delete = "DELETE FROM cell WHERE campaign = ?1 AND cell = ?2 AND status = 'pending'";
            tables.execute(delete, params![campaign, cell])
        }),
        Entry::Took(cell, took) => tables.execute(
            "INSERT OR REPLACE INTO device_time VALUES (?1, ?2, ?3)",
            params![campaign, cell, took.get() as i64],
        ),
        Entry::Gap(cell, Gap { at_ns, length, cause }) => tables.execute(
            "INSERT OR REPLACE INTO gap VALUES (?1, ?2, ?3, ?4, ?5)",
            params![campaign, cell, *at_ns as i64, length.get() as i64, cause.name()],
        ),
        Entry::Predicted(cell, Predicted { level, low, high }) => {
            let status = "UPDATE cell SET status = 'spared'
                          WHERE campaign = ?1 AND cell = ?2 AND status = 'pending'";
            tables.execute(status, params![campaign, cell])?;
            tables.execute(
                "INSERT OR REPLACE INTO predicted VALUES (?1, ?2, ?3, ?4, ?5)",
                params![campaign, cell, level, low, high],
            )
        }
    }
}

fn interval(tables: Tables<'_>, campaign: i64, cell: u32, measured: &Measured) -> Result<(), StoreError> {
    let row = &measured.row;
    let keys = [campaign.into(), cell.into()];
    let counters = row.counters.as_ref().map(json).into();
    let values: Vec<Value> = keys.into_iter().chain(numbers(Row::COLUMNS, row)).chain([counters]).collect();
    tables.insert("interval", &values)?;
    let start_ns = row.start_ns as i64;
    for (op, hdr) in &measured.histograms {
        let insert = "INSERT INTO histogram VALUES (?1, ?2, ?3, ?4, ?5)";
        tables.execute(insert, params![campaign, cell, start_ns, op, hdr])?;
    }
    let transactions = row.transactions.iter().flat_map(|transactions| &transactions.kinds);
    for (kind, done) in Kind::ALL.iter().zip(transactions) {
        let keys = [campaign.into(), cell.into(), start_ns.into(), kind.name().to_owned().into()];
        let values: Vec<Value> = keys.into_iter().chain(numbers(Done::COLUMNS, done)).collect();
        tables.insert("transactions", &values)?;
    }
    Ok(())
}

/// The numbers of a record, in the order of their columns.
fn numbers<R>(columns: &'static [Column<R>], record: &R) -> impl Iterator<Item = Value> {
    columns.iter().map(move |column| match column.value {
        Number::Whole { get, .. } => Value::Integer(get(record) as i64),
        Number::Real { get, .. } => Value::Real(get(record)),
    })
}
