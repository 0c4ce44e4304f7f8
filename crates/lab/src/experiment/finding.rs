//! A number to find in cells: its quantity, its part of the measurement, and its form.
//!
//! `[[published]]` and `[[claim]]` have the same keys for such numbers. The search is in `lowtide_report::find`.

use super::read::{Entry, Table};
use super::selection::{self, Selection};
use super::step::Step;
use super::unit::{Dimension, Unit};
use super::words::words;
use lowtide_core::Nanos;
use serde::{Deserialize, Serialize};

words! {
    /// A part of a cell's measurement, or a time.
    Measure, "measure";
    /// The steady window. A cell without a steady window has no such number.
    Settled = "settled",
    /// The steady window; without a steady window, the last quarter.
    Level = "level",
    /// The first interval.
    Start = "start",
    /// The interval with the lowest value.
    Minimum = "minimum",
    /// The interval with the highest value.
    Maximum = "maximum",
    /// The entire measurement.
    Mean = "mean",
    /// The measurement from the time `after` on.
    MeanAfter = "mean-after",
    /// The time by which throughput has settled.
    StableBy = "stable-by",
    /// The duration of the measurement.
    Elapsed = "elapsed",
}

impl Measure {
    /// Returns whether the number is a time.
    pub const fn is_time(self) -> bool {
        matches!(self, Measure::StableBy | Measure::Elapsed)
    }

    /// Returns whether `after` can exclude the beginning of the measurement.
    const fn takes_after(self) -> bool {
        !matches!(self, Measure::Start | Measure::StableBy | Measure::Elapsed)
    }
}

words! {
    /// The quantity, over reads and writes. For a database, latencies are of its transactions, and bytes and requests
    /// are of its device.
    Of, "quantity";
    /// Bytes per second.
    Throughput = "throughput",
    /// Requests per second.
    Iops = "iops",
    /// New orders of a database per minute.
    NewOrders = "new-orders",
    /// The mean latency.
    MeanLatency = "mean-latency",
    /// The median latency.
    P50 = "p50",
    /// The 95th percentile of latency.
    P95 = "p95",
    /// The 99th percentile of latency.
    P99 = "p99",
    /// Bytes of NAND written per byte that the host wrote.
    WriteAmplification = "write-amplification",
    /// Bytes that a log layer wrote per byte written to the layer.
    LayerAmplification = "layer-amplification",
}

impl Of {
    /// The percentile, if the quantity is a percentile of latency.
    pub const fn percentile(self) -> Option<f64> {
        match self {
            Of::P50 => Some(50.0),
            Of::P95 => Some(95.0),
            Of::P99 => Some(99.0),
            _ => None,
        }
    }
}

words! {
    /// The form of the number.
    Form, "form";
    /// The measured value.
    Value = "value",
    /// The ratio of the value to the value of the cells in `against`.
    Ratio = "ratio",
    /// The ratio in percent.
    Percent = "percent",
    /// The decrease from the value of the cells in `against`, in percent.
    DropPercent = "drop-percent",
}

impl Form {
    /// Converts the ratio to the cells in `against` to this form.
    pub fn of_ratio(self, ratio: f64) -> f64 {
        match self {
            Form::Value | Form::Ratio => ratio,
            Form::Percent => ratio * 100.0,
            Form::DropPercent => (1.0 - ratio) * 100.0,
        }
    }
}

/// A number to find in cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// A part of a measurement, or a time.
    pub measure: Measure,
    /// The quantity; ignored if the measure is a time.
    pub of: Of,
    /// The form of the number.
    pub form: Form,
    /// The measurement before this time is excluded.
    pub after: Nanos,
    /// The cells.
    pub cells: Selection,
    /// The cells to compare with, if the form needs them.
    pub against: Option<Selection>,
}

impl Finding {
    /// The dimension of the number.
    pub fn dimension(&self) -> Dimension {
        match (self.form, self.measure.is_time(), self.of) {
            (Form::Ratio, ..) => Dimension::Ratio,
            (Form::Percent | Form::DropPercent, ..) => Dimension::Percent,
            (Form::Value, true, _) => Dimension::Time,
            (Form::Value, false, Of::Throughput) => Dimension::Throughput,
            (Form::Value, false, Of::Iops) => Dimension::Rate,
            (Form::Value, false, Of::NewOrders) => Dimension::Transactions,
            (Form::Value, false, Of::WriteAmplification | Of::LayerAmplification) => Dimension::Ratio,
            (Form::Value, false, _) => Dimension::Time,
        }
    }
}

/// Reads the keys of a finding.
pub(super) fn read(table: &Table<'_>, steps: &[Step]) -> Option<Finding> {
    let measure: Option<Measure> = table.require("measure", "\"settled\"").and_then(|entry| entry.word());
    let of = table.value_or("of", Of::Throughput, Entry::word);
    let form = table.value_or("form", Form::Value, Entry::word);
    if let (Some(entry), Some(measure)) = (table.get("of"), measure.filter(|measure| measure.is_time())) {
        let message = format!("`of` with `{measure}`, which is a time");
        table.problems.add(entry.key_span, message, "has no effect", "remove it, or choose another measure");
    }
    let after = measure.map(|measure| after(table, measure));
    let step = table.optional("step", |entry| selection::step_name(entry, steps));
    let own = step.clone().flatten();
    let cells = selection::read(table.get("where"), step);
    let against = against(table, form, own, steps);
    Some(Finding {
        measure: measure?,
        of: of?,
        form: form?,
        after: after??,
        cells: cells?,
        against: against?,
    })
}

fn after(table: &Table<'_>, measure: Measure) -> Option<Nanos> {
    let Some(entry) = table.get("after") else {
        if measure == Measure::MeanAfter {
            table.require("after", "\"2500s\"")?;
        }
        return Some(Nanos::ZERO);
    };
    if !measure.takes_after() {
        let message = format!("`after` with `{measure}`, of which nothing can be left out");
        table.problems.add(entry.key_span, message, "has no effect", "remove it, or choose another measure");
        return None;
    }
    entry.some_time()
}

/// The cells of `against` and `against-step`; `Some(None)` if the form needs no cells.
#[expect(clippy::option_option, reason = "no cells are needed, and a problem, are different")]
fn against(
    table: &Table<'_>,
    form: Option<Form>,
    step: Option<String>,
    steps: &[Step],
) -> Option<Option<Selection>> {
    let (cells, other) = (table.get("against"), table.get("against-step"));
    let form = form?;
    if form == Form::Value {
        if let Some(entry) = cells.or(other) {
            let message = format!("`{}` with the form `value`, which compares no cells", entry.name);
            let help = "remove it, or write `form = \"ratio\"`, `\"percent\"` or `\"drop-percent\"`";
            table.problems.add(entry.key_span, message, "has no effect", help);
            return None;
        }
        return Some(None);
    }
    if cells.is_none() && other.is_none() {
        let message = format!("the form `{form}` compares two sets of cells, and `against` is missing");
        let help = "write for example `against = { file_size = \"10GiB\" }`: the cells it is held against";
        table.problems.add(table.span.clone(), message, "here", help);
        return None;
    }
    let step = match other {
        None => Some(step),
        Some(entry) => selection::step_name(&entry, steps).map(Some),
    };
    selection::read(cells, step).map(Some)
}

/// The unit written at `entry`. Records a unit that does not fit the finding.
pub(super) fn unit(written: &str, finding: &Finding, entry: &Entry<'_>) -> Option<Unit> {
    let dimension = finding.dimension();
    if let Some(unit) = Unit::named(written).filter(|unit| unit.dimension == dimension) {
        return Some(unit);
    }
    let what = match finding.form {
        Form::Value if finding.measure.is_time() => format!("the measure `{}`", finding.measure),
        Form::Value => format!("`{}` of `{}`", finding.measure, finding.of),
        form => format!("the form `{form}`"),
    };
    let fitting = Unit::all().filter(|(_, unit)| unit.dimension == dimension).map(|(name, _)| name);
    let other = match Unit::named(written).map(|unit| unit.dimension) {
        Some(Dimension::Throughput) => "; for this unit: `of = \"throughput\"`",
        Some(Dimension::Rate) => "; for this unit: `of = \"iops\"`",
        Some(Dimension::Transactions) => "; for this unit: `of = \"new-orders\"`",
        Some(Dimension::Time) => "; for this unit: a latency, `stable-by` or `elapsed`",
        Some(Dimension::Ratio) => "; for this unit: `form = \"ratio\"`, or an amplification",
        Some(Dimension::Percent) => "; for this unit: `form = \"percent\"` or `\"drop-percent\"`",
        None => "",
    };
    let help = format!("{what} is given in {}{other}", fitting.collect::<Vec<_>>().join(", "));
    entry.refuse(format!("the unit {written} does not fit {what}"), help)
}
