//! A device stall during a measurement in virtual time. The latencies of an open loop include the waits of all
//! delayed requests; those of a closed loop do not. The expected values follow from Lindley's recursion for a single
//! server.
#![allow(missing_docs)]

#[path = "common/server.rs"]
mod server;

use lowtide_core::workload::Arrival;
use lowtide_core::{
    BlockDevice, Bytes, Completion, Control, Counters, Extents, Interval, Latency, Nanos, Request, Seed,
    VirtualTime, Workload, virtual_load,
};
use server::{Server, us};

const SERVICE_NS: u64 = 100_000;
/// 80 % of the server's 10 000 requests per second.
const PER_SECOND: f64 = 8000.0;
const SPAN_S: u64 = 10;
const STALL_FROM_NS: u64 = 5_000_000_000;
const STALL_TO_NS: u64 = 6_000_000_000;

/// A server that starts no request for one second.
struct Stalling(Server);

impl BlockDevice for Stalling {
    fn capacity(&self) -> Bytes {
        self.0.capacity()
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        let at = now.as_nanos();
        let stalled = (STALL_FROM_NS..STALL_TO_NS).contains(&at);
        self.0.submit(if stalled { VirtualTime::from_nanos(STALL_TO_NS) } else { now }, request)
    }
    fn idle_until(&mut self, _: VirtualTime) {}
    fn power_cut(&mut self, _: VirtualTime) {}
    fn secure_erase(&mut self) {}
    fn counters(&self) -> Counters {
        self.0.counters()
    }
}

fn latency(arrival: Arrival) -> Latency {
    let mut device = Stalling(Server::new(1 << 30, SERVICE_NS));
    let extents = Extents::whole(1 << 30);
    let workload = Workload { arrival, depth: 1, threads: 1, ..Workload::random_write(Bytes::kib(4)) };
    let mut all = Latency::default();
    let each = &mut |interval: Interval| {
        all.merge(&interval.write_latency);
        Control::Stop
    };
    // Stop after one interval.
    virtual_load::run(
        &mut device,
        &extents,
        &workload,
        Seed::new(1),
        VirtualTime::START,
        Nanos::from_secs(SPAN_S),
        each,
    )
    .expect("the server takes every request");
    all
}

/// Latencies of the open loop's requests by Lindley's recursion. Service starts once the request has arrived, its
/// predecessor has completed, and no stall is in progress.
fn lindley() -> Vec<u64> {
    let gap_ns = 1e9 / PER_SECOND;
    let mut free_ns = 0;
    let mut taken = Vec::new();
    for number in 0..(SPAN_S as f64 * PER_SECOND) as u64 {
        let came_ns = (number as f64 * gap_ns) as u64;
        let mut begins_ns = came_ns.max(free_ns);
        if (STALL_FROM_NS..STALL_TO_NS).contains(&begins_ns) {
            begins_ns = STALL_TO_NS;
        }
        free_ns = begins_ns + SERVICE_NS;
        taken.push(free_ns - came_ns);
    }
    taken.sort_unstable();
    taken
}

#[test]
fn an_open_loop_counts_the_waiting_behind_a_stall_and_a_closed_loop_hides_it() {
    let expected = lindley();
    let at = |percent: f64| expected[(expected.len() as f64 * percent / 100.0) as usize - 1] as f64;
    let open = latency(Arrival::Fixed { per_second: PER_SECOND });
    for percent in [10.0, 50.0, 75.0, 90.0, 99.0, 99.9] {
        let measured = open.percentile(percent).get() as f64;
        // The tolerance covers the three digits of the histogram and the requests that end after the measurement.
        assert!(
            (measured / at(percent) - 1.0).abs() < 0.01,
            "p{percent}: {measured} against {}",
            at(percent)
        );
    }
    assert!(at(99.0) > 0.9e9, "the oracle itself sees the second: {}", at(99.0));

    let closed = latency(Arrival::Closed);
    assert_eq!(closed.percentile(99.0).get() / us(1), 100, "a closed loop waits with one request only");
    assert!(closed.max() >= Nanos::new(STALL_TO_NS - STALL_FROM_NS), "which is its longest");
}
