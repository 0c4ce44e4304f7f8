//! The results of one cell, from which every table, sentence and figure of a report is made.
//!
//! Sizes and times are as written in the experiment: scaling is undone. The search for the steady window is in
//! [`lowtide_record::analysis`].

use lowtide_core::{Distribution, Latency};
use lowtide_record::analysis::{Departure, Estimate, Verdict, departures};
use lowtide_record::{Campaign, Cell, Quantity, Row, Status};

/// The share of the intervals, from the first on, whose mean is the fresh level.
const FRESH_SHARE: f64 = 0.05;
/// The longest time over which the fresh level is averaged, in nanoseconds.
const FRESH_NS: f64 = 60e9;

/// The quantity of these cells' levels, taken from the first cell.
pub(crate) fn quantity_of(answers: &[Answer<'_>]) -> Quantity {
    answers.first().map(|answer| answer.quantity).unwrap_or_default()
}

/// The results of one cell.
#[derive(Debug, Clone)]
pub(crate) struct Answer<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// The factor by which sizes and times were divided.
    pub scale: f64,
    /// The quantity of the levels, which are in its unit.
    pub quantity: Quantity,
    /// The settled level.
    pub settled: Option<Estimate>,
    /// The reason for a missing settled level.
    pub unsettled: Option<String>,
    /// Operations per second in the steady window, or else over the last quarter.
    pub iops: Option<f64>,
    /// Mean level at the beginning of the measurement.
    pub fresh: Option<f64>,
    /// Mean level of the last quarter.
    pub end: Option<f64>,
    /// Level of the lowest interval.
    pub lowest: Option<f64>,
    /// NAND bytes per host byte in the steady window, or else over the last quarter.
    pub write_amplification: Option<f64>,
    /// Bytes that a log layer wrote per host byte, over the same range; `None` without a log layer.
    pub layer_amplification: Option<f64>,
    /// Host processor time of the device's driver per operation, in nanoseconds, in excess of an ordinary driver;
    /// `None` if there was none.
    pub host_cpu_ns_per_operation: Option<f64>,
    /// Seconds from the start until the host had written the raw capacity since the purge; `None` if that did not
    /// happen during the measurement.
    pub honeymoon_end_s: Option<f64>,
    /// Departures from steady levels, in order.
    pub departures: Vec<LevelChange>,
}

/// A departure from a steady level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LevelChange {
    /// Time of the departure in seconds since the measurement began, scaled back.
    pub at_s: f64,
    /// The level before.
    pub before: f64,
    /// The level after.
    pub after: f64,
}

/// The departures of a cell from its steady levels.
fn level_changes(cell: &Cell, scale: f64) -> Vec<LevelChange> {
    let rates: Vec<f64> = cell.rows.iter().filter(|row| row.end_ns > row.start_ns).map(Row::rate).collect();
    let change = |departure: Departure| LevelChange {
        at_s: cell.rows[departure.index].start_ns as f64 / 1e9 * scale,
        before: departure.before,
        after: departure.after,
    };
    departures(&rates).into_iter().map(change).collect()
}

impl<'a> Answer<'a> {
    /// The results of all completed cells.
    pub fn of_all(campaign: &'a Campaign) -> Vec<Answer<'a>> {
        let done = campaign.cells.iter().filter(|c| c.status == Status::Done);
        done.map(|c| Answer::of(c, campaign.scale)).collect()
    }

    /// The results of each cell; `None` for cells that were not completed.
    pub fn of_each(campaign: &'a Campaign) -> Vec<Option<Answer<'a>>> {
        let answer = |c: &'a Cell| (c.status == Status::Done).then(|| Answer::of(c, campaign.scale));
        campaign.cells.iter().map(answer).collect()
    }

    /// The results of a cell whose campaign was scaled by `1/scale`.
    pub fn of(cell: &'a Cell, scale: u64) -> Answer<'a> {
        let scale = scale.max(1) as f64;
        let (settled, unsettled) = match &cell.verdict {
            Some(Verdict::Steady(estimate)) => (Some(*estimate), None),
            Some(Verdict::NoSteadyState { reason }) => (None, Some(reason.clone())),
            None => (None, Some("the measurement has not been analysed".to_owned())),
        };
        let (from, to) = settled.map_or((cell.last_quarter_ns(), u64::MAX), |e| (e.from_ns, e.to_ns));
        let measured = || cell.rows.iter().filter(|row| row.end_ns > row.start_ns);
        let window = || measured().filter(|row| row.start_ns >= from && row.end_ns <= to);
        let operations: u64 = window().map(|row| row.reads + row.writes).sum();
        let seconds: f64 = window().map(Row::seconds).sum();
        // A truncated last interval does not represent a level.
        let longest = measured().map(Row::seconds).fold(0.0, f64::max);
        let lowest = measured().filter(|row| row.seconds() >= longest / 2.0).map(Row::rate);
        Answer {
            cell,
            scale,
            quantity: cell.quantity(),
            settled,
            unsettled,
            iops: (seconds > 0.0).then(|| operations as f64 / seconds),
            fresh: fresh(cell, scale),
            end: cell.mean_rate_between(cell.last_quarter_ns(), u64::MAX),
            lowest: lowest.min_by(f64::total_cmp).filter(|_| !is_one_number(cell)),
            write_amplification: cell.write_amplification_between(from, to),
            layer_amplification: cell.layer_amplification_between(from, to),
            host_cpu_ns_per_operation: cell.host_cpu_ns_per_operation_between(from, to),
            honeymoon_end_s: honeymoon_end_s(cell, scale),
            departures: level_changes(cell, scale),
        }
    }

    /// The settled level as a share of the fresh level; `None` for reads, which do not end the honeymoon.
    pub fn share_of_fresh(&self) -> Option<f64> {
        self.settled
            .filter(|_| !self.only_reads())
            .zip(self.fresh.filter(|fresh| *fresh > 0.0))
            .map(|(settled, fresh)| settled.mean / fresh)
    }
    /// Bytes of data under test, scaled back.
    pub fn data_bytes(&self) -> f64 {
        self.in_use() * self.scale
    }
    /// Bytes of data under test: for a database the loaded bytes, not the planned size.
    fn in_use(&self) -> f64 {
        let loaded = self.cell.oltp.as_ref().map(|oltp| oltp.loaded_bytes).filter(|bytes| *bytes > 0);
        loaded.unwrap_or(self.cell.data.get()) as f64
    }
    /// Data as a share of the capacity; `None` if the capacity is unknown.
    pub fn fill(&self) -> Option<f64> {
        (self.cell.capacity.get() > 0).then(|| self.in_use() / self.cell.capacity.get() as f64)
    }
    /// Latency of reads and writes, or of transactions, over the measured window. Computed on demand: storing it
    /// with each cell would double the memory of a large campaign.
    pub fn latency(&self) -> Distribution {
        together(&self.cell.read_latency, &self.cell.write_latency)
    }
    /// A percentile of latency in nanoseconds; `None` without operations.
    pub fn latency_ns(&self, percent: f64) -> Option<f64> {
        let latency = self.latency();
        (latency.count() > 0).then(|| latency.percentile(percent).get() as f64)
    }
    /// Returns whether the load consists of reads only.
    pub fn only_reads(&self) -> bool {
        self.cell.read_share >= 1.0
    }
    /// Converts nanoseconds of the measurement to seconds of the unscaled experiment.
    pub fn seconds(&self, ns: u64) -> f64 {
        ns as f64 * self.scale / 1e9
    }
}

/// The sum of two distributions.
fn together(reads: &Distribution, writes: &Distribution) -> Distribution {
    match (reads.count(), writes.count()) {
        (_, 0) => reads.clone(),
        (0, _) => writes.clone(),
        _ => {
            let mut all = Latency::default();
            all.add(reads);
            all.add(writes);
            all.into()
        }
    }
}

fn fresh(cell: &Cell, scale: f64) -> Option<f64> {
    if is_one_number(cell) {
        return None;
    }
    let at_most = ((cell.rows.len() as f64 * FRESH_SHARE) as usize).max(1);
    let first = cell.rows.first()?;
    let rows = cell.rows.iter().take(at_most);
    let within = rows.take_while(|row| (row.end_ns - first.start_ns) as f64 * scale <= FRESH_NS);
    let count = within.count().max(1);
    cell.mean_rate_between(first.start_ns, cell.rows[count - 1].end_ns)
}

/// Returns whether the cell has a single interval, which has no beginning, minimum or maximum of its own.
fn is_one_number(cell: &Cell) -> bool {
    cell.rows.len() == 1
}

fn honeymoon_end_s(cell: &Cell, scale: f64) -> Option<f64> {
    let raw = cell.raw_capacity?.get();
    let mut written = cell.written_before?.get();
    if written >= raw {
        return None;
    }
    cell.rows.iter().find_map(|row| {
        written += row.write_bytes;
        (written >= raw).then(|| row.end_ns as f64 * scale / 1e9)
    })
}
