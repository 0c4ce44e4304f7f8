//! Power cuts, also during cleaning and checkpoints: flushed writes survive, and of later writes a prefix in the
//! order of writing, whichever sectors reached the medium.

mod common;

use common::{BYTES, Blocks, Fate, Memory, OPTIONS, block_of, opened, scrub, stream, value_of};
use lowtide_core::rng::{Rng, below};
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::slot::SLOT;
use lowtide_logdisk::format::{Checkpoint, Header, Kind as SlotKind, Slot};
use lowtide_logdisk::log::Job;
use lowtide_logdisk::resize::grow;
use lowtide_logdisk::{BLOCK, Disk, Medium, Options};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// A step of a history.
#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32, u64),
    Unmap(u32, u32),
    Flush,
}

impl Step {
    fn blocks(self) -> Range<u32> {
        match self {
            Step::Write(lba, _) => lba..lba + 1,
            Step::Unmap(first, count) => first..first + count,
            Step::Flush => 0..0,
        }
    }
}

/// The values of blocks; 0 for blocks that are not listed.
type Values = HashMap<u32, u64>;

fn apply(values: &mut Values, step: Step) {
    match step {
        Step::Write(lba, value) => {
            values.insert(lba, value);
        }
        Step::Unmap(first, count) => (first..first + count).for_each(|lba| {
            values.insert(lba, 0);
        }),
        Step::Flush => {}
    }
}

fn running(checkpoint_slots: u64) -> Running {
    Running { checkpoint_slots, ..Running::default() }
}

/// A full disk that was cleaned.
fn full_disk() -> (Blocks, Values) {
    let medium = Memory::new(BYTES);
    let mut disk = Disk::format(&medium, OPTIONS, [7; 16]).expect("formatted");
    let (mut rng, mut values) = (stream("full", 0), Values::new());
    let blocks = disk.geometry().blocks;
    for n in 0..3 * blocks {
        let lba = if n < blocks { n } else { below(&mut rng, blocks.into()) as u32 };
        let step = Step::Write(lba, u64::from(n) + 1);
        disk.write(lba, &block_of(lba, u64::from(n) + 1)).expect("written");
        apply(&mut values, step);
    }
    disk.close().expect("closed");
    (medium.blocks(), values)
}

/// The parameters of a history.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// Slots between checkpoints.
    slots: u64,
    steps: u32,
    /// Number of blocks that are written.
    hot: u32,
    /// One of this many steps is a flush.
    flush: u64,
}

/// Runs a history whose values begin at `first`. Returns its steps, each with the number of events after it.
fn history(medium: &Memory, kind: Kind, rng: &mut Rng, first: u64) -> Vec<(Step, usize)> {
    let Kind { slots, steps, hot, flush } = kind;
    let mut disk = Disk::open(medium, running(slots)).expect("opened");
    let blocks = disk.geometry().blocks;
    let mut done = Vec::new();
    for n in 0..steps {
        let lba = below(rng, hot.min(blocks).into()) as u32;
        let step = match (below(rng, flush), below(rng, 20)) {
            (0, _) => Step::Flush,
            (_, 0) => Step::Unmap(lba, 1 + below(rng, u64::from(blocks - lba).min(300)) as u32),
            _ => Step::Write(lba, first + u64::from(n)),
        };
        match step {
            Step::Write(lba, value) => disk.write(lba, &block_of(lba, value)).expect("written"),
            Step::Unmap(first, count) => disk.unmap(first, count).expect("unmapped"),
            Step::Flush => disk.flush().expect("flushed"),
        }
        done.push((step, medium.events()));
    }
    done
}

/// Opens a disk after a cut. Returns the number of steps that it holds, which must be a prefix with everything that
/// was flushed.
fn prefix(left: Blocks, before: &Values, steps: &[(Step, usize)], events: usize, context: &str) -> usize {
    let medium = Memory::of(BYTES, left);
    if events.is_multiple_of(8) {
        let checked = scrub(&medium).expect("checked");
        assert!(checked.is_good(), "{context}: {checked:?}");
    }
    let mut disk =
        Disk::open(&medium, running(u64::MAX)).unwrap_or_else(|error| panic!("{context}: {error}"));
    let touched: BTreeSet<u32> = steps.iter().flat_map(|&(step, _)| step.blocks()).collect();
    let mut found = Values::new();
    let mut block = [0; BLOCK];
    for &lba in &touched {
        disk.read(lba, &mut block).unwrap_or_else(|error| panic!("{context}: {error}"));
        found.insert(lba, value_of(lba, &block));
    }
    // A flush guarantees durability once it has returned.
    let least = steps
        .iter()
        .rposition(|&(step, at)| matches!(step, Step::Flush) && at <= events)
        .map_or(0, |at| at + 1);
    let mut values: Values =
        touched.iter().map(|&lba| (lba, before.get(&lba).copied().unwrap_or(0))).collect();
    let mut wrong = touched.iter().filter(|lba| values[lba] != found[lba]).count();
    for count in 0..=steps.len() {
        if count >= least && wrong == 0 {
            return count;
        }
        let Some(&(step, _)) = steps.get(count) else { break };
        let range = step.blocks();
        wrong -= range.clone().filter(|lba| values[lba] != found[lba]).count();
        apply(&mut values, step);
        wrong += range.filter(|lba| values[lba] != found[lba]).count();
    }
    panic!(
        "{context}: the contents are not a prefix of the writes with everything that was flushed ({least} steps)"
    );
}

#[test]
fn every_cut_point_of_short_histories_leaves_a_prefix() {
    let (base, values) = full_disk();
    let mut cuts = 0;
    for number in 0..histories(1000) {
        let mut rng = stream("short", number);
        let medium = Memory::of(BYTES, base.clone());
        // Checkpoints every few writes, less often, or never; writes to few blocks or to all blocks.
        let slots = [20, 60, 1 << 40][(number % 3) as usize];
        let hot = [16, 1 << 30][(number / 3 % 2) as usize];
        let kind = Kind { slots, steps: 60, hot, flush: 20 };
        let steps = history(&medium, kind, &mut rng, 1 << 32);
        for events in 0..=medium.events() {
            for fate in [Fate::Kept, Fate::Lost, Fate::Mixed] {
                let left = medium.after_cut(events, fate, &mut rng);
                prefix(
                    left,
                    &values,
                    &steps,
                    events,
                    &format!("history {number}, {events} events, {fate:?}"),
                );
                cuts += 1;
            }
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > 1000);
}

#[test]
fn long_histories_with_cleaning_survive_cut_after_cut() {
    let (base, values) = full_disk();
    for number in 0..histories(10_000) / 10 {
        let (mut blocks, mut values) = (base.clone(), values.clone());
        let mut rng = stream("long", number);
        for round in 0..10 {
            let medium = Memory::of(BYTES, blocks);
            let slots = [300, 2000, 1 << 40][below(&mut rng, 3) as usize];
            let flush = [20, 2000][below(&mut rng, 2) as usize];
            let kind = Kind { slots, steps: 1500, hot: 1 << 30, flush };
            let steps = history(&medium, kind, &mut rng, (round + 1) << 32);
            let events = below(&mut rng, medium.events() as u64 + 1) as usize;
            let context = format!("history {number}, round {round}, {events} of {} events", medium.events());
            blocks = medium.after_cut(events, Fate::Mixed, &mut rng);
            let kept = prefix(blocks.clone(), &values, &steps, events, &context);
            steps[..kept].iter().for_each(|&(step, _)| apply(&mut values, step));
        }
        all_reads_back(BYTES, &blocks, &values);
    }
}

fn all_reads_back(bytes: u64, blocks: &Blocks, values: &Values) {
    let medium = Memory::of(bytes, blocks.clone());
    let mut disk = opened(&medium);
    let mut block = [0; BLOCK];
    for (&lba, &value) in values {
        disk.read(lba, &mut block).expect("read");
        assert_eq!(value_of(lba, &block), value, "block {lba}");
    }
}

/// Number of histories: all with `LOWTIDE_LONG`, else a twentieth.
fn histories(all: u64) -> u64 {
    if std::env::var_os("LOWTIDE_LONG").is_some() { all } else { all / 20 }
}

#[test]
fn every_cut_after_an_opening_that_had_to_recover_leaves_a_prefix() {
    let (base, values) = full_disk();
    let mut cuts = 0;
    for number in 0..histories(600) {
        let mut rng = stream("again", number);
        // A disk after a kill or a cut, with streams in every state.
        let medium = Memory::of(BYTES, base.clone());
        let kind = Kind { slots: 400, steps: 100 + number as u32 * 7 % 900, hot: 1 << 30, flush: 25 };
        let first = history(&medium, kind, &mut rng, 1 << 32);
        let events = medium.events() - below(&mut rng, 3).min(medium.events() as u64) as usize;
        let left = medium.after_cut(events, [Fate::Kept, Fate::Mixed][(number % 2) as usize], &mut rng);
        let kept = prefix(left.clone(), &values, &first, events, &format!("history {number}"));
        let mut values = values.clone();
        first[..kept].iter().for_each(|&(step, _)| apply(&mut values, step));
        // The first operations of a host after the cut, with another cut at every point.
        let medium = Memory::of(BYTES, left);
        let mut disk = Disk::open(&medium, running(1 << 40)).expect("opened");
        let mut steps = Vec::new();
        if number % 3 == 0 {
            disk.flush().expect("flushed");
            steps.push((Step::Flush, medium.events()));
        }
        if number % 3 < 2 {
            for n in 0..3 {
                disk.write(n, &block_of(n, (2 << 32) + u64::from(n))).expect("written");
                steps.push((Step::Write(n, (2 << 32) + u64::from(n)), medium.events()));
            }
            disk.flush().expect("flushed");
            steps.push((Step::Flush, medium.events()));
        }
        disk.close().expect("closed");
        for events in 0..=medium.events() {
            for fate in [Fate::Kept, Fate::Lost, Fate::Mixed] {
                let left = medium.after_cut(events, fate, &mut rng);
                let context = format!("history {number}, again, {events} events, {fate:?}");
                prefix(left.clone(), &values, &steps, events, &context);
                if events % 4 == 0 {
                    let mut sure = values.clone();
                    sure.retain(|&lba, _| lba >= 3);
                    all_reads_back(BYTES, &left, &sure);
                }
                cuts += 1;
            }
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > 100);
}

/// A slot records the low bits of its predecessor's number. Numbers leap at each opening, and the low bits of two
/// openings are the same.
#[test]
fn the_first_slots_after_an_opening_record_no_predecessor() {
    let (base, _) = full_disk();
    let medium = Memory::of(BYTES, base);
    let kind = Kind { slots: 1 << 40, steps: 300, hot: 1 << 30, flush: 20 };
    (0..2)
        .for_each(|number| drop(history(&medium, kind, &mut stream("openings", number), (number + 1) << 32)));
    let disk = Disk::open(&medium, running(1 << 40)).expect("opened");
    let (geometry, salt) = (*disk.geometry(), disk.log().superblock().salt);
    let slots = (0..geometry.segments * geometry.segment_slots()).map(Slot::new);
    let mut bytes = [0; 2 * BLOCK];
    let mut headers: Vec<Header> = slots
        .filter_map(|slot| {
            let begin = geometry.offset(slot);
            medium.read(begin / BLOCK as u64 * BLOCK as u64, &mut bytes).expect("read");
            Header::open(salt, &bytes[(begin % BLOCK as u64) as usize..][..SLOT])
        })
        .collect();
    headers.sort_by_key(|header| header.seq);
    let opening = |header: &Header| header.seq >> 32;
    let last = headers.iter().map(opening).max().expect("some");
    let of_last = headers.iter().filter(|header| opening(header) == last && header.kind != SlotKind::Map);
    let without = of_last.clone().filter(|header| header.before.is_none()).count();
    assert_eq!(without, 2, "the host and moved streams");
    let before = of_last.filter_map(|header| header.before);
    assert!(
        before.into_iter().all(|before| headers.iter().any(|it| opening(it) == last && before.is(it.seq)))
    );
}

#[test]
fn after_a_failed_write_or_flush_all_later_ones_fail() {
    let (base, values) = full_disk();
    for number in 0..60 {
        let mut rng = stream("failing", number);
        let medium = Memory::of(BYTES, base.clone());
        let mut disk = Disk::open(&medium, running(500)).expect("opened");
        medium.fail_after(number as usize);
        let (mut steps, mut failed) = (Vec::new(), false);
        for n in 0..1500 {
            let step = match below(&mut rng, 20) {
                0 => Step::Flush,
                _ => Step::Write(below(&mut rng, 4000) as u32, (1 << 32) + n),
            };
            let done = match step {
                Step::Flush => disk.flush(),
                Step::Write(lba, value) => disk.write(lba, &block_of(lba, value)),
                Step::Unmap(..) => unreachable!("none is made"),
            };
            match done {
                Ok(()) if failed => panic!("{step:?} was accepted after a failure"),
                Ok(()) => steps.push((step, medium.events())),
                // The failed write may have reached the medium.
                Err(_) if !failed => {
                    steps.push((step, usize::MAX));
                    failed = true;
                }
                Err(_) => {}
            }
        }
        assert!(failed, "{number} events were too many");
        assert!(disk.close().is_err(), "nor can it be closed");
        prefix(medium.blocks(), &values, &steps, medium.events(), &format!("failure {number}"));
    }
}

/// A flush or checkpoint in progress.
enum Pending {
    /// A flush: the slots up to this number become durable when the flush ends and the mark is written. The index is
    /// that of the flush's step.
    Flush(u64, usize, Option<Job>),
    /// A checkpoint that is not written yet, and the mark of the slots that it refers to.
    Before(Checkpoint, Option<Job>),
    /// A checkpoint that is written and not durable yet.
    After(Checkpoint),
}

/// [`history`] with flushes and checkpoints that complete during later writes.
fn concurrent_history(medium: &Memory, kind: Kind, rng: &mut Rng, first: u64) -> Vec<(Step, usize)> {
    let Kind { slots, steps, hot, flush } = kind;
    let mut disk = Disk::open(medium, running(slots)).expect("opened");
    let blocks = disk.geometry().blocks;
    let mut done: Vec<(Step, usize)> = Vec::new();
    let mut pending: Option<(Pending, usize)> = None;
    for n in 0..steps {
        if below(rng, 12) == 0
            && let Some((what, begun)) = pending.take()
        {
            medium.flushed(begun);
            let put = |mark: Option<Job>| {
                mark.map_or(Ok(()), |mark| medium.write_durably(mark.offset, &mark.data)).expect("written");
            };
            match what {
                Pending::Flush(seq, step, mark) => {
                    put(mark);
                    disk.durable(seq);
                    done[step].1 = medium.events();
                }
                Pending::Before(checkpoint, mark) => {
                    put(mark);
                    if disk.write_checkpoint(&checkpoint).expect("written") {
                        pending = Some((Pending::After(checkpoint), medium.events()));
                    }
                }
                Pending::After(checkpoint) => disk.end_checkpoint(&checkpoint),
            }
        }
        if pending.is_none() && disk.wants_checkpoint() {
            let checkpoint = disk.begin_checkpoint(false).expect("begun");
            let mark = disk.mark();
            pending = Some((Pending::Before(checkpoint, mark), medium.events()));
        }
        if below(rng, flush) == 0 && pending.is_none() {
            if let Some(seq) = disk.seal().expect("sealed") {
                let mark = disk.mark();
                pending = Some((Pending::Flush(seq, done.len(), mark), medium.events()));
            }
            done.push((Step::Flush, usize::MAX));
        }
        let lba = below(rng, hot.min(blocks).into()) as u32;
        let step = Step::Write(lba, first + u64::from(n));
        disk.write(lba, &block_of(lba, first + u64::from(n))).expect("written");
        done.push((step, medium.events()));
    }
    done
}

#[test]
fn concurrent_flushes_and_checkpoints_survive_power_cuts() {
    let (base, values) = full_disk();
    let mut cuts = 0;
    for number in 0..histories(400) {
        let (mut blocks, mut values) = (base.clone(), values.clone());
        let mut rng = stream("beside", number);
        for round in 0..4 {
            let medium = Memory::of(BYTES, blocks.clone());
            let slots = [24, 60, 700, 4000][below(&mut rng, 4) as usize];
            let hot = [16, 1 << 30][below(&mut rng, 2) as usize];
            let kind = Kind { slots, steps: 1200, hot, flush: 15 };
            let steps = concurrent_history(&medium, kind, &mut rng, (round + 1) << 32);
            for last in [false, false, false, false, true] {
                let events = below(&mut rng, medium.events() as u64 + 1) as usize;
                let fate = [Fate::Kept, Fate::Lost, Fate::Mixed][below(&mut rng, 3) as usize];
                let context = format!("history {number}, round {round}, {events} events, {fate:?}");
                let left = medium.after_cut(events, fate, &mut rng);
                let kept = prefix(left.clone(), &values, &steps, events, &context);
                cuts += 1;
                if last {
                    steps[..kept].iter().for_each(|&(step, _)| apply(&mut values, step));
                    blocks = left;
                }
            }
        }
        all_reads_back(BYTES, &blocks, &values);
    }
    println!("{cuts} cuts");
    assert!(cuts > 50);
}

#[test]
fn a_closed_disk_opens_without_replay() {
    let (blocks, values) = full_disk();
    let medium = Memory::of(BYTES, blocks.clone());
    let disk = opened(&medium);
    assert!(disk.recovery().clean);
    assert_eq!(disk.recovery().replayed, 0);
    assert_eq!(medium.events(), 0, "opening writes nothing");
    all_reads_back(BYTES, &blocks, &values);
    assert!(Medium::bytes(&medium) == BYTES);
}

#[test]
fn a_power_cut_while_growing_leaves_the_old_or_the_new_size() {
    let (base, values) = full_disk();
    let larger = BYTES * 2;
    for number in 0..histories(200) {
        let mut rng = stream("growing", number);
        // A closed disk, or one after a cut.
        let medium = Memory::of(BYTES, base.clone());
        let kind = Kind { slots: 400, steps: 300 * (number % 2) as u32, hot: 1 << 30, flush: 25 };
        let steps = history(&medium, kind, &mut rng, 1 << 32);
        let mut values = values.clone();
        let left = medium.after_cut(medium.events(), Fate::Kept, &mut rng);
        let kept = prefix(left.clone(), &values, &steps, medium.events(), "before");
        steps[..kept].iter().for_each(|&(step, _)| apply(&mut values, step));
        let medium = Memory::of(larger, left);
        let grown = grow(&medium, None).expect("it can");
        let mut found = [0; 2];
        for events in 0..=medium.events() {
            let left = medium.after_cut(events, [Fate::Lost, Fate::Mixed][events % 2], &mut rng);
            let medium = Memory::of(larger, left);
            let mut disk = opened(&medium);
            let geometry = *disk.geometry();
            found[usize::from(geometry == grown)] += 1;
            let mut block = [0; BLOCK];
            for (&lba, &value) in values.iter().filter(|_| events % 3 == 0) {
                disk.read(lba, &mut block).expect("read");
                assert_eq!(value_of(lba, &block), value, "block {lba}, {events} events");
            }
            // The last block is usable.
            let last = geometry.blocks - 1;
            disk.write(last, &block_of(last, 5)).expect("written");
            let medium = disk.close().expect("closed");
            let mut disk = opened(medium);
            disk.read(last, &mut block).expect("read");
            assert_eq!(value_of(last, &block), 5);
        }
        assert!(found[0] > 0 && found[1] > 0, "{found:?}");
    }
}

#[test]
fn a_grown_disk_holds_its_capacity() {
    let (base, mut values) = full_disk();
    let medium = Memory::of(BYTES * 3, base);
    let grown = grow(&medium, Some(0.05)).expect("it can");
    let mut disk = Disk::open(&medium, running(2000)).expect("opened");
    assert_eq!(*disk.geometry(), grown);
    let mut rng = stream("grown", 0);
    for n in 0..2 * grown.blocks {
        let lba = if n < grown.blocks { n } else { below(&mut rng, grown.blocks.into()) as u32 };
        disk.write(lba, &block_of(lba, (3 << 32) + u64::from(n))).expect("written");
        values.insert(lba, (3 << 32) + u64::from(n));
    }
    disk.close().expect("closed");
    all_reads_back(BYTES * 3, &medium.blocks(), &values);
    assert!(grow(&medium, Some(0.5)).is_err(), "it cannot shrink");
    all_reads_back(BYTES * 3, &medium.blocks(), &values);
}

/// A flush after every write leaves half of each segment unused, including those of cleaning.
#[test]
fn the_smallest_reserve_suffices_for_a_full_disk_with_frequent_flushes() {
    for (flush, slots) in [(1, 100), (1, 1 << 40), (3, 1 << 40)] {
        let medium = Memory::new(BYTES);
        let options = Options { segment: 1 << 20, reserve: 0.02 };
        let mut disk = Disk::format(&medium, options, [7; 16]).expect("formatted");
        disk.set_running(running(slots));
        let (mut rng, mut values) = (stream("tight", flush), Values::new());
        let blocks = disk.geometry().blocks;
        for n in 0..3 * blocks {
            let lba = if n < blocks { n } else { below(&mut rng, blocks.into()) as u32 };
            disk.write(lba, &block_of(lba, u64::from(n) + 1)).expect("there is room");
            values.insert(lba, u64::from(n) + 1);
            if u64::from(n) % flush == 0 {
                disk.flush().expect("flushed");
            }
        }
        all_reads_back(BYTES, &disk.close().expect("closed").blocks(), &values);
    }
}

#[test]
fn an_outdated_checkpoint_is_not_written() {
    let (base, _) = full_disk();
    let medium = Memory::of(BYTES, base);
    let mut disk = Disk::open(&medium, running(1 << 40)).expect("opened");
    disk.write(1, &block_of(1, 1 << 32)).expect("written");
    let begun = disk.begin_checkpoint(false).expect("begun");
    disk.write(1, &block_of(1, 2 << 32)).expect("written");
    disk.checkpoint(false).expect("made");
    let events = medium.events();
    assert!(!disk.write_checkpoint(&begun).expect("no failure"));
    disk.end_checkpoint(&begun);
    assert_eq!(medium.events(), events);
    assert_eq!(disk.log().tail_slots(), 0, "the later one is valid");
}
