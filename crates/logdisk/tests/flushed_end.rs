//! Damage to the last flushed blocks after a kill or a power cut: each block reads as flushed, or is an error, never
//! older data.

mod common;

use common::{
    BYTES, Blocks, Fate, Memory, OPTIONS, block_of, formatted, newest_checkpoint, opened, scrub, stream,
    value_of,
};
use lowtide_core::rng::{Rng, below};
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::{Geometry, Superblock};
use lowtide_logdisk::resize::grow;
use lowtide_logdisk::{BLOCK, Disk, LogError, Medium, Options};
use std::collections::HashMap;

/// A log disk that was not closed.
struct Unclosed {
    blocks: Blocks,
    /// The allowed values of each block: the last flushed one, or a later one.
    may_be: HashMap<u32, Vec<u64>>,
    /// The last written blocks of the medium, the newest first.
    last: Vec<u64>,
    geometry: Geometry,
}

/// A history that ends with a kill, which loses no write, or with a power cut.
fn unclosed(number: u64) -> Unclosed {
    let mut rng = stream("flushed", number);
    let medium = Memory::new(BYTES);
    let disk = Disk::format(&medium, OPTIONS, [3; 16]).expect("formatted");
    let geometry = *disk.geometry();
    disk.close().expect("closed");
    let checkpoint_slots = [150, 900, 1 << 40][below(&mut rng, 3) as usize];
    let flush_one_in = [1, 4, 30, 400][below(&mut rng, 4) as usize];
    let running = Running { checkpoint_slots, ..Running::default() };
    let hot = [60, 2000, u64::from(geometry.blocks)][below(&mut rng, 3) as usize];
    // Every third disk is full, and cleaned.
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
            // A kill and a reopening.
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
    Unclosed { blocks, may_be, last, geometry }
}

/// Damages the medium, and describes the damage.
fn damage(left: &Unclosed, medium: &Memory, round: u64, rng: &mut Rng) -> String {
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

/// Reads everything. Returns the number of right blocks, and the blocks that are errors.
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

/// Symptom: a damaged slot at the end of the flushed log looked like the torn end of a power cut. It and all later
/// slots were dropped, and older data was read. Fix: marks, which prove that the slot was durable.
#[test]
fn a_thousand_corruptions_never_return_older_data() {
    let (mut refused, mut lost, mut right, mut whole) = (0, 0, 0, 0);
    for number in 0..50 {
        let left = unclosed(number);
        let medium = Memory::of(BYTES, left.blocks.clone());
        let mut disk = Disk::open(&medium, Running::default()).expect("nothing is spoiled");
        let context = format!("history {number} (seed 1, stream \"flushed\"), nothing spoiled");
        assert_eq!((disk.recovery().damage(), disk.recovery().spoiled), (None, 0), "{context}");
        assert_eq!(read_all(&mut disk, &left.may_be, &context).1, [0; 0], "{context}");
        for round in 0..20 {
            let mut rng = stream("spoiled", number * 100 + round);
            let medium = Memory::of(BYTES, left.blocks.clone());
            let what = damage(&left, &medium, round, &mut rng);
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
            // A slot may span two blocks, and a page of the map covers a thousand.
            assert!(errors.len() <= 18 || !what.contains("written"), "{context}: {} errors", errors.len());
            if round % 4 == 0 {
                errors_persist(disk, &left, &errors, &context);
            }
        }
    }
    println!(
        "1000 corruptions, seed 1: {refused} disks refused, {lost} blocks are errors, {right} right; {whole} disks whole"
    );
    assert!(lost > 300 && right > 1_000_000 && refused < 150);
}

/// Checks that an error persists across closing and opening the disk, until the block is rewritten.
fn errors_persist(mut disk: Disk<&Memory>, left: &Unclosed, errors: &[u32], context: &str) {
    let again = errors.first().copied().unwrap_or(0);
    disk.write(again, &block_of(again, 7 << 40)).unwrap_or_else(|error| panic!("{context}: {error}"));
    let medium = disk.close().unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut disk =
        Disk::open(medium, Running::default()).unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut may_be = left.may_be.clone();
    may_be.insert(again, vec![7 << 40]);
    let (_, now) = read_all(&mut disk, &may_be, context);
    assert!(!now.contains(&again) && now.iter().all(|lba| errors.contains(lba)), "{context}");
    // A block with a passing read error may be readable again.
    assert!(now.len() + 1 >= errors.len() || !context.contains("a bit"), "{context}");
}

/// Checks that a refused disk is usable and consistent if its user accepts older data.
fn accepts_old_data(medium: &Memory, left: &Unclosed, context: &str) {
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
    disk.read(5, &mut block).expect("just written");
    assert_eq!(value_of(5, &block), 7 << 40);
    let checked = scrub(medium).expect("checked");
    assert_eq!(checked.contradictions, Vec::<String>::new(), "{context}");
}

#[test]
fn only_the_block_of_the_damaged_slot_is_an_error() {
    let medium = Memory::new(BYTES);
    let mut disk = formatted(&medium);
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
        let checked = scrub(&medium).expect("checked");
        assert!(!checked.is_good() && checked.recovery.damage() == Some(1), "{:?}", checked.recovery);
        let mut disk = opened(&medium);
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

/// A flush writes its mark with forced unit access, and writes nothing without new data.
#[test]
fn a_flush_writes_one_mark_and_an_idle_disk_none() {
    let medium = Memory::new(BYTES);
    let mut disk = formatted(&medium);
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
    // A kill loses nothing, so the reopened disk has nothing to mark.
    let mut disk = opened(&medium);
    disk.flush().expect("flushed");
    assert_eq!(medium.counts()[2], after[2]);
}

/// Unflushed data from before a kill becomes durable with the next flush, and its mark covers the data.
#[test]
fn the_first_flush_after_a_kill_marks_recovered_slots() {
    let medium = Memory::new(BYTES);
    let mut disk = formatted(&medium);
    for value in 1..=2 {
        disk.write(9, &block_of(9, value)).expect("written");
        disk.flush().expect("flushed");
    }
    // A long run, of which complete chunks have reached the medium.
    (0..300).for_each(|n| disk.write(10 + n, &block_of(10 + n, 3)).expect("written"));
    let mut disk = Disk::open(disk.into_medium(), Running::default()).expect("opened");
    let (mut block, mut found) = ([0; BLOCK], 0);
    for lba in 10..310 {
        disk.read(lba, &mut block).expect("read");
        found = if value_of(lba, &block) == 3 { lba } else { found };
    }
    assert!(found > 10, "some blocks reached the medium");
    disk.flush().expect("flushed");
    let mut all = vec![0; BYTES as usize];
    medium.read(0, &mut all).expect("read");
    let target = block_of(found, 3);
    let at = all.windows(64).position(|window| window == &target[..64]).expect("it was written");
    medium.rot(at as u64 + 100, 1);
    let mut disk = opened(&medium);
    assert!(
        matches!(disk.read(found, &mut block), Err(LogError::Unreadable(_))),
        "not the zeroes from before"
    );
}

/// Symptom: after damage to two neighbouring slots, the first opening found both, and the opening after the
/// next flush refused the disk. Cause: the mark of that flush listed only one of them, and only the newest
/// mark was read. Fix: every readable mark is searched for a damaged slot.
#[test]
fn a_flush_after_damage_does_not_hide_the_damaged_blocks() {
    const LARGER: u64 = 160 << 20;
    let medium = Memory::new(LARGER);
    // A segment has more slots than a mark lists, so it stays open: a complete one lists its own slots.
    let options = Options { segment: 4 << 20, ..OPTIONS };
    Disk::format(&medium, options, [3; 16]).expect("formatted").close().expect("closed");
    let mut disk = opened(&medium);
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

/// Converts a closed log disk to version 2, which has no marks and other offsets of the checkpoints.
fn downgrade(medium: &Memory) -> Superblock {
    let mut block = [0; BLOCK];
    medium.read(0, &mut block).expect("read");
    let new = Superblock::read(&block, BYTES).expect("a superblock");
    let old = Superblock { geometry: Geometry { marks: false, ..new.geometry }, ..new };
    let (newest, _) = newest_checkpoint(&opened(medium));
    for at in (2..new.geometry.start / BLOCK as u64).map(|block| block * BLOCK as u64) {
        medium.write(at, &[0xa5; BLOCK]).expect("written");
    }
    let place = old.geometry.checkpoint((newest.generation % 2) as usize).start;
    medium.write(place, &newest.write(old.salt)).expect("written");
    (0..2).for_each(|at| medium.write(at * BLOCK as u64, &old.write()).expect("written"));
    old
}

#[test]
fn the_upgrade_of_version_2_survives_power_cuts() {
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
            let mut disk = opened(medium);
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
        let mut disk = opened(&medium);
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
                let mut disk = opened(&cut);
                disk.write(4, &block_of(4, 2)).expect("written");
                disk.close().expect("closed");
                assert!(reads(&cut, 1));
                // Both superblocks are upgraded, so either may be lost.
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
