//! Compares the insert engine with closed forms for the bottleneck resource and the resulting time.
//!
//! The device serves its writes one after another at a constant rate.

use super::*;
use lowtide_core::Control;
use lowtide_core::Seed;
use lowtide_core::VirtualTime;
use lowtide_core::storage::{Place, Storage};
use lowtide_core::{BlockDevice, Completion, Counters, Request, Tag};
use std::collections::VecDeque;

/// A device with a constant write rate. With `queues`, it reports completions only when polled.
struct Wire {
    ns_per_mib: u64,
    busy_ns: u64,
    queues: bool,
    queue: VecDeque<(Tag, u64)>,
    written: Vec<(u64, u64)>,
}

impl Wire {
    fn new(mib_per_s: u64, queues: bool) -> Self {
        let ns_per_mib = 1_000_000_000 / mib_per_s;
        Wire { ns_per_mib, busy_ns: 0, queues, queue: VecDeque::new(), written: Vec::new() }
    }
}

impl BlockDevice for Wire {
    fn capacity(&self) -> Bytes {
        Bytes::gib(64)
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        self.written.push((request.offset, request.length));
        self.busy_ns = self.busy_ns.max(now.as_nanos()) + request.length * self.ns_per_mib / (1 << 20);
        Completion { at: VirtualTime::from_nanos(self.busy_ns), status: Ok(()) }
    }
    fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
        let completion = self.submit(now, request);
        if !self.queues {
            return Some(completion);
        }
        self.queue.push_back((tag, completion.at.as_nanos()));
        None
    }
    fn next_done(&self) -> Option<VirtualTime> {
        self.queue.front().map(|&(_, at_ns)| VirtualTime::from_nanos(at_ns))
    }
    fn finish(&mut self) -> Option<(Tag, Completion)> {
        let (tag, at_ns) = self.queue.pop_front()?;
        Some((tag, Completion { at: VirtualTime::from_nanos(at_ns), status: Ok(()) }))
    }
    fn idle_until(&mut self, _: VirtualTime) {}
    fn power_cut(&mut self, _: VirtualTime) {}
    fn secure_erase(&mut self) {}
    fn counters(&self) -> Counters {
        Counters::default()
    }
}

fn inserts(data_files: u32) -> Inserts {
    Inserts {
        connections: 16,
        rows: 8192,
        commit: 128,
        data_files,
        database: Bytes::gib(2),
        row: RowCost {
            insert: Nanos::from_micros(50),
            hand_off: Nanos::from_micros(70),
            connection: Nanos::from_micros(20),
            log: Bytes::new(8192),
        },
        log: Log { size: Bytes::mib(64), align: Bytes::kib(64), write: Bytes::mib(1), outstanding: 32 },
        checkpoint: Checkpoint {
            after: Bytes::mib(64),
            memory: Bytes::mib(128),
            gather: Bytes::kib(256),
            outstanding: 32,
        },
    }
}

/// Returns the seconds taken, the rows counted, and the device.
fn measure(inserts: &Inserts, mut device: Wire) -> (f64, u64, Wire) {
    let mut rows = 0;
    let data = Place { device: 0, offset: 0 };
    let log = Place { device: 0, offset: inserts.database.get() };
    let storage = Storage { devices: vec![&mut device], data, log };
    let each = &mut |interval: lowtide_core::Interval| {
        rows += interval.writes;
        Control::Continue
    };
    let end = run(inserts, storage, Seed::new(1), VirtualTime::START, Nanos::from_millis(100), each);
    (end.expect("nothing is refused").as_nanos() as f64 / 1e9, rows, device)
}

fn close(model: f64, expected: f64, within: f64) {
    assert!((model / expected - 1.0).abs() < within, "{model} s, expected {expected} s");
}

#[test]
fn with_a_file_for_each_connection_only_the_right_edge_takes_time() {
    let inserts = inserts(16);
    let (seconds, rows, _) = measure(&inserts, Wire::new(100_000, false));
    assert_eq!(rows, inserts.total_rows());
    close(seconds, inserts.total_rows() as f64 * 50e-6, 0.05);
}

#[test]
fn with_fewer_files_every_row_pays_for_the_hand_off() {
    for files in [1, 4, 8] {
        let inserts = inserts(files);
        let (seconds, ..) = measure(&inserts, Wire::new(100_000, false));
        close(seconds, inserts.total_rows() as f64 * 120e-6, 0.02);
    }
}

#[test]
fn a_slow_device_needs_the_time_of_data_and_log_less_the_dirty_pages_at_the_end() {
    let inserts = inserts(16);
    let (seconds, rows, _) = measure(&inserts, Wire::new(100, true));
    assert_eq!(rows, inserts.total_rows());
    let mib = inserts.data().as_mib();
    close(seconds, (2.0 * mib - 64.0) / 100.0, 0.06);
}

#[test]
fn a_device_that_queues_gives_the_same_time_as_one_that_answers_at_once() {
    for rate in [100, 300] {
        let inserts = inserts(8);
        let (at_once, ..) = measure(&inserts, Wire::new(rate, false));
        let (queued, ..) = measure(&inserts, Wire::new(rate, true));
        assert_eq!(at_once, queued, "{rate} MiB/s");
    }
}

#[test]
fn data_is_written_once_and_the_log_is_a_ring() {
    let inserts = inserts(4);
    let (.., device) = measure(&inserts, Wire::new(1000, false));
    let (log, mut data): (Vec<_>, Vec<_>) =
        device.written.into_iter().partition(|write| write.0 >= inserts.database.get());
    let end = inserts.database + inserts.log.size;
    assert!(log.iter().all(|(offset, length)| offset + length <= end.get()));
    let logged: u64 = log.iter().map(|write| write.1).sum();
    assert!(logged >= inserts.data().get(), "{logged} bytes of log");
    data.sort_unstable();
    assert!(data.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "pages are written once");
    assert!(data.iter().all(|write| write.1 <= 256 << 10));
}

#[test]
fn a_smaller_database_still_holds_the_rows_or_is_refused() {
    let inserts = inserts(16);
    let room = inserts.data() + Bytes::mib(16);
    assert_eq!(inserts.with_database_in(room).expect("fits").database, room);
    assert_eq!(inserts.with_database_in(inserts.data() - Bytes::mib(1)), None);
    assert_eq!(inserts.scaled(1024).rows, 8);
}
