//! A mark: a block that records the newest durable slot and the contents of the last slots ([`Mark`]).
//!
//! Each slot records the newest slot that was durable when it was made, but no slot follows the last slots of a
//! flush. If the last slots are damaged, only a mark distinguishes this damage from the torn end after a power cut,
//! and names their blocks. The two halves of a mark are identical, so that no single sector holds the only copy. Each
//! half:
//!
//! ```text
//!    0  8 bytes  "ltmark_1"
//!    8  u32      CRC-32C of the rest of the half, begun with the salt
//!   12  u32      number of slots that are listed
//!   16  u64      number of the mark: it lies in the block of that number, modulo 64
//!   24  u64      every slot up to this sequence number was durable
//!   32  2 × 16   the last slots of the host and moved streams: u64 sequence number × 16 + kind (0: none), u32 block,
//!                u32 number of blocks
//!   64           for each slot, from the last durable one backwards: u32 block, u32 number of blocks × 16 + kind
//! ```
//!
//! A mark has no checksum of the slots: numbers are unique, and the checksum of each slot covers its number. Module
//! `disk` writes marks, and module `recover` uses them.

use super::fields::{put_u32, put_u64, u32_at, u64_at};
use super::slot::{Kind, MOST_SEQ, Seq};
use super::{BLOCK, Lba};

const MAGIC: &[u8; 8] = b"ltmark_1";
const HALF: usize = BLOCK / 2;
const LAST: usize = 16;
const HEAD: usize = 32 + STREAMS * LAST;
const ENTRY: usize = 8;

/// Number of data streams.
pub const STREAMS: usize = 2;

/// The maximum number of slots in a mark.
pub const ENTRIES: usize = (HALF - HEAD) / ENTRY;

/// The contents of a slot in a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotContents {
    /// Its kind.
    pub kind: Kind,
    /// Its block, or the first block of the unmapped range.
    pub lba: Lba,
    /// Blocks of the unmapped range; 0 if there are several ranges, or too many blocks.
    pub count: u32,
}

impl SlotContents {
    const MOST: u32 = (1 << 28) - 1;

    fn word(self) -> u32 {
        let count = if self.count <= SlotContents::MOST { self.count } else { 0 };
        count << 4 | self.kind as u32
    }
    fn of_words(lba: u32, word: u32) -> Option<SlotContents> {
        Some(SlotContents { kind: Kind::from_number(word & 15)?, lba, count: word >> 4 })
    }
}

/// A mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Its number.
    pub number: u64,
    /// The newest durable slot.
    pub durable: Seq,
    /// The last slot of each data stream, if any.
    pub last: [Option<(Seq, SlotContents)>; STREAMS],
    /// The last slots, at most [`ENTRIES`], from `durable` backwards.
    pub tail: Vec<SlotContents>,
}

impl Mark {
    /// Encodes the mark as a block.
    pub fn write(&self, salt: u32) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let (half, other) = block.split_at_mut(HALF);
        half[..8].copy_from_slice(MAGIC);
        put_u32(half, 12, self.tail.len() as u32);
        put_u64(half, 16, self.number);
        put_u64(half, 24, self.durable);
        for (at, last) in self.last.iter().enumerate() {
            if let Some((seq, held)) = last {
                put_u64(half, 32 + at * LAST, seq << 4 | held.kind as u64);
                put_u32(half, 40 + at * LAST, held.lba);
                put_u32(half, 44 + at * LAST, held.count);
            }
        }
        for (entry, held) in half[HEAD..].chunks_exact_mut(ENTRY).zip(&self.tail) {
            put_u32(entry, 0, held.lba);
            put_u32(entry, 4, held.word());
        }
        let crc = crc32c::crc32c_append(salt, &half[12..]);
        put_u32(half, 8, crc);
        other.copy_from_slice(half);
        block
    }

    /// Decodes a block by its first valid half; `None` if neither is valid.
    pub fn read(block: &[u8], salt: u32) -> Option<Mark> {
        block.chunks_exact(HALF).find_map(|half| Mark::of_half(half, salt))
    }

    fn of_half(half: &[u8], salt: u32) -> Option<Mark> {
        if &half[..8] != MAGIC || crc32c::crc32c_append(salt, &half[12..]) != u32_at(half, 8) {
            return None;
        }
        let mut last = [None; STREAMS];
        for (at, last) in last.iter_mut().enumerate() {
            let word = u64_at(half, 32 + at * LAST);
            let (lba, count) = (u32_at(half, 40 + at * LAST), u32_at(half, 44 + at * LAST));
            let kind = Kind::from_number((word & 15) as u32);
            *last = kind.map(|kind| (word >> 4, SlotContents { kind, lba, count }));
        }
        let count = u32_at(half, 12) as usize;
        let entries = half[HEAD..].chunks_exact(ENTRY).take(count);
        // After an invalid entry, the positions of later ones are not reliable.
        let tail =
            entries.map_while(|place| SlotContents::of_words(u32_at(place, 0), u32_at(place, 4))).collect();
        let mark = Mark { number: u64_at(half, 16), durable: u64_at(half, 24), last, tail };
        (mark.durable <= MOST_SEQ && mark.number <= MOST_SEQ && count <= ENTRIES).then_some(mark)
    }

    /// The contents of a slot, if the mark lists it.
    pub fn held(&self, seq: Seq) -> Option<SlotContents> {
        let from_end = usize::try_from(self.durable.checked_sub(seq)?).ok()?;
        let last = || self.last.iter().flatten().find(|(last, _)| *last == seq).map(|(_, held)| held);
        self.tail.get(from_end).or_else(last).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Mark {
        let held = |n: u32| SlotContents {
            kind: if n.is_multiple_of(5) { Kind::Unmap } else { Kind::Data },
            lba: n * 9,
            count: n,
        };
        Mark {
            number: 77,
            durable: 1 << 40,
            last: [Some((1 << 40, held(0))), Some((5, held(3)))],
            tail: (0..ENTRIES as u32).map(held).collect(),
        }
    }

    #[test]
    fn a_mark_is_decoded_from_either_half() {
        let good = example().write(3);
        assert_eq!(Mark::read(&good, 3), Some(example()));
        assert_eq!(Mark::read(&good, 4), None, "of another log");
        for spoiled in [0, HALF] {
            let mut block = good;
            block[spoiled..spoiled + HALF].fill(0xff);
            assert_eq!(Mark::read(&block, 3), Some(example()));
        }
        for at in 0..HALF {
            let mut block = good;
            block[at] ^= 4;
            block[(at + 1) % HALF + HALF] ^= 4;
            assert_eq!(Mark::read(&block, 3), None, "byte {at}");
        }
        assert_eq!(Mark::read(&[0; BLOCK], 3), None, "never written");
    }

    #[test]
    fn a_mark_lists_the_last_slots_only() {
        let mark = example();
        assert_eq!(mark.held(1 << 40), Some(mark.tail[0]));
        assert_eq!(mark.held((1 << 40) - 7), Some(mark.tail[7]));
        assert_eq!(mark.held(5), mark.last[1].map(|(_, held)| held));
        assert_eq!(mark.held((1 << 40) + 1), None);
        assert_eq!(mark.held((1 << 40) - ENTRIES as u64), None);
    }
}
