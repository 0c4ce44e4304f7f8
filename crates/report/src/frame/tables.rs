//! The tables: one row per cell, interval, kind of transaction, or histogram bucket.

use super::factors::{self, Named};
use super::{Column, Frame, Values};
use crate::answer::Answer;
use crate::export::status_name;
use lowtide_core::{Counter, Counters, Nanos};
use lowtide_engines::tpcc::Kind;
use lowtide_lab::plan::Plan;
use lowtide_lab::store::{Store, StoreError};
use lowtide_record::analysis::Verdict;
use lowtide_record::column::{self as record, Known, Value as Number};
use lowtide_record::{Campaign, Cell, Predicted, Quantity, Row, Status};
use std::sync::Arc;

fn named(cell: &Cell) -> Named {
    let Cell { index, step, factors, repetition, .. } = cell;
    Named { index: *index, step: step.clone(), factors: factors.clone(), repetition: *repetition }
}

fn names_of(campaign: &Campaign) -> (Vec<Column>, Vec<String>) {
    factors::columns(&campaign.cells.iter().map(named).collect::<Vec<_>>())
}

/// The identifying columns, with the values of the cell at each index in `rows`.
fn names_at(campaign: &Campaign, rows: &[usize]) -> Vec<Column> {
    let at = |column: Column| Column { values: column.values.at(rows), ..column };
    names_of(campaign).0.into_iter().map(at).collect()
}

/// The beginning and end of intervals, in seconds.
fn times<'r>(rows: impl Iterator<Item = &'r Row> + Clone) -> [Column; 2] {
    let seconds = |name, doc, of: fn(&Row) -> u64| {
        Column::real(name, "s", doc, rows.clone().map(|row| Some(of(row) as f64 / 1e9)))
    };
    [
        seconds("start_s", "beginning of the interval since the measurement began", |it| it.start_ns),
        seconds("end_s", "end of the interval", |it| it.end_ns),
    ]
}

/// Verdict, level and confidence interval of each cell.
fn verdicts(cells: &[Cell]) -> Vec<Column> {
    let estimate = |cell: &Cell| match &cell.verdict {
        Some(Verdict::Steady(estimate)) => Some(*estimate),
        _ => None,
    };
    let word = |cell: &Cell| match cell.verdict.as_ref()? {
        Verdict::Steady(_) => Some("steady"),
        Verdict::NoSteadyState { .. } => Some("no steady state"),
    };
    fn reason(cell: &Cell) -> Option<&str> {
        match cell.verdict.as_ref()? {
            Verdict::NoSteadyState { reason } => Some(reason.as_str()),
            Verdict::Steady(_) => None,
        }
    }
    let level = |name: &str, doc: &str, of: fn(f64, f64) -> f64| {
        let all = cells.iter().map(|cell| estimate(cell).map(|it| of(it.mean, it.half_width)));
        Column::real(name, "", doc, all)
    };
    vec![
        Column::text(
            "verdict",
            "`steady`, or `no steady state`; null if nothing was judged",
            cells.iter().map(word),
        ),
        level("level", "settled level, in `unit`", |mean, _| mean),
        level("low", "lower end of its 95 % confidence interval, in `unit`", |mean, half| mean - half),
        level("high", "upper end of its 95 % confidence interval, in `unit`", |mean, half| mean + half),
        Column::text("unit", "the unit of levels", cells.iter().map(|cell| Some(cell.quantity().unit()))),
        Column::text("reason", "why there is no steady state", cells.iter().map(reason)),
    ]
}

/// The predicted levels of skipped cells, and the device time of measured cells.
fn curves(cells: &[Cell]) -> Vec<Column> {
    let predicted = |name: &str, doc: &str, of: fn(Predicted) -> f64| {
        Column::real(name, "MiB/s", doc, cells.iter().map(|cell| cell.predicted.map(of)))
    };
    vec![
        predicted("predicted", "level of a cell that was skipped, predicted from other cells", |it| it.level),
        predicted("predicted_low", "lower end of the interval that holds it with 95 %", |it| it.low),
        predicted("predicted_high", "upper end of the interval that holds it with 95 %", |it| it.high),
        Column::whole(
            "device_time_ns",
            "ns",
            "how long the device was occupied, preparation included; not scaled up",
            cells.iter().map(|cell| cell.took.map(Nanos::get)),
        ),
    ]
}

/// One row per cell: plan, status, result.
pub fn cells(campaign: &Campaign) -> Frame {
    let cells = &campaign.cells;
    let (mut columns, factors) = names_of(campaign);
    let bytes = |name: &str, doc: &str, of: fn(&Cell) -> Option<u64>| {
        Column::whole(name, "B", doc, cells.iter().map(of))
    };
    columns.extend([
        Column::text(
            "status",
            "`done`, `failed`, `pending`, `damaged`, or `spared`: skipped, with a predicted level",
            cells.iter().map(|it| Some(status_name(it.status))),
        ),
        Column::text("failure", "why it failed", cells.iter().map(|it| it.failure.as_deref())),
        bytes("data_bytes", "data under test", |it| Some(it.data.get())),
        bytes("capacity_bytes", "what the host may address", |it| {
            Some(it.capacity.get()).filter(|it| *it > 0)
        }),
        bytes("raw_capacity_bytes", "all NAND, where known", |it| it.raw_capacity.map(|raw| raw.get())),
        Column::real(
            "fill",
            "",
            "data as a share of the capacity",
            cells.iter().map(|it| (it.capacity.get() > 0).then(|| it.fill())),
        ),
        Column::whole("threads", "", "threads of the load", cells.iter().map(|it| Some(it.threads.into()))),
        Column::real(
            "read_share",
            "",
            "share of requests that read",
            cells.iter().map(|it| Some(it.read_share)),
        ),
        bytes("written_before_bytes", "written since the last purge when the measurement began", |it| {
            it.written_before.map(|written| written.get())
        }),
    ]);
    columns.extend(verdicts(cells));
    columns.extend(curves(cells));
    // A factor replaces the column of the same name.
    let mut frame = Frame { columns };
    let mut seen: Vec<String> = Vec::new();
    frame.columns.retain(|column| {
        let again = factors.contains(&column.name) && seen.contains(&column.name);
        seen.push(column.name.clone());
        !again
    });
    frame
}

/// One row per cell: the results shown in a report.
pub fn steady(campaign: &Campaign) -> Frame {
    let cells = &campaign.cells;
    let answers = Answer::of_each(campaign);
    let real = |name: &str, unit: &'static str, doc: &str, of: &dyn Fn(&Answer<'_>) -> Option<f64>| {
        Column::real(name, unit, doc, answers.iter().map(|it| it.as_ref().and_then(of)))
    };
    let (mut columns, _) = names_of(campaign);
    columns.push(real("fill", "", "data as a share of the capacity", &|it| it.fill()));
    columns.extend(verdicts(cells));
    let window = |name: &str, doc: &str, of: fn(u64, u64) -> u64| {
        real(name, "s", doc, &move |it| {
            it.settled.map(|window| of(window.from_ns, window.to_ns) as f64 / 1e9)
        })
    };
    columns.extend([
        window("from_s", "beginning of the steady window since the measurement began", |from, _| from),
        window("to_s", "end of the steady window", |_, to| to),
        real("fresh", "", "level at the beginning, in `unit`", &|it| it.fresh),
        real("end", "", "level of the last quarter of the measurement, in `unit`", &|it| it.end),
        real("lowest", "", "level of the lowest interval, in `unit`", &|it| it.lowest),
        real("iops", "1/s", "operations per second over the window", &|it| it.iops),
        real("write_amplification", "", "NAND bytes per host byte over the window", &|it| {
            it.write_amplification
        }),
        real("layer_amplification", "", "bytes of a log layer per host byte over the window", &|it| {
            it.layer_amplification
        }),
    ]);
    for (name, percent) in [("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p999", 99.9)] {
        let doc = format!("latency that {percent} % of operations did not exceed, over the window");
        columns.push(real(&format!("latency_ns_{name}"), "ns", &doc, &move |it| it.latency_ns(percent)));
    }
    Frame { columns }.without_absent(&["layer_amplification"])
}

/// One row per interval.
pub fn intervals(campaign: &Campaign) -> Frame {
    let all: Vec<(usize, &Cell, &Row)> = campaign
        .cells
        .iter()
        .enumerate()
        .flat_map(|(at, cell)| cell.rows.iter().map(move |row| (at, cell, row)))
        .collect();
    let rows: Vec<usize> = all.iter().map(|(at, ..)| *at).collect();
    let mut columns = names_at(campaign, &rows);
    columns.extend(times(all.iter().map(|(.., row)| *row)));
    let rate = |name: &str, unit, doc: &str, of: fn(&Row) -> f64| {
        let seen = all.iter().map(|(_, cell, row)| cell.device_seen().then(|| of(row)));
        Column::real(name, unit, doc, seen)
    };
    let (latencies, counts): (Vec<_>, Vec<_>) = Row::COLUMNS
        .iter()
        .filter(|column| !["start_ns", "end_ns"].contains(&column.name))
        .partition(|column| column.known == Known::AfterCompletion);
    columns.extend(counts.into_iter().map(|column| {
        let known = |cell: &Cell| column.known == Known::Always || cell.device_seen();
        numbers(column, all.iter().map(|(_, cell, row)| known(cell).then_some(*row)))
    }));
    columns.push(rate("iops", "1/s", "operations per second", Row::iops));
    columns.push(rate("mib_per_s", "MiB/s", "read and written per second", Row::mib_per_s));
    // For a database, these are latencies of its device; null if no request completed.
    columns.extend(latencies.into_iter().map(|column| {
        let done = |row: &Row| if column.name.starts_with("read") { row.reads } else { row.writes };
        numbers(column, all.iter().map(|(.., row)| (done(row) > 0).then_some(*row)))
    }));
    if all.iter().any(|(.., row)| row.counters.is_some()) {
        columns.extend(counters(&all.iter().map(|(.., row)| row.counters).collect::<Vec<_>>()));
    }
    if campaign.quantity() == Quantity::NewOrders {
        let rates = all.iter().map(|(.., row)| row.transactions.as_ref().map(|_| row.rate()));
        columns.push(Column::real("notpm", "NOTPM", "new orders per minute", rates));
        let ended = all.iter().map(|(.., row)| row.transactions.as_ref().map(|it| it.ended()));
        columns.push(Column::whole("transactions", "", "transactions that came to their end", ended));
    }
    Frame { columns }
}

/// The values of a column for these records. Latencies are real numbers, because their means are.
fn numbers<'r, R: 'r>(column: &record::Column<R>, records: impl Iterator<Item = Option<&'r R>>) -> Column {
    let record::Column { name, unit, doc, .. } = *column;
    match column.value {
        Number::Whole { get, .. } if column.known != Known::AfterCompletion => {
            Column::whole(name, unit, doc, records.map(|record| record.map(get)))
        }
        _ => Column::real(name, unit, doc, records.map(|record| record.map(|it| column.value.as_f64(it)))),
    }
}

/// One column per device counter.
fn counters(all: &[Option<Counters>]) -> Vec<Column> {
    let column = |it: &Counter| {
        let now = it.name == "free_blocks";
        let doc = if now { it.doc.to_owned() } else { format!("{}, since the device was made", it.doc) };
        Column::whole(it.name, it.unit, &doc, all.iter().map(|counted| counted.as_ref().map(it.get)))
    };
    Counters::ALL.iter().map(column).collect()
}

/// One row per interval and kind of transaction.
pub fn transactions(campaign: &Campaign) -> Frame {
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for (at, cell) in campaign.cells.iter().enumerate() {
        for row in cell.rows.iter() {
            for (kind, done) in Kind::ALL.iter().zip(row.transactions.iter().flat_map(|it| &it.kinds)) {
                rows.push(at);
                all.push((row, kind, done));
            }
        }
    }
    let mut columns = names_at(campaign, &rows);
    columns.extend(times(all.iter().map(|(row, ..)| *row)));
    columns.push(Column::text("kind", "the transaction", all.iter().map(|(_, kind, _)| Some(kind.name()))));
    columns.extend(lowtide_record::Done::COLUMNS.iter().map(|column| {
        let is_known = |done: &lowtide_record::Done| column.known == Known::Always || done.ended() > 0;
        numbers(column, all.iter().map(|(.., done)| is_known(done).then_some(*done)))
    }));
    Frame { columns }
}

/// One row per non-empty bucket of each latency histogram of a stored campaign.
///
/// # Errors
/// [`StoreError`] if the store cannot be read.
pub fn histograms(store: &Store, number: i64, campaign: &Campaign) -> Result<Frame, StoreError> {
    let (mut cells, mut starts, mut ops) = (Vec::new(), Vec::new(), Vec::new());
    let (mut lows, mut highs, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    let whole = |number: u64| i64::try_from(number).ok();
    for cell in campaign.cells.iter().filter(|cell| cell.status != Status::Damaged) {
        let mut last: Option<Arc<str>> = None;
        store.histograms(number, cell.index, &mut |start_ns, op, latency| {
            let op = match &last {
                Some(known) if **known == *op => Arc::clone(known),
                _ => Arc::clone(last.insert(op.into())),
            };
            for (low, high, count) in latency.ranges() {
                cells.push(Some(i64::from(cell.index)));
                starts.push(Some(start_ns as f64 / 1e9));
                ops.push(Some(Arc::clone(&op)));
                lows.push(whole(low.get()));
                highs.push(whole(high.get()));
                counts.push(whole(count));
            }
        })?;
    }
    let op = "`read`, `write`, or the kind of transaction";
    Ok(Frame {
        columns: vec![
            Column::new("cell", "", "the cell's number", Values::Whole(cells)),
            Column::new(
                "start_s",
                "s",
                "beginning of the interval since the measurement began",
                Values::Real(starts),
            ),
            Column::new("op", "", op, Values::Text(ops)),
            Column::new("low_ns", "ns", "shortest latency of the bucket", Values::Whole(lows)),
            Column::new("high_ns", "ns", "longest latency of the bucket", Values::Whole(highs)),
            Column::new("count", "", "operations in it", Values::Whole(counts)),
        ],
    })
}

/// One row per cell of a plan. `group` counts from 0 in the order of [`Plan::groups`].
pub fn planned(plan: &Plan) -> Frame {
    let cells = &plan.cells;
    let named = cells.iter().map(|cell| Named {
        index: cell.index,
        step: cell.step.clone(),
        factors: cell.factors(),
        repetition: cell.repetition,
    });
    let (mut columns, _) = factors::columns(&named.collect::<Vec<_>>());
    let mut groups = vec![None; cells.len()];
    for (number, group) in plan.groups.iter().enumerate() {
        group.iter().for_each(|cell| groups[*cell] = Some(number as u64));
    }
    let longest = |at: usize| cells[at].settings.load.longest().map(|span| span.as_secs_f64());
    columns.extend([
        Column::whole("group", "", "cells of a group share a history and run in order", groups.into_iter()),
        Column::whole("data_bytes", "B", "data under test", cells.iter().map(|it| Some(it.data.get()))),
        Column::whole(
            "capacity_bytes",
            "B",
            "what the host may address",
            cells.iter().map(|it| Some(it.capacity.get())),
        ),
        Column::real("longest_s", "s", "longest time of the measurement", (0..cells.len()).map(longest)),
    ]);
    Frame { columns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn reals(frame: &Frame, name: &str) -> Vec<Option<f64>> {
        match &frame.column(name).unwrap_or_else(|| panic!("a column {name}")).values {
            Values::Real(values) => values.clone(),
            Values::Whole(values) => values.iter().map(|it| it.map(|it| it as f64)).collect(),
            other => panic!("{name} is not numbers: {other:?}"),
        }
    }

    fn assert_sound(frame: &Frame) {
        let mut names: Vec<&str> = frame.columns.iter().map(|column| column.name.as_str()).collect();
        let mut columns = frame.columns.iter();
        assert!(columns.all(|column| column.values.count() == frame.rows() && !column.doc.is_empty()));
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }

    #[test]
    fn every_table_of_every_sample_is_sound() {
        for campaign in [sample::intel(&[20, 100], 60), sample::quick(), sample::databases()] {
            let tables = [cells(&campaign), intervals(&campaign), steady(&campaign), transactions(&campaign)];
            tables.iter().for_each(assert_sound);
            assert_eq!(cells(&campaign).rows(), campaign.cells.len());
            let rows: usize = campaign.cells.iter().map(|cell| cell.rows.len()).sum();
            assert_eq!(intervals(&campaign).rows(), rows);
        }
    }

    #[test]
    fn a_cell_has_a_level_with_its_interval_or_a_reason() {
        let campaign = sample::quick();
        let frame = cells(&campaign);
        for (at, cell) in campaign.cells.iter().enumerate() {
            let [low, level, high] = ["low", "level", "high"].map(|name| reals(&frame, name)[at]);
            let Values::Text(reasons) = &frame.column("reason").expect("there").values else {
                panic!("words")
            };
            match &cell.verdict {
                Some(Verdict::Steady(estimate)) => {
                    assert_eq!((level, reasons[at].is_none()), (Some(estimate.mean), true));
                    let ends = (estimate.mean - estimate.half_width, estimate.mean + estimate.half_width);
                    assert_eq!((low, high), (Some(ends.0), Some(ends.1)));
                }
                _ => assert_eq!((low, level, high, reasons[at].is_some()), (None, None, None, true)),
            }
        }
    }

    #[test]
    fn a_factor_replaces_the_column_of_the_same_name() {
        let frame = cells(&sample::quick());
        let threads: Vec<_> = frame.columns.iter().filter(|column| column.name == "threads").collect();
        assert_eq!(threads.len(), 1);
        assert!(threads[0].doc.starts_with("factor"));
        assert!(cells(&sample::intel(&[20], 60)).column("threads").is_some());
    }

    #[test]
    fn intervals_have_rates_of_their_rows_and_factors_of_their_cell() {
        let campaign = sample::intel(&[20, 100], 60);
        let frame = intervals(&campaign);
        let rows: Vec<&Row> = campaign.cells.iter().flat_map(|cell| cell.rows.iter()).collect();
        assert_eq!(
            reals(&frame, "mib_per_s"),
            rows.iter().map(|row| Some(row.mib_per_s())).collect::<Vec<_>>()
        );
        let sizes = reals(&frame, "file_size");
        assert_eq!((sizes[0], sizes[119]), (Some((20u64 << 30) as f64), Some((100u64 << 30) as f64)));
        // The load only writes, so there is no read latency.
        assert!(reals(&frame, "read_latency_ns_p99").iter().all(Option::is_none));
    }
}
