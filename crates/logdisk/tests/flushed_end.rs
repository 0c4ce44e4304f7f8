//! The last flushed blocks, spoiled after a kill or a power cut: each is read as it was flushed, or is an
//! error, never older data.

mod common;

use common::{Blocks, Fate, Memory, block_of, stream, value_of};
use lowtide_core::rng::{Rng, below};
use lowtide_logdisk::check::check;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::{Checkpoint, Geometry, Superblock};
use lowtide_logdisk::resize::grow;
use lowtide_logdisk::{BLOCK, Disk, LogError, Medium, Options};
use std::collections::HashMap;
use std::ops::ControlFlow;

const BYTES: u64 = 36 << 20;
const OPTIONS: Options = Options { segment: 1 << 20, reserve: 0.1 };

/// A log disk that was left without closing it.
struct Left {
    blocks: Blocks,
    /// The values that each block may be read as: the last flushed one, or one written since.
    may_be: HashMap<u32, Vec<u64>>,
    /// The last blocks of the medium that were written, the newest first.
    last: Vec<u64>,
    geometry: Geometry,
}

/// A history that ends with a kill, which loses nothing that was written, or with a power cut.
fn left(number: u64) -> Left {
    let mut rng = stream("flushed", number);
    let medium = Memory::new(BYTES);
    let disk = Disk::format(&medium, OPTIONS, [3; 16]).expect("formatted");
    let geometry = *disk.geometry();
    disk.close().expect("closed");
    let checkpoint_slots = [150, 900, 1 << 40][below(&mut rng, 3) as usize];
    let flush_one_in = [1, 4, 30, 400][below(&mut rng, 4) as usize];
    let running = Running { checkpoint_slots, ..Running::default() };
    let hot = [60, 2000, u64::from(geometry.blocks)][below(&mut rng, 3) as usize];
    // One in three is full, and cleaned.
    let filled = if number.is_multiple_of(3) { u64::from(geometry.blocks) } else { 0 };
    let mut may_be: HashMap<u32, Vec<u64>> = HashMap::new();
    let mut disk = Disk::open(&medium, running).expect("opened");
    let flushed = |disk: &mut Disk<&Memory>, may_be: &mut HashMap<u32, Vec<u64>>| {
        disk.flush().expect("flushed");
        may_be.values_mut().for_each(|values| drop(values.drain(..values.len() - 1)));
    };
    for n in 1..=filled + 200 + below(&mut rng, 2500) {
        let lba = if n <= filled { n - 1 } else { below(&mut rng, hot) } as u32;
        let mut became = |lba: u32, value| may_be.entry(lba).or_insert_with(|| vec![0]).push(value);
        if below(&mut rng, 60) == 0 {
            let count = (geometry.blocks - lba).min(1 + below(&mut rng, 9) as u32);
            disk.unmap(lba, count).expect("unmapped");
            (lba..lba + count).for_each(|lba| became(lba, 0));
        } else {
            disk.write(lba, &block_of(lba, n)).expect("written");
            became(lba, n);
        }
        if n > filled && below(&mut rng, flush_one_in) == 0 {
            flushed(&mut disk, &mut may_be);
        }
        if below(&mut rng, 3000) == 0 {
            // Killed and opened again: unflushed data was written, or is lost with the memory of the process.
            flushed(&mut disk, &mut may_be);
            disk = Disk::open(disk.into_medium(), running).expect("opened again");
        }
    }
    flushed(&mut disk, &mut may_be);
    let last = medium.written_last(60);
    let after = if number.is_multiple_of(2) { 0 } else { below(&mut rng, 5) };
    for n in 0..after {
        let lba = below(&mut rng, hot) as u32;
        disk.write(lba, &block_of(lba, (1 << 40) + n)).expect("written");
        may_be.entry(lba).or_insert_with(|| vec![0]).push((1 << 40) + n);
    }
    let fate = [Fate::Kept, Fate::Lost, Fate::Mixed][below(&mut rng, 3) as usize];
    let blocks = medium.after_cut(medium.events(), fate, &mut rng);
    Left { blocks, may_be, last, geometry }
}

/// Spoils something; returns what.
fn spoil(left: &Left, medium: &Memory, round: u64, rng: &mut Rng) -> String {
    let block_size = BLOCK as u64;
    let ring = left.geometry.ring().expect("there are marks");
    let log = left.last.iter().copied().filter(|&block| block * block_size >= ring.end);
    let log: Vec<u64> = log.take(1 + below(rng, 24) as usize).collect();
    let marks: Vec<u64> =
        left.last.iter().copied().filter(|block| ring.contains(&(block * block_size))).collect();
    let any = |of: &[u64], rng: &mut Rng| of[below(rng, of.len() as u64) as usize];
    let rot = |block: u64, rng: &mut Rng| {
        medium.rot(block * block_size + below(rng, block_size), below(rng, 8) as u8)
    };
    let end = any(&log, rng);
    match round % 8 {
        0 => {
            rot(end, rng);
            format!("a bit of block {end}, written last")
        }
        1 => {
            // Slots are 32 bytes longer than blocks.
            medium.rot(end * block_size + (end % 256) * 32 % block_size + end % 32, below(rng, 8) as u8);
            format!("a bit of the header in block {end}")
        }
        2 => {
            let all: Vec<u64> =
                left.blocks.keys().copied().collect::<std::collections::BTreeSet<_>>().into_iter().collect();
            let place = any(&all, rng);
            rot(place, rng);
            format!("a bit of block {place}")
        }
        3 => {
            marks.iter().take(1).for_each(|&mark| rot(mark, rng));
            rot(end, rng);
            format!("a bit of the newest mark and one of block {end}")
        }
        4 => {
            medium.write(end * block_size, &[0; BLOCK]).expect("written");
            format!("block {end}, never written")
        }
        5 => {
            let count = 1 + below(rng, 8);
            let all = vec![0; (count * block_size) as usize];
            let first = end.min(BYTES / block_size - count);
            medium.write(first * block_size, &all).expect("written");
            format!("{count} blocks from {first} on, never written")
        }
        6 => {
            medium.lose(end * block_size);
            format!("block {end}, which cannot be read")
        }
        _ => {
            let place = left.geometry.checkpoint(below(rng, 2) as usize).start;
            medium.rot(place + below(rng, left.geometry.needs()), below(rng, 8) as u8);
            "a bit of a checkpoint".to_owned()
        }
    }
}

/// Reads everything: the numbers of right blocks and of errors.
fn read_all(disk: &mut Disk<&Memory>, may_be: &HashMap<u32, Vec<u64>>, context: &str) -> (u64, Vec<u32>) {
    let (mut right, mut errors, mut block) = (0, Vec::new(), [0; BLOCK]);
    for lba in 0..disk.geometry().blocks {
        match disk.read(lba, &mut block) {
            Ok(()) => {
                let found = value_of(lba, &block);
                let allowed = may_be.get(&lba).map_or(&[0][..], Vec::as_slice);
                assert!(
                    allowed.contains(&found),
                    "{context}: block {lba} is read as {found}, of {allowed:?}"
                );
                right += 1;
            }
            Err(LogError::Unreadable(_) | LogError::Medium { .. }) => errors.push(lba),
            Err(error) => panic!("{context}: block {lba}: {error}"),
        }
    }
    (right, errors)
}

/// Symptom: a slot that was spoiled at the end of what was flushed looked like the torn end of a power cut:
/// it and everything after it were dropped, and older data was read. Fix: marks, which prove that it was
/// durable.
#[test]
fn a_thousand_corruptions_after_kills_never_bring_older_data_back() {
    let (mut refused, mut lost, mut right, mut whole) = (0, 0, 0, 0);
    for number in 0..50 {
        let left = left(number);
        let medium = Memory::of(BYTES, left.blocks.clone());
        let mut disk = Disk::open(&medium, Running::default()).expect("nothing is spoiled");
        let context = format!("history {number} (seed 1, stream \"flushed\"), nothing spoiled");
        assert_eq!((disk.recovery().damage(), disk.recovery().spoiled), (None, 0), "{context}");
        assert_eq!(read_all(&mut disk, &left.may_be, &context).1, [0; 0], "{context}");
        for round in 0..20 {
            let mut rng = stream("spoiled", number * 100 + round);
            let medium = Memory::of(BYTES, left.blocks.clone());
            let what = spoil(&left, &medium, round, &mut rng);
            let context = format!("history {number}, round {round} (seed 1), {what}");
            let mut disk = match Disk::open(&medium, Running::default()) {
                Ok(disk) => disk,
                Err(LogError::Damaged(_) | LogError::Medium { .. }) => {
                    refused += 1;
                    accepts_old_data(&medium, &left, &context);
                    continue;
                }
                Err(error) => panic!("{context}: {error}"),
            };
            let (readable, errors) = read_all(&mut disk, &left.may_be, &context);
            (right, lost) = (right + readable, lost + errors.len());
            whole += u64::from(errors.is_empty());
            // A slot goes over the end of a block, and a page of the map has a thousand.
            assert!(errors.len() <= 18 || !what.contains("written"), "{context}: {} errors", errors.len());
            if round % 4 == 0 {
                stays_so(disk, &left, &errors, &context);
            }
        }
    }
    println!(
        "1000 corruptions, seed 1: {refused} disks refused, {lost} blocks are errors, {right} right; {whole} disks whole"
    );
    assert!(lost > 300 && right > 1_000_000 && refused < 150);
}

/// A block that is an error stays one when the disk is closed and opened, until it is written again.
fn stays_so(mut disk: Disk<&Memory>, left: &Left, errors: &[u32], context: &str) {
    let again = errors.first().copied().unwrap_or(0);
    disk.write(again, &block_of(again, 7 << 40)).unwrap_or_else(|error| panic!("{context}: {error}"));
    let medium = disk.close().unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut disk =
        Disk::open(medium, Running::default()).unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut may_be = left.may_be.clone();
    may_be.insert(again, vec![7 << 40]);
    let (_, now) = read_all(&mut disk, &may_be, context);
    assert!(!now.contains(&again) && now.iter().all(|lba| errors.contains(lba)), "{context}");
    // A block that could not be read for a while, and was not needed, is there again; all else is as it was.
    assert!(now.len() + 1 >= errors.len() || !context.contains("a bit"), "{context}");
}

/// A disk that is refused can be used once its user accepts older data; nothing in it contradicts itself
/// then.
fn accepts_old_data(medium: &Memory, left: &Left, context: &str) {
    medium.find_again();
    let mut disk = match Disk::open_with_old_data(medium, Running::default()) {
        Ok(disk) => disk,
        Err(error) => panic!("{context}: {error}"),
    };
    let mut block = [0; BLOCK];
    for lba in 0..left.geometry.blocks {
        if disk.read(lba, &mut block).is_ok() {
            value_of(lba, &block);
        }
    }
    disk.write(5, &block_of(5, 7 << 40)).unwrap_or_else(|error| panic!("{context}: {error}"));
    let medium = disk.close().unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut disk =
        Disk::open(medium, Running::default()).unwrap_or_else(|error| panic!("{context}: {error}"));
    disk.read(5, &mut block).expect("written just now");
    assert_eq!(value_of(5, &block), 7 << 40);
    let checked = check(medium, true, &mut |_, _| ControlFlow::Continue(())).expect("checked");
    assert_eq!(checked.contradictions, Vec::<String>::new(), "{context}");
}

#[test]
fn the_block_whose_slot_was_written_last_is_the_only_error() {
    let medium = Memory::new(BYTES);
    Disk::format(&medium, OPTIONS, [3; 16]).expect("formatted").close().expect("closed");
    let mut disk = Disk::open(&medium, Running::default()).expect("opened");
    for value in 1..=2 {
        (0..12).for_each(|lba| disk.write(lba, &block_of(lba, value)).expect("written"));
        disk.flush().expect("flushed");
    }
    let mut all = vec![0; BYTES as usize];
    medium.read(0, &mut all).expect("read");
    for spoiled in 0..12 {
        let newest = block_of(spoiled, 2);
        let at = all.windows(64).rposition(|window| window == &newest[..64]).expect("it was written");
        medium.rot(at as u64 + 2000, 3);
        let checked = check(&medium, false, &mut |_, _| ControlFlow::Continue(())).expect("checked");
        assert!(!checked.is_good() && checked.recovery.damage() == Some(1), "{:?}", checked.recovery);
        let mut disk = Disk::open(&medium, Running::default()).expect("opened");
        for lba in 0..12 {
            let mut block = [0; BLOCK];
            match disk.read(lba, &mut block) {
                Ok(()) => assert!(lba != spoiled && value_of(lba, &block) == 2, "block {lba}"),
                Err(error) => assert!(lba == spoiled, "block {lba}: {error}"),
            }
        }
        medium.rot(at as u64 + 2000, 3);
    }
}

/// The cost of a flush: the write of the mark, forced to the medium; nothing if nothing was written.
#[test]
fn a_flush_writes_one_mark_and_an_idle_disk_none() {
    let medium = Memory::new(BYTES);
    Disk::format(&medium, OPTIONS, [3; 16]).expect("formatted").close().expect("closed");
    let mut disk = Disk::open(&medium, Running::default()).expect("opened");
    disk.write(0, &block_of(0, 1)).expect("written");
    disk.flush().expect("flushed");
    let before = medium.counts();
    for n in 0..100 {
        disk.write(n, &block_of(n, 2)).expect("written");
        (0..3).for_each(|_| disk.flush().expect("flushed"));
    }
    let after = medium.counts();
    let [writes, flushes, forced] = [0, 1, 2].map(|n| after[n] - before[n]);
    println!("100 flushed blocks: {writes} writes, {flushes} flushes, {forced} forced");
    assert_eq!((writes, flushes, forced), (200, 100, 100), "for each: the log, the flush, the mark");
    // A kill loses nothing, so a disk that is opened after it is as durable as its last flush: there is
    // nothing to report.
    let mut disk = Disk::open(&medium, Running::default()).expect("opened");
    disk.flush().expect("flushed");
    assert_eq!(medium.counts()[2], after[2]);
}

/// Data that was written and not flushed before a kill becomes durable with the next flush, and is marked by
/// it.
#[test]
fn what_a_kill_left_is_marked_by_the_first_flush_after_it() {
    let medium = Memory::new(BYTES);
    Disk::format(&medium, OPTIONS, [3; 16]).expect("formatted").close().expect("closed");
    let mut disk = Disk::open(&medium, Running::default()).expect("opened");
    for value in 1..=2 {
        disk.write(9, &block_of(9, value)).expect("written");
        disk.flush().expect("flushed");
    }
    // A long run, of which whole chunks were handed to the medium.
    (0..300).for_each(|n| disk.write(10 + n, &block_of(10 + n, 3)).expect("written"));
    let mut disk = Disk::open(disk.into_medium(), Running::default()).expect("opened");
    let (mut block, mut found) = ([0; BLOCK], 0);
    for lba in 10..310 {
        disk.read(lba, &mut block).expect("read");
        found = if value_of(lba, &block) == 3 { lba } else { found };
    }
    assert!(found > 10, "some were written");
    disk.flush().expect("flushed");
    let mut all = vec![0; BYTES as usize];
    medium.read(0, &mut all).expect("read");
    let target = block_of(found, 3);
    let at = all.windows(64).position(|window| window == &target[..64]).expect("it was written");
    medium.rot(at as u64 + 100, 1);
    let mut disk = Disk::open(&medium, Running::default()).expect("opened");
    assert!(
        matches!(disk.read(found, &mut block), Err(LogError::Unreadable(_))),
        "not the zeroes that were there before"
    );
}

/// Symptom: after damage to two neighbouring slots, the first opening found both, and the opening after the
/// next flush refused the disk. Cause: the mark of that flush listed only one of them, and only the newest
/// mark was read. Fix: every readable mark is searched for a spoiled slot.
#[test]
fn a_flush_after_damage_was_found_does_not_hide_which_blocks_it_took() {
    const LARGER: u64 = 160 << 20;
    let medium = Memory::new(LARGER);
    // A segment has more slots than a mark lists, so it stays open: a complete one lists its own slots.
    let options = Options { segment: 4 << 20, ..OPTIONS };
    Disk::format(&medium, options, [3; 16]).expect("formatted").close().expect("closed");
    let mut disk = Disk::open(&medium, Running::default()).expect("opened");
    (0..12).for_each(|lba| disk.write(lba, &block_of(lba, 1)).expect("written"));
    disk.flush().expect("flushed");
    // More slots than one mark lists; complete chunks of them have reached the medium.
    (0..600).for_each(|n| disk.write(20 + n, &block_of(20 + n, 2)).expect("written"));
    let _ = disk.into_medium();
    let mut all = vec![0; LARGER as usize];
    medium.read(0, &mut all).expect("read");
    for lba in [10, 11] {
        let data = block_of(lba, 1);
        let at = all.windows(64).rposition(|window| window == &data[..64]).expect("it was written");
        medium.rot(at as u64 + 2000, 3);
    }
    for opening in 1..=3 {
        let mut disk = Disk::open(&medium, Running::default())
            .unwrap_or_else(|error| panic!("opening {opening}: {error}"));
        assert_eq!(disk.recovery().damage(), Some(2), "opening {opening}: {:?}", disk.recovery());
        disk.flush().expect("flushed");
    }
}

/// Turns a closed log disk into one of version 2: without marks, and with its checkpoints where they were
/// then.
fn downgrade(medium: &Memory) -> Superblock {
    let mut block = [0; BLOCK];
    medium.read(0, &mut block).expect("read");
    let new = Superblock::read(&block, BYTES).expect("a superblock");
    let old = Superblock { geometry: Geometry { marks: false, ..new.geometry }, ..new };
    let newest = (0..2).filter_map(|which| {
        let mut bytes = vec![0; new.geometry.needs() as usize];
        medium.read(new.geometry.checkpoint(which).start, &mut bytes).expect("read");
        Checkpoint::read(&bytes, new.salt, &new.geometry).ok()
    });
    let newest = newest.max_by_key(|checkpoint| checkpoint.generation).expect("there is one");
    for at in (2..new.geometry.start / BLOCK as u64).map(|block| block * BLOCK as u64) {
        medium.write(at, &[0xa5; BLOCK]).expect("written");
    }
    let place = old.geometry.checkpoint((newest.generation % 2) as usize).start;
    medium.write(place, &newest.write(old.salt)).expect("written");
    (0..2).for_each(|at| medium.write(at * BLOCK as u64, &old.write()).expect("written"));
    old
}

#[test]
fn version_2_is_read_and_becomes_version_3_with_the_first_write_whenever_the_power_goes() {
    for generations in 1..=2 {
        let medium = Memory::new(BYTES);
        let mut disk = Disk::format(&medium, OPTIONS, [3; 16]).expect("formatted");
        for lba in 0..500 {
            disk.write(lba, &block_of(lba, 1)).expect("written");
        }
        (1..generations).for_each(|_| disk.checkpoint(false).expect("made"));
        disk.close().expect("closed");
        let old = downgrade(&medium);
        let before = medium.blocks();
        let reads = |medium: &Memory, least: u64| {
            let mut disk = Disk::open(medium, Running::default()).expect("opened");
            let mut block = [0; BLOCK];
            for lba in 0..500 {
                disk.read(lba, &mut block).expect("read");
                assert!((least..=2).contains(&value_of(lba, &block)), "block {lba}");
            }
            disk.geometry().marks
        };
        let left = before.clone();
        let medium = Memory::of(BYTES, before);
        assert!(!reads(&medium, 1), "opening changes nothing");
        let mut disk = Disk::open(&medium, Running::default()).expect("opened");
        disk.write(3, &block_of(3, 2)).expect("written");
        disk.flush().expect("flushed");
        assert_eq!(*disk.geometry(), Geometry { marks: true, ..old.geometry });
        let mut rng = stream("upgrade", generations);
        let mut found = [0; 2];
        for events in 0..=medium.events() {
            for fate in [Fate::Kept, Fate::Lost, Fate::Mixed] {
                let cut = Memory::of(BYTES, medium.after_cut(events, fate, &mut rng));
                found[usize::from(reads(&cut, 1))] += 1;
                // The log continues from there.
                let mut disk = Disk::open(&cut, Running::default()).expect("opened");
                disk.write(4, &block_of(4, 2)).expect("written");
                disk.close().expect("closed");
                assert!(reads(&cut, 1));
                // Whichever superblock is lost afterwards, the other is not older.
                cut.rot(events as u64 % 2 * BLOCK as u64 + 40, 1);
                assert!(reads(&cut, 1));
            }
        }
        assert!(found[0] > 0 && found[1] > 0, "{found:?}");
        let larger = Memory::of(2 * BYTES, left);
        let grown = grow(&larger, None).expect("it can");
        assert!(grown.marks && grown.segments > old.geometry.segments && reads(&larger, 1));
    }
}
