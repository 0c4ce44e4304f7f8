//! A cloud volume: a device described only by its limits, which two token buckets enforce.
//!
//! The equations are in `docs/models/volume.md`.
//!
//! # Not modelled
//! The hardware behind the limits, merging of adjacent requests by the provider, and limits of the attached machine.

mod bucket;
pub mod spec;

pub use spec::VolumeSpec;

use crate::spec::SpecError;
use crate::state::{Sink, Source};
use bucket::Bucket;
use lowtide_core::rng::{Rng, unit};
use lowtide_core::{BlockDevice, Bytes, Completion, Counters, Op, Request, Seed, StateError, VirtualTime};
use std::io::{Read, Write};

/// A cloud volume in virtual time.
#[derive(Debug, Clone)]
pub struct Volume {
    capacity: u64,
    io_size: u64,
    latency_ns: u64,
    spread_ns: u64,
    requests: Bucket,
    bytes: Option<Bucket>,
    rng: Rng,
    counters: Counters,
}

impl Volume {
    /// A new volume with full buckets.
    ///
    /// # Errors
    /// [`SpecError`] if the description is inconsistent.
    pub fn new(spec: &VolumeSpec, seed: Seed) -> Result<Self, SpecError> {
        spec.validate()?;
        let requests = match spec.burst {
            Some(burst) => Bucket::new(spec.iops, burst.iops, burst.credits),
            None => Bucket::new(spec.iops, spec.iops, 0),
        };
        Ok(Volume {
            capacity: spec.capacity.get() / 512 * 512,
            io_size: spec.io_size.get(),
            latency_ns: spec.latency.get(),
            spread_ns: spec.latency_spread.get(),
            requests,
            bytes: spec.throughput.map(|rate| Bucket::new(rate.get(), rate.get(), 0)),
            rng: seed.part("latency", 0).stream(),
            counters: Counters::default(),
        })
    }

    /// The credits at `now`, in requests.
    pub fn credits(&self, now: VirtualTime) -> f64 {
        self.requests.credits(now.as_nanos())
    }
}

impl BlockDevice for Volume {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.capacity)
    }

    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        if let Err(error) = request.check(self.capacity, 512) {
            return Completion { at: now, status: Err(error) };
        }
        let now_ns = now.as_nanos();
        let mut at_ns = now_ns;
        if matches!(request.op, Op::Read | Op::Write { .. }) && request.length > 0 {
            at_ns = self.requests.take(now_ns, request.length.div_ceil(self.io_size));
            if let Some(bytes) = &mut self.bytes {
                at_ns = at_ns.max(bytes.take(now_ns, request.length));
            }
            match request.op {
                Op::Read => self.counters.host_read_bytes += request.length,
                _ => self.counters.host_written_bytes += request.length,
            }
        }
        let spread = (unit(&mut self.rng) * self.spread_ns as f64) as u64;
        Completion { at: VirtualTime::from_nanos(at_ns + self.latency_ns + spread), status: Ok(()) }
    }

    // Credits depend only on the clock, and every acknowledged write is durable.
    fn idle_until(&mut self, _: VirtualTime) {}
    fn power_cut(&mut self, _: VirtualTime) {}
    fn secure_erase(&mut self) {}

    fn counters(&self) -> Counters {
        self.counters
    }

    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        Sink(out).value(&(&self.requests, &self.bytes, &self.rng, self.counters))
    }

    fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        (self.requests, self.bytes, self.rng, self.counters) = Source(from).value()?;
        Ok(())
    }
}
