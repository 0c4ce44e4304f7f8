//! Invalid values with valid checksums: a disk is opened or refused, read, written and checked without a panic or an
//! endless loop.

mod common;

use common::{BYTES, Blocks, Memory, OPTIONS, block_of, scrub, stream};
use lowtide_core::rng::{Rng, below};
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::geometry::MARKS;
use lowtide_logdisk::format::slot::{HEADER, SLOT};
use lowtide_logdisk::format::{Checkpoint, Geometry, Header, Mark, Superblock};
use lowtide_logdisk::{BLOCK, Disk, Medium};

fn used_disk() -> Blocks {
    let medium = Memory::new(BYTES);
    let mut disk = Disk::format(&medium, OPTIONS, [5; 16]).expect("formatted");
    let (mut rng, blocks) = (stream("hostile", 0), disk.geometry().blocks);
    for n in 0..3 * u64::from(blocks) {
        let lba = below(&mut rng, blocks.into()) as u32;
        disk.write(lba, &block_of(lba, n + 1)).expect("written");
        if n % 100 == 0 {
            disk.unmap(lba, (blocks - lba).min(3)).expect("unmapped");
            disk.flush().expect("flushed");
        }
    }
    medium.blocks()
}

/// A number that is often an edge case.
fn odd(rng: &mut Rng) -> u64 {
    match below(rng, 6) {
        0 => 0,
        1 => u64::MAX,
        2 => u64::from(u32::MAX) - below(rng, 3),
        3 => 1 << below(rng, 64),
        4 => below(rng, 40),
        _ => below(rng, 10_000),
    }
}

fn spoil_checkpoint(medium: &Memory, superblock: &Superblock, which: usize, rng: &mut Rng) {
    let geometry = &superblock.geometry;
    let place = geometry.checkpoint(which);
    let mut bytes = vec![0; (place.end - place.start) as usize];
    medium.read(place.start, &mut bytes).expect("read");
    let Ok(mut it) = Checkpoint::read(&bytes, superblock.salt, geometry) else { return };
    for _ in 0..1 + below(rng, 3) {
        let value = odd(rng);
        let any = below(rng, it.segments.len() as u64) as usize;
        let page = below(rng, it.pages.len() as u64) as usize;
        match below(rng, 8) {
            0 => it.next_seq = value,
            1 => it.generation = value,
            2 => it.pages[page] = value as u32,
            3 => it.segments[any].live = value as u32,
            4 => it.segments[any].newest = value >> 2,
            5 => it.segments[any].used = it.segments[(any + 7) % it.segments.len()].used,
            6 => it.streams[any % 3] = it.streams[(any + 1) % 3],
            _ => {
                if let Some(stream) = &mut it.streams[any % 3] {
                    match value % 3 {
                        0 => stream.segment = odd(rng) as u32,
                        1 => stream.slot = odd(rng) as u32,
                        _ => stream.next = odd(rng) as u32,
                    }
                }
            }
        }
    }
    medium.write(place.start, &it.write(superblock.salt)).expect("written");
}

fn spoil_slot(medium: &Memory, superblock: &Superblock, rng: &mut Rng) {
    let geometry = &superblock.geometry;
    let slots = geometry.segments * geometry.segment_slots();
    let slot = lowtide_logdisk::format::Slot::new(below(rng, slots.into()) as u32);
    let offset = geometry.offset(slot);
    let begin = offset / BLOCK as u64 * BLOCK as u64;
    let skip = (offset - begin) as usize;
    let mut bytes = vec![0; 2 * BLOCK];
    medium.read(begin, &mut bytes).expect("read");
    let Some(mut header) = Header::open(superblock.salt, &bytes[skip..][..SLOT]) else { return };
    match below(rng, 4) {
        0 => header.lba = odd(rng) as u32,
        1 => header.seq = odd(rng) >> 4,
        2 => header.durable = odd(rng) >> 4,
        _ => {
            for _ in 0..8 {
                let at = below(rng, (BLOCK / 4) as u64) as usize * 4;
                let value = (odd(rng) as u32).to_le_bytes();
                bytes[skip + HEADER + at..][..4].copy_from_slice(&value);
            }
        }
    }
    header.seal(superblock.salt, &mut bytes[skip..][..SLOT]);
    medium.write(begin, &bytes).expect("written");
}

fn spoil_marks(medium: &Memory, superblock: &Superblock, rng: &mut Rng) {
    for number in 0..MARKS {
        let place = superblock.geometry.mark(number).expect("there is a ring");
        let mut block = [0; BLOCK];
        medium.read(place, &mut block).expect("read");
        let Some(mut mark) = Mark::read(&block, superblock.salt) else { continue };
        match below(rng, 8) {
            0 => mark.durable = odd(rng) >> 4,
            1 => {
                mark.durable = mark.durable.wrapping_add(below(rng, 600)).wrapping_sub(300) & ((1 << 60) - 1)
            }
            2 => mark.number = odd(rng) >> 4,
            3 => mark.tail.truncate(below(rng, 200) as usize),
            4 => mark.tail.iter_mut().for_each(|held| held.lba = held.lba.wrapping_add(1 << 13)),
            5 => mark.tail.iter_mut().for_each(|held| held.count = held.count.wrapping_sub(1) >> 4),
            _ => {}
        }
        medium.write(place, &mark.write(superblock.salt)).expect("written");
    }
}

#[test]
fn invalid_values_cause_errors_and_no_panic() {
    let base = used_disk();
    let superblock = {
        let medium = Memory::of(BYTES, base.clone());
        let mut block = [0; BLOCK];
        medium.read(0, &mut block).expect("read");
        Superblock::read(&block, BYTES).expect("a superblock")
    };
    let (mut opened, mut refused) = (0, 0);
    let rounds = if std::env::var_os("LOWTIDE_LONG").is_some() { 3000 } else { 150 };
    for round in 0..rounds {
        let mut rng = stream("odd", round);
        let medium = Memory::of(BYTES, base.clone());
        if round % 3 < 2 {
            (0..2).for_each(|which| spoil_checkpoint(&medium, &superblock, which, &mut rng));
        }
        if round % 3 > 0 {
            (0..400).for_each(|_| spoil_slot(&medium, &superblock, &mut rng));
        }
        if round % 2 == 0 {
            spoil_marks(&medium, &superblock, &mut rng);
        }
        let _ = scrub(&medium);
        let Ok(mut disk) = Disk::open(&medium, Running { checkpoint_slots: 300, ..Running::default() })
        else {
            refused += 1;
            // Accepting older data must not cause a panic either.
            if let Ok(disk) = Disk::open_with_old_data(&medium, Running::default()) {
                let _ = disk.close();
            }
            continue;
        };
        opened += 1;
        let blocks = disk.geometry().blocks;
        let mut block = [0; BLOCK];
        for lba in (0..blocks).step_by(7) {
            let _ = disk.read(lba, &mut block);
        }
        for n in 0..1500u32 {
            let lba = below(&mut rng, blocks.into()) as u32;
            if disk.write(lba, &block_of(lba, n.into())).is_err() {
                break;
            }
            if n % 50 == 0 {
                let _ = disk.unmap(lba, (blocks - lba).min(2000));
                let _ = disk.flush();
            }
        }
        let _ = disk.close();
    }
    println!("{opened} opened, {refused} refused");
    assert!(opened > 10 && refused > 10);
}

#[test]
fn random_bytes_are_not_a_log_disk() {
    for round in 0..200 {
        let mut rng = stream("noise", round);
        let medium = Memory::new(BYTES);
        let mut noise = vec![0u8; 16 * BLOCK];
        noise.iter_mut().for_each(|byte| *byte = below(&mut rng, 256) as u8);
        medium.write(0, &noise).expect("written");
        assert!(Disk::open(&medium, Running::default()).is_err());
    }
    let geometry = Geometry::new(BYTES, 1 << 20, 0.1).expect("it can be");
    // Only a superblock.
    let medium = Memory::new(BYTES);
    medium.write(0, &Superblock { geometry, id: [1; 16], salt: 3 }.write()).expect("written");
    let error = Disk::open(&medium, Running::default()).expect_err("no checkpoint");
    assert!(error.to_string().contains("neither of the two checkpoints"), "{error}");
}
