//! Latency histograms: every completion is counted, none is sampled away, and percentiles are never averaged.
//!
//! High dynamic range, three significant digits, from 1 ns to 1 h (longer ones count as 1 h). Leaves out text
//! formats: stores keep the bytes that [`Latency::to_bytes`] gives. A [`Distribution`] is the same at rest.

use super::Distribution;
use crate::units::Nanos;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

const MAX_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;
/// Below twice this, every nanosecond has a bucket; above, each doubling has this many.
const BUCKETS_PER_DOUBLING: u64 = 1024;
/// Operations that one histogram is believed to have counted: sums over all intervals of a campaign stay far from the end of
/// what is counted with.
const MOST_COUNTED: u64 = 1 << 53;
/// The bytes before the counts: cookie, length of the counts, offset, digits, lowest and highest value, ratio.
const HEADER: usize = 40;

/// How long operations took.
///
/// It grows with the longest that it counts: simulated loads make a new one for each interval, most of which would hold
/// nothing but zeroes.
#[derive(Debug, Clone)]
pub struct Latency(Histogram<u64>);

/// Equal where they counted the same, however far each has grown.
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
    /// An empty histogram that need not grow for latencies up to `longest`.
    fn up_to(longest: Nanos) -> Self {
        let longest = longest.get().clamp(2, MAX_NS);
        let mut histogram = Histogram::new_with_bounds(1, longest, DIGITS)
            .expect("the bounds are ones that hdrhistogram accepts");
        histogram.auto(true);
        Latency(histogram)
    }
    /// An empty histogram that need not grow for the latencies that this one has counted.
    pub fn empty_as_large(&self) -> Self {
        Latency::up_to(self.max())
    }
    /// Counts one operation.
    #[inline]
    pub fn record(&mut self, span: Nanos) {
        self.record_many(span, 1);
    }
    /// Counts `count` operations that took as long.
    #[inline]
    pub fn record_many(&mut self, span: Nanos, count: u64) {
        self.0.record_n(span.get().min(MAX_NS), count).expect("it grows to the longest");
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
    /// Adds all that `other` counted.
    pub fn add(&mut self, other: &Distribution) {
        other.buckets().for_each(|(high, count)| self.record_many(high, count));
    }
    /// The lowest latency of the bucket with this highest one.
    pub(super) fn lowest_of_bucket(high: Nanos) -> Nanos {
        let width = (high.get() / (2 * BUCKETS_PER_DOUBLING) + 1).next_power_of_two();
        Nanos::new(high.get() / width * width)
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
        // However far it has grown, its bounds are those of all histograms.
        let counts = (bytes.len() - HEADER) as u32;
        bytes[..HEADER].copy_from_slice(&header(counts));
        bytes
    }
    /// Reads what [`Latency::to_bytes`] wrote; `None` where the bytes are not such a histogram. They may be anybody's: no
    /// more memory is taken than a histogram has.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let counts = u32::try_from(bytes.len().checked_sub(HEADER)?).ok()?;
        if bytes[..HEADER] != header(counts) {
            return None;
        }
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).ok()?;
        (read.len() <= MOST_COUNTED).then_some(Latency(read))
    }
}

/// The header of a histogram with so many bytes of counts.
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

    /// Symptom: a few bytes from elsewhere took gigabytes of memory, or ended the program by an overflow. Cause: lengths, bounds
    /// and counts were believed. Fix: the header is the one that we write, and a count has a limit.
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
