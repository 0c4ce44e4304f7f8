//! What a cell says: the figures every table, sentence and chart of the report takes from it.
//!
//! Sizes and times are those of the experiment as written: what a scaled campaign divided is multiplied back.
//! Not here: the search for the steady window; that is [`lowtide_record::analysis`].

use lowtide_core::{Distribution, Latency};
use lowtide_record::analysis::{Departure, Estimate, Verdict, departures};
use lowtide_record::{Campaign, Cell, Quantity, Row, Status};

/// The fresh level is the mean of this share of the intervals …
const FRESH_SHARE: f64 = 0.05;
/// … but of no more than this many nanoseconds.
const FRESH_NS: f64 = 60e9;

/// What the levels of these cells are rates of; the first decides.
pub(crate) fn quantity_of(answers: &[Answer<'_>]) -> Quantity {
    answers.first().map(|answer| answer.quantity).unwrap_or_default()
}

/// The figures of one cell.
#[derive(Debug, Clone)]
pub(crate) struct Answer<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// What sizes and times were divided by.
    pub scale: f64,
    /// What its levels are rates of; they are in its unit.
    pub quantity: Quantity,
    /// The settled level.
    pub settled: Option<Estimate>,
    /// Why there is none.
    pub unsettled: Option<String>,
    /// Operations per second in the steady window, or over the last quarter without one.
    pub iops: Option<f64>,
    /// Mean level at the beginning.
    pub fresh: Option<f64>,
    /// Mean level of the last quarter of the measurement.
    pub end: Option<f64>,
    /// Level of the lowest interval.
    pub lowest: Option<f64>,
    /// NAND bytes per host byte in the steady window, or over the last quarter without one.
    pub write_amplification: Option<f64>,
    /// Bytes that a log layer wrote per host byte, of the same stretch; `None` where there is no such layer.
    pub layer_amplification: Option<f64>,
    /// Nanoseconds of the host's processors that the device's driver took per operation, beyond an ordinary driver's;
    /// `None` where it took none.
    pub host_cpu_ns_per_operation: Option<f64>,
    /// Seconds until as many bytes were written since the purge as the device has raw; `None` where that did
    /// not happen during the measurement.
    pub honeymoon_end_s: Option<f64>,
    /// Steady levels that were left, in order.
    pub left: Vec<Left>,
}

/// A steady level that was left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Left {
    /// When, in seconds since the measurement began, scaled back.
    pub at_s: f64,
    /// The level before.
    pub before: f64,
    /// The level after.
    pub after: f64,
}

/// The steady levels that a cell left.
fn left(cell: &Cell, scale: f64) -> Vec<Left> {
    let rates: Vec<f64> = cell.rows.iter().filter(|row| row.end_ns > row.start_ns).map(Row::rate).collect();
    let left = |departure: Departure| Left {
        at_s: cell.rows[departure.index].start_ns as f64 / 1e9 * scale,
        before: departure.before,
        after: departure.after,
    };
    departures(&rates).into_iter().map(left).collect()
}

impl<'a> Answer<'a> {
    /// The answers of all cells that were measured to their end.
    pub fn of_all(campaign: &'a Campaign) -> Vec<Answer<'a>> {
        campaign
            .cells
            .iter()
            .filter(|c| c.status == Status::Done)
            .map(|c| Answer::of(c, campaign.scale))
            .collect()
    }

    /// The answer of a cell.
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
        // A last interval that was cut short says little about a level.
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
            left: left(cell, scale),
        }
    }

    /// The settled level as a share of the fresh level; `None` for reads, which do not tire a device.
    pub fn share_of_fresh(&self) -> Option<f64> {
        if self.only_reads() {
            return None;
        }
        Some(self.settled?.mean / self.fresh.filter(|f| *f > 0.0)?)
    }
    /// Bytes of data under test, scaled back.
    pub fn data_bytes(&self) -> f64 {
        self.in_use() * self.scale
    }
    /// Bytes of data under test: what was loaded, of a database, and not what was reckoned with.
    fn in_use(&self) -> f64 {
        let loaded = self.cell.oltp.as_ref().map(|oltp| oltp.loaded_bytes).filter(|bytes| *bytes > 0);
        loaded.unwrap_or(self.cell.data.get()) as f64
    }
    /// Data as a share of the capacity; `None` where the capacity is unknown.
    pub fn fill(&self) -> Option<f64> {
        (self.cell.capacity.get() > 0).then(|| self.in_use() / self.cell.capacity.get() as f64)
    }
    /// Latency of reads and writes, or of transactions, together over the measured window. Added when it is asked for: kept
    /// for each cell, it would double the memory of a large campaign.
    pub fn latency(&self) -> Distribution {
        together(&self.cell.read_latency, &self.cell.write_latency)
    }
    /// A percentile of latency in nanoseconds; `None` where nothing was counted.
    pub fn latency_ns(&self, percent: f64) -> Option<f64> {
        let latency = self.latency();
        (latency.count() > 0).then(|| latency.percentile(percent).get() as f64)
    }
    /// Whether the load only read.
    pub fn only_reads(&self) -> bool {
        self.cell.read_share >= 1.0
    }
    /// Nanoseconds of the measurement as seconds of the experiment as written.
    pub fn seconds(&self, ns: u64) -> f64 {
        ns as f64 * self.scale / 1e9
    }
}

/// Two distributions added.
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
    let count = cell
        .rows
        .iter()
        .take(at_most)
        .take_while(|row| (row.end_ns - first.start_ns) as f64 * scale <= FRESH_NS)
        .count()
        .max(1);
    cell.mean_rate_between(first.start_ns, cell.rows[count - 1].end_ns)
}

/// Whether a single interval stands for the whole measurement, and says nothing of its beginning or its ups and downs.
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
