//! A slot: 32 bytes of header and 4096 of payload, the unit of the log.
//!
//! ```text
//!    0  u32  block, page of the map, or 0
//!    4  u32  CRC-32C of the rest of the slot, begun with the salt of this log
//!    8  u64  sequence number × 16 + kind
//!   16  u32  block of the slot before it in the same stream
//!   20  u32  low 28 bits of that slot's sequence number × 16 + its kind; 0 where there was none since the log was opened
//!   24  u64  every slot up to this sequence number was durable when this one was made
//!   32       payload
//! ```

use super::fields::{put_u32, put_u64, u32_at, u64_at};
use super::{BLOCK, Lba};

/// Bytes of a slot's header.
pub const HEADER: usize = 32;

/// Bytes of a slot.
pub const SLOT: usize = HEADER + BLOCK;

/// The number of a slot in the log, over all segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// A slot by its number.
    pub const fn new(number: u32) -> Slot {
        Slot(number)
    }
    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The order in which slots were made; it only grows.
pub type Seq = u64;

/// The largest sequence number that a header can hold.
pub const MOST_SEQ: Seq = (1 << 60) - 1;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A block of data.
    Data = 1,
    /// Ranges of blocks that hold nothing any more.
    Unmap = 2,
    /// A block whose data could not be read when it was to be moved: reading it is an error until it is written again.
    Lost = 3,
    /// The first slot of a segment.
    Segment = 4,
    /// The last slots of a segment: the headers of all others.
    Summary = 5,
    /// A page of the map.
    Map = 6,
}

impl Kind {
    /// The kind of a number.
    pub fn from_number(number: u32) -> Option<Kind> {
        [Kind::Data, Kind::Unmap, Kind::Lost, Kind::Segment, Kind::Summary, Kind::Map]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }
}

/// What a slot says of the one before it in its stream, so that one that is spoiled is known by the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    /// What it held.
    pub kind: Kind,
    /// Which block.
    pub lba: Lba,
    /// The low bits of its number.
    low: u32,
}

impl Before {
    const MASK: Seq = (1 << 28) - 1;

    /// What is said of a slot.
    pub const fn new(kind: Kind, lba: Lba, seq: Seq) -> Before {
        Before { kind, lba, low: (seq & Before::MASK) as u32 }
    }
    /// Whether the slot of this number is meant: one of the last quarter of a billion.
    pub const fn is(&self, seq: Seq) -> bool {
        self.low as Seq == seq & Before::MASK
    }
}

/// A slot's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the slot holds.
    pub kind: Kind,
    /// The block it holds, or the page of the map.
    pub lba: Lba,
    /// When it was made.
    pub seq: Seq,
    /// The slot before it in the same stream, where there was one since the log was opened.
    pub before: Option<Before>,
    /// Everything up to here was durable by then.
    pub durable: Seq,
}

impl Header {
    /// Writes the slot: this header, and the checksum of it and of the payload, which is there already.
    ///
    /// # Panics
    /// If `slot` is not as long as a slot: a fault of the caller's.
    pub fn seal(&self, salt: u32, slot: &mut [u8]) {
        assert_eq!(slot.len(), SLOT);
        put_u32(slot, 0, self.lba);
        put_u64(slot, 8, self.seq << 4 | self.kind as u64);
        let (word, lba) = self.before.map_or((0, 0), |it| (it.low << 4 | it.kind as u32, it.lba));
        put_u32(slot, 16, lba);
        put_u32(slot, 20, word);
        put_u64(slot, 24, self.durable);
        let crc = checksum(salt, slot);
        put_u32(slot, 4, crc);
    }

    /// The header of a slot whose checksum fits; `None` where it does not: never written, torn, rotten, or of another log.
    pub fn open(salt: u32, slot: &[u8]) -> Option<Header> {
        debug_assert_eq!(slot.len(), SLOT);
        if u32_at(slot, 4) != checksum(salt, slot) {
            return None;
        }
        let (word, before) = (u64_at(slot, 8), u32_at(slot, 20));
        let durable = u64_at(slot, 24);
        Some(Header {
            kind: Kind::from_number((word & 15) as u32)?,
            lba: u32_at(slot, 0),
            seq: word >> 4,
            before: Kind::from_number(before & 15).map(|kind| Before {
                kind,
                lba: u32_at(slot, 16),
                low: before >> 4,
            }),
            durable,
        })
        .filter(|_| durable <= MOST_SEQ)
    }

    /// The same, if the slot is of the current generation of its segment, whose first number is `oldest`.
    pub fn open_since(salt: u32, slot: &[u8], oldest: Seq) -> Option<Header> {
        Header::open(salt, slot).filter(|header| header.seq >= oldest)
    }
}

/// The checksum of a slot, without the place that holds it.
fn checksum(salt: u32, slot: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(salt, &slot[..4]), &slot[8..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_slot_opens_and_one_with_any_bit_changed_does_not() {
        let header = Header {
            kind: Kind::Data,
            lba: 7,
            seq: 1 << 40,
            before: Some(Before::new(Kind::Unmap, 3, 5)),
            durable: 99,
        };
        let mut slot = vec![5; SLOT];
        header.seal(1, &mut slot);
        assert_eq!(Header::open(1, &slot), Some(header));
        assert_eq!(Header::open(2, &slot), None, "of another log");
        for bit in (0..SLOT * 8).step_by(37).chain(0..HEADER * 8) {
            slot[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::open(1, &slot), None, "bit {bit}");
            slot[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(Header::open(1, &[0; SLOT]), None, "never written");
    }
}
