//! The series that the analysis works on: throughput per interval, and what was written to the device by then.
//!
//! Not here: latency, histograms and counters; they do not decide when a load is steady. Leaves out where the
//! numbers come from; [`Series::of_cell`] takes them from a record.

use crate::{Cell, Row};
use lowtide_core::Bytes;

/// What kind of store the device is, as far as a honeymoon is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Medium {
    /// Flash that is rewritten in place only by garbage collection: it has a honeymoon.
    Flash,
    /// A disk, or anything else without garbage collection: it has none.
    Other,
    /// Not known; taken for flash.
    #[default]
    Unknown,
}

/// What is known about the device and the load, apart from the numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Context {
    /// Bytes the host may address on the device (not only in a partition or file of it).
    pub capacity: Bytes,
    /// All NAND, where known.
    pub raw_capacity: Option<Bytes>,
    /// Bytes of data under test.
    pub data: Bytes,
    /// Whether the load writes nothing.
    pub read_only: bool,
    /// The kind of device.
    pub medium: Medium,
    /// Host bytes written between the last purge and the beginning of the measurement; `None` where the device
    /// was never purged, or nobody knows. Then nothing is taken for written.
    pub written_before: Option<Bytes>,
}

impl Context {
    /// The context of a recorded cell.
    pub fn of_cell(cell: &Cell, medium: Medium) -> Self {
        Context {
            capacity: cell.capacity,
            raw_capacity: cell.raw_capacity,
            data: cell.data,
            read_only: cell.read_share >= 1.0,
            medium,
            written_before: cell.written_before,
        }
    }
    /// Whether a honeymoon and a slow change of write amplification are possible.
    pub fn collects_garbage(&self) -> bool {
        !self.read_only && self.medium != Medium::Other
    }
    /// The turnover, in bytes: the larger of the data and the pool of free NAND. Once the host has written this
    /// much, all data has been rewritten about once and every free block has been used about once; slow changes
    /// of write amplification are measured in it.
    pub fn turnover(&self) -> Bytes {
        let raw = self.raw_capacity.unwrap_or(self.capacity).max(self.capacity);
        self.data.max(raw.saturating_sub(self.data)).max(Bytes::new(1))
    }
}

/// One interval of a [`Series`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Where it begins, in nanoseconds since the measurement began.
    pub start_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
    /// What was done per time: [`Row::rate`].
    pub rate: f64,
    /// Host bytes written since the last purge (or since the measurement began, where that is unknown), at the
    /// end of the interval.
    pub written: Bytes,
}

/// Rows that are not a time series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// An interval does not begin where the one before ended.
    #[error("interval {index} begins at {start_ns} ns, but the one before ended at {end_ns} ns")]
    Gap {
        /// Position of the interval, from 0.
        index: usize,
        /// Where it begins.
        start_ns: u64,
        /// Where the one before ended.
        end_ns: u64,
    },
    /// An interval has another length than the first.
    #[error("interval {index} takes {length_ns} ns, but the first takes {first_ns} ns")]
    Uneven {
        /// Position of the interval, from 0.
        index: usize,
        /// Its length.
        length_ns: u64,
        /// The length of the first.
        first_ns: u64,
    },
}

/// A time series of a rate.
///
/// Invariant, established in [`Series::push_rate`], the only way in: intervals follow each other without a gap, all
/// have the length of the first to within 1 %, and `written` never falls. A shorter last interval, cut off by
/// the end of the measurement, is left out, and nothing may follow it.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    context: Context,
    points: Vec<Point>,
    cut_ns: Option<u64>,
}

impl Series {
    /// A series without intervals.
    pub fn new(context: Context) -> Self {
        Series { context, points: Vec::new(), cut_ns: None }
    }

    /// The series of a recorded cell.
    ///
    /// # Errors
    /// Where the rows have gaps or uneven lengths.
    pub fn of_cell(cell: &Cell, medium: Medium) -> Result<Self, SeriesError> {
        Series::of_rows(Context::of_cell(cell, medium), &cell.rows)
    }

    /// The series of recorded rows.
    ///
    /// # Errors
    /// Where the rows have gaps or uneven lengths.
    pub fn of_rows(context: Context, rows: &[Row]) -> Result<Self, SeriesError> {
        let mut series = Series::new(context);
        rows.iter().try_for_each(|row| series.push_row(row))?;
        Ok(series)
    }

    /// Adds a recorded row.
    ///
    /// # Errors
    /// As [`Series::push`].
    pub fn push_row(&mut self, row: &Row) -> Result<(), SeriesError> {
        self.push_rate(row.start_ns, row.end_ns, row.rate(), Bytes::new(row.write_bytes))
    }

    /// Adds an interval in which `moved` bytes were read or written, `written` of them written: its rate is in MiB/s.
    ///
    /// # Errors
    /// As [`Series::push_rate`].
    pub fn push(
        &mut self,
        start_ns: u64,
        end_ns: u64,
        moved: Bytes,
        written: Bytes,
    ) -> Result<(), SeriesError> {
        let rate = moved.as_mib() / (end_ns.saturating_sub(start_ns) as f64 / 1e9);
        self.push_rate(start_ns, end_ns, rate, written)
    }

    /// Adds an interval with its rate, in which `written` bytes were written to the device.
    ///
    /// # Errors
    /// Where the interval does not begin where the last one ended, or has another length than the first and is
    /// not the shorter last one.
    pub fn push_rate(
        &mut self,
        start_ns: u64,
        end_ns: u64,
        rate: f64,
        written: Bytes,
    ) -> Result<(), SeriesError> {
        let index = self.points.len();
        let length_ns = end_ns.saturating_sub(start_ns);
        let before = self.points.last();
        if let Some(end) = self
            .cut_ns
            .or(before.map(|point| point.end_ns))
            .filter(|end| *end != start_ns || self.cut_ns.is_some())
        {
            return Err(SeriesError::Gap { index, start_ns, end_ns: end });
        }
        let first_ns = self.interval_ns().unwrap_or(length_ns);
        if length_ns == 0 || length_ns > first_ns + first_ns / 100 {
            return Err(SeriesError::Uneven { index, length_ns, first_ns });
        }
        if length_ns < first_ns - first_ns / 100 {
            self.cut_ns = Some(end_ns);
            return Ok(());
        }
        let base = before.map_or(self.context.written_before.unwrap_or_default(), |point| point.written);
        self.points.push(Point { start_ns, end_ns, rate, written: base + written });
        Ok(())
    }

    /// What is known about the device and the load.
    pub fn context(&self) -> &Context {
        &self.context
    }
    /// The intervals in order.
    pub fn points(&self) -> &[Point] {
        &self.points
    }
    /// The length of every interval in nanoseconds; `None` before the first.
    pub fn interval_ns(&self) -> Option<u64> {
        self.points.first().map(|point| point.end_ns - point.start_ns)
    }
    /// Host bytes written since the last purge when interval `index` began; at the end of the series, with
    /// `index` one past the last.
    pub fn written_at(&self, index: usize) -> Bytes {
        match index {
            0 => self.context.written_before.unwrap_or_default(),
            _ => self.points[index - 1].written,
        }
    }
    /// The rates of the intervals from `from` on.
    pub fn rates(&self, from: usize) -> Vec<f64> {
        self.points[from..].iter().map(|point| point.rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context {
        Context {
            capacity: Bytes::gib(100),
            raw_capacity: None,
            data: Bytes::gib(80),
            read_only: false,
            medium: Medium::Unknown,
            written_before: Some(Bytes::gib(80)),
        }
    }

    #[test]
    fn writes_add_up_from_the_purge_and_a_cut_interval_ends_the_series() {
        let mut series = Series::new(context());
        series.push(0, 1_000_000_000, Bytes::mib(30), Bytes::mib(20)).expect("first");
        series.push(1_000_000_000, 2_000_000_000, Bytes::mib(40), Bytes::mib(40)).expect("second");
        series.push(2_000_000_000, 2_300_000_000, Bytes::mib(9), Bytes::mib(9)).expect("the cut one");
        assert_eq!(series.rates(0), vec![30.0, 40.0]);
        assert_eq!(series.written_at(2), Bytes::gib(80) + Bytes::mib(60));
        assert!(matches!(
            series.push(2_300_000_000, 3_300_000_000, Bytes::ZERO, Bytes::ZERO),
            Err(SeriesError::Gap { .. })
        ));
    }

    #[test]
    fn gaps_and_uneven_intervals_are_refused() {
        let mut series = Series::new(context());
        assert!(matches!(series.push(5, 5, Bytes::ZERO, Bytes::ZERO), Err(SeriesError::Uneven { .. })));
        series.push(0, 1000, Bytes::ZERO, Bytes::ZERO).expect("first");
        let gap = series.push(1001, 2001, Bytes::ZERO, Bytes::ZERO).unwrap_err().to_string();
        assert_eq!(gap, "interval 1 begins at 1001 ns, but the one before ended at 1000 ns");
        let long = series.push(1000, 2100, Bytes::ZERO, Bytes::ZERO).unwrap_err().to_string();
        assert_eq!(long, "interval 1 takes 1100 ns, but the first takes 1000 ns");
    }

    #[test]
    fn the_turnover_is_the_larger_of_data_and_free_pool() {
        assert_eq!(context().turnover(), Bytes::gib(80));
        let small = Context { data: Bytes::gib(10), raw_capacity: Some(Bytes::gib(110)), ..context() };
        assert_eq!(small.turnover(), Bytes::gib(100));
    }
}
