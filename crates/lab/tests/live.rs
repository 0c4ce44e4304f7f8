//! Tests live drives on a clock set by the test: the time of answers, the data that survives power cuts, and the
//! recorded statistics.
//!
//! No test waits in real time. `lowtide-host` tests sockets and the server loop.

use lowtide_core::rng::{Rng, below};
use lowtide_core::trace::{Pacing, Trace};
use lowtide_core::{Control, Extents, Interval, Latency, Nanos, Op, Request, Seed, virtual_load};
use lowtide_device::fault::{EndOfLife, Errors, Faults, Slow};
use lowtide_device::power::{CacheKind, Tear};
use lowtide_files::trace;
use lowtide_host::live::{Drive, Ticket};
use lowtide_live::contract::{Contract, Findings};
use lowtide_live::control::{self, Answer, Order, Question};
use lowtide_live::{Data, LiveDrive, Offer, Pace, Power, Recorder, request_log};
use std::collections::BTreeMap;

const SECTOR: u64 = 512;
const AT_ONCE: Pace = Pace::RealTime { transport_ns: 0 };

fn offer(device: &str, cache: CacheKind, seed: u64) -> Offer {
    Offer { cache: Some(cache), scale: 16, seed: Seed::new(seed), ..Offer::of(device) }
}

fn open(offer: Offer, pace: Pace) -> LiveDrive {
    offer.look_up().expect("it is in the catalogue").open(pace).expect("it opens")
}

/// All answers due up to an instant.
fn answers(drive: &mut LiveDrive, until_ns: u64) -> Vec<(u64, Ticket, Result<(), i32>)> {
    let mut all = Vec::new();
    while let Some(due_ns) = drive.next_due().filter(|due_ns| *due_ns <= until_ns) {
        while let Some((ticket, result)) = drive.due(due_ns) {
            all.push((due_ns, ticket, result));
        }
    }
    all
}

/// Submits one request; returns the time and result of its answer.
fn ask(drive: &mut LiveDrive, now_ns: u64, request: Request, data: &[u8]) -> (u64, Result<(), i32>) {
    drive.submit(now_ns, 0, request, data);
    let all = answers(drive, u64::MAX);
    assert_eq!(all.len(), 1);
    (all[0].0, all[0].2)
}

fn random(rng: &mut Rng, blocks: u64) -> Request {
    let (offset, length) = (below(rng, blocks) * 4096, (1 + below(rng, 4)) * 4096);
    match below(rng, 10) {
        0..4 => Request::read(offset, length),
        4..8 => Request::write(offset, length),
        8 => Request::trim(offset, length),
        _ => Request::flush(),
    }
}

/// A live drive that receives a trace answers at the times at which the model completes the trace in virtual time.
#[test]
fn answers_come_when_virtual_time_says() {
    for device in ["intel-320-160gb", "sata-7k2-1tb", "raid10-8x-sas-15k-73gb", "flash-cache-write-back"] {
        let seed = 7;
        let mut rng = Seed::new(seed).part("requests", 0).stream();
        let mut at_ns = 0;
        let requests: Vec<_> = (0..3000)
            .map(|_| {
                at_ns += below(&mut rng, 2_000_000);
                lowtide_core::trace::Traced { at_ns, request: random(&mut rng, 20_000) }
            })
            .collect();
        let known = Offer { scale: 16, seed: Seed::new(seed), ..Offer::of(device) }.look_up().expect("known");
        let mut live = known.open(AT_ONCE).expect("opens");
        let mut flying = BTreeMap::<Ticket, (u64, Op)>::new();
        let (mut reads, mut writes) = (Latency::default(), Latency::default());
        let mut note = |flying: &mut BTreeMap<_, (u64, Op)>, all: Vec<(u64, Ticket, Result<(), i32>)>| {
            for (done_ns, ticket, result) in all {
                let (came_ns, op) = flying.remove(&ticket).expect("in flight");
                assert_eq!(result, Ok(()));
                match op {
                    Op::Read => reads.record(Nanos::new(done_ns - came_ns)),
                    Op::Write { .. } => writes.record(Nanos::new(done_ns - came_ns)),
                    Op::Trim | Op::WriteZeroes | Op::Flush => {}
                }
            }
        };
        let zeroes = vec![0; 16 * 4096];
        for (ticket, traced) in requests.iter().enumerate() {
            let all = answers(&mut live, traced.at_ns);
            note(&mut flying, all);
            let is_write = matches!(traced.request.op, Op::Write { .. });
            let data = if is_write { &zeroes[..traced.request.length as usize] } else { &[] };
            flying.insert(ticket as Ticket, (traced.at_ns, traced.request.op));
            live.submit(traced.at_ns, ticket as Ticket, traced.request, data);
        }
        let all = answers(&mut live, u64::MAX);
        note(&mut flying, all);
        assert!(flying.is_empty());

        let (mut model, start) = known.model().expect("builds");
        let extents = Extents::whole(known.usable().get());
        let trace = Trace::new(requests).expect("sound");
        let span = virtual_load::Span { start, interval: Nanos::from_secs(3600), requests: None };
        let mut found = Vec::new();
        let each = &mut |interval: Interval| {
            found.push(interval);
            Control::Continue
        };
        virtual_load::replay(&mut model, &extents, &trace, Pacing::Recorded, span, each).expect("it fits");
        assert_eq!(found.len(), 1);
        assert!(reads.count() > 1000 && writes.count() > 1000);
        assert_eq!((&reads, &writes), (&found[0].read_latency, &found[0].write_latency), "{device}");
    }
}

/// A write as its host knows it: its sectors, whether it has FUA, and the time of its answer.
struct Written {
    first: u64,
    end: u64,
    fua: bool,
    told_ns: Option<u64>,
}

/// Writes a number into every sector of random ranges, flushes now and then, and cuts the power. After each cut,
/// compares every sector with the contents that durability requires or allows. Returns the number of wrong sectors.
fn cut(offer: Offer, pace: Pace, cuts: u64, seed: u64) -> u64 {
    const SECTORS: u64 = 512;
    let mut rng = Seed::new(seed).part("writer", 0).stream();
    let mut drive = open(offer, pace);
    let (mut now_ns, mut broken) = (0, 0);
    // Numbers of writes begin at 1; 0 marks a sector that was never written.
    let mut holds = vec![0u64; SECTORS as usize];
    let mut next = 1u64;
    for number in 0..cuts {
        let mut writes = BTreeMap::<u64, Written>::new();
        let mut flushes = Vec::<(u64, u64)>::new();
        let mut flying = BTreeMap::<Ticket, (u64, Option<u64>)>::new();
        for _ in 0..5 + below(&mut rng, 60) {
            now_ns += below(&mut rng, 300_000);
            // Requests that fall due after this step remain unanswered if the power is cut now.
            for (at_ns, ticket, result) in answers(&mut drive, now_ns) {
                let (asked_ns, write) = flying.remove(&ticket).expect("in flight");
                assert_eq!(result, Ok(()));
                match write {
                    Some(write) => writes.get_mut(&write).expect("known").told_ns = Some(at_ns),
                    None => flushes.push((asked_ns, at_ns)),
                }
            }
            let ticket = (0..).find(|ticket| !flying.contains_key(ticket)).expect("one is free");
            if below(&mut rng, 8) == 0 {
                flying.insert(ticket, (now_ns, None));
                drive.submit(now_ns, ticket, Request::flush(), &[]);
                continue;
            }
            let (first, length) = (below(&mut rng, SECTORS - 24), 1 + below(&mut rng, 24));
            let fua = below(&mut rng, 10) == 0;
            let data: Vec<u8> = (0..length * SECTOR / 8).flat_map(|_| next.to_le_bytes()).collect();
            let request = Request { op: Op::Write { fua }, offset: first * SECTOR, length: length * SECTOR };
            writes.insert(next, Written { first, end: first + length, fua, told_ns: None });
            flying.insert(ticket, (now_ns, Some(next)));
            drive.submit(now_ns, ticket, request, &data);
            next += 1;
        }
        drive.power_cut(now_ns, if number % 2 == 0 { Tear::Sector } else { Tear::Page }).expect("memory");
        assert_eq!(drive.next_due(), None, "nothing is in flight after a cut");
        let refused = ask(&mut drive, now_ns, Request::read(0, SECTOR), &[]);
        assert_eq!(refused.1, Err(libc::EIO), "the power is off");
        drive.power_on(now_ns);
        let must = |write: &Written| {
            write.told_ns.is_some_and(|told| write.fua || flushes.iter().any(|(asked, _)| *asked >= told))
        };
        for sector in 0..SECTORS {
            let mut bytes = [0; SECTOR as usize];
            drive.read(sector * SECTOR, &mut bytes).expect("memory");
            let words: Vec<u64> =
                bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("8"))).collect();
            let found = words[0];
            assert!(words.iter().all(|word| *word == found), "sector {sector} itself is torn");
            let over = |write: &Written| write.first <= sector && sector < write.end;
            let last_promised = writes.iter().rfind(|(_, write)| over(write) && must(write)).map(|it| *it.0);
            let oldest = last_promised.unwrap_or(holds[sector as usize]);
            let is_one = found == oldest || writes.get(&found).is_some_and(over) && found > oldest;
            broken += u64::from(!is_one);
            holds[sector as usize] = found;
        }
        now_ns += 1_000_000;
    }
    broken
}

#[test]
fn a_thousand_power_cuts_take_nothing_that_was_flushed() {
    for (device, pace) in
        [("intel-320-160gb", AT_ONCE), ("sata-7k2-1tb", AT_ONCE), ("intel-320-160gb", Pace::NoDelay)]
    {
        for seed in 1..=2 {
            let broken = cut(offer(device, CacheKind::Volatile, seed), pace, 500, seed);
            assert_eq!(broken, 0, "{device}, seed {seed}");
            let broken = cut(offer(device, CacheKind::Lying, seed), pace, 500, seed);
            assert!(
                broken > 1000,
                "{device}, seed {seed}: a check that cannot fail is not a check: {broken}"
            );
        }
    }
    assert_eq!(cut(offer("intel-320-160gb", CacheKind::Protected, 3), AT_ONCE, 200, 3), 0);
}

/// Cuts the power in the middle of overlapping writes, some with FUA, and of zeroes, trims, flushes and reads;
/// returns the findings of the request log. The loop is late: it answers all due requests together, or none before
/// the cut.
fn cut_late(offer: Offer, pace: Pace, cuts: u64, seed: u64) -> Findings {
    const BLOCKS: u64 = 24;
    let mut rng = Seed::new(seed).part("late", 0).stream();
    let mut drive = open(offer, pace);
    let mut contract = Contract::new();
    let (mut now_ns, mut number, mut all) = (0, 0u64, Findings::default());
    drive.log_requests(now_ns);
    for cut in 0..cuts {
        let mut free: Vec<Ticket> = (0..64).collect();
        let mut flying = BTreeMap::<Ticket, Request>::new();
        let (requests, late_ns) =
            (5 + below(&mut rng, 80), [1, 200_000, 20_000_000][below(&mut rng, 3) as usize]);
        for _ in 0..requests {
            now_ns += below(&mut rng, late_ns);
            if below(&mut rng, 3) > 0 || free.is_empty() {
                now_ns =
                    if free.is_empty() { drive.next_due().expect("in flight").max(now_ns) } else { now_ns };
                while let Some((ticket, result)) = drive.due(now_ns) {
                    assert_eq!(result, Ok(()), "seed {seed}");
                    let Request { op, offset, length } = flying.remove(&ticket).expect("in flight");
                    free.push(ticket);
                    if op == Op::Read {
                        drive.read(offset, &mut vec![0; length as usize]).expect("memory");
                    }
                }
            }
            let Some(ticket) = free.pop() else { continue };
            let (first, blocks) = (below(&mut rng, BLOCKS), 1 + below(&mut rng, 6));
            // Sector granularity, so that writes overlap within pages.
            let (offset, length) = (first * 4096 + below(&mut rng, 8) * SECTOR, blocks * 3 * SECTOR);
            let op = match below(&mut rng, 16) {
                0..=3 => Op::Read,
                4..=9 => Op::Write { fua: false },
                10..=11 => Op::Write { fua: true },
                12 => Op::Trim,
                13 => Op::WriteZeroes,
                _ => Op::Flush,
            };
            let request = if op == Op::Flush { Request::flush() } else { Request { op, offset, length } };
            number += 1;
            let is_write = matches!(op, Op::Write { .. });
            let words = if is_write { request.length / 8 } else { 0 };
            let data: Vec<u8> = (0..words).flat_map(|word| (number << 20 | word).to_le_bytes()).collect();
            flying.insert(ticket, request);
            drive.submit(now_ns, ticket, request, &data);
        }
        now_ns += below(&mut rng, late_ns);
        drive.power_cut(now_ns, [Tear::Sector, Tear::Page][cut as usize % 2]).expect("memory");
        drive.power_on(now_ns);
        let whole = Request::read(0, (BLOCKS + 8) * 4096);
        assert_eq!(ask_and_read(&mut drive, now_ns, whole), Ok(()), "seed {seed}");
        now_ns += 10_000_000_000;
        let log = drive.log_requests(now_ns).expect("it is logged");
        let found = contract.follow(&request_log::read(log.text()).expect("a log"));
        all.checked += found.checked;
        all.flushes += found.flushes;
        all.broken += found.broken;
        all.breaches.extend(found.breaches);
        assert!(found.failed.is_empty(), "seed {seed}: {:?}", found.failed);
    }
    all
}

/// Submits a single read and reads its data.
fn ask_and_read(drive: &mut LiveDrive, now_ns: u64, request: Request) -> Result<(), i32> {
    let (_, result) = ask(drive, now_ns, request, &[]);
    result.and_then(|()| drive.read(request.offset, &mut vec![0; request.length as usize]))
}

#[test]
fn a_drive_whose_loop_is_late_keeps_its_contract() {
    for device in ["intel-320-160gb", "sata-7k2-1tb"] {
        for pace in [AT_ONCE, Pace::RealTime { transport_ns: 80_000 }, Pace::NoDelay] {
            for seed in 1..=2 {
                let found = cut_late(offer(device, CacheKind::Volatile, seed), pace, 40, seed);
                assert_eq!(found.broken, 0, "{device}, {pace:?}, seed {seed}: {:?}", found.breaches.first());
                assert!(found.checked > 5_000 && found.flushes > 40, "{device}: {found:?}");
                let found = cut_late(offer(device, CacheKind::Protected, seed), pace, 15, seed);
                assert_eq!(found.broken, 0, "{device}, {pace:?}, seed {seed}: {:?}", found.breaches.first());
            }
            let found = cut_late(offer(device, CacheKind::Lying, 1), pace, 40, 1);
            assert!(
                found.broken > 10,
                "{device}, {pace:?}: a check that cannot fail is none: {}",
                found.broken
            );
        }
    }
}

#[test]
fn a_protected_cache_keeps_every_answered_write() {
    let mut drive = open(offer("intel-320-160gb", CacheKind::Protected, 1), AT_ONCE);
    let mut now_ns = 0;
    for n in 0..64u64 {
        let (at_ns, result) = ask(&mut drive, now_ns, Request::write(n * 4096, 4096), &[n as u8 + 1; 4096]);
        assert_eq!(result, Ok(()));
        now_ns = at_ns;
    }
    let loss = drive.power_cut(now_ns, Tear::Sector).expect("memory");
    assert_eq!((loss.dropped.writes, loss.torn.writes), (0, 0));
    drive.power_on(now_ns);
    for n in 0..64u64 {
        let mut bytes = [0; 4096];
        drive.read(n * 4096, &mut bytes).expect("memory");
        assert_eq!(bytes, [n as u8 + 1; 4096]);
    }
}

#[test]
fn a_recording_replays_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("requests.trace");
    let mut drive = open(Offer::of("intel-320-160gb"), Pace::NoDelay);
    assert!(drive.record(Some(Recorder::new(&path).expect("new"))).is_none());
    assert!(Recorder::new(&path).is_err(), "a file that exists is not overwritten");
    let mut rng = Seed::new(5).part("requests", 0).stream();
    let mut asked = Vec::new();
    for n in 0..3000u64 {
        let request = match random(&mut rng, 20_000) {
            Request { op: Op::Trim, offset, length } if n % 2 == 0 => {
                Request { op: Op::WriteZeroes, offset, length }
            }
            Request { op: Op::Write { .. }, offset, length } if n % 3 == 0 => {
                Request { op: Op::Write { fua: true }, offset, length }
            }
            request => request,
        };
        let is_write = matches!(request.op, Op::Write { .. });
        let data = vec![1; if is_write { request.length as usize } else { 0 }];
        assert_eq!(ask(&mut drive, 1000 + n * 77, request, &data).1, Ok(()));
        asked.push(lowtide_core::trace::Traced { at_ns: n * 77, request });
    }
    let count = drive.record(None).expect("it was recorded").finish().expect("written");
    assert_eq!(count, 3000);
    assert_eq!(trace::read(&path).expect("a trace"), Trace::new(asked).expect("sound"));
}

#[test]
fn a_pause_holds_answers_and_an_erasure_leaves_nothing() {
    let mut drive = open(Offer::of("intel-320-160gb"), AT_ONCE);
    drive.submit(0, 0, Request::write(0, 4096), &[9; 4096]);
    let due_ns = drive.next_due().expect("in flight");
    drive.pause(10);
    assert_eq!((drive.next_due(), drive.due(1 << 40)), (None, None));
    assert_eq!(drive.stat(20).power, Power::Paused);
    drive.resume(1_000_010);
    assert_eq!(drive.next_due(), Some(due_ns + 1_000_000));
    assert_eq!(answers(&mut drive, u64::MAX).len(), 1);
    drive.secure_erase().expect("memory");
    let mut bytes = [1; 4096];
    drive.read(0, &mut bytes).expect("memory");
    assert_eq!(bytes, [0; 4096]);
    assert_eq!(drive.run(0, 1 << 30).expect("memory").length, 1 << 30);
    let stat = drive.stat(30);
    assert_eq!((stat.since_open.host_written_bytes, stat.writes.latency.count), (4096, 1));
    assert_eq!(
        stat.writes.latency.max_us.round(),
        ((due_ns as f64) / 1e3).round(),
        "the pause is not the drive's"
    );
}

#[test]
fn faults_are_errors_of_requests_and_leave_data_alone() {
    let mut drive = open(Offer::of("intel-320-160gb"), AT_ONCE);
    let (mut now_ns, result) = ask(&mut drive, 0, Request::write(0, 4096), &[1; 4096]);
    assert_eq!(result, Ok(()));
    let healthy_ns = {
        let (at_ns, _) = ask(&mut drive, now_ns, Request::read(0, 4096), &[]);
        let took = at_ns - now_ns;
        now_ns = at_ns;
        took
    };
    let slow = Slow { factor: 10.0, added: Nanos::ZERO, share: 1.0, until: None };
    let faults = Faults { slow: Some(slow), write_errors: Some(Errors::default()), ..Faults::default() };
    drive.fail(now_ns, faults, Some(Nanos::from_secs(1))).expect("possible");
    assert_eq!(ask(&mut drive, now_ns, Request::write(0, 4096), &[2; 4096]).1, Err(libc::EIO));
    let (at_ns, result) = ask(&mut drive, now_ns, Request::read(0, 4096), &[]);
    assert_eq!(result, Ok(()));
    assert!(at_ns - now_ns > 9 * healthy_ns, "{} against {healthy_ns}", at_ns - now_ns);
    let later = now_ns + 2_000_000_000;
    let (at_ns, _) = ask(&mut drive, later, Request::read(0, 4096), &[]);
    assert!(at_ns - later < 2 * healthy_ns, "slow for a second");
    let worn = Faults { end_of_life: Some(EndOfLife::Now), ..Faults::default() };
    drive.fail(at_ns, worn, None).expect("possible");
    assert_eq!(ask(&mut drive, at_ns, Request::write(0, 4096), &[3; 4096]).1, Err(libc::EROFS));
    let mut bytes = [0; 4096];
    drive.read(0, &mut bytes).expect("memory");
    assert_eq!(bytes, [1; 4096], "what failed changed nothing");
    assert_eq!(drive.stat(at_ns).writes.errors, 2);
}

#[test]
fn data_in_a_file_is_there_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = Data::File(directory.path().join("drive.img"));
    let offer = Offer { data, scale: 1000, ..Offer::of("sata-7k2-1tb") };
    let mut drive = open(offer.clone(), Pace::NoDelay);
    assert_eq!(ask(&mut drive, 0, Request::write(1 << 20, 512), &[7; 512]).1, Ok(()));
    let second = offer.clone().look_up().expect("known").open(Pace::NoDelay);
    assert!(second.err().expect("it is in use").to_string().contains("in use"));
    drive.close().expect("closes");
    let mut drive = open(offer, Pace::NoDelay);
    let mut bytes = [0; 512];
    drive.read(1 << 20, &mut bytes).expect("a file");
    assert_eq!(bytes, [7; 512]);
}

#[test]
fn map_and_wear_are_kept_from_one_server_to_the_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("drive.state");
    let offer = Offer { scale: 64, state: Some(path.clone()), ..Offer::of("intel-320-160gb") };
    let known = offer.look_up().expect("known");
    let mut drive = known.open(Pace::NoDelay).expect("opens");
    assert!(known.open(Pace::NoDelay).err().expect("it is in use").to_string().contains("another server"));
    for n in 0..200 {
        assert_eq!(ask(&mut drive, 0, Request::write(n * 4096, 4096), &[7; 4096]).1, Ok(()));
    }
    let before = drive.stat(0);
    known.close(drive).expect("written");

    let mut drive = known.open(Pace::NoDelay).expect("opens");
    assert_eq!(drive.warning(), None);
    let stat = drive.stat(0);
    assert_eq!(stat.since_new.host_written_bytes, before.since_new.host_written_bytes);
    assert_eq!(stat.since_open.host_written_bytes, 0);
    assert!(stat.model_s >= before.model_s);
    // Dropped without closing: the state file is older than the contents.
    assert_eq!(ask(&mut drive, 0, Request::write(0, 4096), &[8; 4096]).1, Ok(()));
    drop(drive);
    let drive = known.open(Pace::NoDelay).expect("opens");
    assert!(drive.warning().is_some());
    known.close(drive).expect("written");
    assert_eq!(known.open(Pace::NoDelay).expect("opens").warning(), None);
    assert!(!directory.path().join("drive.state.open").exists(), "one that was asked nothing leaves no mark");

    let other = Offer { scale: 32, state: Some(path.clone()), ..Offer::of("intel-320-160gb") };
    let error = other.look_up().expect("known").open(Pace::NoDelay).err().expect("another description");
    assert!(error.to_string().contains("drive.state"), "{error}");
    std::fs::write(&path, "nonsense").expect("written");
    assert!(known.open(Pace::NoDelay).is_err());
}

#[test]
fn what_was_in_flight_at_a_cut_answers_nothing_later() {
    for device in ["intel-320-160gb", "sata-7k2-1tb", "raid10-8x-sata-7k2-1tb", "flash-cache-write-back"] {
        for pause in [false, true] {
            let seed = 11;
            let mut rng = Seed::new(seed).part("offsets", 0).stream();
            let offer = Offer { scale: 16, seed: Seed::new(seed), ..Offer::of(device) };
            let mut drive = open(offer, AT_ONCE);
            let mut now_ns = 0;
            let blocks = drive.export().size / 4096;
            for round in 0..20 {
                for ticket in 0..64 {
                    drive.submit(now_ns, ticket, Request::read(below(&mut rng, blocks) * 4096, 4096), &[]);
                }
                // The loop was busy elsewhere, so many due requests are unanswered.
                now_ns += below(&mut rng, 50_000_000);
                if pause {
                    drive.pause(now_ns);
                }
                drive.power_cut(now_ns, Tear::Page).expect("memory");
                drive.power_on(now_ns);
                assert_eq!(drive.next_due(), None, "{device}");
                let began_ns = now_ns;
                for ticket in 0..8 {
                    drive.submit(now_ns, ticket, Request::read(below(&mut rng, blocks) * 4096, 4096), &[]);
                }
                let all = answers(&mut drive, u64::MAX);
                let tickets: std::collections::BTreeSet<Ticket> = all.iter().map(|it| it.1).collect();
                assert_eq!((all.len(), tickets.len()), (8, 8), "{device}, round {round}");
                assert!(all.iter().all(|it| it.0 > began_ns && it.2 == Ok(())), "{device}, round {round}");
                now_ns = all.last().expect("eight").0;
            }
        }
    }
}

#[test]
fn a_read_only_drive_is_not_erased_and_no_span_is_too_long() {
    let mut drive = open(Offer { read_only: true, ..Offer::of("intel-320-160gb") }, AT_ONCE);
    assert!(drive.secure_erase().is_err());
    let slow = Slow { factor: 2.0, added: Nanos::ZERO, share: 1.0, until: None };
    let faults = Faults { slow: Some(slow), ..Faults::default() };
    drive.fail(5, faults, Some(Nanos::new(u64::MAX))).expect("possible");
    assert_eq!(ask(&mut drive, 5, Request::read(0, 4096), &[]).1, Ok(()));
}

/// A write of part of a block takes as long as reading the surrounding blocks and then writing them. A power cut
/// reverts it by whole blocks.
#[test]
fn a_part_of_a_block_is_read_around_and_written_back() {
    let fresh = |pace| open(offer("sata-7k2-1tb", CacheKind::Protected, 3), pace);
    let (mut parts, mut whole) = (fresh(AT_ONCE), fresh(AT_ONCE));
    let mut now = (0, 0);
    for n in 0..50_u64 {
        let offset = n * 7_919_104 + 100;
        let (came, block) = (now.0.max(now.1), offset / SECTOR * SECTOR);
        let (done, result) = ask(&mut parts, came, Request::write(offset, 600), &[n as u8 + 1; 600]);
        assert_eq!(result, Ok(()));
        let (read, _) = ask(&mut whole, came, Request::read(block, 2 * SECTOR), &[]);
        let (written, _) =
            ask(&mut whole, read, Request::write(block, 2 * SECTOR), &[0; 2 * SECTOR as usize]);
        assert_eq!(done, written, "write {n}");
        let mut found = [9; 1024];
        parts.read(block, &mut found).expect("it is there");
        let around = (offset - block) as usize;
        assert!(found[around..around + 600].iter().all(|byte| *byte == n as u8 + 1));
        assert!(found[..around].iter().chain(&found[around + 600..]).all(|byte| *byte == 0));
        now = (done + 1_000_000, written);
    }
    for seed in 0..40 {
        let mut drive = open(offer("intel-320-160gb", CacheKind::Volatile, seed), Pace::NoDelay);
        assert_eq!(ask(&mut drive, 0, Request::write(0, 1024), &[1; 1024]).1, Ok(()));
        assert_eq!(ask(&mut drive, 0, Request::flush(), &[]).1, Ok(()));
        assert_eq!(ask(&mut drive, 0, Request::write(500, 100), &[2; 100]).1, Ok(()));
        drive.power_cut(1, Tear::Sector).expect("memory");
        let mut found = [0; 1024];
        drive.read(0, &mut found).expect("memory");
        let whole = [(500..512, 500), (512..600, 512)];
        for (part, first) in whole {
            assert!(found[part].iter().all(|byte| *byte == found[first]), "seed {seed}: a block is torn");
        }
        assert!(
            found[..500].iter().chain(&found[600..]).all(|byte| *byte == 1),
            "seed {seed}: not written to"
        );
    }
}

#[test]
fn a_power_cut_in_pieces_of_a_logical_block_is_refused() {
    for (block, tear, refused) in
        [(512, 512, false), (512, 4096, false), (4096, 512, true), (4096, 4096, false)]
    {
        let mut drives = [open(Offer { block, ..offer("intel-320-160gb", CacheKind::Volatile, 1) }, AT_ONCE)];
        let question = Question { drive: None, order: Order::PowerCut { tear, stay_off: true } };
        let told = match control::obey(&mut drives, 0, question) {
            Answer::Error(told) => Some(told),
            Answer::Ok(_) => None,
        };
        assert_eq!(told.is_some(), refused, "{block}, {tear}: {told:?}");
        assert_eq!(drives[0].is_powered(), refused, "{block}, {tear}");
    }
}
