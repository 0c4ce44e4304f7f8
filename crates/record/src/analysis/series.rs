//! The series under analysis: for each interval, its rate and the host bytes written by its end.
//!
//! Latency, histograms and counters are excluded, because the steady-state rules do not use them.

use crate::Row;
use lowtide_core::Bytes;

/// The kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Medium {
    /// Flash with garbage collection, which has a honeymoon.
    Flash,
    /// A device without garbage collection, such as a disk, which has no honeymoon.
    Other,
    /// Unknown; treated as flash.
    #[default]
    Unknown,
}

/// Properties of the device and the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Context {
    /// Bytes that the host can address on the entire device, not only in a partition or file.
    pub capacity: Bytes,
    /// The NAND capacity, if known.
    pub raw_capacity: Option<Bytes>,
    /// Bytes of data under test.
    pub data: Bytes,
    /// `true` if the load does not write.
    pub read_only: bool,
    /// The kind of device.
    pub medium: Medium,
    /// Host bytes written between the last purge and the beginning of the measurement; `None` if the number is
    /// unknown or the device was never purged. `None` counts as 0.
    pub written_before: Option<Bytes>,
}

impl Context {
    /// Returns whether a honeymoon and slow changes of write amplification are possible.
    pub fn collects_garbage(&self) -> bool {
        !self.read_only && self.medium != Medium::Other
    }
    /// The turnover: the larger of the data and the free NAND. Once the host has written one turnover, all data has
    /// been rewritten about once and every free block has been used about once. Slow changes of write amplification
    /// are measured in turnovers.
    pub fn turnover(&self) -> Bytes {
        let raw = self.raw_capacity.unwrap_or(self.capacity).max(self.capacity);
        self.data.max(raw.saturating_sub(self.data)).max(Bytes::new(1))
    }
}

/// One interval of a [`Series`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Start of the interval, in nanoseconds since the measurement began.
    pub start_ns: u64,
    /// End of the interval, in nanoseconds since the measurement began.
    pub end_ns: u64,
    /// The rate in the interval: [`Row::rate`].
    pub rate: f64,
    /// Host bytes written by the end of the interval: since the last purge if that number is known, otherwise since
    /// the measurement began.
    pub written: Bytes,
}

/// Rows that are not a time series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// An interval does not begin at the end of the previous interval.
    #[error("interval {index} begins at {start_ns} ns, but the one before ended at {end_ns} ns")]
    Gap {
        /// Position of the interval, from 0.
        index: usize,
        /// Start of the interval.
        start_ns: u64,
        /// End of the previous interval.
        end_ns: u64,
    },
    /// An interval differs in length from the first.
    #[error("interval {index} takes {length_ns} ns, but the first takes {first_ns} ns")]
    Uneven {
        /// Position of the interval, from 0.
        index: usize,
        /// Length of the interval.
        length_ns: u64,
        /// Length of the first interval.
        first_ns: u64,
    },
}

/// A time series of a rate.
///
/// Invariant, established in [`Series::push`]: consecutive intervals have no gap, all have the length of the first to
/// within 1 %, and `written` never decreases. A shorter last interval, cut off by the end of the measurement, is
/// dropped; no interval may follow it.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    context: Context,
    points: Vec<Point>,
    cut_ns: Option<u64>,
}

impl Series {
    /// Creates a series without intervals.
    pub fn new(context: Context) -> Self {
        Series { context, points: Vec::new(), cut_ns: None }
    }

    /// Adds the interval of a row.
    ///
    /// # Errors
    /// [`SeriesError::Gap`] if the interval does not begin at the end of the previous interval.
    /// [`SeriesError::Uneven`] if the interval differs in length from the first and is not a shorter last interval.
    pub fn push(&mut self, row: &Row) -> Result<(), SeriesError> {
        let (index, start_ns, end_ns) = (self.points.len(), row.start_ns, row.end_ns);
        let length_ns = end_ns.saturating_sub(start_ns);
        let before = self.points.last();
        let gap = match self.cut_ns {
            Some(cut_ns) => Some(cut_ns),
            None => before.map(|point| point.end_ns).filter(|end| *end != start_ns),
        };
        if let Some(end_ns) = gap {
            return Err(SeriesError::Gap { index, start_ns, end_ns });
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
        let written = base + Bytes::new(row.write_bytes);
        self.points.push(Point { start_ns, end_ns, rate: row.rate(), written });
        Ok(())
    }

    /// The context given to [`Series::new`].
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
    /// Host bytes written since the last purge at the beginning of interval `index`, or at the end of the series if
    /// `index` is the number of intervals.
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

    fn row(start_ns: u64, end_ns: u64, read_mib: u64, write_mib: u64) -> Row {
        let [read_bytes, write_bytes] = [read_mib, write_mib].map(|mib| mib << 20);
        Row { start_ns, end_ns, read_bytes, write_bytes, ..Row::default() }
    }

    #[test]
    fn writes_add_up_from_the_purge_and_a_cut_interval_ends_the_series() {
        let mut series = Series::new(context());
        series.push(&row(0, 1_000_000_000, 10, 20)).expect("first");
        series.push(&row(1_000_000_000, 2_000_000_000, 0, 40)).expect("second");
        series.push(&row(2_000_000_000, 2_300_000_000, 0, 9)).expect("the cut interval");
        assert_eq!(series.rates(0), vec![30.0, 40.0]);
        assert_eq!(series.written_at(2), Bytes::gib(80) + Bytes::mib(60));
        let after = series.push(&row(2_300_000_000, 3_300_000_000, 0, 0));
        assert!(matches!(after, Err(SeriesError::Gap { .. })));
    }

    #[test]
    fn gaps_and_uneven_intervals_are_refused() {
        let mut series = Series::new(context());
        assert!(matches!(series.push(&row(5, 5, 0, 0)), Err(SeriesError::Uneven { .. })));
        series.push(&row(0, 1000, 0, 0)).expect("first");
        let gap = series.push(&row(1001, 2001, 0, 0)).unwrap_err().to_string();
        assert_eq!(gap, "interval 1 begins at 1001 ns, but the one before ended at 1000 ns");
        let long = series.push(&row(1000, 2100, 0, 0)).unwrap_err().to_string();
        assert_eq!(long, "interval 1 takes 1100 ns, but the first takes 1000 ns");
    }

    #[test]
    fn the_turnover_is_the_larger_of_data_and_free_pool() {
        assert_eq!(context().turnover(), Bytes::gib(80));
        let small = Context { data: Bytes::gib(10), raw_capacity: Some(Bytes::gib(110)), ..context() };
        assert_eq!(small.turnover(), Bytes::gib(100));
    }
}
