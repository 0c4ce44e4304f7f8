//! The value of a round, and the round after which values are steady.
//!
//! The parent module chooses the tracked cells.

use crate::experiment::Of;
use lowtide_core::Bytes;
use lowtide_record::Row;
use lowtide_record::analysis::Snia;

/// The tracked value of a cell, over the intervals that begin in the first `first_ns` nanoseconds: MiB/s, requests
/// per second, new orders per minute, or the mean latency in nanoseconds. `None` without rows, and for percentiles
/// and amplifications.
pub fn value(of: Of, rows: &[Row], first_ns: u64) -> Option<f64> {
    let rows = || rows.iter().filter(|row| row.start_ns < first_ns);
    let seconds: f64 = rows().map(Row::seconds).sum();
    let sum = |each: fn(&Row) -> u64| rows().map(each).sum::<u64>();
    let requests = sum(|row| row.reads + row.writes) as f64;
    let value = match of {
        Of::Throughput => Bytes::new(sum(|row| row.read_bytes + row.write_bytes)).as_mib() / seconds,
        Of::Iops => requests / seconds,
        Of::NewOrders => {
            let orders = |row: &Row| Some(row.transactions.as_ref()?.new_orders());
            rows().map(orders).sum::<Option<u64>>()? as f64 / seconds * 60.0
        }
        Of::MeanLatency => {
            let (count, ns) = Row::waited(rows());
            ns / count as f64
        }
        Of::P50 | Of::P95 | Of::P99 | Of::WriteAmplification | Of::LayerAmplification => return None,
    };
    value.is_finite().then_some(value)
}

/// The first round (counted from 1) after which the rule holds for every point over the rounds of its window; `None`
/// if the rule never holds. `points` has the values of each point by round.
pub fn steady_after(rule: &Snia, points: &[Vec<Option<f64>>]) -> Option<u32> {
    let rounds = points.iter().map(Vec::len).min()?;
    let holds = |end: usize| {
        points.iter().all(|values| {
            let window: Option<Vec<f64>> = values[end - rule.rounds..end].iter().copied().collect();
            window.is_some_and(|window| rule.holds(&window))
        })
    };
    (rule.rounds..=rounds).find(|end| holds(*end)).map(|end| end as u32)
}
