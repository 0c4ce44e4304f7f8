//! A compact, immutable latency distribution ([`Distribution`]).
//!
//! A [`Latency`] that has counted an hour-long operation takes a quarter of a megabyte, too much to keep for each of
//! thousands of cells. A distribution stores only non-empty buckets, each as two variable-length numbers: the
//! increase of the bucket's highest latency over the previous one, and the count. All statistics equal those of the
//! [`Latency`].

use super::Latency;
use crate::units::Nanos;
use std::sync::Arc;

/// The counts of a [`Latency`] in compact form. Clones share memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Distribution {
    count: u64,
    mean_ns: f64,
    max_ns: u64,
    /// Pairs of LEB128 numbers: increase of the highest latency in nanoseconds, count.
    packed: Arc<[u8]>,
}

impl From<&Latency> for Distribution {
    fn from(latency: &Latency) -> Self {
        let mut packed = Vec::new();
        let mut last = 0;
        for (high, count) in latency.buckets() {
            write(&mut packed, high.get() - last);
            write(&mut packed, count);
            last = high.get();
        }
        let count = latency.count();
        let max_ns = if count == 0 { 0 } else { latency.max().get() };
        Distribution { count, mean_ns: latency.mean_ns(), max_ns, packed: packed.into() }
    }
}

impl From<Latency> for Distribution {
    fn from(latency: Latency) -> Self {
        Distribution::from(&latency)
    }
}

impl Distribution {
    /// Number of operations.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// The latency that `percent` of operations did not exceed, to three significant digits. Zero if the distribution
    /// is empty.
    pub fn percentile(&self, percent: f64) -> Nanos {
        // As in HdrHistogram, the result is the first bucket at which the cumulative count reaches the share.
        let share = (percent / 100.0).min(1.0);
        let wanted = ((share * self.count as f64).ceil() as u64).max(1);
        let mut counted = 0;
        let at = self.buckets().find(|(_, count)| {
            counted += count;
            counted >= wanted
        });
        match at {
            None => Nanos::ZERO,
            Some((high, _)) if share == 0.0 => Latency::lowest_of_bucket(high),
            Some((high, _)) => high,
        }
    }
    /// The highest latency; zero if the distribution is empty.
    pub fn max(&self) -> Nanos {
        Nanos::new(self.max_ns)
    }
    /// The mean in nanoseconds; zero if the distribution is empty.
    pub fn mean_ns(&self) -> f64 {
        self.mean_ns
    }
    /// The non-empty buckets in order, each as its highest latency and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let mut rest = &self.packed[..];
        let mut high = 0;
        std::iter::from_fn(move || {
            high += read(&mut rest)?;
            Some((Nanos::new(high), read(&mut rest)?))
        })
    }
}

/// Appends a number in LEB128: seven bits per byte, lowest bits first.
fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Removes a LEB128 number from the front. Returns `None` at the end.
fn read(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Seed, unit};

    const SEED: u64 = 11;

    /// A histogram of random latencies from 1 ns to `most_ns`, uniform on a logarithmic scale.
    fn latency(operations: u64, most_ns: f64) -> Latency {
        let mut rng = Seed::new(SEED).part("latencies", operations).stream();
        let mut latency = Latency::default();
        for _ in 0..operations {
            let span = Nanos::new(most_ns.powf(unit(&mut rng)) as u64);
            latency.record_many(span, 1 + (unit(&mut rng) * 300.0) as u64);
        }
        latency
    }

    #[test]
    fn every_figure_is_that_of_the_histogram() {
        for (operations, most_ns) in [(0, 1.0), (1, 1.0), (1, 1e15), (7, 1e4), (300, 1e9), (9_000, 1e13)] {
            let latency = latency(operations, most_ns);
            let packed = Distribution::from(&latency);
            assert_eq!(packed.count(), latency.count(), "seed {SEED}");
            assert_eq!(packed.mean_ns().to_bits(), latency.mean_ns().to_bits());
            assert!(packed.buckets().eq(latency.buckets()), "{operations} operations, seed {SEED}");
            if operations > 0 {
                assert_eq!(packed.max(), latency.max());
            }
            for percent in [-1.0, 0.0, 1e-9, 0.1, 25.0, 50.0, 95.0, 99.0, 99.9, 99.9999, 100.0, 250.0] {
                let (is, was) = (packed.percentile(percent), latency.percentile(percent));
                assert_eq!(is, was, "{percent} % of {operations} operations, seed {SEED}");
            }
        }
    }

    #[test]
    fn distributions_add_to_histograms_as_histograms_do() {
        let (one, two) = (latency(500, 1e8), latency(700, 1e12));
        let mut sum = one.clone();
        sum.merge(&two);
        let mut added = Latency::default();
        added.add(&Distribution::from(&one));
        added.add(&Distribution::from(&two));
        assert_eq!(Distribution::from(&added), Distribution::from(&sum), "seed {SEED}");
    }

    #[test]
    fn memory_grows_with_the_buckets_that_counted_anything() {
        assert_eq!(Distribution::default(), Distribution::from(&Latency::default()));
        let packed = Distribution::from(&latency(100, 1e9));
        assert!(packed.packed.len() <= 800, "{} bytes of 100 buckets", packed.packed.len());
    }
}
