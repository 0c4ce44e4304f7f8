//! The request counters of a live drive ([`Counts`]).
//!
//! The model has its own counters, such as NAND bytes, erasures and stalls.

use lowtide_core::{Latency, Nanos, Op, Request};
use serde::{Deserialize, Serialize};

/// The kinds of requests with separate counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Flush,
    Trim,
}

impl Kind {
    pub(super) fn of(op: Op) -> Kind {
        match op {
            Op::Read => Kind::Read,
            Op::Write { .. } => Kind::Write,
            Op::Flush => Kind::Flush,
            Op::Trim | Op::WriteZeroes => Kind::Trim,
        }
    }
}

#[derive(Debug, Default)]
struct KindCounts {
    bytes: u64,
    errors: u64,
    latency: Latency,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    kinds: [KindCounts; 4],
    /// Delay of answers after they were due.
    lateness: Latency,
    pub(super) most_in_flight: usize,
    pub(super) power_cuts: u64,
    pub(super) lost_writes: u64,
    pub(super) torn_writes: u64,
}

impl Counts {
    /// Counts an answer. `took_ns` is the latency, including `late_ns`, the delay that the server added.
    #[inline]
    pub(super) fn answered(&mut self, kind: Kind, ok: bool, took_ns: u64, late_ns: Option<u64>) {
        let counts = &mut self.kinds[kind as usize];
        counts.latency.record(Nanos::new(took_ns));
        counts.errors += u64::from(!ok);
        if let Some(late_ns) = late_ns {
            self.lateness.record(Nanos::new(late_ns));
        }
    }

    #[inline]
    pub(super) fn asked(&mut self, request: &Request, in_flight: usize) {
        self.kinds[Kind::of(request.op) as usize].bytes += request.length;
        self.most_in_flight = self.most_in_flight.max(in_flight);
    }

    pub(super) fn requests(&self, kind: Kind) -> Requests {
        let KindCounts { bytes, errors, latency } = &self.kinds[kind as usize];
        Requests { bytes: *bytes, errors: *errors, latency: Spread::of(latency) }
    }

    pub(super) fn lateness(&self) -> Spread {
        Spread::of(&self.lateness)
    }
}

/// Statistics of one kind of requests.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Requests {
    /// Number of bytes requested.
    pub bytes: u64,
    /// Number of answers with an error.
    pub errors: u64,
    /// Latency of answered requests.
    pub latency: Spread,
}

/// A distribution of durations, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// Number of values.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Maximum.
    pub max_us: f64,
}

impl Spread {
    fn of(latency: &Latency) -> Spread {
        let us = |span: Nanos| span.get() as f64 / 1e3;
        Spread {
            count: latency.count(),
            mean_us: latency.mean_ns() / 1e3,
            p50_us: us(latency.percentile(50.0)),
            p95_us: us(latency.percentile(95.0)),
            p99_us: us(latency.percentile(99.0)),
            max_us: us(latency.max()),
        }
    }
}
