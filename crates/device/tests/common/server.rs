//! A server with constant service time, and the load that measures a device.
#![allow(dead_code, missing_docs)]

use lowtide_core::virtual_load;
use lowtide_core::workload::Arrival;
use lowtide_core::{
    BlockDevice, Bytes, Completion, Control, Counters, Extents, Interval, Latency, Nanos, Op, Request, Seed,
    VirtualTime, Workload,
};

/// Nanoseconds in `n` microseconds.
pub fn us(n: u64) -> u64 {
    n * 1000
}

/// Serves one request after another, each in `service_ns`. Every completion is known at once.
pub struct Server {
    capacity: u64,
    service_ns: u64,
    busy_ns: u64,
    counters: Counters,
}

impl Server {
    pub fn new(capacity: u64, service_ns: u64) -> Self {
        Server { capacity, service_ns, busy_ns: 0, counters: Counters::default() }
    }
}

impl BlockDevice for Server {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.capacity)
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        match request.op {
            Op::Read => self.counters.host_read_bytes += request.length,
            Op::Write { .. } => self.counters.host_written_bytes += request.length,
            _ => {}
        }
        self.busy_ns = self.busy_ns.max(now.as_nanos()) + self.service_ns;
        Completion { at: VirtualTime::from_nanos(self.busy_ns), status: Ok(()) }
    }
    fn idle_until(&mut self, _: VirtualTime) {}
    fn power_cut(&mut self, _: VirtualTime) {}
    fn secure_erase(&mut self) {}
    fn counters(&self) -> Counters {
        self.counters
    }
}

/// Results of a load.
#[derive(Debug)]
pub struct Seen {
    pub iops: f64,
    pub mean_ns: f64,
    pub operations: u64,
}

fn load(device: &mut dyn BlockDevice, workload: &Workload, seed: u64, span: Nanos) -> Seen {
    let extents = Extents::whole(device.capacity().get());
    let mut latency = Latency::default();
    let mut seen = Seen { iops: 0.0, mean_ns: 0.0, operations: 0 };
    let each = &mut |interval: Interval| {
        latency.merge(&interval.read_latency);
        latency.merge(&interval.write_latency);
        seen.iops = interval.iops();
        seen.operations = interval.reads + interval.writes;
        Control::Stop
    };
    virtual_load::run(device, &extents, workload, Seed::new(seed), VirtualTime::START, span, each)
        .expect("in range");
    seen.mean_ns = latency.mean_ns();
    seen
}

/// Runs half a second of random 16 KiB requests with `in_flight` requests in flight.
pub fn closed(device: &mut dyn BlockDevice, read_share: f64, in_flight: u32, seed: u64) -> Seen {
    let workload = Workload { read_share, threads: in_flight, ..Workload::random_write(Bytes::kib(16)) };
    load(device, &workload, seed, Nanos::from_millis(500))
}

/// Runs ten seconds of random 16 KiB reads with Poisson arrivals at `rate` per second. Returns the mean latency in
/// nanoseconds.
pub fn open(device: &mut dyn BlockDevice, rate: f64, seed: u64) -> f64 {
    let arrival = Arrival::Poisson { per_second: rate };
    let workload = Workload { read_share: 1.0, arrival, ..Workload::random_write(Bytes::kib(16)) };
    load(device, &workload, seed, Nanos::from_secs(10)).mean_ns
}
