//! Power cuts: whatever comes to the medium and whatever does not, what was flushed is there, and what was not is a prefix of the
//! order in which it was written; with the cleaner at work, and checkpoints.

mod common;

use common::{Blocks, Fate, Memory, block_of, stream, value_of};
use lowtide_core::rng::{Rng, below};
use lowtide_logdisk::check::check;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::slot::SLOT;
use lowtide_logdisk::format::{Checkpoint, Header, Kind as SlotKind, Slot};
use lowtide_logdisk::log::Job;
use lowtide_logdisk::resize::grow;
use lowtide_logdisk::{BLOCK, Disk, Medium, Options};
use std::collections::HashMap;
use std::ops::ControlFlow;

const BYTES: u64 = 36 << 20;

/// A step of a history, and how many events of the medium had been when it was done.
#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32, u64),
    Unmap(u32, u32),
    Flush,
}

/// What blocks hold, by value; those not named hold 0.
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

/// A disk that is full, and has been cleaned for a while.
fn full_disk() -> (Blocks, Values) {
    let medium = Memory::new(BYTES);
    let mut disk =
        Disk::format(&medium, Options { segment: 1 << 20, reserve: 0.1 }, [7; 16]).expect("formatted");
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

/// What a history is like.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// Slots between checkpoints.
    slots: u64,
    steps: u32,
    /// Blocks that are written.
    hot: u32,
    /// One step in so many is a flush.
    flush: u64,
}

/// Runs a history whose values begin at `first`; its steps, with the events after each.
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

/// Opens what a cut left, and says how many of the steps it holds: one such prefix there must be, with everything flushed in it.
fn prefix(left: Blocks, before: &Values, steps: &[(Step, usize)], events: usize, context: &str) -> usize {
    let medium = Memory::of(BYTES, left);
    if events.is_multiple_of(8) {
        let checked = check(&medium, true, &mut |_, _| ControlFlow::Continue(())).expect("checked");
        assert!(checked.is_good(), "{context}: {checked:?}");
    }
    let mut disk =
        Disk::open(&medium, running(u64::MAX)).unwrap_or_else(|error| panic!("{context}: {error}"));
    let touched = touched(steps);
    let mut found = Values::new();
    let mut block = [0; BLOCK];
    for &lba in &touched {
        disk.read(lba, &mut block).unwrap_or_else(|error| panic!("{context}: {error}"));
        found.insert(lba, value_of(lba, &block));
    }
    // A flush is a promise once it has returned.
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
        let range = match step {
            Step::Write(lba, _) => lba..lba + 1,
            Step::Unmap(first, count) => first..first + count,
            Step::Flush => 0..0,
        };
        wrong -= range.clone().filter(|lba| values[lba] != found[lba]).count();
        apply(&mut values, step);
        wrong += range.filter(|lba| values[lba] != found[lba]).count();
    }
    panic!(
        "{context}: what is there is no prefix of what was written that has everything that was flushed ({least} steps)"
    );
}

fn touched(steps: &[(Step, usize)]) -> Vec<u32> {
    let mut all: Vec<u32> = steps
        .iter()
        .flat_map(|&(step, _)| match step {
            Step::Write(lba, _) => lba..lba + 1,
            Step::Unmap(first, count) => first..first + count,
            Step::Flush => 0..0,
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn every_cut_point_of_short_histories_leaves_a_prefix() {
    let (base, values) = full_disk();
    let mut cuts = 0;
    for number in 0..histories(1000) {
        let mut rng = stream("short", number);
        let medium = Memory::of(BYTES, base.clone());
        // From one checkpoint for each few writes to none, on few blocks or on all.
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
        all_is_there(&blocks, &values);
    }
}

fn all_is_there(blocks: &Blocks, values: &Values) {
    all_is_there_on(BYTES, blocks, values);
}

fn all_is_there_on(bytes: u64, blocks: &Blocks, values: &Values) {
    let medium = Memory::of(bytes, blocks.clone());
    let mut disk = Disk::open(&medium, Running::default()).expect("opened");
    let mut block = [0; BLOCK];
    for (&lba, &value) in values {
        disk.read(lba, &mut block).expect("read");
        assert_eq!(value_of(lba, &block), value, "block {lba}");
    }
}

/// How many histories: fewer by default, all with `LOWTIDE_LONG`.
fn histories(all: u64) -> u64 {
    if std::env::var_os("LOWTIDE_LONG").is_some() { all } else { all / 20 }
}

#[test]
fn every_cut_after_an_opening_that_had_to_recover_leaves_a_prefix() {
    let (base, values) = full_disk();
    let mut cuts = 0;
    for number in 0..histories(600) {
        let mut rng = stream("again", number);
        // Left by a kill or a cut, in every state that a stream can be in.
        let medium = Memory::of(BYTES, base.clone());
        let kind = Kind { slots: 400, steps: 100 + number as u32 * 7 % 900, hot: 1 << 30, flush: 25 };
        let first = history(&medium, kind, &mut rng, 1 << 32);
        let events = medium.events() - below(&mut rng, 3).min(medium.events() as u64) as usize;
        let left = medium.after_cut(events, [Fate::Kept, Fate::Mixed][(number % 2) as usize], &mut rng);
        let kept = prefix(left.clone(), &values, &first, events, &format!("history {number}"));
        let mut values = values.clone();
        first[..kept].iter().for_each(|&(step, _)| apply(&mut values, step));
        // And now whatever a host does first, cut at every point.
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
                    all_is_there(&left, &sure);
                }
                cuts += 1;
            }
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > 100);
}

/// What a slot says of the one before it has the low bits of a number, which leaps with every opening: of two openings they are the same.
#[test]
fn the_first_slots_after_an_opening_say_nothing_of_slots_before_it() {
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
    assert_eq!(without, 2, "of the host, and of what is moved");
    let before = of_last.filter_map(|header| header.before);
    assert!(
        before.into_iter().all(|before| headers.iter().any(|it| opening(it) == last && before.is(it.seq)))
    );
}

#[test]
fn after_a_write_or_a_flush_that_failed_nothing_is_promised_any_more() {
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
                // It may have come to the medium, or not.
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

/// What goes on beside writes.
enum Beside {
    /// Everything up to here is durable when it ends and the mark is written, for the flush that is the step of this number.
    Flush(u64, usize, Option<Job>),
    /// Before a checkpoint is written, and the mark of what it names.
    Before(Checkpoint, Option<Job>),
    /// After.
    After(Checkpoint),
}

/// The same as [`history`], with flushes and checkpoints that end a while after they began.
fn history_beside(medium: &Memory, kind: Kind, rng: &mut Rng, first: u64) -> Vec<(Step, usize)> {
    let Kind { slots, steps, hot, flush } = kind;
    let mut disk = Disk::open(medium, running(slots)).expect("opened");
    let blocks = disk.geometry().blocks;
    let mut done: Vec<(Step, usize)> = Vec::new();
    let mut beside: Option<(Beside, usize)> = None;
    for n in 0..steps {
        if below(rng, 12) == 0
            && let Some((what, begun)) = beside.take()
        {
            medium.flushed(begun);
            let put = |mark: Option<Job>| {
                mark.map_or(Ok(()), |mark| medium.write_durably(mark.offset, &mark.data)).expect("written");
            };
            match what {
                Beside::Flush(seq, step, mark) => {
                    put(mark);
                    disk.durable(seq);
                    done[step].1 = medium.events();
                }
                Beside::Before(checkpoint, mark) => {
                    put(mark);
                    if disk.write_checkpoint(&checkpoint).expect("written") {
                        beside = Some((Beside::After(checkpoint), medium.events()));
                    }
                }
                Beside::After(checkpoint) => disk.end_checkpoint(&checkpoint),
            }
        }
        if beside.is_none() && disk.wants_checkpoint() {
            let checkpoint = disk.begin_checkpoint(false).expect("begun");
            let mark = disk.mark();
            beside = Some((Beside::Before(checkpoint, mark), medium.events()));
        }
        if below(rng, flush) == 0 && beside.is_none() {
            if let Some(seq) = disk.seal().expect("sealed") {
                let mark = disk.mark();
                beside = Some((Beside::Flush(seq, done.len(), mark), medium.events()));
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
fn flushes_and_checkpoints_beside_writes_keep_their_promise() {
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
            let steps = history_beside(&medium, kind, &mut rng, (round + 1) << 32);
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
        all_is_there(&blocks, &values);
    }
    println!("{cuts} cuts");
    assert!(cuts > 50);
}

#[test]
fn what_was_closed_is_there_and_opens_without_reading_forward() {
    let (blocks, values) = full_disk();
    let medium = Memory::of(BYTES, blocks.clone());
    let disk = Disk::open(&medium, Running::default()).expect("opened");
    assert!(disk.recovery().clean);
    assert_eq!(disk.recovery().replayed, 0);
    assert_eq!(medium.events(), 0, "opening writes nothing");
    all_is_there(&blocks, &values);
    assert!(Medium::bytes(&medium) == BYTES);
}

#[test]
fn whenever_the_power_goes_while_it_grows_it_is_as_it_was_or_larger() {
    let (base, values) = full_disk();
    let larger = BYTES * 2;
    for number in 0..histories(200) {
        let mut rng = stream("growing", number);
        // Of a disk that was closed, or left by a cut.
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
            let mut disk = Disk::open(&medium, Running::default()).expect("opened");
            let geometry = *disk.geometry();
            found[usize::from(geometry == grown)] += 1;
            let mut block = [0; BLOCK];
            for (&lba, &value) in values.iter().filter(|_| events % 3 == 0) {
                disk.read(lba, &mut block).expect("read");
                assert_eq!(value_of(lba, &block), value, "block {lba}, {events} events");
            }
            // It goes on, to its end.
            let last = geometry.blocks - 1;
            disk.write(last, &block_of(last, 5)).expect("written");
            let medium = disk.close().expect("closed");
            let mut disk = Disk::open(medium, Running::default()).expect("opened again");
            disk.read(last, &mut block).expect("read");
            assert_eq!(value_of(last, &block), 5);
        }
        assert!(found[0] > 0 && found[1] > 0, "{found:?}");
    }
}

#[test]
fn a_disk_that_grew_takes_as_much_as_it_offers() {
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
    all_is_there_on(BYTES * 3, &medium.blocks(), &values);
    assert!(grow(&medium, Some(0.5)).is_err(), "it does not become smaller");
    all_is_there_on(BYTES * 3, &medium.blocks(), &values);
}

/// A flush after every write leaves half of a segment unused, and the cleaner's are padded by it, too.
#[test]
fn the_smallest_reserve_is_enough_for_a_full_disk_however_often_it_is_flushed() {
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
        all_is_there(&disk.close().expect("closed").blocks(), &values);
    }
}

#[test]
fn a_checkpoint_that_was_overtaken_is_not_written() {
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
    assert_eq!(disk.log().tail_slots(), 0, "the later one counts");
}
