//! A log disk on a drive with a latency of one microsecond: the requests to the drive, and their timing.

use super::*;
use lowtide_core::Seed;
use lowtide_core::rng::{Rng, below};

/// A drive that records its requests.
#[derive(Debug, Default)]
struct Recording {
    bytes: u64,
    asked: Vec<(u64, Request)>,
}

impl BlockDevice for Recording {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.bytes)
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        self.asked.push((now.as_nanos(), *request));
        Completion { at: now + Nanos::from_micros(1), status: Ok(()) }
    }
    fn idle_until(&mut self, _: VirtualTime) {}
    fn power_cut(&mut self, _: VirtualTime) {}
    fn secure_erase(&mut self) {}
    fn counters(&self) -> Counters {
        Counters::default()
    }
    fn save(&self, _: &mut dyn Write) -> Result<(), StateError> {
        Ok(())
    }
    fn restore(&mut self, _: &mut dyn Read) -> Result<(), StateError> {
        Ok(())
    }
}

fn device(bytes: u64) -> LogDevice<Recording> {
    let drive = Recording { bytes, asked: Vec::new() };
    let options = Options { segment: 1 << 20, reserve: 0.1 };
    LogDevice::new(drive, options, Running::default()).expect("it fits")
}

fn asked(device: &LogDevice<Recording>) -> Vec<(u64, Request)> {
    device.inner.borrow().disk().medium().device.borrow().asked.clone()
}

/// Fills a device, then writes random blocks until it cleans.
fn worn(device: &mut LogDevice<Recording>, rng: &mut Rng) -> VirtualTime {
    let blocks = device.capacity().get() / BLOCK as u64;
    let mut now = VirtualTime::START;
    let whole = (0..blocks).step_by(64).map(|lba| Request::write(lba << 12, 64.min(blocks - lba) << 12));
    let random: Vec<u64> = (0..blocks).map(|_| below(rng, blocks)).collect();
    for request in whole.chain(random.into_iter().map(|lba| Request::write(lba << 12, 4096))) {
        now = device.submit(now, &request).at;
    }
    now
}

#[test]
fn requests_reach_the_drive_in_order_of_time() {
    let mut device = device(64 << 20);
    let mut rng = Seed::new(3).part("requests", 0).stream();
    let now = worn(&mut device, &mut rng);
    assert!(device.log_counters().moved_blocks > 0, "cleaning reads before writes");
    // Many concurrent requests.
    let blocks = device.capacity().get() / BLOCK as u64;
    for n in 0..2000u64 {
        let offset = below(&mut rng, blocks) << 12;
        let request = if n % 2 == 0 { Request::read(offset, 4096) } else { Request::write(offset, 4096) };
        assert!(device.submit(now, &request).at >= now);
    }
    assert!(asked(&device).is_sorted_by_key(|(at, _)| *at));
}

/// Symptom: writes came in bursts if the host never flushed. Cause: dead segments waited for a checkpoint, and
/// cleaning became ever more expensive until then. Fix: the log flushes by itself if a flush releases several
/// segments.
#[test]
fn dead_segments_are_released_without_flushes_of_the_host() {
    let mut device = device(256 << 20);
    let mut rng = Seed::new(11).part("requests", 0).stream();
    let (mut now, blocks) = (VirtualTime::START, device.capacity().get() / BLOCK as u64 / 2);
    let (mut most, mut cleaning) = (0, 0);
    for _ in 0..5 * blocks {
        now = device.submit(now, &Request::write(below(&mut rng, blocks) << 12, 4096)).at;
        let inner = device.inner.borrow();
        if inner.disk().wants_room() {
            cleaning += 1;
            most = most.max(inner.disk().log().dead_until().0);
        }
    }
    let flushes = asked(&device).iter().filter(|(_, request)| request.op == Op::Flush).count() as u64;
    let cleaned = device.log_counters().cleaned;
    assert!(cleaning > blocks / 100, "{cleaning} writes had to clean");
    assert!(most <= 3, "{most} segments waited for a flush");
    assert!(flushes < cleaned, "{flushes} flushes for {cleaned} segments");
}

#[test]
fn adjacent_slots_are_read_together() {
    let mut device = device(64 << 20);
    let mut now = VirtualTime::START;
    for n in 0..512u64 {
        now = device.submit(now, &Request::write((n * 7 % 512) << 14, 16 << 10)).at;
    }
    now = device.submit(now, &Request::flush()).at;
    let before = asked(&device).len();
    now = device.submit(now, &Request::read(0, 16 << 10)).at;
    // Four slots with their headers touch five blocks.
    let read = asked(&device)[before..].to_vec();
    assert_eq!((read.len(), read[0].1.op, read[0].1.length), (1, Op::Read, 20 << 10));
    // Later writes are still in memory.
    now = device.submit(now, &Request::write(4 << 10, 8 << 10)).at;
    device.submit(now, &Request::read(0, 16 << 10));
    assert_eq!(asked(&device).len(), before + 3, "one read before them, and one after");
}

#[test]
fn partial_blocks_are_read_first_and_holes_are_not_read() {
    let mut device = device(64 << 20).with_latency(Nanos::from_micros(3));
    let at = VirtualTime::START;
    let us = |completion: Completion| completion.at.as_nanos() / 1000;
    assert_eq!(us(device.submit(at, &Request::read(0, 1 << 20))), 3, "the log knows the holes");
    assert_eq!(us(device.submit(at, &Request::write(512, 4096))), 3);
    assert_eq!(device.counters().rmw_reads, 2, "the ends of two blocks");
    let counters = device.counters();
    assert_eq!((counters.host_written_bytes, counters.layer_written_bytes), (4096, 8192));
    assert_eq!(us(device.submit(at, &Request { op: Op::WriteZeroes, offset: 0, length: 12 << 9 })), 3);
    assert_eq!(device.counters().trimmed_bytes, 4096);
    let unaligned = device.submit(at, &Request::read(100, 512)).status;
    assert_eq!(unaligned, Err(DeviceError::Unaligned { offset: 100, length: 512, block: 512 }));
}

#[test]
fn a_power_cut_loses_unflushed_bytes_only() {
    let mut device = device(64 << 20);
    let write = |device: &mut LogDevice<Recording>, fua| {
        device.submit(VirtualTime::START, &Request { op: Op::Write { fua }, offset: 0, length: 8192 })
    };
    write(&mut device, false);
    write(&mut device, true);
    device.power_cut(VirtualTime::START);
    assert_eq!(device.counters().lost_bytes, 0);
    write(&mut device, false);
    device.power_cut(VirtualTime::START);
    assert_eq!(device.counters().lost_bytes, 8192);
}

#[test]
fn a_restored_device_behaves_like_the_saved_one() {
    let mut one = device(64 << 20);
    let mut rng = Seed::new(5).part("requests", 0).stream();
    let mut now = worn(&mut one, &mut rng);
    let before = (one.log_counters(), one.counters());
    let mut bytes = Vec::new();
    one.save(&mut bytes).expect("it can be saved");
    assert_eq!((one.log_counters(), one.counters()), before, "saving counts nothing");
    let mut other = device(64 << 20);
    other.restore(&mut &bytes[..]).expect("it was saved");
    assert_eq!((other.log_counters(), other.counters()), before);
    let blocks = one.capacity().get() / BLOCK as u64;
    for n in 0..20_000u64 {
        let offset = below(&mut rng, blocks) << 12;
        let request = if n % 3 == 0 { Request::read(offset, 4096) } else { Request::write(offset, 4096) };
        let completion = one.submit(now, &request);
        assert_eq!(other.submit(now, &request), completion, "request {n}");
        assert_eq!(completion.status, Ok(()));
        now = completion.at;
    }
    assert_eq!(one.log_counters(), other.log_counters());
    let (ones, others) = (asked(&one), asked(&other));
    assert!(ones.ends_with(&others), "the drive gets the same requests");
}

#[test]
fn invalid_states_are_refused() {
    let mut bytes = Vec::new();
    let mut one = device(64 << 20);
    one.submit(VirtualTime::START, &Request::write(0, 1 << 20));
    one.save(&mut bytes).expect("it can be saved");
    let restore = |bytes: &[u8]| device(64 << 20).restore(&mut &bytes[..]).map_err(|error| error.to_string());
    assert_eq!(restore(&bytes), Ok(()));
    assert!(restore(&bytes[..bytes.len() - 1]).is_err());
    // The first two blocks are the superblocks.
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
    let runs = 8 + number(0) as usize;
    let blocks = runs + 8 + number(runs) as usize + 8;
    let mut spoiled = bytes.clone();
    for block in 0..2 {
        assert_eq!(number(blocks + block * (8 + BLOCK)), block as u64);
        spoiled[blocks + block * (8 + BLOCK) + 8..][..BLOCK].fill(0xff);
    }
    let told = "the state makes no sense: its log cannot be opened";
    assert_eq!(restore(&spoiled), Err(told.to_owned()));
    let mut spoiled = bytes.clone();
    spoiled[runs + 8..][..8].fill(0xff);
    let told = "the state makes no sense: a part of it is not from a log";
    assert_eq!(restore(&spoiled), Err(told.to_owned()));
}

#[test]
fn an_erased_device_is_empty() {
    let mut device = device(64 << 20);
    let mut rng = Seed::new(7).part("requests", 0).stream();
    let now = worn(&mut device, &mut rng);
    device.secure_erase();
    assert!(device.log_counters().host_blocks > 0, "the counters stay");
    let before = asked(&device).len();
    assert_eq!(device.submit(now, &Request::read(0, 1 << 20)), Completion { at: now, status: Ok(()) });
    assert_eq!(asked(&device).len(), before, "it is empty");
}

#[test]
fn the_live_share_refers_to_usable_segments() {
    let device = device(256 << 20);
    assert_eq!(device.kept_free(), device.inner.borrow().disk().kept_free());
    let geometry = device.geometry();
    let share = live_share(geometry, 1.0);
    assert!(share > 0.85 && share < 1.0, "{share}: the reserve, and what is kept free");
    assert_eq!(live_share(geometry, 0.5), share / 2.0);
}

/// As in the real layer, each flush writes a mark and waits for it.
#[test]
fn each_flush_with_new_data_writes_one_mark() {
    let mut device = device(64 << 20);
    let mut now = device.submit(VirtualTime::START, &Request::write(0, 4096)).at;
    now = device.submit(now, &Request::flush()).at;
    let ring = device.geometry().ring().expect("there is one");
    let (before, marks) = (asked(&device).len(), device.log_counters().marks);
    for n in 0..70 {
        let written = device.submit(now, &Request::write(n * 4096, 4096)).at;
        let flushed = device.submit(written, &Request::flush()).at;
        assert_eq!(flushed.since(written), Nanos::from_micros(3), "the pending bytes, the flush, the mark");
        now = device.submit(flushed, &Request::flush()).at;
        assert_eq!(now, flushed, "nothing was written");
    }
    let forced: Vec<u64> = asked(&device)[before..]
        .iter()
        .filter(|(_, request)| request.op == Op::Write { fua: true })
        .map(|(_, request)| request.offset)
        .collect();
    assert_eq!((forced.len() as u64, device.log_counters().marks - marks), (70, 70));
    assert!(
        forced.iter().all(|offset| ring.contains(offset))
            && forced[0] == forced[64]
            && forced[0] != forced[1]
    );
    // A flush that the log makes for itself writes no mark.
    now = device.submit(now, &Request::write(0, 4096)).at;
    device.inner.get_mut().disk_mut().flush_for_room().expect("flushed");
    assert_eq!(device.log_counters().marks - marks, 70);
    (0..2).for_each(|_| now = device.submit(now, &Request::flush()).at);
    assert_eq!(device.log_counters().marks - marks, 71);
    let layer = device.counters().layer_written_bytes;
    let log = device.log_counters();
    assert_eq!(layer, (log.host_blocks + log.moved_blocks + log.map_pages + log.marks) * BLOCK as u64);
    // A restored device continues the ring.
    let mut state = Vec::new();
    device.save(&mut state).expect("saved");
    let mut other = self::device(64 << 20);
    other.restore(&mut &state[..]).expect("restored");
    assert_eq!(other.log_counters(), device.log_counters());
    for device in [&mut device, &mut other] {
        device.submit(now, &Request::write(0, 4096));
        device.submit(now, &Request::flush());
    }
    let last = |device: &LogDevice<Recording>| asked(device).last().map(|(_, request)| *request);
    assert_eq!(last(&device), last(&other));
}
