//! Fuzzes opening and using a log disk. The input changes bytes of a valid disk, and checksums are recomputed. The
//! disk must be rejected, or opened, read, written and closed, without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::slot::SLOT;
use lowtide_logdisk::format::{Checkpoint, Header, Mark, Slot, Superblock};
use lowtide_logdisk::{BLOCK, Disk, Medium, Options};
use std::cell::RefCell;
use std::io;
use std::sync::OnceLock;

const BYTES: u64 = 36 << 20;

/// Bytes in memory.
struct Memory(RefCell<Vec<u8>>);

impl Medium for Memory {
    fn bytes(&self) -> u64 {
        BYTES
    }
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        into.copy_from_slice(&self.0.borrow()[offset as usize..][..into.len()]);
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.borrow_mut()[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A disk that has been written to but not closed.
fn base() -> &'static (Vec<u8>, Superblock) {
    static BASE: OnceLock<(Vec<u8>, Superblock)> = OnceLock::new();
    BASE.get_or_init(|| {
        let medium = Memory(RefCell::new(vec![0; BYTES as usize]));
        let options = Options { segment: 1 << 20, reserve: 0.1 };
        let mut disk = Disk::format(&medium, options, [5; 16]).expect("formatted");
        for n in 0..9000u32 {
            disk.write(n * 7919 % disk.geometry().blocks, &[n as u8; BLOCK]).expect("written");
            if n % 50 == 0 {
                disk.unmap(n % 1000, 3).expect("unmapped");
                disk.flush().expect("flushed");
            }
        }
        drop(disk);
        let superblock = Superblock::read(&medium.0.borrow()[..BLOCK], BYTES).expect("a superblock");
        (medium.0.into_inner(), superblock)
    })
}

fuzz_target!(|data: &[u8]| {
    let (image, superblock) = base();
    let medium = Memory(RefCell::new(image.clone()));
    let geometry = &superblock.geometry;
    {
        let mut bytes = medium.0.borrow_mut();
        // A patch is eight bytes: four for the place, four for the value.
        for patch in data.chunks_exact(8) {
            let place = u32::from_le_bytes(patch[..4].try_into().expect("four bytes"));
            let value = &patch[4..];
            if place % 16 == 0 {
                // Changes a mark and recomputes its checksum.
                let number = u64::from(place / 16 % 64);
                let from = geometry.mark(number).expect("there are marks") as usize;
                let block = &mut bytes[from..from + BLOCK];
                let mark = Mark::read(block, superblock.salt);
                let mut mark = mark.unwrap_or(Mark { number, durable: 1, last: [None; 2], tail: Vec::new() });
                let word = u32::from_le_bytes(value.try_into().expect("four bytes"));
                match place / 1024 % 3 {
                    0 => mark.durable = u64::from(word) << (word % 28),
                    1 => {
                        mark.durable =
                            mark.durable.wrapping_add_signed(i64::from(word as i16)) & ((1 << 60) - 1)
                    }
                    _ => mark.tail.truncate(word as usize % 250),
                }
                block.copy_from_slice(&mark.write(superblock.salt));
            } else if place % 4 == 0 {
                // Changes a checkpoint and recomputes its checksum.
                let which = geometry.checkpoint((place as usize / 4) % 2);
                let table = &mut bytes[which.start as usize..which.end as usize];
                let at = 16 + (place as usize / 8 * 4) % (table.len() - 20);
                table[at..at + 4].copy_from_slice(value);
                let crc = crc32c::crc32c_append(superblock.salt, &table[12..]);
                table[8..12].copy_from_slice(&crc.to_le_bytes());
                let _ = Checkpoint::read(table, superblock.salt, geometry);
            } else {
                let slot = Slot::new(place / 4 % (geometry.segments * geometry.segment_slots()));
                let from = geometry.offset(slot) as usize;
                let slot = &mut bytes[from..from + SLOT];
                if let Some(mut header) = Header::open(superblock.salt, slot) {
                    let word = u32::from_le_bytes(value.try_into().expect("four bytes"));
                    match place % 4 {
                        1 => header.lba = word,
                        2 => header.seq = u64::from(word) << (word % 28),
                        _ => slot[32 + (word as usize / 256 * 4) % BLOCK] = word as u8,
                    }
                    header.seal(superblock.salt, slot);
                }
            }
        }
    }
    let Ok(mut disk) = Disk::open(&medium, Running { checkpoint_slots: 200, ..Running::default() }) else {
        return;
    };
    let blocks = disk.geometry().blocks;
    let mut block = [0; BLOCK];
    for lba in (0..blocks).step_by(97) {
        let _ = disk.read(lba, &mut block);
    }
    for n in 0..300 {
        if disk.write(n * 31 % blocks, &block).is_err() {
            break;
        }
    }
    let _ = disk.unmap(5, 1000.min(blocks - 5));
    let _ = disk.flush();
    let _ = disk.close();
});
