//! Tests of loads in virtual time, on devices with a fixed service time.

use super::*;
use crate::block::{Completion, Counters};
use crate::workload::Arrival;

/// A device that serves one request at a time, each in `service_ns`.
struct Server {
    service_ns: u64,
    busy_ns: u64,
}

impl BlockDevice for Server {
    fn capacity(&self) -> Bytes {
        Bytes::gib(1)
    }
    fn submit(&mut self, now: VirtualTime, _: &Request) -> Completion {
        self.busy_ns = self.busy_ns.max(now.as_nanos()) + self.service_ns;
        Completion { at: VirtualTime::from_nanos(self.busy_ns), status: Ok(()) }
    }
    fn idle_until(&mut self, _: VirtualTime) {}
    fn power_cut(&mut self, _: VirtualTime) {}
    fn secure_erase(&mut self) {}
    fn counters(&self) -> Counters {
        Counters::default()
    }
}

#[test]
fn a_flush_of_its_own_follows_each_write_and_counts_in_its_latency() {
    for (sync, read_share, each_us) in
        [(Sync::None, 0.0, 100), (Sync::Fua, 0.0, 100), (Sync::Flush, 0.0, 200), (Sync::Flush, 1.0, 100)]
    {
        let workload = Workload { sync, read_share, ..Workload::random_write(Bytes::kib(4)) };
        let all = intervals(&workload, 100_000, 2);
        let (reads, writes) = (all[1].reads, all[1].writes);
        assert_eq!(reads + writes, 10_000 / each_us, "{sync:?}");
        let latency = if reads > 0 { &all[1].read_latency } else { &all[1].write_latency };
        assert_eq!(latency.percentile(50.0).get() / 1000, each_us, "{sync:?}");
    }
}

fn intervals(workload: &Workload, service_ns: u64, count: usize) -> Vec<Interval> {
    let mut device = Server { service_ns, busy_ns: 0 };
    let mut all = Vec::new();
    let extents = Extents::whole(1 << 30);
    let each = &mut |interval| {
        all.push(interval);
        if all.len() == count { Control::Stop } else { Control::Continue }
    };
    let end =
        run(&mut device, &extents, workload, Seed::new(1), VirtualTime::START, Nanos::from_millis(10), each);
    end.expect("never refuses");
    all
}

#[test]
fn a_closed_loop_keeps_its_requests_in_flight() {
    let workload = Workload { threads: 4, ..Workload::random_write(Bytes::kib(4)) };
    let all = intervals(&workload, 1000, 3);
    assert_eq!(all[1].writes, 10_000);
    // Four requests are in flight on one server (Little's law).
    assert!((all[1].write_latency.mean_ns() - 4000.0).abs() < 10.0);
}

#[test]
fn a_load_of_so_many_requests_ends_with_the_last_one() {
    let poisson = Arrival::Poisson { per_second: 100_000.0 };
    for (arrival, threads) in [(Arrival::Closed, 1), (Arrival::Closed, 7), (poisson, 4)] {
        let workload = Workload { threads, arrival, ..Workload::random_write(Bytes::kib(4)) };
        let mut device = Server { service_ns: 1000, busy_ns: 0 };
        let (mut counted, mut ended) = (0, 0);
        let each = &mut |interval: Interval| {
            (counted, ended) = (counted + interval.writes, interval.end_ns);
            Control::Continue
        };
        let span =
            Span { start: VirtualTime::START, interval: Nanos::from_millis(1), requests: Some(12_345) };
        let end = run_span(&mut device, &Extents::whole(1 << 30), &workload, Seed::new(1), span, each);
        assert_eq!(counted, 12_345);
        assert_eq!(end, Ok(VirtualTime::from_nanos(device.busy_ns)), "nothing comes after the last one");
        assert_eq!(ended, device.busy_ns);
    }
}

#[test]
fn a_trace_is_replayed_at_its_times_or_in_its_order() {
    // Three requests arrive at once and a fourth much later. The device takes one microsecond for each.
    let at = |at_ns, request| Traced { at_ns, request };
    let trace = Trace::new(vec![
        at(0, Request::write(0, 4096)),
        at(0, Request::flush()),
        at(0, Request::read(4096, 8192)),
        at(1_000_000, Request::trim(0, 4096)),
        at(5_000_000, Request::read(0, 4096)),
    ]);
    let trace = trace.expect("valid");
    let replayed = |pacing| {
        let mut device = Server { service_ns: 1000, busy_ns: 0 };
        let mut all = Vec::new();
        let span = Span { start: VirtualTime::START, interval: Nanos::from_millis(2), requests: None };
        let each = &mut |interval| {
            all.push(interval);
            Control::Continue
        };
        let end = replay(&mut device, &Extents::whole(1 << 20), &trace, pacing, span, each).expect("serves");
        (all, end.as_nanos())
    };
    let (recorded, end_ns) = replayed(Pacing::Recorded);
    assert_eq!(end_ns, 5_001_000);
    let reads: Vec<u64> = recorded.iter().map(|interval| interval.reads).collect();
    assert_eq!(reads, [1, 0, 1]);
    // Rounds to the three significant digits of the histogram.
    let longest = |interval: &Interval| interval.read_latency.max().get() / 10 * 10;
    assert_eq!(longest(&recorded[0]), 3000, "it waited for the write and the flush");
    assert_eq!((recorded[0].writes, recorded[0].write_bytes, recorded[0].read_bytes), (1, 4096, 8192));
    for (depth, latency_ns) in [(1, 1000), (5, 5000)] {
        let (fast, end_ns) = replayed(Pacing::AsFastAsPossible { depth });
        assert_eq!((end_ns, fast.len(), fast[0].reads), (5000, 1, 2));
        assert_eq!(longest(&fast[0]), latency_ns);
    }
}

#[test]
fn an_open_loop_counts_latency_from_the_intended_start() {
    // Poisson arrivals at half the service rate. In M/D/1 the mean wait is then ρ/(2(1−ρ)), half a service time.
    let arrival = Arrival::Poisson { per_second: 500_000.0 };
    let workload = Workload { arrival, ..Workload::random_write(Bytes::kib(4)) };
    let all = intervals(&workload, 1000, 100);
    let mut latency = crate::Latency::default();
    all.iter().for_each(|interval| latency.merge(&interval.write_latency));
    assert!((latency.mean_ns() / 1500.0 - 1.0).abs() < 0.02, "{}", latency.mean_ns());
}
