//! What a live drive has counted since it was opened ([`Counts`]).
//!
//! Not here: the model's counters; host and NAND bytes, erasures, stalls.

use lowtide_core::{Latency, Nanos, Op, Request};
use serde::{Deserialize, Serialize};

/// Kinds of requests that are counted apart.
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

/// One kind of requests.
#[derive(Debug, Default)]
struct Of {
    bytes: u64,
    errors: u64,
    latency: Latency,
}

/// Requests, latencies, lateness.
#[derive(Debug, Default)]
pub(super) struct Counts {
    of: [Of; 4],
    /// How long after its instant each answer was released.
    lateness: Latency,
    pub(super) most_in_flight: usize,
    pub(super) power_cuts: u64,
    pub(super) lost_writes: u64,
    pub(super) torn_writes: u64,
}

impl Counts {
    /// A request was answered: `took` from its arrival to its release, of which `late` was the server's fault.
    #[inline]
    pub(super) fn answered(&mut self, kind: Kind, ok: bool, took_ns: u64, late_ns: Option<u64>) {
        let of = &mut self.of[kind as usize];
        of.latency.record(Nanos::new(took_ns));
        of.errors += u64::from(!ok);
        if let Some(late_ns) = late_ns {
            self.lateness.record(Nanos::new(late_ns));
        }
    }

    #[inline]
    pub(super) fn asked(&mut self, request: &Request, in_flight: usize) {
        self.of[Kind::of(request.op) as usize].bytes += request.length;
        self.most_in_flight = self.most_in_flight.max(in_flight);
    }

    pub(super) fn requests(&self, kind: Kind) -> Requests {
        let of = &self.of[kind as usize];
        Requests { bytes: of.bytes, errors: of.errors, latency: Spread::of(&of.latency) }
    }

    pub(super) fn lateness(&self) -> Spread {
        Spread::of(&self.lateness)
    }
}

/// Requests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Requests {
    /// Bytes asked for.
    pub bytes: u64,
    /// Answered with an error.
    pub errors: u64,
    /// From arrival to answer, of those answered.
    pub latency: Spread,
}

/// A distribution of spans, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_us: f64,
    /// What half did not exceed.
    pub p50_us: f64,
    /// What 95 of 100 did not exceed.
    pub p95_us: f64,
    /// What 99 of 100 did not exceed.
    pub p99_us: f64,
    /// The longest.
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
