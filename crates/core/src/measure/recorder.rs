//! Collects completions into intervals, the time series of a measurement ([`Recorder`], [`Interval`]).
//!
//! An operation belongs to the interval in which it completes. Times are nanoseconds since the measurement began, on
//! the virtual or real clock of the caller.

use crate::block::Counters;
use crate::measure::Latency;
use crate::units::{Bytes, Nanos};

/// The operations that completed in one interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Interval {
    /// Nanoseconds from the beginning of the measurement to the beginning of this interval.
    pub start_ns: u64,
    /// Nanoseconds from the beginning of the measurement to the end of this interval.
    pub end_ns: u64,
    /// Number of reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Number of writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Number of failed operations.
    pub errors: u64,
    /// Latency of the reads.
    pub read_latency: Latency,
    /// Latency of the writes.
    pub write_latency: Latency,
    /// Counters of the device at the end of the interval, if the device has counters.
    pub counters: Option<Counters>,
}

impl Interval {
    /// Adds the counts of another thread for the same period.
    pub fn merge(&mut self, other: &Interval) {
        self.end_ns = self.end_ns.max(other.end_ns);
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.writes += other.writes;
        self.write_bytes += other.write_bytes;
        self.errors += other.errors;
        if other.reads > 0 {
            self.read_latency.merge(&other.read_latency);
        }
        if other.writes > 0 {
            self.write_latency.merge(&other.write_latency);
        }
    }
    /// Length of the interval.
    pub fn span(&self) -> Nanos {
        Nanos::new(self.end_ns - self.start_ns)
    }
    /// Throughput of reads and writes together, in MiB/s.
    pub fn mib_per_s(&self) -> f64 {
        Bytes::new(self.read_bytes + self.write_bytes).as_mib() / self.span().as_secs_f64()
    }
    /// Reads and writes per second.
    pub fn iops(&self) -> f64 {
        (self.reads + self.writes) as f64 / self.span().as_secs_f64()
    }
}

/// Collects completions into intervals of a fixed length.
#[derive(Debug)]
pub struct Recorder {
    length_ns: u64,
    current: Interval,
}

impl Recorder {
    /// Creates a recorder for intervals of `length`.
    ///
    /// # Panics
    /// If `length` is zero. Experiments with a zero interval are rejected earlier.
    pub fn new(length: Nanos) -> Self {
        assert!(length > Nanos::ZERO, "intervals have a length");
        let length_ns = length.get();
        Recorder { length_ns, current: Interval { end_ns: length_ns, ..Interval::default() } }
    }

    /// End of the current interval, in nanoseconds since the measurement began.
    #[inline]
    pub fn interval_end_ns(&self) -> u64 {
        self.current.end_ns
    }

    /// Counts an operation of `bytes` that took `took` and completes in the current interval. The caller first
    /// removes the intervals that ended before the completion ([`Recorder::take_ended`]).
    #[inline]
    pub fn record(&mut self, read: bool, bytes: u64, took: Nanos) {
        let current = &mut self.current;
        if read {
            current.reads += 1;
            current.read_bytes += bytes;
            current.read_latency.record(took);
        } else {
            current.writes += 1;
            current.write_bytes += bytes;
            current.write_latency.record(took);
        }
    }

    /// Counts `count` writes of `bytes` each, all with the same latency.
    #[inline]
    pub fn record_writes(&mut self, count: u64, bytes: u64, took: Nanos) {
        let current = &mut self.current;
        current.writes += count;
        current.write_bytes += count * bytes;
        current.write_latency.record_many(took, count);
    }

    /// Counts a failed operation.
    pub fn record_error(&mut self) {
        self.current.errors += 1;
    }

    /// Removes and returns the current interval if it ended at or before `now_ns`; the next interval begins at its
    /// end. Call repeatedly until the result is `None`. A period without completions yields empty intervals.
    pub fn take_ended(&mut self, now_ns: u64, counters: Option<Counters>) -> Option<Interval> {
        if now_ns < self.current.end_ns {
            return None;
        }
        let start_ns = self.current.end_ns;
        let next = Interval {
            start_ns,
            end_ns: start_ns + self.length_ns,
            read_latency: self.current.read_latency.empty_as_large(),
            write_latency: self.current.write_latency.empty_as_large(),
            ..Interval::default()
        };
        let mut ended = std::mem::replace(&mut self.current, next);
        ended.counters = counters;
        Some(ended)
    }

    /// Returns the unfinished interval, cut at `now_ns`. `None` if its length would be zero.
    pub fn finish(mut self, now_ns: u64, counters: Option<Counters>) -> Option<Interval> {
        if now_ns <= self.current.start_ns {
            return None;
        }
        self.current.end_ns = now_ns.min(self.current.end_ns);
        self.current.counters = counters;
        Some(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_fall_into_their_interval_and_quiet_ones_are_kept() {
        let mut recorder = Recorder::new(Nanos::new(10));
        recorder.record(true, 512, Nanos::new(3));
        assert!(recorder.take_ended(9, None).is_none());
        let first = recorder.take_ended(25, None).expect("the first ended");
        assert_eq!((first.start_ns, first.end_ns, first.reads), (0, 10, 1));
        let quiet = recorder.take_ended(25, None).expect("a quiet interval");
        assert_eq!((quiet.start_ns, quiet.reads), (10, 0));
        assert!(recorder.take_ended(25, None).is_none());
        recorder.record(false, 1024, Nanos::new(4));
        let last = recorder.finish(26, None).expect("a part interval");
        assert_eq!((last.start_ns, last.end_ns, last.write_bytes), (20, 26, 1024));
    }
}
