//! Latency histograms ([`Latency`]). Every completion is counted, and percentiles come from histograms, never from
//! averages of percentiles.
//!
//! The range is 1 ns to 1 h with three significant digits. Longer latencies count as 1 h. A [`Distribution`] is the
//! compact, immutable form.
//!
//! # Not handled
//! Text formats. Stores keep the bytes of [`Latency::to_bytes`].

use super::Distribution;
use crate::units::Nanos;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

const MAX_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;
/// Number of buckets per power of two. Below twice this number, each nanosecond has its own bucket.
const BUCKETS_PER_DOUBLING: u64 = 1024;
/// Largest total count accepted by `from_bytes`. It leaves enough room below `u64::MAX` to add all intervals of a
/// campaign without overflow.
const MOST_COUNTED: u64 = 1 << 53;
/// Length of the header in bytes: cookie, length of the counts, offset, digits, lowest value, highest value, ratio.
const HEADER: usize = 40;

/// A latency histogram.
///
/// Its memory grows with the highest latency that it has counted. Simulated loads create a histogram for each
/// interval, and full-size histograms would be mostly empty.
#[derive(Debug, Clone)]
pub struct Latency(Histogram<u64>);

/// Compares the counts; the allocated size does not matter.
impl PartialEq for Latency {
    fn eq(&self, other: &Self) -> bool {
        self.count() == other.count() && self.buckets().eq(other.buckets())
    }
}

impl Default for Latency {
    fn default() -> Self {
        Latency::up_to(Nanos::new(2))
    }
}

impl Latency {
    /// Creates an empty histogram with room for latencies up to `longest`.
    fn up_to(longest: Nanos) -> Self {
        let longest = longest.get().clamp(2, MAX_NS);
        let mut histogram = Histogram::new_with_bounds(1, longest, DIGITS)
            .expect("the bounds are ones that hdrhistogram accepts");
        histogram.auto(true);
        Latency(histogram)
    }
    /// Creates an empty histogram with room for the latencies that this one has counted.
    pub fn empty_as_large(&self) -> Self {
        Latency::up_to(self.max())
    }
    /// Counts one operation.
    #[inline]
    pub fn record(&mut self, span: Nanos) {
        self.record_many(span, 1);
    }
    /// Counts `count` operations of the same latency.
    #[inline]
    pub fn record_many(&mut self, span: Nanos, count: u64) {
        self.0.record_n(span.get().min(MAX_NS), count).expect("it grows to the longest");
    }
    /// Number of operations.
    pub fn count(&self) -> u64 {
        self.0.len()
    }
    /// The latency that `percent` of operations did not exceed, to three significant digits. Zero if the histogram is
    /// empty.
    pub fn percentile(&self, percent: f64) -> Nanos {
        Nanos::new(self.0.value_at_percentile(percent))
    }
    /// The highest latency.
    pub fn max(&self) -> Nanos {
        Nanos::new(self.0.max())
    }
    /// The mean in nanoseconds; zero if the histogram is empty.
    pub fn mean_ns(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.mean() }
    }
    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Latency) {
        self.0.add(&other.0).expect("both histograms have the same bounds");
    }
    /// Adds the counts of a compact distribution.
    pub fn add(&mut self, other: &Distribution) {
        other.buckets().for_each(|(high, count)| self.record_many(high, count));
    }
    /// The lowest latency of the bucket whose highest latency is `high`.
    pub(super) fn lowest_of_bucket(high: Nanos) -> Nanos {
        let width = (high.get() / (2 * BUCKETS_PER_DOUBLING) + 1).next_power_of_two();
        Nanos::new(high.get() / width * width)
    }
    /// Clears the counts and keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }
    /// The non-empty buckets in order, each as its highest latency and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.0.iter_recorded().map(|bucket| (Nanos::new(bucket.value_iterated_to()), bucket.count_at_value()))
    }
    /// The non-empty buckets in order, each as its lowest latency, its highest latency and its count.
    pub fn ranges(&self) -> impl Iterator<Item = (Nanos, Nanos, u64)> + '_ {
        let low = |high: Nanos| Nanos::new(self.0.lowest_equivalent(high.get()));
        self.buckets().map(move |(high, count)| (low(high), high, count))
    }
    /// Encodes the histogram in HdrHistogram's V2 format.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.0, &mut bytes).expect("writing to a Vec cannot fail");
        // The header always states the full range, however large this histogram has grown.
        let counts = (bytes.len() - HEADER) as u32;
        bytes[..HEADER].copy_from_slice(&header(counts));
        bytes
    }
    /// Decodes the bytes of [`Latency::to_bytes`]. Returns `None` if the bytes are not such a histogram. The bytes
    /// may be untrusted: memory use is bounded by the size of a full histogram.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let counts = u32::try_from(bytes.len().checked_sub(HEADER)?).ok()?;
        if bytes[..HEADER] != header(counts) {
            return None;
        }
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).ok()?;
        (read.len() <= MOST_COUNTED).then_some(Latency(read))
    }
}

/// The header of a histogram with `counts` bytes of counts.
fn header(counts: u32) -> [u8; HEADER] {
    const COOKIE: u32 = 0x1c84_9313;
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&COOKIE.to_be_bytes());
    header[4..8].copy_from_slice(&counts.to_be_bytes());
    header[12..16].copy_from_slice(&u32::from(DIGITS).to_be_bytes());
    header[16..24].copy_from_slice(&1u64.to_be_bytes());
    header[24..32].copy_from_slice(&MAX_NS.to_be_bytes());
    header[32..].copy_from_slice(&1f64.to_be_bytes());
    header
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
        assert_eq!(Latency::from_bytes(&Latency::default().to_bytes()), Some(Latency::default()));
    }

    /// Symptom: a few foreign bytes allocated gigabytes of memory or ended the program by an overflow. Cause:
    /// lengths, bounds and counts were trusted. Fix: the header must equal the one that `to_bytes` writes, and the
    /// total count has a limit.
    #[test]
    fn bytes_that_are_not_ours_are_refused() {
        let mut latency = Latency::default();
        latency.record_many(Nanos::new(5_000), 3);
        let good = latency.to_bytes();
        for at in 0..HEADER {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            assert_eq!(Latency::from_bytes(&bad), None, "byte {at} of the header");
        }
        for length in 0..good.len() {
            assert_eq!(Latency::from_bytes(&good[..length]), None, "{length} bytes");
        }
        assert_eq!(Latency::from_bytes(&[&good[..], &[0]].concat()), None, "a byte more");
        let mut many = Latency::default();
        many.record_many(Nanos::new(5_000), MOST_COUNTED);
        assert!(Latency::from_bytes(&many.to_bytes()).is_some());
        many.record_many(Nanos::new(9_000), 1);
        assert_eq!(Latency::from_bytes(&many.to_bytes()), None, "more than can be");
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
            assert_eq!(Latency::lowest_of_bucket(*high), *low);
        }
        assert_eq!(ranges.iter().map(|range| range.2).sum::<u64>(), spans.len() as u64);
    }
}
