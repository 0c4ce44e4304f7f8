//! Changed bits on the medium: each block reads as its newest value or as an error, never as older or wrong data.

mod common;

use common::{
    BYTES, Blocks, Memory, OPTIONS, block_of, formatted, newest_checkpoint, opened, scrub, stream, value_of,
};
use lowtide_core::rng::below;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::Slot;
use lowtide_logdisk::{BLOCK, Disk, LogError, Medium};
use std::collections::HashMap;

/// A disk with a history of writes and unmaps, flushed at its end and not closed. Returns its blocks, their values,
/// and the block that was written last.
fn used_disk(number: u64) -> (Blocks, HashMap<u32, u64>, u32) {
    let medium = Memory::new(BYTES);
    let mut disk = formatted(&medium);
    let blocks = disk.geometry().blocks;
    disk.set_running(Running { checkpoint_slots: 700, ..Running::default() });
    let (mut rng, mut values) = (stream("rot", number), HashMap::new());
    for n in 1..=2 * u64::from(blocks) {
        let lba = below(&mut rng, blocks.into()) as u32;
        if below(&mut rng, 200) == 0 {
            let count = (blocks - lba).min(5);
            disk.unmap(lba, count).expect("unmapped");
            values.extend((lba..lba + count).map(|lba| (lba, 0)));
        } else {
            disk.write(lba, &block_of(lba, n)).expect("written");
            values.insert(lba, n);
        }
        if below(&mut rng, 30) == 0 {
            disk.flush().expect("flushed");
        }
    }
    disk.flush().expect("flushed");
    // Damage to the last flush looks like a torn end: no later slot records that it was durable.
    disk.write(0, &block_of(0, 1 << 40)).expect("written");
    disk.flush().expect("flushed");
    values.insert(0, 1 << 40);
    (medium.blocks(), values, 0)
}

#[test]
fn a_changed_bit_never_returns_wrong_data() {
    let (mut refused, mut unreadable, mut right) = (0, 0, 0);
    for number in 0..3 {
        let (blocks, values, last) = used_disk(number);
        let mut places: Vec<u64> = blocks.keys().copied().collect();
        places.sort_unstable();
        let mut rng = stream("bits", number);
        for round in 0..150 {
            let medium = Memory::of(BYTES, blocks.clone());
            let place = places[below(&mut rng, places.len() as u64) as usize];
            // Half of the bits are in headers, which matter more.
            let within = if round % 2 == 0 { below(&mut rng, BLOCK as u64) } else { header_in(place) };
            medium.rot(place * BLOCK as u64 + within, below(&mut rng, 8) as u8);
            let mut disk = match Disk::open(&medium, Running::default()) {
                Ok(disk) => disk,
                Err(LogError::Damaged(_) | LogError::NoCheckpoint(_) | LogError::Format(_)) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("history {number}, round {round}: {error}"),
            };
            let mut block = [0; BLOCK];
            let mut lost = Vec::new();
            for (&lba, &value) in &values {
                match disk.read(lba, &mut block) {
                    Ok(()) if lba == last => right += 1,
                    Ok(()) => {
                        let found = value_of(lba, &block);
                        assert_eq!(
                            found, value,
                            "history {number}, round {round}: block {lba}, byte {within} of {place}"
                        );
                        right += 1;
                    }
                    Err(LogError::Unreadable(_)) => {
                        unreadable += 1;
                        lost.push(lba);
                    }
                    Err(error) => panic!("history {number}, round {round}: {error}"),
                }
            }
            if round % 10 < 3 {
                continue_writing(disk, &values, &lost, &format!("history {number}, round {round}"));
            }
        }
    }
    println!("{refused} disks refused, {unreadable} blocks unreadable, {right} right");
    assert!(unreadable > 0 && right > 100_000 && refused < 60);
}

/// Overwrites a part of a disk, closes it, and checks everything.
fn continue_writing(mut disk: Disk<&Memory>, values: &HashMap<u32, u64>, lost: &[u32], context: &str) {
    let (mut rng, mut values) = (stream("on", 0), values.clone());
    let blocks = disk.geometry().blocks;
    for n in 0..3 * u64::from(blocks) {
        let lba = below(&mut rng, u64::from(blocks) / 2) as u32;
        disk.write(lba, &block_of(lba, (2 << 40) + n)).unwrap_or_else(|error| panic!("{context}: {error}"));
        values.insert(lba, (2 << 40) + n);
    }
    let medium = disk.close().unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut disk =
        Disk::open(medium, Running::default()).unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut block = [0; BLOCK];
    for (&lba, &value) in &values {
        match disk.read(lba, &mut block) {
            Ok(()) => assert_eq!(value_of(lba, &block), value, "{context}: block {lba}"),
            Err(error) => assert!(lost.contains(&lba), "{context}: {error}"),
        }
    }
    let checked = scrub(medium).expect("checked");
    assert_eq!(checked.contradictions, Vec::<String>::new(), "{context}");
    assert_eq!(checked.stale, Vec::<u32>::new(), "{context}");
    assert!(checked.bad_count + checked.lost <= lost.len() as u64, "{context}");
}

#[test]
fn an_unreadable_block_of_the_medium_loses_its_data_only() {
    let (blocks, values, _) = used_disk(9);
    let mut places: Vec<u64> = blocks.keys().copied().filter(|&block| block > 300).collect();
    places.sort_unstable();
    let mut rng = stream("lost", 0);
    for round in 0..20 {
        let medium = Memory::of(BYTES, blocks.clone());
        opened(&medium).close().expect("closed");
        medium.lose(places[below(&mut rng, places.len() as u64) as usize] * BLOCK as u64);
        medium.lose(0);
        let mut disk = opened(&medium);
        let (mut block, mut lost) = ([0; BLOCK], Vec::new());
        for (&lba, &value) in &values {
            match disk.read(lba, &mut block) {
                Ok(()) => assert_eq!(value_of(lba, &block), value, "round {round}: block {lba}"),
                Err(_) => lost.push(lba),
            }
        }
        // A page of the map covers a thousand blocks; all other blocks of the medium cover at most two.
        if lost.len() <= 2 {
            continue_writing(disk, &values, &lost, &format!("round {round}"));
        }
    }
}

/// A byte of the header that begins in a block, if any: slots are 32 bytes longer than blocks.
fn header_in(block: u64) -> u64 {
    (block % 256) * 32 % BLOCK as u64 + block % 32
}

#[test]
fn a_damaged_block_stays_an_error_through_cleaning_until_it_is_rewritten() {
    let medium = Memory::new(BYTES);
    let blocks = full_disk(&medium).geometry().blocks;
    let target = block_of(77, 5);
    let offset = find(&medium, &target[..64]);
    medium.rot(offset + 100, 3);
    let mut disk = opened(&medium);
    let mut block = [0; BLOCK];
    assert!(matches!(disk.read(77, &mut block), Err(LogError::Unreadable(77))));
    assert_eq!(disk.counters().bad_blocks, 1);
    let mut rng = stream("clean", 0);
    for n in 0..6 * u64::from(blocks) {
        let lba = below(&mut rng, blocks.into()) as u32;
        if lba != 77 {
            disk.write(lba, &block_of(lba, n + 10)).expect("written");
        }
    }
    assert!(matches!(disk.read(77, &mut block), Err(LogError::Unreadable(77))), "moved, and still an error");
    let medium = disk.close().expect("closed");
    let mut disk = opened(medium);
    assert!(matches!(disk.read(77, &mut block), Err(LogError::Unreadable(77))));
    disk.write(77, &block_of(77, 6)).expect("written");
    disk.read(77, &mut block).expect("rewritten");
    assert_eq!(value_of(77, &block), 6);
}

fn find(medium: &Memory, what: &[u8]) -> u64 {
    let mut all = vec![0; BYTES as usize];
    medium.read(0, &mut all).expect("read");
    all.windows(what.len()).position(|window| window == what).expect("it was written") as u64
}

/// A disk that is nearly full of one value, closed and opened again.
fn full_disk(medium: &Memory) -> Disk<&Memory> {
    let mut disk = formatted(medium);
    for lba in 0..disk.geometry().blocks {
        disk.write(lba, &block_of(lba, 5)).expect("written");
    }
    opened(disk.close().expect("closed"))
}

/// Offset of a page of the map of a disk that was just opened.
fn page_of_map(disk: &Disk<&Memory>, page: usize) -> u64 {
    disk.geometry().offset(Slot::new(newest_checkpoint(disk).0.pages[page]))
}

/// Recovery from the older checkpoint finds everything, or the disk is not opened. Segments from before the newer
/// checkpoint may have been freed and taken by another stream, which ends the old stream without a gap.
#[test]
fn a_damaged_checkpoint_never_returns_old_data() {
    let (mut refused, mut opened) = (0, 0);
    for number in 0..40 {
        let (mut rng, mut values) = (stream("older", number), HashMap::new());
        let medium = Memory::new(BYTES);
        let mut disk = Disk::format(&medium, OPTIONS, [9; 16]).expect("formatted");
        let blocks = u64::from(disk.geometry().blocks);
        let fill = if number % 2 == 0 { blocks } else { blocks * 3 / 4 };
        let lengths = [fill, 200 + below(&mut rng, 1500), 200 + below(&mut rng, 8000)];
        for (round, length) in (1..).zip(lengths) {
            for n in 0..length {
                let lba = if round == 1 { n } else { below(&mut rng, fill) } as u32;
                disk.write(lba, &block_of(lba, round << 32 | n)).expect("written");
                values.insert(lba, round << 32 | n);
                if below(&mut rng, 100) == 0 {
                    disk.flush().expect("flushed");
                }
            }
            if round < 3 {
                disk.checkpoint(false).expect("made");
            }
        }
        disk.flush().expect("flushed");
        medium.rot(newest_checkpoint(&disk).1 + 100, 3);
        match Disk::open(&medium, Running::default()) {
            Ok(mut disk) => {
                opened += 1;
                let mut block = [0; BLOCK];
                for (&lba, &value) in &values {
                    disk.read(lba, &mut block).unwrap_or_else(|error| panic!("history {number}: {error}"));
                    assert_eq!(value_of(lba, &block), value, "history {number}: block {lba}");
                }
            }
            Err(LogError::Damaged(_)) => refused += 1,
            Err(error) => panic!("history {number}: {error}"),
        }
    }
    println!("{opened} opened, {refused} refused");
    assert!(opened > 0 && refused > 0);
}

/// Writes random blocks, except `kept` ones, until everything was cleaned several times.
fn write_all_but(disk: &mut Disk<&Memory>, kept: impl Fn(u32) -> bool) {
    let blocks = u64::from(disk.geometry().blocks);
    let mut rng = stream("but", 0);
    for n in 0..6 * blocks {
        let lba = below(&mut rng, blocks) as u32;
        if !kept(lba) {
            disk.write(lba, &block_of(lba, n + 10)).unwrap_or_else(|error| panic!("block {lba}: {error}"));
        }
    }
}

#[test]
fn a_passing_read_error_loses_nothing_despite_cleaning() {
    let medium = Memory::new(BYTES);
    let mut disk = full_disk(&medium);
    let place = find(&medium, &block_of(77, 5)[..64]);
    medium.lose(place);
    let mut block = [0; BLOCK];
    assert!(disk.read(77, &mut block).is_err());
    write_all_but(&mut disk, |lba| lba == 77);
    assert!(disk.read(77, &mut block).is_err());
    medium.find_again();
    disk.read(77, &mut block).expect("not moved, and readable again");
    assert_eq!(value_of(77, &block), 5);
    let medium = disk.close().expect("closed");
    let mut disk = opened(medium);
    write_all_but(&mut disk, |lba| lba == 77);
    disk.read(77, &mut block).expect("moved with its data");
    assert_eq!(value_of(77, &block), 5);
}

#[test]
fn an_unreadable_page_of_the_map_loses_its_blocks_only() {
    let medium = Memory::new(BYTES);
    let mut disk = full_disk(&medium);
    medium.lose(page_of_map(&disk, 2) / BLOCK as u64 * BLOCK as u64);
    // Reopened, because the open segment of the map is in memory.
    disk = opened(&medium);
    // The same block holds the end of the previous page.
    let of_the_page = |lba| (1024..3072).contains(&lba);
    write_all_but(&mut disk, of_the_page);
    let mut block = [0; BLOCK];
    for lba in 0..disk.geometry().blocks {
        assert_eq!(disk.read(lba, &mut block).is_err(), of_the_page(lba), "block {lba}");
    }
    medium.find_again();
    for lba in 1024..3072 {
        disk.read(lba, &mut block).unwrap_or_else(|error| panic!("block {lba}: {error}"));
        assert_eq!(value_of(lba, &block), 5);
    }
}

#[test]
fn blocks_of_a_lost_page_of_the_map_are_freed_by_one_checkpoint() {
    let medium = Memory::new(BYTES);
    let mut disk = full_disk(&medium);
    medium.rot(page_of_map(&disk, 2) + 100, 3);
    write_all_but(&mut disk, |_| false);
    disk.flush().expect("flushed");
    let blocks = u64::from(disk.geometry().blocks);
    for _ in 0..2 {
        disk.checkpoint(false).expect("checkpointed");
    }
    assert_eq!(disk.log().segments().dead(), 0, "no write since");
    assert!(disk.live_slots() <= blocks + 64, "{} live of {blocks}", disk.live_slots());
    let medium = disk.close().expect("closed");
    let checked = scrub(medium).expect("checked");
    assert_eq!(checked.contradictions, Vec::<String>::new());
}

#[test]
fn a_passing_read_error_leaves_no_space_in_use() {
    let medium = Memory::new(BYTES);
    let mut disk = full_disk(&medium);
    let (mut rng, blocks) = (stream("while", 0), u64::from(disk.geometry().blocks));
    let mut values: HashMap<u32, u64> = (0..blocks as u32).map(|lba| (lba, 5)).collect();
    let mut write = |disk: &mut Disk<&Memory>, n: u64| {
        let lba = below(&mut rng, blocks) as u32;
        disk.write(lba, &block_of(lba, n))?;
        values.insert(lba, n);
        Ok(())
    };
    let segments = disk.geometry().start / BLOCK as u64..disk.geometry().end() / BLOCK as u64;
    segments.step_by(300).for_each(|block| medium.lose(block * BLOCK as u64));
    let failed = (10..10 + 6 * blocks).find_map(|n| write(&mut disk, n).err());
    assert!(matches!(failed, Some(LogError::Exhausted { stuck: 1.., .. })), "{failed:?}");
    medium.find_again();
    (1 << 32..(1 << 32) + 6 * blocks).for_each(|n| write(&mut disk, n).expect("there is room"));
    let mut disk = opened(disk.close().expect("closed"));
    let mut block = [0; BLOCK];
    for (&lba, &value) in &values {
        disk.read(lba, &mut block).expect("nothing is lost");
        assert_eq!(value_of(lba, &block), value);
    }
}
