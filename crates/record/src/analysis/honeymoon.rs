//! The honeymoon interlock: how much must be written before a level may be taken for the device's answer.
//!
//! A fresh flash drive serves writes from erased blocks. Only when all NAND has been written once must garbage
//! collection make room, and every host write costs NAND writes ≥ 1, so the honeymoon is over at the latest when
//! the host has written as much as there is NAND. Not here: compression; a drive that stores less than the host
//! writes has a longer honeymoon, which only incompressible data avoids.

use super::series::Series;
use lowtide_core::Bytes;

/// Added to raw capacity, in percent: data sheets mix GB and GiB of NAND (7 %) and hide spare blocks; half of it
/// or more is seen as a level change anyway.
pub const MARGIN_PERCENT: u64 = 5;

/// Raw NAND assumed where it is unknown, as a multiple of capacity. Client drives have 1.07, write-heavy
/// enterprise drives 1.3 to 1.45 (Intel DC S3700: 264 GiB for 186), the extreme of the early PCIe cards is 2.
pub const BLIND_MULTIPLE: u64 = 2;

/// A fall to below this share of the plateau counts as the end of the honeymoon, once at least the capacity has
/// been written. Thermal throttling can look the same; a fall before that is an SLC cache running full.
const FALL: f64 = 0.8;

/// Intervals in a row that must lie below [`FALL`].
const FALL_INTERVALS: usize = 3;

/// Intervals whose median is the plateau.
const PLATEAU_INTERVALS: usize = 5;

/// Whether a steady window may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interlock {
    /// From this interval on.
    Open {
        /// Position of the interval, from 0.
        from: usize,
    },
    /// Not in this series.
    Closed {
        /// Host bytes written since the last purge.
        written: Bytes,
        /// Host bytes after which the interlock opens.
        needed: Bytes,
        /// Whether `needed` is the blind limit, raw capacity being unknown.
        blind: bool,
    },
}

/// Where in the series a steady window may begin.
pub fn interlock(series: &Series) -> Interlock {
    let context = series.context();
    if !context.collects_garbage() {
        return Interlock::Open { from: 0 };
    }
    let with_margin = |bytes: Bytes| bytes + bytes / 100 * MARGIN_PERCENT;
    let (needed, blind) = match context.raw_capacity {
        Some(raw) => (with_margin(raw.max(context.capacity)), false),
        None => (with_margin(context.capacity * BLIND_MULTIPLE), true),
    };
    let count = series.points().len();
    let enough = (0..=count).find(|index| series.written_at(*index) >= needed);
    let seen = if blind { level_change(series) } else { None };
    match enough.into_iter().chain(seen).min() {
        Some(from) => Interlock::Open { from },
        None => Interlock::Closed { written: series.written_at(count), needed, blind },
    }
}

/// The first interval of a fall from the plateau that stands before the capacity is written, seen after it.
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

    fn series(raw: Option<u64>, before: Option<u64>, rates: &[f64]) -> Series {
        let mut series = Series::new(Context {
            capacity: Bytes::mib(1000),
            raw_capacity: raw.map(Bytes::mib),
            data: Bytes::mib(500),
            read_only: false,
            medium: Medium::Flash,
            written_before: before.map(Bytes::mib),
        });
        for (i, rate) in rates.iter().enumerate() {
            let bytes = Bytes::new((rate * f64::from(1 << 20)) as u64);
            let start = i as u64 * 1_000_000_000;
            series.push(start, start + 1_000_000_000, bytes, bytes).expect("even");
        }
        series
    }

    #[test]
    fn known_raw_opens_after_raw_and_a_margin() {
        let written = series(Some(1200), Some(500), &[100.0; 10]);
        assert_eq!(interlock(&written), Interlock::Open { from: 8 });
        let closed = interlock(&series(Some(1200), Some(500), &[100.0; 7]));
        assert!(
            matches!(closed, Interlock::Closed { written, blind: false, .. } if written == Bytes::mib(1200)),
            "{closed:?}"
        );
    }

    #[test]
    fn without_a_purge_nothing_is_taken_for_written() {
        let closed = interlock(&series(Some(1200), None, &[100.0; 10]));
        assert!(matches!(closed, Interlock::Closed { .. }), "{closed:?}");
    }

    #[test]
    fn unknown_raw_opens_at_the_blind_limit_or_at_a_fall_after_the_capacity() {
        assert!(matches!(
            interlock(&series(None, Some(500), &[100.0; 15])),
            Interlock::Closed { blind: true, .. }
        ));
        assert_eq!(interlock(&series(None, Some(500), &[100.0; 17])), Interlock::Open { from: 16 });
        let mut rates = vec![100.0; 8];
        rates.extend([10.0; 5]);
        assert_eq!(interlock(&series(None, Some(500), &rates)), Interlock::Open { from: 8 });
    }

    #[test]
    fn a_fall_before_the_capacity_is_written_is_a_cache_running_full() {
        let mut rates = vec![100.0; 2];
        rates.extend([40.0; 12]);
        let closed = interlock(&series(None, Some(500), &rates));
        assert!(matches!(closed, Interlock::Closed { .. }), "{closed:?}");
    }
}
