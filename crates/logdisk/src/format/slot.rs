//! A slot ([`Header`]): 32 bytes of header and 4096 of payload, the unit of the log.
//!
//! ```text
//!    0  u32  block, page of the map, or 0
//!    4  u32  CRC-32C of the rest of the slot, begun with the salt of this log
//!    8  u64  sequence number × 16 + kind
//!   16  u32  block of its predecessor, the previous slot of the same stream
//!   20  u32  low 28 bits of the predecessor's sequence number × 16 + its kind; 0 for the first slot after an opening
//!   24  u64  newest durable slot when this one was made
//!   32       payload
//! ```

use super::fields::{put_u32, put_u64, u32_at, u64_at};
use super::{BLOCK, Lba};

/// Length of a slot's header in bytes.
pub const HEADER: usize = 32;

/// Length of a slot in bytes.
pub const SLOT: usize = HEADER + BLOCK;

/// The position of a slot in the log, counted over all segments.
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

/// The sequence number of a slot, in order of writing.
pub type Seq = u64;

/// The maximum sequence number.
pub const MOST_SEQ: Seq = (1 << 60) - 1;

/// The kind of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A block of data.
    Data = 1,
    /// Unmapped ranges of blocks.
    Unmap = 2,
    /// A block that was unreadable when it had to be moved. Reading it is an error until it is written again.
    Lost = 3,
    /// The first slot of a segment.
    Segment = 4,
    /// One of the last slots of a segment, which list all other slots.
    Summary = 5,
    /// A page of the map.
    Map = 6,
}

impl Kind {
    /// The kind with a number.
    pub fn from_number(number: u32) -> Option<Kind> {
        [Kind::Data, Kind::Unmap, Kind::Lost, Kind::Segment, Kind::Summary, Kind::Map]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }
}

/// The record of a slot's predecessor in its stream, by which a damaged slot is identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predecessor {
    /// Its kind.
    pub kind: Kind,
    /// Its block.
    pub lba: Lba,
    /// The low bits of its sequence number.
    low: u32,
}

impl Predecessor {
    const MASK: Seq = (1 << 28) - 1;

    /// The record of a slot.
    pub const fn new(kind: Kind, lba: Lba, seq: Seq) -> Predecessor {
        Predecessor { kind, lba, low: (seq & Predecessor::MASK) as u32 }
    }
    /// Returns whether the record matches a sequence number, modulo 2^28.
    pub const fn is(&self, seq: Seq) -> bool {
        self.low as Seq == seq & Predecessor::MASK
    }
}

/// A slot's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The kind of the slot.
    pub kind: Kind,
    /// Its block, or page of the map.
    pub lba: Lba,
    /// Its sequence number.
    pub seq: Seq,
    /// Its predecessor in the same stream; `None` for the first slot since the opening.
    pub before: Option<Predecessor>,
    /// The newest durable slot when this slot was made.
    pub durable: Seq,
}

impl Header {
    /// Writes this header and its checksum to a slot whose payload is set.
    ///
    /// # Panics
    /// If `slot` does not have the length of a slot.
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

    /// Reads the header of a slot; `None` if its checksum is wrong.
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
            before: Kind::from_number(before & 15).map(|kind| Predecessor {
                kind,
                lba: u32_at(slot, 16),
                low: before >> 4,
            }),
            durable,
        })
        .filter(|_| durable <= MOST_SEQ)
    }

    /// Reads the header of a slot of the current generation of its segment, whose first number is `oldest`.
    pub fn open_since(salt: u32, slot: &[u8], oldest: Seq) -> Option<Header> {
        Header::open(salt, slot).filter(|header| header.seq >= oldest)
    }
}

/// The checksum of a slot without its checksum field.
fn checksum(salt: u32, slot: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(salt, &slot[..4]), &slot[8..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_bit_invalidates_a_slot() {
        let header = Header {
            kind: Kind::Data,
            lba: 7,
            seq: 1 << 40,
            before: Some(Predecessor::new(Kind::Unmap, 3, 5)),
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
