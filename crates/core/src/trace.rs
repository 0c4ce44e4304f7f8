//! Traces: recorded requests with their times, for replay on another device ([`Trace`]).
//!
//! A trace takes the place of a [`crate::Workload`]. Offsets are relative to the data under test.
//!
//! # Not stored
//! The file format a trace came from, and the data of its requests.

use crate::block::{Op, Request};
use crate::units::{Bytes, Nanos};

/// Unit of offsets and lengths, in bytes.
pub const SECTOR: u64 = 512;

/// A request with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traced {
    /// Nanoseconds from the beginning of the trace.
    pub at_ns: u64,
    /// The request. A flush has neither offset nor length.
    pub request: Request,
}

/// Timing of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// An open loop: requests start at their recorded times, and latency counts from those times.
    Recorded,
    /// A closed loop: requests start in the recorded order as soon as a slot is free.
    AsFastAsPossible {
        /// Requests in flight, at least 1.
        depth: u32,
    },
}

/// An error in a trace, or a trace that does not fit the data. Positions count from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The trace has no requests.
    #[error("a trace without requests")]
    Empty,
    /// A request is earlier than the one before it.
    #[error("request {index} was made before the one that stands before it")]
    Backwards {
        /// Position of the request.
        index: usize,
    },
    /// The request is empty, is not in whole sectors, or ends at 2⁶² or beyond. A flush is in error if it has a
    /// length.
    #[error("request {index}, {length} bytes at {offset}, is not in whole sectors of {SECTOR} bytes")]
    Unaligned {
        /// Position of the request.
        index: usize,
        /// First byte of the request.
        offset: u64,
        /// Length of the request in bytes.
        length: u64,
    },
    /// The trace reaches past the end of the data.
    #[error("the trace reaches up to byte {end}, but there are {size} of data")]
    Beyond {
        /// End of the furthest request, in bytes.
        end: u64,
        /// Size of the data.
        size: Bytes,
    },
    /// A single request is larger than the data.
    #[error("a request of {length}, but {size} of data")]
    TooLong {
        /// Length of the request.
        length: Bytes,
        /// Size of the data.
        size: Bytes,
    },
}

/// Requests in order of time.
///
/// Invariants, established in [`Trace::new`]:
///
/// - There is at least one request.
/// - Times never decrease.
/// - Every request except a flush has a length.
/// - Offsets and lengths are whole sectors, and every request ends below byte 2⁶².
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    requests: Vec<Traced>,
}

impl Trace {
    /// Creates a trace from requests in order of time.
    ///
    /// # Errors
    /// [`TraceError::Empty`], [`TraceError::Unaligned`] or [`TraceError::Backwards`] if an invariant is violated.
    pub fn new(requests: Vec<Traced>) -> Result<Trace, TraceError> {
        if requests.is_empty() {
            return Err(TraceError::Empty);
        }
        for (index, Traced { request, .. }) in requests.iter().enumerate() {
            let (offset, length) = (request.offset, request.length);
            let end = offset.checked_add(length).filter(|end| *end < 1 << 62);
            let whole = offset.is_multiple_of(SECTOR) && length.is_multiple_of(SECTOR);
            let flush = request.op == Op::Flush;
            if end.is_none() || !whole || flush != (length == 0) {
                return Err(TraceError::Unaligned { index, offset, length });
            }
        }
        match requests.windows(2).position(|pair| pair[0].at_ns > pair[1].at_ns) {
            Some(before) => Err(TraceError::Backwards { index: before + 1 }),
            None => Ok(Trace { requests }),
        }
    }

    /// The requests in order.
    pub fn requests(&self) -> &[Traced] {
        &self.requests
    }

    /// Number of requests; at least 1.
    pub fn count(&self) -> u64 {
        self.requests.len() as u64
    }

    /// Time from the beginning of the trace to its last request.
    pub fn length(&self) -> Nanos {
        Nanos::new(self.requests.last().map_or(0, |last| last.at_ns))
    }

    /// End of the furthest request.
    pub fn end(&self) -> Bytes {
        Bytes::new(self.each().map(|request| request.offset + request.length).max().unwrap_or(0))
    }

    /// Length of the longest read or write; one sector if there is none.
    pub fn longest(&self) -> Bytes {
        let moving = self.each().filter(|it| matches!(it.op, Op::Read | Op::Write { .. }));
        Bytes::new(moving.map(|request| request.length).max().unwrap_or(SECTOR))
    }

    /// The largest power of two, up to 4 KiB, that divides every offset and length. A device needs a logical block of
    /// at most this size to replay the trace.
    pub fn granule(&self) -> Bytes {
        let bits = self.each().fold(4096, |bits, request| bits | request.offset | request.length);
        Bytes::new(1 << bits.trailing_zeros())
    }

    /// Share of reads among reads and writes, 0 to 1. It is 1 if there are neither.
    pub fn read_share(&self) -> f64 {
        let reads = self.each().filter(|request| request.op == Op::Read).count() as f64;
        let writes = self.each().filter(|request| matches!(request.op, Op::Write { .. })).count() as f64;
        if reads + writes == 0.0 { 1.0 } else { reads / (reads + writes) }
    }

    /// Returns whether the trace writes, zeroes or trims.
    pub fn changes_data(&self) -> bool {
        self.each().any(|request| matches!(request.op, Op::Write { .. } | Op::Trim | Op::WriteZeroes))
    }

    /// Fits the trace to `size` of data. With `wrap`, offsets past the end wrap around to the beginning.
    ///
    /// # Errors
    /// [`TraceError::Beyond`] if the trace is larger than the data and `wrap` is false. [`TraceError::TooLong`] if a
    /// single request is larger than the data.
    pub fn on(mut self, size: Bytes, wrap: bool) -> Result<Trace, TraceError> {
        let longest = self.each().map(|request| request.length).max().unwrap_or(0);
        match self.end() {
            end if end <= size => return Ok(self),
            end if !wrap => return Err(TraceError::Beyond { end: end.get(), size }),
            _ if longest > size.get() => {
                return Err(TraceError::TooLong { length: Bytes::new(longest), size });
            }
            _ => {}
        }
        let granule = self.granule().get();
        let whole = size.get() / granule * granule;
        for Traced { request, .. } in &mut self.requests {
            // A request that would cross the end of the data is moved back to end there.
            request.offset =
                (request.offset % whole.max(granule)).min((size.get() - request.length) / granule * granule);
        }
        Ok(self)
    }

    fn each(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().map(|traced| &traced.request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(at_ns: u64, request: Request) -> Traced {
        Traced { at_ns, request }
    }

    #[test]
    fn a_trace_says_what_it_asks_for() {
        let trace = Trace::new(vec![
            at(0, Request::read(8192, 4096)),
            at(5, Request::flush()),
            at(5, Request::write(0, 16_384)),
            at(9, Request::trim(1 << 20, 1 << 20)),
        ])
        .expect("valid");
        assert_eq!((trace.end(), trace.longest()), (Bytes::mib(2), Bytes::kib(16)));
        assert_eq!((trace.granule(), trace.read_share()), (Bytes::kib(4), 0.5));
        assert_eq!((trace.count(), trace.length()), (4, Nanos::new(9)));
    }

    #[test]
    fn what_no_device_takes_is_refused() {
        let new = |list: &[Traced]| Trace::new(list.to_vec()).map(drop);
        assert_eq!(new(&[]), Err(TraceError::Empty));
        let back = [at(2, Request::flush()), at(1, Request::flush())];
        assert_eq!(new(&back), Err(TraceError::Backwards { index: 1 }));
        for bad in [
            Request::read(1, 512),
            Request::read(0, 100),
            Request::read(0, 0),
            Request::write(u64::MAX - 511, 512),
            Request { op: Op::Flush, offset: 0, length: 512 },
        ] {
            assert!(matches!(new(&[at(0, bad)]), Err(TraceError::Unaligned { index: 0, .. })), "{bad:?}");
        }
    }

    #[test]
    fn what_reaches_beyond_the_data_is_refused_or_wrapped() {
        let trace = Trace::new(vec![at(0, Request::read(12_288, 8192))]).expect("valid");
        let beyond = TraceError::Beyond { end: 20_480, size: Bytes::kib(16) };
        assert_eq!(trace.clone().on(Bytes::kib(16), false), Err(beyond));
        let wrapped = trace.clone().on(Bytes::kib(16), true).expect("wraps");
        assert_eq!(wrapped.requests()[0].request.offset, 8192, "it ends where the data does");
        assert!(matches!(trace.clone().on(Bytes::kib(4), true), Err(TraceError::TooLong { .. })));
        assert_eq!(trace.clone().on(Bytes::kib(20), false), Ok(trace));
    }

    proptest! {
        #[test]
        fn wrapped_requests_stay_inside_and_aligned(
            list in prop::collection::vec((0u64..1 << 40, 1u64..64), 1..50), sectors in 64u64..10_000,
        ) {
            let requests = list.iter().map(|(offset, length)| at(0, Request::read(offset * SECTOR, length * SECTOR)));
            let size = Bytes::new(sectors * SECTOR);
            let trace = Trace::new(requests.collect()).expect("valid").on(size, true).expect("wraps");
            prop_assert!(trace.end() <= size);
            prop_assert!(Trace::new(trace.requests().to_vec()).is_ok());
        }
    }
}
