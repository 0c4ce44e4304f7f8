//! Helpers for tests of the engines: a device with a constant service time, and a run on it.

use super::*;
use crate::Settings;
use crate::tpcc::Kind;
use lowtide_core::storage::{Journal, Place};
use lowtide_core::{BlockDevice, Completion, Op, Request};

pub(super) const SEED: u64 = 3;

/// A device with one constant service time, independent of load.
struct Even {
    took: Nanos,
    counters: Counters,
    flushes: u64,
    first_write: Option<VirtualTime>,
    /// Offset from the start of the system tablespace, and length, of each write there and beyond.
    written: Vec<(u64, u64)>,
}

/// Offsets of journal, system tablespace and data files. The log is at offset 0.
const JOURNAL: u64 = 6 << 30;
const SYSTEM: u64 = 7 << 30;
pub(super) const DATA: u64 = 8 << 30;

impl BlockDevice for Even {
    fn capacity(&self) -> Bytes {
        Bytes::gib(64)
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        match request.op {
            Op::Read => self.counters.host_read_bytes += request.length,
            Op::Flush => self.flushes += 1,
            _ => {
                self.counters.host_written_bytes += request.length;
                self.first_write.get_or_insert(now);
                let place = request.offset.checked_sub(SYSTEM).map(|place| (place, request.length));
                self.written.extend(place);
            }
        }
        assert!(request.offset + request.length <= self.capacity().get(), "{request:?}");
        Completion { at: now + self.took, status: Ok(()) }
    }
    fn idle_until(&mut self, _until: VirtualTime) {}
    fn power_cut(&mut self, _now: VirtualTime) {}
    fn secure_erase(&mut self) {}
    fn counters(&self) -> Counters {
        self.counters
    }
}

/// Result of a run.
pub(super) struct Came {
    pub(super) intervals: Vec<Interval>,
    pub(super) done: IoTotals,
    pub(super) flushes: u64,
    pub(super) seconds: f64,
    /// Seconds until the first write.
    pub(super) first_write: Option<f64>,
    /// Offset from the start of the system tablespace, and length, of each write there and beyond.
    pub(super) written: Vec<(u64, u64)>,
}

impl Came {
    /// Transactions per second, excluding the first quarter of the run.
    pub(super) fn rate(&self) -> f64 {
        let skipped = self.intervals.len() / 4;
        let all = self.intervals[skipped..].iter().flat_map(|interval| &interval.kinds);
        let ended: u64 = all.map(|kind| kind.committed + kind.rolled_back).sum();
        ended as f64 / (self.intervals.len() - skipped) as f64
    }
    pub(super) fn transactions(&self) -> f64 {
        let all = self.intervals.iter().flat_map(|interval| &interval.kinds);
        all.map(|kind| kind.committed + kind.rolled_back).sum::<u64>() as f64
    }
}

/// Converts options to the form in [`Settings`].
pub(super) fn options(options: &[(&str, &str)]) -> Vec<(String, String)> {
    options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(super) fn run_on(
    took: Nanos,
    settings: &Settings,
    warehouses: u32,
    terminals: u32,
    seconds: usize,
) -> Came {
    let model = ModelSettings::of(settings).expect("valid");
    let load = ModelLoad { warehouses, terminals, interval: Nanos::from_secs(1), seed: Seed::new(SEED) };
    let mut device =
        Even { took, counters: Counters::default(), flushes: 0, first_write: None, written: Vec::new() };
    let place = |offset| Place { device: 0, offset };
    let storage = Storage { devices: vec![&mut device], data: place(DATA), log: place(0) };
    let journal = Journal { offset: JOURNAL, length: 1 << 20, commit: &[8192, 4096] };
    let files = Files { storage, system: place(SYSTEM), journals: vec![Some(journal)] };
    let (mut intervals, mut last) = (Vec::new(), IoTotals::default());
    let each = &mut |interval, done| {
        intervals.push(interval);
        last = done;
        if intervals.len() == seconds { Control::Stop } else { Control::Continue }
    };
    run(&model, &load, files, VirtualTime::START, each).expect("the device takes everything");
    let Even { flushes, first_write, written, .. } = device;
    let first_write = first_write.map(|at| at.as_nanos() as f64 / 1e9);
    Came { intervals, done: last, flushes, seconds: seconds as f64, first_write, written }
}

pub(super) fn assert_near(what: &str, found: f64, expected: f64, share: f64) {
    let off = (found / expected - 1.0).abs();
    assert!(off < share, "seed {SEED}: {what}: {found}, not {expected}");
}

/// Asserts that two runs are equal and that their transaction mix is that of the decks.
pub(super) fn assert_repeats_with_the_mix_of_the_decks(came: &dyn Fn() -> Came) {
    let (one, two) = (came(), came());
    assert_eq!(one.intervals, two.intervals, "seed {SEED}");
    assert_eq!(one.done, two.done, "seed {SEED}");
    let of = |kind: Kind| {
        let all = one.intervals.iter().map(|it| &it.kinds[kind as usize]);
        all.map(|tally| tally.committed + tally.rolled_back).sum::<u64>() as f64 / one.transactions()
    };
    assert_near("new orders", of(Kind::NewOrder), 0.45, 0.03);
    assert_near("deliveries", of(Kind::Delivery), 0.04, 0.06);
}
