//! Tests of [`Pending`] against a plain model. The model lists every allowed outcome of a short history, and the
//! result of a power cut must be one of them.
//!
//! The model has no undo. It applies each durable write, and every subset of the granules of each other write, to the
//! original contents in the order of submission.

use super::*;
use lowtide_core::{Bytes, Seed, VirtualTime};
use proptest::prelude::*;
use std::collections::BTreeSet;

const SECTORS: u64 = 16;
const SECTOR: u64 = 512;

/// An event of a history. Each event has its own instant.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// First sector, number of sectors, forced unit access.
    Write(u64, u64, bool),
    /// Acknowledges the n-th write if it was submitted.
    Acknowledge(usize),
    AskFlush,
    /// Completes the oldest flush that was submitted.
    Flushed,
    Trim(u64, u64),
}

/// The write that each sector holds, counted from 1. A sector is 0 if it is unwritten or trimmed.
type Contents = Vec<usize>;

fn fill(contents: &mut [usize], from: u64, count: u64, value: usize) {
    contents[from as usize..(from + count) as usize].fill(value);
}

/// A drive with contents and pending writes.
struct Drive {
    contents: Contents,
    pending: Pending<Contents>,
}

impl Drive {
    fn run(cache: Cache, events: &[Event]) -> Drive {
        let mut drive = Drive { contents: vec![0; SECTORS as usize], pending: Pending::new(cache) };
        let (mut numbers, mut asked) = (Vec::new(), std::collections::VecDeque::new());
        for (at, event) in events.iter().enumerate() {
            let at = VirtualTime::from_nanos(at as u64);
            let Drive { contents, pending } = &mut drive;
            match *event {
                Event::Write(from, count, fua) => {
                    let undo = contents[from as usize..(from + count) as usize].to_vec();
                    numbers.push(pending.write(from * SECTOR, count * SECTOR, fua, undo));
                    fill(contents, from, count, numbers.len());
                }
                Event::Acknowledge(n) => numbers.get(n).iter().for_each(|n| pending.acknowledged(**n, at)),
                Event::AskFlush => asked.push_back(at),
                Event::Flushed => asked.pop_front().into_iter().for_each(|asked| pending.flushed(asked)),
                Event::Trim(from, count) => {
                    pending.overwrite(from * SECTOR, count * SECTOR);
                    fill(contents, from, count, 0);
                }
            }
        }
        drive
    }

    fn cut(&mut self, seed: u64, tear: Tear) -> Loss {
        let Drive { contents, pending } = self;
        pending.cut(Seed::new(seed), tear, &mut |part, undo| {
            let here = part.offset / SECTOR;
            for n in 0..part.length / SECTOR {
                let there = &mut undo[(part.skip / SECTOR + n) as usize];
                std::mem::swap(&mut contents[(here + n) as usize], there);
            }
        })
    }
}

/// Returns which writes are durable at the end of a history.
fn durable(cache: Cache, events: &[Event]) -> Vec<bool> {
    let (mut writes, mut acknowledged) = (Vec::new(), Vec::new());
    let (mut asked, mut durable) = (std::collections::VecDeque::new(), BTreeSet::new());
    for event in events {
        match *event {
            Event::Write(_, count, fua) => writes.push((count * SECTOR, fua)),
            Event::Acknowledge(n) if n < writes.len() && !acknowledged.contains(&n) => {
                acknowledged.push(n);
                let held = |since: usize| acknowledged[since..].iter().map(|n| writes[*n].0).sum::<u64>();
                match cache {
                    Cache::Protected => durable.extend(&acknowledged),
                    Cache::Volatile { size, honours_flush } => {
                        durable.extend(
                            (0..acknowledged.len())
                                .filter(|since| held(*since) > size.get())
                                .map(|it| acknowledged[it]),
                        );
                        if honours_flush && writes[n].1 {
                            durable.insert(n);
                        }
                    }
                }
            }
            Event::AskFlush => asked.push_back(acknowledged.clone()),
            Event::Flushed => {
                if let Some(covered) = asked.pop_front()
                    && !matches!(cache, Cache::Volatile { honours_flush: false, .. })
                {
                    durable.extend(covered);
                }
            }
            Event::Acknowledge(_) | Event::Trim(..) => {}
        }
    }
    (0..writes.len()).map(|n| durable.contains(&n)).collect()
}

/// Lists all contents that a power cut at the end of a history may leave.
fn allowed(cache: Cache, tear: Tear, events: &[Event]) -> BTreeSet<Contents> {
    let (durable, granule) = (durable(cache, events), tear.granule() / SECTOR);
    let mut outcomes = BTreeSet::from([vec![0; SECTORS as usize]]);
    let mut writes = 0;
    for event in events {
        match *event {
            Event::Write(from, count, _) => {
                writes += 1;
                let (first, last) = (from / granule, (from + count - 1) / granule);
                let granules = last - first + 1;
                let all = (1u64 << granules) - 1;
                let subsets = if durable[writes - 1] { all..=all } else { 0..=all };
                let before = std::mem::take(&mut outcomes);
                for (contents, subset) in before.iter().flat_map(|it| subsets.clone().map(move |s| (it, s))) {
                    let mut contents = contents.clone();
                    for sector in from..from + count {
                        if subset >> (sector / granule - first) & 1 == 1 {
                            contents[sector as usize] = writes;
                        }
                    }
                    outcomes.insert(contents);
                }
            }
            Event::Trim(from, count) => {
                let before = std::mem::take(&mut outcomes);
                outcomes.extend(before.into_iter().map(|mut contents| {
                    fill(&mut contents, from, count, 0);
                    contents
                }));
            }
            _ => {}
        }
    }
    outcomes
}

fn range() -> impl Strategy<Value = (u64, u64)> {
    (0..SECTORS, 1..5u64).prop_map(|(from, count)| (from, count.min(SECTORS - from)))
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (range(), prop::bool::weighted(0.3)).prop_map(|((from, count), fua)| Event::Write(from, count, fua)),
        4 => (0..5usize).prop_map(Event::Acknowledge),
        1 => Just(Event::AskFlush),
        1 => Just(Event::Flushed),
        1 => range().prop_map(|(from, count)| Event::Trim(from, count)),
    ]
}

fn history() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(event(), 0..16).prop_map(|mut events| {
        // Histories with more than five writes have too many outcomes to list.
        let mut writes = 0;
        events.retain(|event| {
            writes += usize::from(matches!(event, Event::Write(..)));
            !matches!(event, Event::Write(..)) || writes <= 5
        });
        events
    })
}

fn cache() -> impl Strategy<Value = Cache> {
    let size = prop_oneof![Just(0), Just(5 * SECTOR), Just(1 << 20)];
    prop_oneof![
        1 => Just(Cache::Protected),
        4 => (size, any::<bool>())
            .prop_map(|(size, honours_flush)| Cache::Volatile { size: Bytes::new(size), honours_flush }),
    ]
}

fn tear() -> impl Strategy<Value = Tear> {
    prop_oneof![Just(Tear::Sector), Just(Tear::Page)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_cut_leaves_what_the_rules_allow(cache in cache(), tear in tear(), events in history(), seed in 0..1000u64) {
        let mut drive = Drive::run(cache, &events);
        let durable = durable(cache, &events);
        let before = drive.contents.clone();
        prop_assert!(!(durable.iter().all(|it| *it) && drive.pending.bytes() > 0), "nothing can be taken back");
        let loss = drive.cut(seed, tear);
        prop_assert!(allowed(cache, tear, &events).contains(&drive.contents), "left {:?}", drive.contents);
        let taken_back = durable.iter().filter(|it| !**it).count() as u64;
        prop_assert_eq!(loss.kept.writes + loss.dropped.writes + loss.torn.writes, taken_back);
        prop_assert_eq!(drive.pending.bytes(), 0);
        // Everything is durable now, so a second cut loses nothing.
        let left = drive.contents.clone();
        prop_assert_eq!(drive.cut(seed, tear), Loss::default());
        prop_assert_eq!(&drive.contents, &left);
        if taken_back == 0 {
            prop_assert_eq!(before, left);
        }
    }

    #[test]
    fn pending_bytes_are_those_of_writes_that_are_not_durable(cache in cache(), events in history()) {
        let drive = Drive::run(cache, &events);
        let durable = durable(cache, &events);
        let (mut held, mut writes) = (vec![[false; SECTORS as usize]; 0], 0);
        for event in &events {
            match *event {
                Event::Write(from, count, _) => {
                    held.push(std::array::from_fn(|n| (from..from + count).contains(&(n as u64)) && !durable[writes]));
                    writes += 1;
                }
                Event::Trim(from, count) => {
                    held.iter_mut().for_each(|it| it[from as usize..(from + count) as usize].fill(false));
                }
                _ => {}
            }
        }
        let sectors = held.iter().flatten().filter(|it| **it).count() as u64;
        prop_assert_eq!(drive.pending.bytes(), sectors * SECTOR);
    }
}

/// Every allowed outcome occurs under some seed.
#[test]
fn every_allowed_outcome_is_seen() {
    let volatile = Cache::Volatile { size: Bytes::mib(1), honours_flush: true };
    use Event::*;
    let histories = [
        vec![Write(0, 3, false), Acknowledge(0), Write(1, 2, false)],
        vec![Write(0, 2, false), Write(1, 1, true), Acknowledge(1), Write(0, 3, false)],
        vec![Write(0, 4, false), AskFlush, Acknowledge(0), Flushed, Trim(1, 1), Write(1, 2, false)],
    ];
    for events in &histories {
        let allowed = allowed(volatile, Tear::Sector, events);
        let seen = (0..2000).map(|seed| {
            let mut drive = Drive::run(volatile, events);
            drive.cut(seed, Tear::Sector);
            drive.contents
        });
        assert_eq!(seen.collect::<BTreeSet<_>>(), allowed, "{events:?}");
    }
}

#[test]
fn a_durable_write_wins_over_an_older_one_that_is_not() {
    let cache = Cache::Volatile { size: Bytes::mib(1), honours_flush: true };
    let events = [Event::Write(0, 4, false), Event::Write(1, 2, true), Event::Acknowledge(1)];
    for seed in 0..100 {
        let mut drive = Drive::run(cache, &events);
        drive.cut(seed, Tear::Sector);
        assert_eq!(drive.contents[1..3], [2, 2], "seed {seed}");
    }
}

#[test]
fn cuts_of_one_seed_differ_and_repeat() {
    let fates = |seed| {
        let mut drive = Drive::run(Cache::Protected, &[]);
        let mut fates = Vec::new();
        for n in 0..64u64 {
            drive.pending.write(0, 8 * SECTOR, false, drive.contents[..8].to_vec());
            fill(&mut drive.contents, 0, 8, n as usize + 1);
            drive.cut(seed, Tear::Sector);
            fates.push(drive.contents.iter().map(|it| *it == n as usize + 1).collect::<Vec<_>>());
        }
        fates
    };
    assert_eq!(fates(7), fates(7));
    assert_ne!(fates(7), fates(8));
    assert!(fates(7).iter().collect::<BTreeSet<_>>().len() > 10, "the n-th cut differs from the others");
}

/// Durable FUA writes stay in the list behind older writes in the cache, so the size of the cache bounds the list.
#[test]
fn memory_is_bounded_by_the_cache() {
    let size = Bytes::kib(64);
    let mut pending = Pending::new(Cache::Volatile { size, honours_flush: true });
    let mut at = VirtualTime::START;
    for n in 0..100_000u64 {
        let number = pending.write(n % 8 * 4096, 4096, n % 3 == 0, ());
        at = at + lowtide_core::Nanos::new(1);
        pending.acknowledged(number, at);
        assert!(pending.bytes() <= size.get() && pending.waiting() <= 17, "after {n} writes");
    }
    pending.flushed(at);
    assert_eq!((pending.bytes(), pending.waiting()), (0, 0));
}

/// A flush submitted at the instant of an acknowledgement covers the acknowledged write.
#[test]
fn a_flush_covers_what_was_acknowledged_at_the_instant_it_was_asked() {
    let at = VirtualTime::from_nanos(7);
    let mut pending = Pending::new(Cache::Volatile { size: Bytes::mib(1), honours_flush: true });
    let number = pending.write(0, 4096, false, ());
    pending.acknowledged(number, at);
    pending.flushed(at);
    assert_eq!(pending.bytes(), 0);
}
