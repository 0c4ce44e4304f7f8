//! Older slots in place of newer ones, from a lost write or a stray copy: an error, never older data.
//!
//! Symptom: blocks read as older data, and `scrub` found nothing. Cause: a slot was accepted by checksum, kind and
//! block, and an older slot of the same block also fits these. Fix: the segment's first sequence number bounds its
//! slots.

mod common;

use common::{
    BYTES, Blocks, Memory, block_of, formatted, newest_checkpoint, opened, scrub, stream, value_of,
};
use lowtide_core::rng::below;
use lowtide_logdisk::check::Checked;
use lowtide_logdisk::format::slot::SLOT;
use lowtide_logdisk::format::{Header, Kind, Lba, Slot};
use lowtide_logdisk::log::Entry;
use lowtide_logdisk::{BLOCK, Disk, LogError, Medium};
use std::collections::HashMap;
use std::rc::Rc;

fn scrubbed(medium: &Memory) -> Checked {
    scrub(medium).expect("checked")
}

/// The header of a slot of a medium, if its checksum fits.
fn header(disk: &Disk<&Memory>, blocks: &Blocks, slot: Slot) -> Option<Header> {
    Header::open(disk.log().superblock().salt, &bytes(blocks, disk.geometry().offset(slot), SLOT))
}

fn bytes(blocks: &Blocks, offset: u64, length: usize) -> Vec<u8> {
    let byte = |at: u64| blocks.get(&(at / BLOCK as u64)).map_or(0, |it| it[(at % BLOCK as u64) as usize]);
    (offset..offset + length as u64).map(byte).collect()
}

fn put(blocks: &mut Blocks, offset: u64, bytes: &[u8]) {
    for (at, &byte) in (offset..).zip(bytes) {
        let block = blocks.entry(at / BLOCK as u64).or_insert_with(|| Rc::new([0; BLOCK]));
        Rc::make_mut(block)[(at % BLOCK as u64) as usize] = byte;
    }
}

/// The medium `now`, with the blocks of a slot as in `before`.
fn lost_write(now: &Blocks, before: &Blocks, offset: u64) -> Blocks {
    let (begin, block) = (offset / BLOCK as u64, BLOCK as u64);
    let end = (offset + SLOT as u64).div_ceil(block);
    let mut blocks = now.clone();
    put(&mut blocks, begin * block, &bytes(before, begin * block, ((end - begin) * block) as usize));
    blocks
}

/// Fails if a block does not read as its newest value. Returns the unreadable blocks.
fn unreadable(disk: &mut Disk<&Memory>, values: &HashMap<Lba, u64>, context: &str) -> Vec<Lba> {
    let (mut block, mut lost) = ([0; BLOCK], Vec::new());
    for (&lba, &value) in values {
        match disk.read(lba, &mut block) {
            Ok(()) => assert_eq!(value_of(lba, &block), value, "{context}: block {lba}"),
            Err(LogError::Unreadable(_)) => lost.push(lba),
            Err(error) => panic!("{context}: block {lba}: {error}"),
        }
    }
    lost
}

/// A disk on which a segment holds the same block in the same slot in each of its generations. Returns states of its
/// medium over time, and the final values.
fn with_fixed_slots(medium: &Memory) -> (Vec<Blocks>, HashMap<Lba, u64>) {
    let mut disk = formatted(medium);
    let (period, segments) = (disk.geometry().data_slots(), u64::from(disk.geometry().segments));
    let (mut before, mut values) = (Vec::new(), HashMap::new());
    // Begins at the start of a segment.
    let last = disk.geometry().data_range().end - 1;
    let slot = |disk: &mut Disk<&Memory>| match disk.entry(0).expect("found") {
        Entry::At(slot) => disk.geometry().place(slot).1,
        _ => 0,
    };
    while slot(&mut disk) != last {
        disk.write(0, &block_of(0, 1)).expect("written");
    }
    for pass in 1..=3 * segments {
        for lba in 0..period {
            disk.write(lba, &block_of(lba, pass)).expect("written");
            values.insert(lba, pass);
        }
        disk.flush().expect("flushed");
        if pass.is_multiple_of(8) {
            disk.checkpoint(false).expect("made");
        }
        if pass.is_multiple_of(segments / 2) {
            before.push(medium.blocks());
        }
    }
    // Half of the live slots are in a full segment, half in the open one.
    for lba in 0..period / 2 {
        disk.write(lba, &block_of(lba, 3 * segments + 1)).expect("written");
        values.insert(lba, 3 * segments + 1);
    }
    disk.flush().expect("flushed");
    (before, values)
}

/// Live slots that held an older version of the same block earlier: the block, the offset, and the index in `before`.
fn older_in_place(disk: &mut Disk<&Memory>, before: &[Blocks], blocks: u32) -> Vec<(Lba, u64, usize)> {
    let now = disk.medium().blocks();
    let mut found = Vec::new();
    for lba in 0..blocks {
        let Entry::At(slot) = disk.entry(lba).expect("found") else { continue };
        let newest = header(disk, &now, slot).expect("as it was written");
        for (at, blocks) in before.iter().enumerate() {
            let older = header(disk, blocks, slot);
            if older.is_some_and(|it| it.kind == Kind::Data && it.lba == lba && it.seq < newest.seq) {
                found.push((lba, disk.geometry().offset(slot), at));
            }
        }
    }
    found
}

#[test]
fn a_lost_write_over_an_earlier_generation_of_the_segment_is_an_error() {
    for closed in [true, false] {
        let medium = Memory::new(BYTES);
        let (before, values) = with_fixed_slots(&medium);
        if closed {
            opened(&medium).checkpoint(true).expect("closed");
        }
        assert!(scrubbed(&medium).is_good(), "closed {closed}: before the damage");
        let now = medium.blocks();
        let found = older_in_place(&mut opened(&medium), &before, values.len() as u32);
        assert!(found.len() > 200, "closed {closed}: {} places", found.len());
        let mut rng = stream("lost write", closed.into());
        for round in 0..25 {
            let (lba, offset, at) = found[below(&mut rng, found.len() as u64) as usize];
            let context = format!("closed {closed}, seed 1, round {round}, block {lba} at {offset}");
            let damaged = Memory::of(BYTES, lost_write(&now, &before[at], offset));
            let lost = unreadable(&mut opened(&damaged), &values, &context);
            // The neighbours in the same two blocks of the medium are lost with it.
            assert!(lost.contains(&lba) && lost.len() <= 3, "{context}: {lost:?}");
            assert!(!scrubbed(&damaged).is_good(), "{context}");
        }
    }
}

#[test]
fn cleaning_does_not_revive_an_older_slot() {
    let medium = Memory::new(BYTES);
    let (before, mut values) = with_fixed_slots(&medium);
    opened(&medium).checkpoint(true).expect("closed");
    let found = older_in_place(&mut opened(&medium), &before, values.len() as u32);
    let (_, offset, at) = found[found.len() / 2];
    let damaged = Memory::of(BYTES, lost_write(&medium.blocks(), &before[at], offset));
    let mut disk = opened(&damaged);
    let lost = unreadable(&mut disk, &values, "before cleaning");
    assert!(!lost.is_empty());
    let (mut rng, blocks) = (stream("clean", 0), u64::from(disk.geometry().blocks));
    for n in 0..4 * blocks {
        let lba = below(&mut rng, blocks) as u32;
        if !lost.contains(&lba) {
            disk.write(lba, &block_of(lba, n + 1000)).expect("written");
            values.insert(lba, n + 1000);
        }
    }
    assert!(disk.counters().moved_blocks > 0);
    let mut after = unreadable(&mut disk, &values, "seed 1, after cleaning");
    let medium = disk.close().expect("closed");
    let mut again = unreadable(&mut opened(medium), &values, "seed 1, opened again");
    let mut lost = lost;
    for list in [&mut lost, &mut after, &mut again] {
        list.sort_unstable();
    }
    assert_eq!((&after, &again), (&lost, &lost));
}

#[test]
fn a_copy_of_a_slot_of_an_earlier_generation_is_an_error() {
    let medium = Memory::new(BYTES);
    let (before, values) = with_fixed_slots(&medium);
    let mut disk = opened(&medium);
    disk.checkpoint(true).expect("closed");
    let (now, geometry) = (medium.blocks(), *disk.geometry());
    let mut rng = stream("copy", 0);
    for round in 0..25 {
        let lba = below(&mut rng, values.len() as u64) as u32;
        let Entry::At(slot) = disk.entry(lba).expect("found") else { panic!("block {lba} has a slot") };
        let from = (0..geometry.segments * geometry.segment_slots()).map(Slot::new).find(|&from| {
            from != slot
                && header(&disk, &before[0], from).is_some_and(|it| it.kind == Kind::Data && it.lba == lba)
        });
        let copy = bytes(&before[0], geometry.offset(from.expect("there is one")), SLOT);
        let mut blocks = now.clone();
        put(&mut blocks, geometry.offset(slot), &copy);
        let damaged = Memory::of(BYTES, blocks);
        let context = format!("seed 1, round {round}, block {lba}");
        assert_eq!(unreadable(&mut opened(&damaged), &values, &context), [lba], "{context}");
        assert!(!scrubbed(&damaged).is_good(), "{context}");
    }
}

/// Reading cannot distinguish such a copy from the newest slot; the summary can, or the order of slots in a segment
/// without one.
#[test]
fn scrub_finds_a_copy_of_an_older_slot_of_the_same_generation() {
    for (more, between) in [(0, 0), (0, 3), (5, 0), (5, 3), (600, 0), (600, 3)] {
        let medium = Memory::new(BYTES);
        let mut disk = formatted(&medium);
        let mut place = |value| {
            disk.write(10, &block_of(10, value)).expect("written");
            disk.flush().expect("flushed");
            let Entry::At(slot) = disk.entry(10).expect("found") else { panic!("block 10 has a slot") };
            for lba in 100..100 + if value == 1 { between } else { more } {
                disk.write(lba, &block_of(lba, value)).expect("written");
            }
            disk.geometry().offset(slot)
        };
        let (old, new) = (place(1), place(2));
        let medium = disk.close().expect("closed");
        assert!(scrubbed(medium).is_good(), "{more} more, {between} between: before the damage");
        let mut blocks = medium.blocks();
        let copy = bytes(&blocks, old, SLOT);
        put(&mut blocks, new, &copy);
        let damaged = Memory::of(BYTES, blocks);
        assert!(!scrubbed(&damaged).is_good(), "{more} more, {between} between");
    }
}

#[test]
fn a_lost_write_of_a_page_of_the_map_is_an_error() {
    let medium = Memory::new(BYTES);
    let mut disk = formatted(&medium);
    let (mut before, mut values): (Vec<Blocks>, HashMap<Lba, u64>) = (Vec::new(), HashMap::new());
    // Each checkpoint writes only page 0, until a slot holds page 0 for the second time.
    let found = (1..40_000).find_map(|n| {
        let lba = (n % 500) as u32;
        disk.write(lba, &block_of(lba, n)).expect("written");
        values.insert(lba, n);
        disk.checkpoint(false).expect("made");
        if n % 100 != 0 {
            return None;
        }
        let (now, (newest, _)) = (medium.blocks(), newest_checkpoint(&disk));
        let slot = Slot::new(newest.pages[0]);
        let newest = header(&disk, &now, slot).expect("as it was written");
        let older = |blocks: &&Blocks| {
            header(&disk, blocks, slot)
                .is_some_and(|it| it.kind == Kind::Map && it.lba == 0 && it.seq < newest.seq)
        };
        let found =
            before.iter().find(older).map(|before| lost_write(&now, before, disk.geometry().offset(slot)));
        before.push(now);
        found
    });
    assert!(scrubbed(&medium).is_good(), "before the damage");
    let damaged = Memory::of(BYTES, found.expect("a slot was used again for page 0"));
    let lost = unreadable(&mut opened(&damaged), &values, "an older page of the map");
    assert_eq!(lost.len(), values.len(), "all blocks of the page");
    assert!(!scrubbed(&damaged).is_good());
}

#[test]
fn a_disk_without_spans_is_readable_and_scrub_finds_older_slots() {
    let medium = Memory::new(BYTES);
    let (before, values) = with_fixed_slots(&medium);
    let mut disk = opened(&medium);
    disk.checkpoint(true).expect("closed");
    let (mut old, offset) = newest_checkpoint(&disk);
    old.segments.iter_mut().for_each(|segment| segment.begun = 0);
    medium.write(offset, &old.write(disk.log().superblock().salt)).expect("written");
    let mut disk = opened(&medium);
    assert_eq!(unreadable(&mut disk, &values, "without spans"), []);
    assert!(scrubbed(&medium).is_good());
    // Only full segments have a summary.
    let found = older_in_place(&mut disk, &before, values.len() as u32);
    let full = |offset: u64| {
        let segment = ((offset - disk.geometry().start) / disk.geometry().segment_bytes()) as u32;
        disk.log().segments().full_since(segment).is_some()
    };
    let Some(&(lba, offset, at)) = found.iter().find(|it| full(it.1)) else { panic!("one is full") };
    let damaged = Memory::of(BYTES, lost_write(&medium.blocks(), &before[at], offset));
    assert!(scrubbed(&damaged).stale.contains(&lba), "block {lba}");
}
