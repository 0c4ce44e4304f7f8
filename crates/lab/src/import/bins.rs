//! The bins of fio's latency histograms (`stat.h`: `FIO_IO_U_PLAT_BITS` 6, `FIO_IO_U_PLAT_VAL` 64), and histograms
//! made from lists of percentiles.
//!
//! Below 128 each value has its own bin. Above, each power of two has 64 bins, and fio prints the middle of a bin.
//! Version 3 counts nanoseconds in 29 groups, version 2 microseconds in 19. A log may combine 2ⁿ bins in one column
//! (`log_hist_coarseness` n). Imports of real runs check this module against `plat_idx_to_val` of fio's `stat.c`.

use lowtide_core::{Latency, Nanos};

const BITS: u32 = 6;
const VALUES: usize = 1 << BITS;
/// Groups of fio 3, in nanoseconds.
const GROUPS_NS: usize = 29;
/// Groups of fio 2, in microseconds.
const GROUPS_US: usize = 19;
/// Minimum columns of a line of a histogram log: time, direction, block size, and the bins at the coarsest setting.
pub(super) const FEWEST_COLUMNS: usize = 3 + GROUPS_US;

/// The layout of a histogram, derived from its number of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bins per column.
    together: usize,
    /// Nanoseconds per unit of the counted latency.
    unit_ns: u64,
}

impl Layout {
    /// The layout with `count` columns; `None` if fio has no such layout.
    pub(super) fn of_count(count: usize) -> Option<Layout> {
        [(GROUPS_NS, 1), (GROUPS_US, 1000)].into_iter().find_map(|(groups, unit_ns)| {
            let together = (0..=BITS).map(|n| 1 << n).find(|together| count * together == groups * VALUES)?;
            Some(Layout { together, unit_ns })
        })
    }

    /// The latency of column `index`: the middle of its bins.
    pub(super) fn value(self, index: usize) -> Nanos {
        let (first, last) = (index * self.together, (index + 1) * self.together - 1);
        let middle = (middle(first) + middle(last)) / 2;
        Nanos::new(middle.saturating_mul(self.unit_ns))
    }
}

/// The middle of bin `index`, as fio prints it.
fn middle(index: usize) -> u64 {
    if index < 2 * VALUES {
        return index as u64;
    }
    let shift = (index >> BITS) as u32 - 1;
    let base = 1u64 << (shift + BITS);
    base + ((index % VALUES) as u64 * 2 + 1) * (1 << shift) / 2
}

/// A histogram of `count` operations with the given percentiles `(percent, latency)`, in order of percent, and the
/// maximum latency `max`. Operations between two percentiles are placed at the upper one.
pub(super) fn of_percentiles(percentiles: &[(f64, u64)], count: u64, max: u64) -> Latency {
    let mut latency = Latency::default();
    if percentiles.is_empty() || count == 0 {
        return latency;
    }
    let mut counted = 0;
    for (percent, ns) in percentiles {
        // The maximum is given separately, so one operation is kept for it.
        let upto = ((count as f64 * percent / 100.0).ceil() as u64).min(count - 1);
        latency.record_many(Nanos::new((*ns).min(max)), upto.saturating_sub(counted));
        counted = counted.max(upto);
    }
    latency.record_many(Nanos::new(max), count - counted);
    latency
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_the_middles_that_fio_prints() {
        // From fio's documentation of the histogram log: bins below 128 are exact, then two wide, then four.
        let layout = Layout::of_count(1856).expect("fio 3");
        for (index, ns) in [(0, 0), (127, 127), (128, 129), (191, 255), (192, 258), (255, 510), (256, 516)] {
            assert_eq!(layout.value(index).get(), ns, "{index}");
        }
        assert_eq!(Layout::of_count(1216).expect("fio 2").value(200).get(), 290_000);
        assert!(Layout::of_count(232).is_some() && Layout::of_count(19).is_some());
        assert_eq!(Layout::of_count(1855), None);
        assert_eq!(Layout::of_count(0), None);
    }

    #[test]
    fn percentiles_that_went_in_come_out() {
        let list = [(50.0, 1000), (95.0, 5000), (99.0, 9000), (99.9, 20_000)];
        for count in [1, 2, 100, 1000, 12_345, 99_999] {
            let latency = of_percentiles(&list, count, 70_000);
            assert_eq!(latency.count(), count);
            assert!((latency.max().get() as f64 / 70_000.0 - 1.0).abs() < 0.001);
            // With few operations, the percentiles are too coarse to compare.
            if count > 1000 {
                for (percent, ns) in list {
                    let found = latency.percentile(percent).get() as f64;
                    assert!((found / ns as f64 - 1.0).abs() < 0.001, "{percent}: {found} of {count}");
                }
            }
        }
    }
}
