//! Tests of the hard disk as a queueing device: no request lost, repeated or changed after its completion, and
//! invalid requests refused.

#[path = "common/disks.rs"]
mod disks;

use disks::{BLOCK, FILES, disk, file, plain, queue};
use lowtide_core::rng::{Rng, below};
use lowtide_core::{BlockDevice, Bytes, DeviceError, Nanos, Op, Request, Seed, VirtualTime};
use lowtide_device::SimulatedDisk;
use lowtide_device::disk::DiskSpec;
use lowtide_device::disk::spec::{ReadAhead, Scheduler, WriteCache};
use proptest::prelude::*;

fn specs() -> Vec<DiskSpec> {
    let mut all = Vec::new();
    for scheduler in [Scheduler::Fifo, Scheduler::Elevator, Scheduler::Sptf] {
        for cache in [
            None,
            Some(WriteCache { size: Bytes::kib(64), honours_flush: true }),
            Some(WriteCache { size: Bytes::mib(2), honours_flush: true }),
        ] {
            for ahead in [None, Some(ReadAhead { segments: 3, size: Bytes::kib(128) })] {
                for depth in [1, 4] {
                    let queue = queue(scheduler, depth);
                    all.push(DiskSpec { write_cache: cache, read_ahead: ahead, queue, ..plain().scaled(64) });
                }
            }
        }
    }
    all
}

/// A random request. Half of them fall into a small part of the disk, so that requests overlap in the disk's caches.
fn any_request(rng: &mut Rng, capacity: u64) -> Request {
    let length = (1 + below(rng, 128)) * 512;
    let offset =
        if below(rng, 2) == 0 { below(rng, (capacity - length) / 512) * 512 } else { below(rng, 4096) * 512 };
    match below(rng, 20) {
        0 => Request::flush(),
        1 => Request::trim(offset, length),
        2 => Request { op: Op::Write { fua: true }, offset, length },
        3 => Request { op: Op::WriteZeroes, offset, length },
        4..=11 => Request::write(offset, length),
        _ => Request::read(offset, length),
    }
}

/// Makes a random sequence of permitted calls on a disk and checks each result.
fn drive(spec: &DiskSpec, seed: u64, steps: usize) -> Vec<(u64, u64)> {
    let (mut disk, mut rng) = (disk(spec, seed), Seed::new(seed).part("test", 0).stream());
    let capacity = disk.capacity().get();
    let what = format!("seed {seed}, {spec:?}");
    let mut since: Vec<Option<u64>> = Vec::new();
    let mut answers = Vec::new();
    let mut now = 0;
    let mut take = |disk: &mut SimulatedDisk, since: &mut Vec<Option<u64>>| {
        let told = disk.next_done();
        let (tag, completion) = disk.finish().expect("it was told of");
        assert_eq!(Some(completion.at), told, "{what}: finished when it was told");
        assert_eq!(completion.status, Ok(()), "{what}");
        let begun = since[tag as usize].take();
        let begun = begun.unwrap_or_else(|| panic!("{what}: {tag} finished twice"));
        assert!(completion.at.as_nanos() >= begun, "{what}: {tag} done before it came");
        answers.push((tag, completion.at.as_nanos()));
        completion.at.as_nanos()
    };
    for _ in 0..steps {
        match below(&mut rng, 10) {
            0..=5 => {
                let request = any_request(&mut rng, capacity);
                let told = disk.next_done();
                let tag = since.len() as u64;
                let at = VirtualTime::from_nanos(now);
                match disk.begin(at, &request, tag) {
                    Some(completion) => {
                        assert!(completion.at >= at, "{what}: {request:?}");
                        assert_eq!(completion.status, Ok(()), "{what}: {request:?}");
                        since.push(None);
                    }
                    None => {
                        since.push(Some(now));
                        assert!(disk.next_done().is_some(), "{what}: something is queued");
                    }
                }
                if told.is_some() {
                    assert_eq!(disk.next_done(), told, "{what}: an answer changed");
                }
            }
            6..=8 => {
                if disk.next_done().is_some() {
                    let at = take(&mut disk, &mut since);
                    now = now.max(at);
                }
            }
            _ => {
                let until = now + below(&mut rng, 20_000_000);
                match disk.next_done() {
                    // A caller normally does not advance past the next step.
                    Some(at) if below(&mut rng, 4) > 0 => now = until.min(at.as_nanos().max(now)),
                    _ => now = until,
                }
                if below(&mut rng, 4) == 0 {
                    disk.idle_until(VirtualTime::from_nanos(now));
                }
            }
        }
        if below(&mut rng, 50) == 0 {
            let request = any_request(&mut rng, capacity);
            let told = disk.next_done();
            let at = disk.submit(VirtualTime::from_nanos(now), &request).at;
            assert!(at.as_nanos() >= now, "{what}: {request:?}");
            if told.is_some() {
                assert_eq!(disk.next_done(), told, "{what}: an answer changed");
            }
        }
    }
    while disk.next_done().is_some() {
        take(&mut disk, &mut since);
    }
    assert!(disk.finish().is_none(), "{what}");
    assert!(since.iter().all(Option::is_none), "{what}: never finished {since:?}");
    let flushed = disk.submit(VirtualTime::from_nanos(now + 1_000_000_000), &Request::flush()).at;
    disk.power_cut(flushed);
    assert_eq!(disk.counters().lost_bytes, 0, "{what}: flushed");
    answers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_is_lost_answered_twice_or_changed(seed in any::<u64>(), index in 0usize..36) {
        let spec = &specs()[index];
        let answers = drive(spec, seed, 400);
        prop_assert_eq!(answers, drive(spec, seed, 400));
    }
}

#[test]
fn completions_come_in_order() {
    for (n, spec) in specs().iter().enumerate() {
        let answers = drive(spec, n as u64, 2000);
        assert!(answers.windows(2).all(|pair| pair[0].1 <= pair[1].1), "seed {n}");
    }
}

#[test]
fn disks_of_different_seeds_turn_apart() {
    let spec = plain();
    let first = |seed| disk(&spec, seed).submit(VirtualTime::START, &Request::read(1 << 30, BLOCK)).at;
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}

#[test]
fn what_cannot_be_done_is_refused_and_what_means_nothing_does_nothing() {
    let spec = file(FILES[0].1);
    let mut disk = disk(&spec, 1);
    let capacity = disk.capacity().get();
    for op in [Op::Read, Op::Write { fua: false }, Op::Write { fua: true }, Op::Trim, Op::WriteZeroes] {
        for (offset, length) in [(capacity, 512), (u64::MAX - 511, 512), (0, u64::MAX)] {
            let status = disk.submit(VirtualTime::START, &Request { op, offset, length }).status;
            assert!(matches!(status, Err(DeviceError::OutOfRange { .. })), "{op:?} {offset}+{length}");
        }
        for (offset, length) in [(1, 512), (512, 100)] {
            let status = disk.submit(VirtualTime::START, &Request { op, offset, length }).status;
            assert!(matches!(status, Err(DeviceError::Unaligned { .. })), "{op:?} {offset}+{length}");
        }
        let nothing = Request { op, offset: capacity, length: 0 };
        assert_eq!(disk.submit(VirtualTime::START, &nothing).status, Ok(()));
    }
    disk.submit(VirtualTime::START, &Request::trim(0, 1 << 30));
    disk.secure_erase();
    assert_eq!(disk.counters(), lowtide_core::Counters::default());
    disk.submit(VirtualTime::START, &Request::write(0, 4096));
    disk.submit(VirtualTime::START, &Request::read(0, 8192));
    assert_eq!((disk.counters().host_written_bytes, disk.counters().host_read_bytes), (4096, 8192));
}

#[test]
fn a_description_that_does_not_fit_is_told_by_its_key() {
    type Change = fn(&mut DiskSpec);
    let bad: [(&str, Change); 13] = [
        ("capacity", |spec| spec.capacity = Bytes::new(1000)),
        ("capacity", |spec| spec.capacity = Bytes::mib(1)),
        ("rpm", |spec| spec.rpm = 0),
        ("surfaces", |spec| spec.surfaces = 0),
        ("zones", |spec| spec.zones = 0),
        ("outer-rate", |spec| spec.outer_rate = Bytes::ZERO),
        ("inner-rate", |spec| spec.inner_rate = spec.outer_rate * 2),
        ("queue.depth", |spec| spec.queue.depth = 0),
        ("queue.aging", |spec| spec.queue.aging = Some(Nanos::from_millis(1))),
        ("seek.full", |spec| spec.seek.full = Nanos::from_secs(1)),
        ("seek.average", |spec| spec.seek.average = spec.seek.full),
        ("seek.average", |spec| spec.seek.track = spec.seek.full * 2),
        ("write-cache.size", |spec| {
            spec.write_cache = Some(WriteCache { size: Bytes::new(1), honours_flush: true })
        }),
    ];
    for (key, change) in bad {
        let mut spec = plain();
        change(&mut spec);
        let error = SimulatedDisk::new(&spec, Seed::new(1)).expect_err(key);
        assert_eq!(error.key, key, "{error}");
        assert_eq!(spec.validate().expect_err(key).key, key);
    }
    let unknown = toml::from_str::<DiskSpec>("capacity = \"1GB\"\nheads = 4\n").expect_err("no such key");
    assert!(unknown.to_string().contains("heads"), "{unknown}");
    let written = toml::to_string(&plain()).expect("a table");
    assert_eq!(toml::from_str::<DiskSpec>(&written).expect("the same"), plain());
}
