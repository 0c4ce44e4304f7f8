//! Latency histograms: every completion is counted, none is sampled away, and percentiles are never averaged.
//!
//! High dynamic range, three significant digits, from 1 ns to 1 h (longer ones count as 1 h). Leaves out
//! text formats: the lab stores the bytes that [`Latency::to_bytes`] gives.

use crate::units::Nanos;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

const MAX_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// How long operations took.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        Latency(
            Histogram::new_with_bounds(1, MAX_NS, DIGITS)
                .expect("the bounds are constants that hdrhistogram accepts"),
        )
    }
}

impl Latency {
    /// Counts one operation.
    #[inline]
    pub fn record(&mut self, span: Nanos) {
        self.0.saturating_record(span.get());
    }
    /// Counts `count` operations that took as long.
    #[inline]
    pub fn record_many(&mut self, span: Nanos, count: u64) {
        self.0.saturating_record_n(span.get(), count);
    }
    /// Operations counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }
    /// The latency that `percent` of operations did not exceed (to three digits); zero where none was counted.
    pub fn percentile(&self, percent: f64) -> Nanos {
        Nanos::new(self.0.value_at_percentile(percent))
    }
    /// The longest.
    pub fn max(&self) -> Nanos {
        Nanos::new(self.0.max())
    }
    /// The mean; zero where none was counted.
    pub fn mean_ns(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.mean() }
    }
    /// Adds all that `other` counted.
    pub fn merge(&mut self, other: &Latency) {
        self.0.add(&other.0).expect("both histograms have the same bounds");
    }
    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }
    /// Each non-empty bucket: its highest latency and its count, in order.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.0.iter_recorded().map(|bucket| (Nanos::new(bucket.value_iterated_to()), bucket.count_at_value()))
    }
    /// Each non-empty bucket: its lowest and its highest latency, and its count, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (Nanos, Nanos, u64)> + '_ {
        let low = |high: Nanos| Nanos::new(self.0.lowest_equivalent(high.get()));
        self.buckets().map(move |(high, count)| (low(high), high, count))
    }
    /// The histogram in HdrHistogram's V2 encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.0, &mut bytes).expect("writing to a Vec cannot fail");
        bytes
    }
    /// Reads what [`Latency::to_bytes`] wrote; `None` where the bytes are not such a histogram.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut std::io::Cursor::new(bytes)).ok()?;
        let mut latency = Latency::default();
        latency.0.add(&read).ok()?;
        Some(latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_survives_its_bytes() {
        let mut latency = Latency::default();
        for n in 1..10_000u64 {
            latency.record(Nanos::new(n * n));
        }
        let back = Latency::from_bytes(&latency.to_bytes()).expect("reads back");
        assert_eq!(back, latency);
        assert_eq!(back.count(), 9_999);
        let median = back.percentile(50.0).get() as f64;
        assert!((median / 25e6 - 1.0).abs() < 0.001, "{median}");
        assert_eq!(Latency::from_bytes(b"junk"), None);
    }

    #[test]
    fn ranges_hold_what_was_counted_and_do_not_overlap() {
        let mut latency = Latency::default();
        let spans = [1, 2, 2047, 2048, 2049, 1_000_000, 1_000_400, 3_000_000_000];
        spans.iter().for_each(|span| latency.record(Nanos::new(*span)));
        let ranges: Vec<_> = latency.ranges().collect();
        assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
        for (low, high, count) in &ranges {
            let inside = spans.iter().filter(|span| (low.get()..=high.get()).contains(span)).count();
            assert_eq!(inside as u64, *count, "{low} to {high}");
            assert!((high.get() - low.get()) as f64 <= low.get() as f64 * 0.001);
        }
        assert_eq!(ranges.iter().map(|range| range.2).sum::<u64>(), spans.len() as u64);
    }
}
