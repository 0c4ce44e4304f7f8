//! The honeymoon interlock: the bytes that must be written before a level counts.
//!
//! A fresh flash drive serves writes from erased blocks. Garbage collection begins when all NAND has been written
//! once. Each host write costs at least one NAND write, so the honeymoon ends at the latest when host writes equal
//! the raw capacity.
//!
//! # Not handled
//! Compression. A drive that compresses data has a longer honeymoon, so the data under test must be incompressible.

use super::reason::Reason;
use super::series::Series;
use lowtide_core::Bytes;

/// Margin added to the raw capacity, in percent. Data sheets confuse GB and GiB of NAND (7 %) and omit spare blocks.
/// The margin need not cover the whole error: if the honeymoon lasts longer, its end is visible as a level change.
const MARGIN_PERCENT: u64 = 5;

/// Raw NAND assumed if it is unknown, as a multiple of the capacity. Client drives have 1.07, write-heavy
/// enterprise drives 1.3 to 1.45 (Intel DC S3700: 264 GiB for 186), and the early PCIe cards at most 2.
const BLIND_MULTIPLE: u64 = 2;

/// Once at least the capacity has been written, a fall below this share of the plateau counts as the end of the
/// honeymoon. An earlier fall means that an SLC cache is full. Thermal throttling can look like the end of the
/// honeymoon.
const FALL: f64 = 0.8;

/// Number of consecutive intervals that must be below [`FALL`].
const FALL_INTERVALS: usize = 3;

/// Number of intervals whose median is the plateau.
const PLATEAU_INTERVALS: usize = 5;

/// Finds the first interval at which a steady window may begin, counted from 0.
///
/// # Errors
/// [`Reason::Honeymoon`] if the series has no such interval.
pub fn interlock(series: &Series) -> Result<usize, Reason> {
    let context = series.context();
    if !context.collects_garbage() {
        return Ok(0);
    }
    let with_margin = |bytes: Bytes| bytes + bytes / 100 * MARGIN_PERCENT;
    let (needed, blind) = match context.raw_capacity {
        Some(raw) => (with_margin(raw.max(context.capacity)), false),
        None => (with_margin(context.capacity * BLIND_MULTIPLE), true),
    };
    let count = series.points().len();
    let enough = (0..=count).find(|index| series.written_at(*index) >= needed);
    let seen = if blind { level_change(series) } else { None };
    let honeymoon = Reason::Honeymoon { written: series.written_at(count), needed, blind };
    enough.into_iter().chain(seen).min().ok_or(honeymoon)
}

/// Finds the first interval of a fall from the plateau that begins after at least the capacity was written.
fn level_change(series: &Series) -> Option<usize> {
    let capacity = series.context().capacity;
    let points = series.points();
    let full = (0..=points.len()).find(|index| series.written_at(*index) >= capacity)?.max(PLATEAU_INTERVALS);
    let mut plateau: Vec<f64> = points.get(full - PLATEAU_INTERVALS..full)?.iter().map(|p| p.rate).collect();
    plateau.sort_by(f64::total_cmp);
    let limit = plateau[PLATEAU_INTERVALS / 2] * FALL;
    points[full..]
        .windows(FALL_INTERVALS)
        .position(|run| run.iter().all(|point| point.rate < limit))
        .map(|position| full + position)
}

#[cfg(test)]
mod tests {
    use super::super::series::{Context, Medium};
    use super::*;
    use crate::Row;

    /// Applies the interlock to a drive of 1000 MiB, for one-second intervals with these rates in MiB/s.
    fn interlock(raw_mib: Option<u64>, before_mib: Option<u64>, rates: &[u64]) -> Result<usize, Reason> {
        let mut series = Series::new(Context {
            capacity: Bytes::mib(1000),
            raw_capacity: raw_mib.map(Bytes::mib),
            data: Bytes::mib(500),
            read_only: false,
            medium: Medium::Flash,
            written_before: before_mib.map(Bytes::mib),
        });
        for (second, rate) in (0..).zip(rates) {
            let (start_ns, end_ns) = (second * 1_000_000_000, (second + 1) * 1_000_000_000);
            let row = Row { start_ns, end_ns, write_bytes: rate << 20, ..Row::default() };
            series.push(&row).expect("even");
        }
        super::interlock(&series)
    }

    fn is_closed(found: Result<usize, Reason>, guessed: bool) -> bool {
        matches!(found, Err(Reason::Honeymoon { blind, .. }) if blind == guessed)
    }

    #[test]
    fn known_raw_opens_after_raw_and_a_margin() {
        assert_eq!(interlock(Some(1200), Some(500), &[100; 10]), Ok(8));
        let closed = interlock(Some(1200), Some(500), &[100; 7]);
        assert!(
            matches!(closed, Err(Reason::Honeymoon { written, blind: false, .. }) if written == Bytes::mib(1200)),
            "{closed:?}"
        );
    }

    #[test]
    fn without_a_purge_nothing_counts_as_written() {
        assert!(is_closed(interlock(Some(1200), None, &[100; 10]), false));
    }

    #[test]
    fn unknown_raw_opens_at_the_blind_limit_or_at_a_fall_after_the_capacity() {
        assert!(is_closed(interlock(None, Some(500), &[100; 15]), true));
        assert_eq!(interlock(None, Some(500), &[100; 17]), Ok(16));
        assert_eq!(interlock(None, Some(500), &[&[100; 8][..], &[10; 5]].concat()), Ok(8));
    }

    #[test]
    fn a_fall_before_the_capacity_is_written_is_a_full_cache() {
        assert!(is_closed(interlock(None, Some(500), &[&[100; 2][..], &[40; 12]].concat()), true));
    }
}
