//! Fuzzes the parsers of a log disk's format: superblock, checkpoint, mark, slot and unmapped ranges, with valid
//! checksums. Any bytes must give an error or a value that survives writing and reading.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowtide_logdisk::BLOCK;
use lowtide_logdisk::format::checkpoint::{UNWRITTEN, STREAMS, SegmentState, Use};
use lowtide_logdisk::format::slot::{HEADER, SLOT};
use lowtide_logdisk::format::{Checkpoint, Geometry, Header, Kind, Mark, Superblock, unmaps};

const SALT: u32 = 7;
const BYTES: u64 = 64 << 20;

/// Overwrites `bytes` with `data`, starting at `from`, up to the end of `bytes`.
fn over(bytes: &mut [u8], from: usize, data: &[u8]) {
    let length = data.len().min(bytes.len() - from);
    bytes[from..from + length].copy_from_slice(&data[..length]);
}

fuzz_target!(|data: &[u8]| {
    let geometry = Geometry::new(BYTES, 1 << 20, 0.1).expect("it can be");

    let mut block = Superblock { geometry, id: [1; 16], salt: SALT }.write();
    over(&mut block, 24, data);
    block[20..24].fill(0);
    let crc = crc32c::crc32c(&block);
    block[20..24].copy_from_slice(&crc.to_le_bytes());
    if let Ok(superblock) = Superblock::read(&block, BYTES) {
        assert!(superblock.geometry.end() <= BYTES);
        assert_eq!(Superblock::read(&superblock.write(), BYTES), Ok(superblock));
    }

    let free = SegmentState { used: Use::Free, live: 0, newest: 0 };
    let good = Checkpoint {
        generation: 1,
        next_seq: 1,
        clean: true,
        streams: [None; STREAMS],
        pages: vec![UNWRITTEN; geometry.pages() as usize],
        segments: vec![free; geometry.segments as usize],
    };
    let mut bytes = good.write(SALT);
    over(&mut bytes, 16, data);
    let crc = crc32c::crc32c_append(SALT, &bytes[12..]);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    if let Ok(checkpoint) = Checkpoint::read(&bytes, SALT, &geometry) {
        assert_eq!(Checkpoint::read(&checkpoint.write(SALT), SALT, &geometry), Ok(checkpoint));
    }

    let mut block = Mark { number: 1, durable: 1, last: [None; 2], tail: Vec::new() }.write(SALT);
    let half = &mut block[..BLOCK / 2];
    over(half, 12, data);
    let crc = crc32c::crc32c_append(SALT, &half[12..]);
    half[8..12].copy_from_slice(&crc.to_le_bytes());
    // An invalid half is ignored in favour of the other half.
    let mark = Mark::read(&block, SALT).expect("one half is whole");
    assert_eq!(Mark::read(&mark.write(SALT), SALT), Some(mark));

    let mut slot = vec![0; SLOT];
    over(&mut slot, HEADER, data);
    let header = Header { kind: Kind::Data, lba: 1, seq: 1, before: None, durable: 0 };
    header.seal(SALT, &mut slot);
    assert_eq!(Header::open(SALT, &slot), Some(header));
    if let Ok(ranges) = unmaps::read(&slot[HEADER..][..BLOCK], geometry.blocks) {
        assert!(ranges.iter().map(|&(_, count)| u64::from(count)).sum::<u64>() <= u64::from(geometry.blocks));
    }
});
