//! The summary of a segment, in its last slots: it lists all slots of the segment.
//!
//! Each slot of the segment has an entry of sixteen bytes. A slot of the summary has 254 entries:
//!
//! ```text
//!    0  u64  sequence number × 16 + kind; 0 for an unused slot
//!    8  u32  block
//!   12  u32  0
//! ```
//!
//! The number of the next segment follows at 4064, u32.

use super::fields::{put_u32, put_u64, u32_at, u64_at};
use super::slot::{Kind, Seq};
use super::{BLOCK, Lba};

const ENTRY: usize = 16;

/// Entries of a summary slot.
pub const ENTRIES: usize = super::geometry::SLOTS_PER_FRAME as usize;

/// The entry of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its kind.
    pub kind: Kind,
    /// Its block, or page of the map.
    pub lba: Lba,
    /// Its sequence number.
    pub seq: Seq,
}

/// Offset of the next segment's number.
const NEXT: usize = ENTRIES * ENTRY;

/// Encodes the entries of one frame, at most [`ENTRIES`], and the next segment.
pub fn write(entries: &[Option<Entry>], next: u32, payload: &mut [u8]) {
    payload[..BLOCK].fill(0);
    put_u32(payload, NEXT, next);
    for (bytes, entry) in payload.chunks_exact_mut(ENTRY).zip(entries) {
        if let Some(entry) = entry {
            put_u64(bytes, 0, entry.seq << 4 | entry.kind as u64);
            put_u32(bytes, 8, entry.lba);
        }
    }
}

/// Decodes the next segment.
pub fn next(payload: &[u8]) -> u32 {
    u32_at(payload, NEXT)
}

/// Decodes the entries of one frame.
pub fn read(payload: &[u8]) -> impl Iterator<Item = Option<Entry>> {
    payload.chunks_exact(ENTRY).take(ENTRIES).map(|place| {
        let word = u64_at(place, 0);
        Kind::from_number((word & 15) as u32).map(|kind| Entry {
            kind,
            lba: u32_at(place, 8),
            seq: word >> 4,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_decoded_as_encoded() {
        let entries: Vec<Option<Entry>> = (0..ENTRIES as u32)
            .map(|n| {
                (n % 3 != 0).then_some(Entry { kind: Kind::Data, lba: n * 7, seq: 1 << 50 | u64::from(n) })
            })
            .collect();
        let mut payload = vec![9; BLOCK];
        write(&entries, 77, &mut payload);
        assert_eq!(next(&payload), 77);
        assert_eq!(read(&payload).collect::<Vec<_>>(), entries);
    }
}
