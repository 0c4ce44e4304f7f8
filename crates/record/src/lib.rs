//! The records of a campaign, which the store keeps and reports read, and their analysis ([`analysis`]).
//!
//! A report depends only on recorded facts, so it can be reproduced years later. Records are made in
//! `lowtide_lab::{plan, load}` and stored in `lowtide_lab::store`.

pub mod analysis;
pub mod column;
pub mod fact;
pub mod factors;
mod gap;
pub mod latency_parts;
mod oltp;
mod quantity;
mod verdict;

pub use factors::{FactorLevel, LevelKind};
pub use gap::gap_in_words;
pub use oltp::{Condition, Counted, Done, MODELLED, Oltp, Totals, Transactions};
pub use quantity::Quantity;
pub use verdict::{Estimate, Verdict};

use latency_parts::LatencyParts;
use lowtide_core::measure::Gap;
use lowtide_core::{Bytes, Counters, Distribution, Interval, Latency, Nanos};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One run of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    /// The experiment's name.
    pub name: String,
    /// The experiment's title, one line for people.
    pub title: String,
    /// The experiment's text with every `--set` applied, which reproduces the campaign. Empty if another program
    /// measured the campaign.
    pub experiment: String,
    /// The resolved experiment as JSON; `None` in stores up to format 4.
    pub resolved: Option<String>,
    /// The target as the user would write it: `device:intel-320-160gb`, `file:/data/test`, `dir:/data`.
    pub target: String,
    /// The device files of a simulated target, with the files that they refer to.
    pub devices: Vec<String>,
    /// The seed of every random choice.
    pub seed: u64,
    /// The scale: sizes and durations are divided by this number.
    pub scale: u64,
    /// The version of lowtide that ran the campaign.
    pub version: String,
    /// Start of the campaign (RFC 3339). Empty in exports, so that equal seeds give equal exports.
    pub started_at: String,
    /// The command line that reproduces the campaign.
    pub command: String,
    /// Facts about the machine and the target, in order: `("kernel", "6.1.0")`.
    pub environment: Vec<(String, String)>,
    /// The cells in plan order.
    pub cells: Vec<Cell>,
}

/// The status of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Not started, or interrupted before its end.
    #[default]
    Pending,
    /// Measured to the end.
    Done,
    /// Failed; the reason is in [`Cell::failure`].
    Failed,
    /// Skipped: its level is predicted from the levels of other cells.
    Spared,
    /// In the store, but unreadable; the reason is in [`Cell::failure`].
    Damaged,
}

/// A level that was predicted instead of measured, with its 95 % interval; all in MiB/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predicted {
    /// The level.
    pub level: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Predicted {
    /// Half the width of the interval.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// One repetition of one combination of factor levels. The default is a cell without data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Position in the plan, from 0.
    pub index: u32,
    /// Factors in sweep order.
    pub factors: Vec<FactorLevel>,
    /// Repetition, from 1.
    pub repetition: u32,
    /// The name of the step, if the experiment has several steps: `second pass`.
    pub step: Option<String>,
    /// Its status.
    pub status: Status,
    /// The reason of the failure, or the damaged part of the record.
    pub failure: Option<String>,
    /// Bytes of data under test.
    pub data: Bytes,
    /// Bytes that the host can address on the target.
    pub capacity: Bytes,
    /// The NAND capacity of the target, if known.
    pub raw_capacity: Option<Bytes>,
    /// Number of threads of the load.
    pub threads: u32,
    /// The share of reads in the load, 0 to 1.
    pub read_share: f64,
    /// Host bytes written between the last purge and the start of the measurement; `None` if unknown.
    pub written_before: Option<Bytes>,
    /// The device's counters at the start of the measurement, if the device has counters.
    pub counters_before: Option<Counters>,
    /// The time series. Copies of the cell share it.
    pub rows: Arc<Vec<Row>>,
    /// Latency of reads over the measured window ([`Cell::window`]).
    pub read_latency: Distribution,
    /// Latency of writes over the measured window; for a database, latency of its transactions.
    pub write_latency: Distribution,
    /// Latency of equal parts of the measured window. Copies of the cell share it.
    pub latency_parts: Arc<LatencyParts>,
    /// Erase counts of the device's blocks after the cell, as a histogram `(erases, blocks)`; empty if unknown.
    pub wear: Vec<(u64, u64)>,
    /// The result of the analysis; set when the cell is done.
    pub verdict: Option<Verdict>,
    /// The record of the database, if the load ran on a database. The rows then describe the database's device.
    pub oltp: Option<Box<Oltp>>,
    /// Time for which the cell occupied the device, including preparation. Virtual time on models. `None` if unknown.
    pub took: Option<Nanos>,
    /// Gaps during which lowtide itself did not run, in order. Intervals exclude the time of gaps.
    pub gaps: Vec<Gap>,
    /// Its predicted level, if the cell was skipped.
    pub predicted: Option<Predicted>,
}

/// One interval, without its histograms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Start of the interval, in nanoseconds since the start of the measurement.
    pub start_ns: u64,
    /// End of the interval, in nanoseconds since the start of the measurement.
    pub end_ns: u64,
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Percentiles of read latency.
    pub read: Percentiles,
    /// Percentiles of write latency.
    pub write: Percentiles,
    /// The device's counters at the end of the interval.
    pub counters: Option<Counters>,
    /// The transactions that terminals ran on a database.
    pub transactions: Option<Box<Transactions>>,
}

/// Percentiles of one interval's latency, in nanoseconds; all zero if nothing completed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Percentiles {
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

/// Name of the environment fact whose value all campaigns of one interleaved run share.
pub const INTERLEAVED: &str = "interleaved";

impl Percentiles {
    /// The percentiles of a histogram.
    pub fn of(latency: &Latency) -> Self {
        let at = |percent| latency.percentile(percent).get();
        Percentiles {
            mean_ns: latency.mean_ns(),
            p50_ns: at(50.0),
            p95_ns: at(95.0),
            p99_ns: at(99.0),
            p999_ns: at(99.9),
            max_ns: if latency.count() == 0 { 0 } else { latency.max().get() },
        }
    }
}

impl Row {
    /// The row of an interval.
    pub fn of(interval: &Interval) -> Self {
        Row {
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            reads: interval.reads,
            read_bytes: interval.read_bytes,
            writes: interval.writes,
            write_bytes: interval.write_bytes,
            errors: interval.errors,
            read: Percentiles::of(&interval.read_latency),
            write: Percentiles::of(&interval.write_latency),
            counters: interval.counters,
            transactions: None,
        }
    }
    /// Length of the interval in seconds.
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.start_ns) as f64 / 1e9
    }
    /// Bytes read and written per second, in MiB/s.
    pub fn mib_per_s(&self) -> f64 {
        Bytes::new(self.read_bytes + self.write_bytes).as_mib() / self.seconds()
    }
    /// The rate of [`Row::quantity`]: new orders per minute for a database, else MiB/s.
    pub fn rate(&self) -> f64 {
        match &self.transactions {
            Some(transactions) => transactions.new_orders() as f64 / self.seconds() * 60.0,
            None => self.mib_per_s(),
        }
    }
    /// The quantity of [`Row::rate`].
    pub fn quantity(&self) -> Quantity {
        if self.transactions.is_some() { Quantity::NewOrders } else { Quantity::Throughput }
    }
    /// The number of requests in `rows` and the sum of their latencies in nanoseconds. For a database, counts
    /// transactions instead of requests.
    pub fn waited<'r>(rows: impl Iterator<Item = &'r Row>) -> (u64, f64) {
        let one = |row: &Row| match &row.transactions {
            None => {
                let ns = row.read.mean_ns * row.reads as f64 + row.write.mean_ns * row.writes as f64;
                (row.reads + row.writes, ns)
            }
            Some(transactions) => {
                let ns = transactions.kinds.iter().map(|it| it.latency.mean_ns * it.ended() as f64).sum();
                (transactions.ended(), ns)
            }
        };
        rows.map(one).fold((0, 0.0), |(count, ns), (more, longer)| (count + more, ns + longer))
    }
    /// Operations per second.
    pub fn iops(&self) -> f64 {
        (self.reads + self.writes) as f64 / self.seconds()
    }
}

impl Campaign {
    /// The value of the fact [`INTERLEAVED`], shared by all campaigns of one interleaved run; `None` if the campaign
    /// was not interleaved.
    pub fn interleaved(&self) -> Option<&str> {
        self.environment.iter().find(|(key, _)| key == INTERLEAVED).map(|(_, value)| value.as_str())
    }
    /// The quantity of the levels of the cells.
    pub fn quantity(&self) -> Quantity {
        self.cells.iter().map(Cell::quantity).find(|it| *it != Quantity::default()).unwrap_or_default()
    }
    /// The cells that are in the store but unreadable.
    pub fn damaged(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.status == Status::Damaged)
    }
    /// Returns whether another program measured the campaign. Such a campaign has no experiment.
    pub fn is_imported(&self) -> bool {
        self.experiment.is_empty()
    }
}

impl Cell {
    /// Data as a share of the capacity.
    pub fn fill(&self) -> f64 {
        self.data.get() as f64 / self.capacity.get() as f64
    }
    /// Returns whether the rows include the activity of the device, which may be invisible below a database.
    pub fn device_seen(&self) -> bool {
        self.oltp.as_ref().is_none_or(|oltp| !oltp.device_unseen)
    }
    /// The factor with the name `name`.
    pub fn factor(&self, name: &str) -> Option<&FactorLevel> {
        self.factors.iter().find(|factor| factor.name == name)
    }
    /// The level of the factor `name`, as written.
    pub fn level(&self, name: &str) -> Option<&str> {
        self.factor(name).map(|factor| factor.level.as_str())
    }
    /// A short label: `second pass, file_size 10GiB, threads 4, repetition 2`.
    pub fn label(&self) -> String {
        let mut parts: Vec<String> = self.step.iter().cloned().collect();
        parts.extend(self.factors.iter().map(|factor| format!("{} {}", factor.name, factor.level)));
        if self.repetition > 1 {
            parts.push(format!("repetition {}", self.repetition));
        }
        if parts.is_empty() { format!("cell {}", self.index) } else { parts.join(", ") }
    }
    /// Start of the last quarter of the measurement, in nanoseconds since its start. At most the start of the last
    /// interval, so that at least one interval is included.
    pub fn last_quarter_ns(&self) -> u64 {
        self.rows.last().map_or(0, |row| (row.end_ns / 4 * 3).min(row.start_ns))
    }
    /// The measured window: start and end in nanoseconds since the start of the measurement, and `true` if steady.
    /// Without a steady window, the measured window is the last quarter.
    pub fn window(&self) -> (u64, u64, bool) {
        match &self.verdict {
            Some(Verdict::Steady(estimate)) => (estimate.from_ns, estimate.to_ns, true),
            _ => (self.last_quarter_ns(), u64::MAX, false),
        }
    }
    /// The quantity of the cell's levels.
    pub fn quantity(&self) -> Quantity {
        if self.oltp.is_some() { Quantity::NewOrders } else { Quantity::Throughput }
    }
    /// Mean rate over the measurement; `None` without rows.
    pub fn mean_rate(&self) -> Option<f64> {
        self.mean_rate_between(0, u64::MAX)
    }
    /// Mean rate over the intervals between two instants of the measurement. Only intervals entirely between the
    /// instants count.
    pub fn mean_rate_between(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let window = self.rows.iter().filter(|row| row.start_ns >= from_ns && row.end_ns <= to_ns);
        let add = |(work, s), row: &Row| (work + row.rate() * row.seconds(), s + row.seconds());
        let (work, seconds) = window.fold((0.0, 0.0), add);
        (seconds > 0.0).then(|| work / seconds)
    }
    /// Write amplification between two instants of the measurement; `None` without counters or writes.
    pub fn write_amplification_between(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let (before, after) = self.counters_between(from_ns, to_ns)?;
        after.write_amplification_since(&before)
    }
    /// Bytes written by a log layer per host byte written, between two instants of the measurement; `None` without a
    /// log layer or without writes.
    pub fn layer_amplification_between(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let (before, after) = self.counters_between(from_ns, to_ns)?;
        after.layer_amplification_since(&before)
    }
    /// Host CPU time that the driver used per operation between two instants of the measurement, in nanoseconds;
    /// `None` if the driver used no CPU time.
    pub fn host_cpu_ns_per_operation_between(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        let (before, after) = self.counters_between(from_ns, to_ns)?;
        let taken = after.host_cpu_ns.checked_sub(before.host_cpu_ns).filter(|&ns| ns > 0)?;
        let window = self.rows.iter().filter(|row| row.end_ns > from_ns && row.end_ns <= to_ns);
        let operations: u64 = window.map(|row| row.reads + row.writes).sum();
        (operations > 0).then(|| taken as f64 / operations as f64)
    }
    /// The counters at two instants of the measurement.
    fn counters_between(&self, from_ns: u64, to_ns: u64) -> Option<(Counters, Counters)> {
        let last_row = |by_ns| self.rows.iter().rfind(|row| row.end_ns <= by_ns);
        let before = last_row(from_ns).map_or(self.counters_before, |row| row.counters)?;
        Some((before, last_row(to_ns)?.counters?))
    }
}
