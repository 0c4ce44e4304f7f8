//! The reading of a metric at a point: its value over all repetitions, and its uncertainty.
//!
//! A reading covers the steady window of a cell, or the last quarter of an unsettled cell if that was requested.
//! Percentiles are never averaged: the percentile of several repetitions comes from their merged histograms, in which
//! a longer repetition has more weight. The percentiles of single repetitions only give the scatter.

use super::metric::{Metric, Operations, Statistic};
use crate::answer::Answer;
use lowtide_core::{Counters, Distribution, Latency};
use lowtide_record::analysis::{Level, Ratio};
use lowtide_record::latency_parts::Part;
use lowtide_record::{Percentiles, Row};
use std::fmt;

/// The number of parts of a window for write amplification and IOPS, as for latency.
const PARTS: usize = 20;
/// The fewest operations beyond a percentile in a part for a valid percentile.
const BEYOND: f64 = 5.0;

/// A value with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reading {
    pub value: f64,
    /// The value with its uncertainty, or the reason for a missing uncertainty.
    pub level: Result<Level, Missing>,
}

/// The reason for a missing value or ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// No repetition has a steady state.
    NoSteadyState,
    /// The cells have no operations or counters of this kind.
    Nothing,
    /// The window has fewer than ten intervals.
    Short,
    /// The window has too few operations for this percentile.
    Few,
    /// The interval of the base includes zero.
    Unbounded,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::NoSteadyState => "no steady state",
            Missing::Nothing => "not measured",
            Missing::Short => "too few intervals",
            Missing::Few => "too few operations",
            Missing::Unbounded => "too uncertain",
        })
    }
}

/// One side of a point: the comparable answers.
pub(super) struct Point<'s, 'a> {
    pub answers: Vec<&'s Answer<'a>>,
    /// The merged latencies of all, read and write operations. Empty for a single answer, which has its own.
    merged: Vec<Distribution>,
}

impl<'s, 'a> Point<'s, 'a> {
    /// A point of the settled answers, or with `unsettled` of all answers.
    pub fn of(answers: &[&'s Answer<'a>], unsettled: bool) -> Point<'s, 'a> {
        let usable = answers.iter().copied().filter(|answer| unsettled || answer.settled.is_some());
        Point::new(usable.collect())
    }

    fn new(answers: Vec<&'s Answer<'a>>) -> Point<'s, 'a> {
        let merge = |operations| {
            let mut all = Latency::default();
            answers.iter().for_each(|answer| all.add(&latency(operations, answer)));
            Distribution::from(all)
        };
        let each = [Operations::All, Operations::Reads, Operations::Writes];
        let merged = if answers.len() > 1 { each.map(merge).into() } else { Vec::new() };
        Point { answers, merged }
    }

    /// The answers whose repetition the other side also has.
    pub fn common(&self, other: &Point<'_, '_>) -> Vec<&'s Answer<'a>> {
        let like =
            |one: &&Answer<'_>| other.answers.iter().any(|it| it.cell.repetition == one.cell.repetition);
        self.answers.iter().copied().filter(like).collect()
    }

    /// The reading of a metric.
    pub fn reading(&self, metric: Metric) -> Result<Reading, Missing> {
        match self.answers.as_slice() {
            [] => Err(Missing::NoSteadyState),
            [one] => {
                let value = value(metric, one).ok_or(Missing::Nothing)?;
                Ok(Reading { value, level: level(metric, one, value) })
            }
            _ => {
                let values = self.values(metric)?;
                let value = self.pooled(metric, &values);
                Ok(Reading { value, level: Level::of_repetitions(value, &values).ok_or(Missing::Short) })
            }
        }
    }

    /// The metric of each answer.
    fn values(&self, metric: Metric) -> Result<Vec<f64>, Missing> {
        self.answers.iter().map(|one| value(metric, one)).collect::<Option<_>>().ok_or(Missing::Nothing)
    }

    /// The metric over all answers. There are at least two, and `values` holds the metric of each.
    fn pooled(&self, metric: Metric, values: &[f64]) -> f64 {
        let Metric::Latency(operations, statistic) = metric else {
            return values.iter().sum::<f64>() / values.len() as f64;
        };
        of_latency(&self.merged[operations as usize], statistic).expect("every answer has a value")
    }
}

/// Two points with interleaved repetitions.
pub(super) struct Interleaved<'s, 'a> {
    base: Point<'s, 'a>,
    other: Point<'s, 'a>,
}

impl<'s, 'a> Interleaved<'s, 'a> {
    /// The repetitions of both points; `None` for fewer than two.
    pub fn of(base: &Point<'s, 'a>, other: &Point<'s, 'a>) -> Option<Interleaved<'s, 'a>> {
        let (one, two) = (Point::new(base.common(other)), Point::new(other.common(base)));
        (one.answers.len() >= 2 && one.answers.len() == two.answers.len())
            .then_some(Interleaved { base: one, other: two })
    }

    /// The number of pairs.
    pub fn count(&self) -> usize {
        self.base.answers.len()
    }

    /// Other divided by base.
    pub fn ratio(&self, metric: Metric) -> Result<Ratio, Missing> {
        let (bases, others) = (self.base.values(metric)?, self.other.values(metric)?);
        let ratio = self.other.pooled(metric, &others) / self.base.pooled(metric, &bases);
        let repetition = |answer: &&Answer<'_>| answer.cell.repetition;
        let find = |base: &&Answer<'_>| {
            let at = self.other.answers.iter().position(|it| repetition(it) == repetition(base));
            others[at.expect("both have the same repetitions")]
        };
        let pairs = self.base.answers.iter().zip(&bases).map(|(answer, base)| find(answer) / base);
        Ratio::of_pairs(ratio, &pairs.collect::<Vec<f64>>()).ok_or(Missing::Unbounded)
    }
}

/// The metric of one cell.
fn value(metric: Metric, answer: &Answer<'_>) -> Option<f64> {
    match metric {
        Metric::Throughput | Metric::NewOrders if metric != Metric::of_level(answer.quantity) => None,
        Metric::Throughput | Metric::NewOrders => answer.settled.map(|it| it.mean).or(answer.end),
        Metric::Iops => answer.iops,
        Metric::WriteAmplification => answer.write_amplification,
        Metric::Latency(operations, statistic) => of_latency(&latency(operations, answer), statistic),
    }
}

/// The uncertainty of a metric of one cell, from its parts.
fn level(metric: Metric, answer: &Answer<'_>, value: f64) -> Result<Level, Missing> {
    let parts = match metric {
        Metric::Throughput | Metric::NewOrders => match &answer.settled {
            Some(estimate) => return Ok(Level::from(estimate)),
            None => each_part(answer, |rows, _| mean(rows, Row::rate)),
        },
        Metric::Iops => each_part(answer, |rows, _| mean(rows, Row::iops)),
        Metric::WriteAmplification => each_part(answer, |rows, before| {
            let last = rows.last()?.counters?;
            last.write_amplification_since(&before?)
        }),
        Metric::Latency(operations, statistic) => return of_parts(operations, statistic, answer, value),
    };
    // Parts are scaled to the value, because their weights differ.
    let parts = parts.ok_or(Missing::Short)?;
    let mean = parts.iter().sum::<f64>() / parts.len() as f64;
    let unit = if metric == Metric::WriteAmplification { 1.0 } else { value / mean };
    let parts: Vec<f64> = parts.iter().map(|part| part * unit).collect();
    Level::of_parts(value, &parts).ok_or(Missing::Short)
}

/// The mean of a rate over rows, weighted by time.
fn mean(rows: &[Row], rate: impl Fn(&Row) -> f64) -> Option<f64> {
    let seconds: f64 = rows.iter().map(Row::seconds).sum();
    let whole = rows.iter().filter(|row| row.end_ns > row.start_ns);
    (seconds > 0.0).then(|| whole.map(|row| rate(row) * row.seconds()).sum::<f64>() / seconds)
}

/// A number for each of the equal parts of a cell's window; `None` if a part has no number. `of` gets the rows of the
/// part and the counters before it.
fn each_part(answer: &Answer<'_>, of: impl Fn(&[Row], Option<Counters>) -> Option<f64>) -> Option<Vec<f64>> {
    let (from_ns, to_ns, _) = answer.cell.window();
    let rows = &answer.cell.rows;
    let begin = rows.partition_point(|row| row.start_ns < from_ns);
    let end = rows.partition_point(|row| row.end_ns <= to_ns).max(begin);
    let length = (end - begin).div_ceil(PARTS).max(1);
    // Intervals that do not fill a part are left out at the beginning of the window.
    let begin = begin + (end - begin) % length;
    let before = |from: usize| match from.checked_sub(1) {
        Some(before) => rows[before].counters,
        None => answer.cell.counters_before,
    };
    (begin..end).step_by(length).map(|from| of(&rows[from..from + length], before(from))).collect()
}

/// The latency histogram of a cell's window.
fn latency(operations: Operations, answer: &Answer<'_>) -> Distribution {
    match operations {
        Operations::All => answer.latency(),
        Operations::Reads => answer.cell.read_latency.clone(),
        Operations::Writes => answer.cell.write_latency.clone(),
    }
}

fn of_latency(latency: &Distribution, statistic: Statistic) -> Option<f64> {
    let at = |percent| latency.percentile(percent).get() as f64;
    (latency.count() > 0).then(|| statistic.percent().map_or_else(|| latency.mean_ns(), at))
}

fn of_parts(
    operations: Operations,
    statistic: Statistic,
    answer: &Answer<'_>,
    value: f64,
) -> Result<Level, Missing> {
    let parts = match operations {
        Operations::All => &answer.cell.latency_parts.all,
        Operations::Reads => &answer.cell.latency_parts.read,
        Operations::Writes => &answer.cell.latency_parts.write,
    };
    let beyond = 1.0 - statistic.percent().unwrap_or(0.0) / 100.0;
    let enough = |part: &Part| part.operations as f64 * beyond >= BEYOND;
    let of_part = |it: &Percentiles| match statistic {
        Statistic::Mean => it.mean_ns,
        Statistic::P50 => it.p50_ns as f64,
        Statistic::P95 => it.p95_ns as f64,
        Statistic::P99 => it.p99_ns as f64,
        Statistic::P999 => it.p999_ns as f64,
    };
    let values: Vec<f64> = parts.iter().map(|part| of_part(&part.latency)).collect();
    let level = Level::of_parts(value, &values).ok_or(Missing::Short)?;
    if parts.iter().all(enough) { Ok(level) } else { Err(Missing::Few) }
}
