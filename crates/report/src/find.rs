//! Looks up a number in the cells of a campaign, or the reason for its absence.
//!
//! Numbers are in internal units: MiB/s, requests per second, new orders per minute, seconds. The caller compares
//! them with a claim.

use lowtide_core::{Bytes, Latency};
use lowtide_lab::experiment::{Claim, Finding, Form, Measure, Of, Resolved, Selection, is_at};
use lowtide_record::analysis::Verdict;
use lowtide_record::{Campaign, Cell, Quantity, Row, Status};

/// The number of consecutive intervals whose mean shows whether the level of a cell is stable.
const STABLE_INTERVALS: usize = 6;
/// The largest relative difference of these means from the settled level in a stable cell.
const STABLE_WITHIN: f64 = 0.10;

/// Returns the latencies of a cell, reads and writes merged, over the intervals that begin between two times of
/// its measurement in nanoseconds; `None` if they cannot be read.
pub type Latencies<'a> = dyn Fn(u32, u64, u64) -> Option<Latency> + 'a;

/// Looks up numbers in a campaign.
pub struct Finder<'a> {
    /// The experiment that defines the cells.
    pub experiment: &'a Resolved,
    /// The campaign.
    pub campaign: &'a Campaign,
    /// Reads latencies of the campaign's cells.
    pub latencies: &'a Latencies<'a>,
}

/// The cells for which a claim sets an upper limit on `of`, each with that limit. A claim about several cells sets
/// none.
pub(crate) fn limits(campaign: &Campaign, of: Of) -> Vec<(u32, f64)> {
    let Ok(Some(experiment)) = Resolved::of(campaign) else { return Vec::new() };
    let finder = Finder { experiment: &experiment, campaign, latencies: &|_, _, _| None };
    let limit = |claim: &Claim| {
        let finding = &claim.finding;
        let most = claim.at_most.filter(|_| finding.of == of && finding.form == Form::Value)?;
        match finder.cells(&finding.cells).as_slice() {
            [cell] => Some((cell.index, most)),
            _ => None,
        }
    };
    experiment.claims.iter().filter_map(limit).collect()
}

impl Finder<'_> {
    /// The selected cells, in plan order.
    pub fn cells(&self, selection: &Selection) -> Vec<&Cell> {
        self.campaign.cells.iter().filter(|cell| self.is_selected(cell, selection)).collect()
    }

    fn is_selected(&self, cell: &Cell, selection: &Selection) -> bool {
        let step = self.experiment.steps.iter().find(|step| step.name == cell.step);
        step.is_some_and(|step| {
            let point = step.points().find(|point| is_at(&cell.factors, point));
            point.is_some_and(|point| selection.includes(step, &point, cell.repetition))
        })
    }

    /// One number for the selected cells, aggregated by `over`.
    ///
    /// # Errors
    /// The reason for a missing number, as text.
    pub fn number(&self, finding: &Finding, over: &dyn Fn(Vec<f64>) -> Option<f64>) -> Result<f64, String> {
        let of = |cells: &Selection| over(self.values(finding, cells)?).ok_or_else(|| NO_CELL.to_owned());
        let number = of(&finding.cells)?;
        match &finding.against {
            None => Ok(number),
            Some(against) => form(finding.form, number, of(against)?),
        }
    }

    /// The number of every selected cell; with a second selection, the number of every pair.
    ///
    /// # Errors
    /// The reason for a missing number, as text.
    pub fn each(&self, finding: &Finding) -> Result<Vec<f64>, String> {
        let values = self.values(finding, &finding.cells)?;
        let Some(against) = &finding.against else { return Ok(values) };
        let others = self.values(finding, against)?;
        if values.len() != others.len() {
            return Err(format!("{} cells cannot be paired with {}", values.len(), others.len()));
        }
        values.into_iter().zip(others).map(|(value, other)| form(finding.form, value, other)).collect()
    }

    fn values(&self, finding: &Finding, cells: &Selection) -> Result<Vec<f64>, String> {
        let cells = self.cells(cells);
        if cells.is_empty() {
            return Err(NO_CELL.to_owned());
        }
        let value =
            |cell: &&Cell| self.value(cell, finding).map_err(|reason| format!("{}: {reason}", cell.label()));
        cells.iter().map(value).collect()
    }

    /// The number of one cell; times are scaled back.
    fn value(&self, cell: &Cell, finding: &Finding) -> Result<f64, String> {
        match (cell.status, &cell.failure) {
            (Status::Done, _) => {}
            (Status::Failed, Some(reason)) => return Err(format!("it failed: {reason}")),
            (Status::Damaged, Some(reason)) => return Err(format!("it is damaged in the store: {reason}")),
            (Status::Failed | Status::Damaged | Status::Pending | Status::Spared, _) => {
                return Err("it was not measured to its end".to_owned());
            }
        }
        let scale = self.campaign.scale as f64;
        let after_ns = (finding.after.get() as f64 / scale) as u64;
        let settled = match &cell.verdict {
            Some(Verdict::Steady(estimate)) => Ok(estimate),
            Some(Verdict::NoSteadyState { reason }) => Err(format!("no steady state: {reason}")),
            None => Err("no steady state".to_owned()),
        };
        let each = || {
            let rows = whole_rows(cell).filter(|row| row.start_ns >= after_ns);
            rows.map(|row| self.between(cell, finding.of, row.start_ns, row.end_ns))
                .collect::<Result<Vec<f64>, String>>()
        };
        match finding.measure {
            Measure::Settled if finding.of == of_level(cell) && after_ns == 0 => {
                settled.map(|estimate| estimate.mean)
            }
            Measure::Settled => {
                let window = settled?;
                self.between(cell, finding.of, window.from_ns.max(after_ns), window.to_ns)
            }
            Measure::Level => {
                let window = settled.map_or((cell.last_quarter_ns(), u64::MAX), |it| (it.from_ns, it.to_ns));
                self.between(cell, finding.of, window.0.max(after_ns), window.1)
            }
            Measure::Start => {
                let first = cell.rows.first().ok_or(NOTHING)?;
                self.between(cell, finding.of, first.start_ns, first.end_ns)
            }
            Measure::Minimum => each()?.into_iter().reduce(f64::min).ok_or_else(|| NOTHING.to_owned()),
            Measure::Maximum => each()?.into_iter().reduce(f64::max).ok_or_else(|| NOTHING.to_owned()),
            Measure::Mean | Measure::MeanAfter => self.between(cell, finding.of, after_ns, u64::MAX),
            Measure::StableBy => stable_by(cell).map(|ns| ns as f64 / 1e9 * scale),
            Measure::Elapsed => {
                let last = cell.rows.last().ok_or(NOTHING)?;
                Ok(last.end_ns as f64 / 1e9 * scale)
            }
        }
    }

    /// A quantity over the intervals that lie entirely between two times.
    fn between(&self, cell: &Cell, of: Of, from_ns: u64, to_ns: u64) -> Result<f64, String> {
        let rows: Vec<&Row> =
            cell.rows.iter().filter(|row| row.start_ns >= from_ns && row.end_ns <= to_ns).collect();
        let sum = |of: fn(&Row) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
        let seconds: f64 = rows.iter().map(|row| row.seconds()).sum();
        if rows.is_empty() {
            return Err(NOTHING.to_owned());
        }
        let requests = sum(|row| row.reads + row.writes);
        let (waited, waited_ns) = Row::waited(rows.iter().copied());
        if waited == 0 && matches!(of, Of::MeanLatency | Of::P50 | Of::P95 | Of::P99) {
            return Err("no request completed".to_owned());
        }
        match of {
            Of::Throughput => Ok(Bytes::new(sum(|row| row.read_bytes + row.write_bytes)).as_mib() / seconds),
            Of::Iops => Ok(requests as f64 / seconds),
            Of::NewOrders if cell.oltp.is_none() => Err("the cell ran no database".to_owned()),
            Of::NewOrders => {
                let orders: u64 =
                    rows.iter().filter_map(|row| row.transactions.as_ref()).map(|it| it.new_orders()).sum();
                Ok(orders as f64 / seconds * 60.0)
            }
            Of::WriteAmplification => cell
                .write_amplification_between(from_ns, to_ns)
                .ok_or_else(|| "nothing was written, or the device has no NAND".to_owned()),
            Of::LayerAmplification => cell
                .layer_amplification_between(from_ns, to_ns)
                .ok_or_else(|| "nothing was written, or there is no log layer".to_owned()),
            Of::MeanLatency => Ok(waited_ns / waited as f64 / 1e9),
            Of::P50 | Of::P95 | Of::P99 => {
                let percent = of.percentile().unwrap_or_default();
                let latency = (self.latencies)(cell.index, from_ns, to_ns)
                    .ok_or_else(|| "its latencies cannot be read".to_owned())?;
                Ok(latency.percentile(percent).as_secs_f64())
            }
        }
    }

    /// The label of the selected cells.
    pub fn label(&self, finding: &Finding) -> String {
        let cells = finding.cells.label();
        match &finding.against {
            None => cells,
            Some(against) => quotient_label(&cells, &against.label()),
        }
    }
}

/// The label of two selections, with their common parts at the end: `a / b, threads 4`.
fn quotient_label(cells: &str, against: &str) -> String {
    let (one, other): (Vec<&str>, Vec<&str>) = (cells.split(", ").collect(), against.split(", ").collect());
    let own = |all: &[&str], others: &[&str]| {
        let own: Vec<&str> = all.iter().filter(|part| !others.contains(part)).copied().collect();
        own.join(", ")
    };
    let (first, second) = (own(&one, &other), own(&other, &one));
    if first.is_empty() || second.is_empty() {
        return format!("{cells} / {against}");
    }
    let shared = one.into_iter().filter(|part| other.contains(part)).map(str::to_owned);
    std::iter::once(format!("{first} / {second}")).chain(shared).collect::<Vec<String>>().join(", ")
}

/// The quantity of a cell's level.
fn of_level(cell: &Cell) -> Of {
    match cell.quantity() {
        Quantity::Throughput => Of::Throughput,
        Quantity::NewOrders => Of::NewOrders,
    }
}

const NO_CELL: &str = "the campaign has no such cell";
const NOTHING: &str = "nothing was measured in that range";

fn form(form: Form, number: f64, other: f64) -> Result<f64, String> {
    if other == 0.0 {
        return Err("the reference cells gave zero".to_owned());
    }
    Ok(form.of_ratio(number / other))
}

/// The intervals of a cell without a truncated last one.
fn whole_rows(cell: &Cell) -> impl Iterator<Item = &Row> {
    let first = cell.rows.first().map_or(0.0, Row::seconds);
    let last =
        cell.rows.len() - usize::from(cell.rows.last().is_some_and(|row| row.seconds() < 0.99 * first));
    cell.rows[..last].iter()
}

/// The time in nanoseconds from which the level of a cell stays near its settled level, or else near the mean of
/// its last quarter.
fn stable_by(cell: &Cell) -> Result<u64, String> {
    let settled = match &cell.verdict {
        Some(Verdict::Steady(estimate)) => Some(estimate.mean),
        _ => cell.mean_rate_between(cell.last_quarter_ns(), u64::MAX),
    };
    let settled = settled.ok_or(NOTHING)?;
    let rows: Vec<&Row> = whole_rows(cell).collect();
    let last_unstable = rows.windows(STABLE_INTERVALS).rposition(|window| {
        let mean = window.iter().map(|row| row.rate()).sum::<f64>() / window.len() as f64;
        (mean / settled - 1.0).abs() > STABLE_WITHIN
    });
    Ok(last_unstable.map_or(0, |index| rows[index + STABLE_INTERVALS - 1].end_ns))
}

/// The mean; `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
