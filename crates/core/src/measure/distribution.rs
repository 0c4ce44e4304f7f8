//! A latency distribution at rest: what a [`Latency`] counted, in memory that grows with its non-empty
//! buckets.
//!
//! A [`Latency`] has room for every bucket from 1 ns to 1 h, a quarter of a megabyte. That is right for
//! counting operations and adding histograms, and too much to keep for each of thousands of cells. Here each
//! non-empty bucket is two numbers of variable length: how far its highest latency lies above that of the
//! bucket before, and its count. Every figure is exactly the one that the [`Latency`] gives.
//!
//! Leaves out counting: a distribution does not change.

use super::Latency;
use crate::units::Nanos;
use std::sync::Arc;

/// What a [`Latency`] counted. Copies share their memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Distribution {
    count: u64,
    mean_ns: f64,
    max_ns: u64,
    /// Pairs of LEB128 numbers.
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
    /// Operations counted.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// The latency that `percent` of operations did not exceed (to three digits); zero where none was counted.
    pub fn percentile(&self, percent: f64) -> Nanos {
        // As in HdrHistogram: the first bucket at which the running count reaches that share.
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
    /// The longest; zero where none was counted.
    pub fn max(&self) -> Nanos {
        Nanos::new(self.max_ns)
    }
    /// The mean; zero where none was counted.
    pub fn mean_ns(&self) -> f64 {
        self.mean_ns
    }
    /// Each non-empty bucket: its highest latency and its count, in order.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let mut rest = &self.packed[..];
        let mut high = 0;
        std::iter::from_fn(move || {
            high += read(&mut rest)?;
            Some((Nanos::new(high), read(&mut rest)?))
        })
    }
}

/// Appends a number in LEB128: seven bits a byte, the lowest first.
fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number off the front; `None` at the end.
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

    /// A histogram of `operations` between 1 ns and `most_ns`, evenly spread over its magnitudes.
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
