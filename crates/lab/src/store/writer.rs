//! The writer: one thread that owns the connection and takes what running cells send.
//!
//! Not here: what is sent; cells run on as many threads as they like.

use super::{Store, StoreError, schema};
use lowtide_core::measure::Gap;
use lowtide_core::{Bytes, Counters, Interval, Latency, Nanos};
use lowtide_engines::tpcc::Kind;
use lowtide_record::analysis::Verdict;
use lowtide_record::column::{Column, Value as Number};
use lowtide_record::{Done, Oltp, Predicted, Row, Transactions};
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long rows may wait to be committed.
const COMMIT_EVERY: Duration = Duration::from_millis(500);
/// Entries that may wait for the writer before cells wait for it.
const QUEUE: usize = 1024;

/// A row with its histograms, already in their bytes.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The row.
    pub row: Row,
    /// By operation or kind of transaction.
    histograms: Vec<(&'static str, Vec<u8>)>,
}

impl Measured {
    /// What is kept of an interval.
    pub fn of(interval: &Interval) -> Self {
        Measured::new(Row::of(interval), &interval.read_latency, &interval.write_latency)
    }

    /// A row whose histograms came from elsewhere; they may be empty although operations completed.
    pub fn new(row: Row, read: &Latency, write: &Latency) -> Self {
        Measured { row, histograms: counted([("read", read), ("write", write)]) }
    }

    /// What terminals did in an interval, beside what `row` says their device did.
    pub fn of_terminals(row: Row, interval: &lowtide_engines::Interval) -> Self {
        let row = Row { transactions: Some(Box::new(Transactions::of(interval))), ..row };
        let kinds = Kind::ALL.iter().zip(&interval.kinds).map(|(kind, tally)| (kind.name(), &tally.latency));
        Measured { row, histograms: counted(kinds) }
    }
}

/// The bytes of the histograms that counted anything.
fn counted<'a>(
    histograms: impl IntoIterator<Item = (&'static str, &'a Latency)>,
) -> Vec<(&'static str, Vec<u8>)> {
    let counted = histograms.into_iter().filter(|(_, latency)| latency.count() > 0);
    counted.map(|(name, latency)| (name, latency.to_bytes())).collect()
}

/// What is known when a cell's measurement begins.
#[derive(Debug, Clone)]
pub struct CellStart {
    /// All NAND of the target, where known.
    pub raw_capacity: Option<Bytes>,
    /// Host bytes written since the last purge; `None` where nobody knows.
    pub written_before: Option<Bytes>,
    /// The device's counters.
    pub counters: Option<Counters>,
}

/// What is known when a cell ends.
#[derive(Debug, Clone)]
pub enum CellEnd {
    /// It was measured to its end.
    Done {
        /// What the analysis found.
        verdict: Verdict,
        /// Erase counts `(erases, blocks)`.
        wear: Vec<(u64, u64)>,
    },
    /// It failed; why.
    Failed(String),
}

/// What a running cell sends.
#[derive(Debug)]
pub enum Entry {
    /// The measurement begins.
    Start(u32, CellStart),
    /// What is known of a cell's database by now, in place of what was known before.
    Oltp(u32, Box<Oltp>),
    /// An interval ended.
    Interval(u32, Box<Measured>),
    /// The cell ended.
    End(u32, CellEnd),
    /// Something about the machine or the target, as name and value.
    Fact(String, String),
    /// These cells will not be measured.
    Spared(Vec<u32>),
    /// How long the cell occupied its device.
    Took(u32, Nanos),
    /// Lowtide itself did not run in the middle of the cell.
    Gap(u32, Gap),
    /// The cell is not measured by choice; its level is predicted.
    Predicted(u32, Predicted),
}

/// Where the cells of one campaign send.
#[derive(Debug, Clone)]
pub struct Sender {
    campaign: i64,
    queue: SyncSender<(i64, Entry)>,
}

impl Sender {
    /// Sends an entry. A writer that failed has set the interrupt flag, so nothing is lost by ignoring that it hung up.
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
    /// Starts writing. Where the store fails, `interrupt` is set, so that the load ends; the error
    /// comes from [`Writer::finish`].
    pub fn start(store: Store, interrupt: Arc<AtomicBool>) -> Writer {
        let (queue, receiver) = sync_channel(QUEUE);
        let thread = std::thread::spawn(move || {
            let written = write_all(&store.connection, &store.path, &receiver);
            if written.is_err() {
                interrupt.store(true, Ordering::Relaxed);
                // Cells may still be sending; take what they have until they notice.
                while receiver.recv().is_ok() {}
            }
            written.map(|()| store)
        });
        Writer { queue, thread }
    }

    /// What the cells of a campaign send with.
    pub fn sender(&self, campaign: i64) -> Sender {
        Sender { campaign, queue: self.queue.clone() }
    }

    /// Waits until everything is committed. All senders must be gone.
    ///
    /// # Errors
    /// [`StoreError`] where something could not be written.
    pub fn finish(self) -> Result<Store, StoreError> {
        drop(self.queue);
        self.thread.join().expect("the writer does not panic")
    }
}

fn write_all(
    connection: &Connection,
    path: &std::path::Path,
    receiver: &Receiver<(i64, Entry)>,
) -> Result<(), StoreError> {
    let path: PathBuf = path.to_owned();
    let fail = StoreError::on(&path);
    let mut open_since: Option<Instant> = None;
    loop {
        let wait = open_since
            .map_or(Duration::from_secs(3600), |since| COMMIT_EVERY.saturating_sub(since.elapsed()));
        match receiver.recv_timeout(wait) {
            Ok((campaign, entry)) => {
                if open_since.is_none() {
                    connection.execute_batch("BEGIN IMMEDIATE").map_err(&fail)?;
                    open_since = Some(Instant::now());
                }
                write(connection, campaign, &entry).map_err(&fail)?;
                if open_since.is_some_and(|since| since.elapsed() < COMMIT_EVERY) {
                    continue;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                if open_since.is_some() {
                    connection.execute_batch("COMMIT").map_err(&fail)?;
                }
                return Ok(());
            }
        }
        if open_since.take().is_some() {
            connection.execute_batch("COMMIT").map_err(&fail)?;
        }
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("records serialise")
}

pub(super) fn write(connection: &Connection, campaign: i64, entry: &Entry) -> rusqlite::Result<()> {
    match entry {
        Entry::Start(cell, start) => connection
            .prepare_cached(
                "UPDATE cell SET raw_bytes = ?3, written_before_bytes = ?4, counters_before = ?5
                 WHERE campaign = ?1 AND cell = ?2",
            )?
            .execute(params![
                campaign,
                cell,
                start.raw_capacity.map(|raw| raw.get() as i64),
                start.written_before.map(|written| written.get() as i64),
                start.counters.as_ref().map(json),
            ])
            .map(drop),
        Entry::Interval(cell, measured) => {
            let row = &measured.row;
            let keys = [campaign.into(), (*cell).into()];
            let counters = row.counters.as_ref().map(json).into();
            let numbers = numbers(Row::COLUMNS, row);
            let values: Vec<Value> = keys.into_iter().chain(numbers).chain([counters]).collect();
            schema::insert(connection, "interval", &values)?;
            for (op, hdr) in &measured.histograms {
                connection
                    .prepare_cached("INSERT INTO histogram VALUES (?1, ?2, ?3, ?4, ?5)")?
                    .execute(params![campaign, cell, row.start_ns as i64, op, hdr])?;
            }
            row.transactions.as_ref().map_or(Ok(()), |it| transactions(connection, campaign, *cell, row, it))
        }
        Entry::Oltp(cell, oltp) => connection
            .prepare_cached("INSERT OR REPLACE INTO oltp VALUES (?1, ?2, ?3)")?
            .execute(params![campaign, cell, json(oltp)])
            .map(drop),
        Entry::Fact(name, value) => connection
            .prepare_cached(
                "INSERT INTO environment (campaign, position, key, value)
                 SELECT ?1, coalesce(max(position) + 1, 0), ?2, ?3 FROM environment WHERE campaign = ?1",
            )?
            .execute(params![campaign, name, value])
            .map(drop),
        Entry::End(cell, CellEnd::Done { verdict, wear }) => connection
            .prepare_cached(
                "UPDATE cell SET status = 'done', failure = NULL, verdict = ?3, wear = ?4
                 WHERE campaign = ?1 AND cell = ?2",
            )?
            .execute(params![campaign, cell, json(verdict), json(wear)])
            .map(drop),
        Entry::End(cell, CellEnd::Failed(reason)) => connection
            .prepare_cached(
                "UPDATE cell SET status = 'failed', failure = ?3 WHERE campaign = ?1 AND cell = ?2",
            )?
            .execute(params![campaign, cell, reason])
            .map(drop),
        Entry::Spared(cells) => {
            let mut delete = connection.prepare_cached(
                "DELETE FROM cell WHERE campaign = ?1 AND cell = ?2 AND status = 'pending'",
            )?;
            cells.iter().try_for_each(|cell| delete.execute(params![campaign, cell]).map(drop))
        }
        Entry::Took(cell, took) => connection
            .prepare_cached("INSERT OR REPLACE INTO device_time VALUES (?1, ?2, ?3)")?
            .execute(params![campaign, cell, took.get() as i64])
            .map(drop),
        Entry::Gap(cell, Gap { at_ns, length, cause }) => connection
            .prepare_cached("INSERT OR REPLACE INTO gap VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![campaign, cell, *at_ns as i64, length.get() as i64, cause.name()])
            .map(drop),
        Entry::Predicted(cell, Predicted { level, low, high }) => {
            connection
                .prepare_cached(
                    "UPDATE cell SET status = 'spared' WHERE campaign = ?1 AND cell = ?2 AND status = 'pending'",
                )?
                .execute(params![campaign, cell])?;
            connection
                .prepare_cached("INSERT OR REPLACE INTO predicted VALUES (?1, ?2, ?3, ?4, ?5)")?
                .execute(params![campaign, cell, level, low, high])
                .map(drop)
        }
    }
}

fn transactions(
    connection: &Connection,
    campaign: i64,
    cell: u32,
    row: &Row,
    transactions: &Transactions,
) -> rusqlite::Result<()> {
    for (kind, done) in Kind::ALL.iter().zip(&transactions.kinds) {
        let keys =
            [campaign.into(), cell.into(), (row.start_ns as i64).into(), kind.name().to_owned().into()];
        let values: Vec<Value> = keys.into_iter().chain(numbers(Done::COLUMNS, done)).collect();
        schema::insert(connection, "transactions", &values)?;
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
