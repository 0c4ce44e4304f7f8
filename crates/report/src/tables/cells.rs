//! The answer table: one row per cell, the settled level first.
//!
//! Cells that failed or were not measured keep their row, with their status in place of the level.

use super::{databases, factor_column};
use crate::answer::Answer;
use crate::group::grouped;
use crate::number::latency_unit;
use crate::sweep::{Labels, factor_names, identity};
use crate::table::{Column, Digits, Table, Value};
use lowtide_core::Distribution;
use lowtide_record::{Campaign, Cell, Quantity, Status};

/// Troubles of more cells than this show the number of cells instead of their names.
const MOST_NAMED: usize = 8;
/// Further gaps of one cell are only counted.
const MOST_GAPS: usize = 3;

/// The results of each cell of a campaign.
pub(crate) fn cells(campaign: &Campaign) -> Table {
    let quantity = campaign.quantity();
    let factors = factor_names(&campaign.cells);
    let repeated = campaign.cells.iter().any(|c| c.repetition > 1);
    let answers = Answer::of_each(campaign);
    let factor_of = |name: &String| {
        let values: Vec<String> = campaign.cells.iter().filter_map(|cell| value_of(cell, name)).collect();
        factor_column(name, values.iter().map(String::as_str))
    };
    let mut columns: Vec<Column> = factors.iter().map(factor_of).collect();
    if factors.is_empty() {
        columns.push(Column::count("cell", "cell").naming());
    }
    if repeated {
        columns.push(Column::count("repetition", "repetition").naming());
    }
    let about = if quantity == Quantity::NewOrders { databases::about(&factors) } else { Vec::new() };
    let longest = answers.iter().flatten().filter_map(|a| a.latency_ns(95.0)).fold(0.0, f64::max);
    let answered = match quantity {
        Quantity::Throughput => of_block_devices(longest),
        Quantity::NewOrders => databases::answered(campaign, longest),
    };
    columns.push(Column::percent("fill", "fill"));
    columns.extend(answered.iter().map(|(column, _)| column.clone()));
    // The adaptive columns follow the settled level, which is the first column of levels.
    let adaptive_at = columns.len() - answered.len() + 1;
    let device_time = Column::number("device_hours", "device time", "h").digits(Digits::Fixed(2));
    columns.insert(adaptive_at, Column::number("predicted_mib_per_s", "predicted", "MiB/s"));
    columns.insert(adaptive_at + 1, device_time);
    columns.extend(about.iter().map(|(column, _)| column.clone()));
    let adaptive = campaign.cells.iter().any(|cell| cell.predicted.is_some());

    let rows = campaign
        .cells
        .iter()
        .zip(&answers)
        .map(|(cell, answer)| {
            let mut row: Vec<Value> =
                factors.iter().map(|n| Value::text(value_of(cell, n).unwrap_or_default())).collect();
            if factors.is_empty() {
                row.push(Value::Number(f64::from(cell.index)));
            }
            if repeated {
                row.push(Value::Number(f64::from(cell.repetition)));
            }
            row.push(fill(cell));
            match answer {
                Some(answer) => row.extend(answered.iter().map(|(_, value)| value(answer))),
                None => {
                    let word = match cell.status {
                        Status::Failed => "failed",
                        Status::Spared => "spared",
                        Status::Damaged => "damaged",
                        Status::Pending | Status::Done => "not measured",
                    };
                    row.push(Value::Missing(word.to_owned()));
                    row.resize(columns.len() - about.len() - 2, Value::Empty);
                }
            }
            let known = cell.oltp.as_deref();
            row.insert(adaptive_at, predicted(cell));
            let hours = if adaptive { device_hours(cell, campaign.scale) } else { Value::Empty };
            row.insert(adaptive_at + 1, hours);
            row.extend(about.iter().map(|(_, value)| known.map_or(Value::Empty, |it| value(cell, it))));
            row
        })
        .collect();

    let table = Table::new("cells", "The answer, cell by cell", columns, rows);
    table.with_note(note(campaign, &answers)).without_empty_columns()
}

fn value_of(cell: &Cell, name: &str) -> Option<String> {
    identity(cell).into_iter().find(|factor| factor.name == name).map(|factor| factor.level)
}

/// Data as a share of the capacity.
fn fill(cell: &Cell) -> Value {
    Value::number((cell.capacity.get() > 0).then(|| cell.fill()))
}

/// The predicted level of a skipped cell.
fn predicted(cell: &Cell) -> Value {
    cell.predicted.map_or(Value::Empty, |it| Value::Estimate(it.level, it.half_width()))
}

/// Device time of a cell in hours, scaled back.
fn device_hours(cell: &Cell, scale: u64) -> Value {
    Value::number(cell.took.map(|took| took.as_secs_f64() * scale as f64 / 3600.0))
}

/// A column with its value for a completed cell.
pub(super) type AnswerColumn<'c> = (Column, Box<dyn Fn(&Answer<'_>) -> Value + 'c>);

/// A numeric column.
pub(super) fn answered<'c>(
    column: Column,
    number: impl Fn(&Answer<'_>) -> Option<f64> + 'c,
) -> AnswerColumn<'c> {
    (column, Box::new(move |answer| Value::number(number(answer))))
}

/// The columns of levels. The settled level is `no steady state` if there is none.
pub(super) fn levels<'c>(quantity: Quantity) -> [AnswerColumn<'c>; 4] {
    let level = |key: &str, name| Column::number(&format!("{key}_{}", quantity.key()), name, quantity.unit());
    let settled = |answer: &Answer<'_>| match answer.settled {
        None => Value::Missing("no steady state".to_owned()),
        estimate => Value::estimate(estimate),
    };
    [
        (level("settled", "settled"), Box::new(settled)),
        answered(level("end", "end"), |a| a.end),
        answered(level("fresh", "fresh"), |a| a.fresh),
        answered(level("lowest", "lowest"), |a| a.lowest),
    ]
}

/// The columns of cells without a database.
fn of_block_devices<'c>(longest_ns: f64) -> Vec<AnswerColumn<'c>> {
    let (unit, scale) = latency_unit(longest_ns);
    let latency = |key, name| Column::number(key, name, unit).scaled(scale);
    let p99 = |of: fn(&Cell) -> &Distribution| {
        move |a: &Answer<'_>| {
            let mixed = a.cell.read_latency.count() > 0 && a.cell.write_latency.count() > 0;
            mixed.then(|| of(a.cell).percentile(99.0).get() as f64)
        }
    };
    let share = Column::percent("settled_share_of_fresh", "settled/fresh");
    let cpu = Column::number("host_cpu_ns_per_operation", "host CPU per I/O", "µs").scaled(1e-3);
    let mut columns = Vec::from(levels(Quantity::Throughput));
    columns.extend([
        answered(share, |a| a.share_of_fresh()),
        answered(write_amplification(), |a| a.write_amplification),
        answered(layer_amplification(), |a| a.layer_amplification),
        answered(cpu.digits(Digits::Fixed(2)), |a| a.host_cpu_ns_per_operation),
        answered(latency("latency_ns_p50", "p50"), |a| a.latency_ns(50.0)),
        answered(latency("latency_ns_p95", "p95"), |a| a.latency_ns(95.0)),
        answered(latency("latency_ns_p99", "p99"), |a| a.latency_ns(99.0)),
        answered(latency("read_latency_ns_p99", "read p99"), p99(|cell| &cell.read_latency)),
        answered(latency("write_latency_ns_p99", "write p99"), p99(|cell| &cell.write_latency)),
        answered(Column { unit: "1/s".to_owned(), ..Column::count("iops", "IOPS") }, |a| a.iops),
    ]);
    columns
}

/// NAND bytes per host byte.
pub(super) fn write_amplification() -> Column {
    Column::number("write_amplification", "write ampl.", "").digits(Digits::Fixed(2))
}

/// Bytes that a log layer wrote per byte written to it.
pub(super) fn layer_amplification() -> Column {
    Column::number("layer_amplification", "layer ampl.", "").digits(Digits::Fixed(2))
}

fn note(campaign: &Campaign, answers: &[Option<Answer<'_>>]) -> String {
    let labels = Labels::of(&campaign.cells);
    let mut notes = Vec::new();
    if answers.iter().flatten().next().is_some() {
        notes.push(
            "Settled: mean of the steady window ± half its 95 % confidence interval. End: mean of the last quarter \
             of the measurement. Fresh: mean of the first 5 % of the intervals, at most 60 s. Lowest: the slowest \
             interval. Latency and write amplification are those of the steady window, or of the last quarter \
             if there is none."
                .to_owned(),
        );
    }
    if campaign.cells.iter().any(|cell| cell.predicted.is_some()) {
        notes.push(
            "Predicted: the level of a skipped size, from the measured sizes, ± half of its 95 % interval."
                .to_owned(),
        );
    }
    if campaign.quantity() == Quantity::NewOrders {
        notes.push(databases::note(campaign));
    }
    if answers.iter().flatten().any(|a| a.layer_amplification.is_some()) {
        notes.push(
            "Layer amplification: blocks that the log layer wrote for each block written to it; write amplification \
             covers the layer and the drive beneath it."
                .to_owned(),
        );
    }
    for (_, memory) in campaign.environment.iter().filter(|(key, _)| key == "host-memory") {
        notes.push(format!("Host memory of the driver, at full size, {memory}."));
    }
    let stopped = campaign.cells.iter().filter(|cell| !cell.gaps.is_empty());
    notes.extend(stopped.map(|cell| {
        let gaps: Vec<String> = cell.gaps.iter().take(MOST_GAPS).map(lowtide_record::gap_in_words).collect();
        let more = cell.gaps.len() - gaps.len();
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!("{}: {}{more}.", labels.label(cell), gaps.join("; "))
    }));
    // Cells with the same trouble share a sentence.
    let trouble = |(cell, answer): (&Cell, &Option<Answer<'_>>)| {
        let trouble = match answer.as_ref().map(|a| &a.unsettled) {
            Some(Some(reason)) => format!("no steady state, {}", reason.trim_end_matches('.')),
            None if matches!(cell.status, Status::Failed | Status::Damaged) => {
                let what = if cell.status == Status::Failed { "failed" } else { "damaged in the store" };
                let reason = cell.failure.as_deref().unwrap_or("no reason was kept");
                format!("{what}, {}", reason.trim_end_matches('.'))
            }
            _ => return None,
        };
        Some((trouble, labels.label(cell)))
    };
    let troubles = grouped(campaign.cells.iter().zip(answers).filter_map(trouble));
    notes.extend(troubles.iter().map(|(trouble, labels)| {
        let who =
            if labels.len() > MOST_NAMED { format!("{} cells", labels.len()) } else { labels.join("; ") };
        format!("{who}: {trouble}.")
    }));
    notes.join(" ")
}
