//! The summary of a segment: what each of its slots holds, in its last slots, so that none of them need be read for it.
//!
//! Sixteen bytes for each slot of the segment, 254 in a slot of the summary:
//!
//! ```text
//!    0  u64  sequence number × 16 + kind; 0 for a slot that holds nothing
//!    8  u32  block
//!   12  u32  0
//! ```
//!
//! and after them, at 4064, the segment that follows, u32.

use super::fields::{put_u32, put_u64, u32_at, u64_at};
use super::slot::{Kind, Seq};
use super::{BLOCK, Lba};

/// Bytes of an entry.
const ENTRY: usize = 16;

/// Entries of a slot.
pub const ENTRIES: usize = super::geometry::SLOTS_PER_FRAME as usize;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its kind.
    pub kind: Kind,
    /// Its block, or page.
    pub lba: Lba,
    /// When it was made.
    pub seq: Seq,
}

/// Where the segment that follows is named.
const NEXT: usize = ENTRIES * ENTRY;

/// Writes the entries of the slots of one frame, [`ENTRIES`] at most, and which segment follows.
pub fn write(entries: &[Option<Entry>], next: u32, payload: &mut [u8]) {
    payload[..BLOCK].fill(0);
    put_u32(payload, NEXT, next);
    for (place, entry) in payload.chunks_exact_mut(ENTRY).zip(entries) {
        if let Some(entry) = entry {
            put_u64(place, 0, entry.seq << 4 | entry.kind as u64);
            put_u32(place, 8, entry.lba);
        }
    }
}

/// The segment that follows.
pub fn next(payload: &[u8]) -> u32 {
    u32_at(payload, NEXT)
}

/// The entries of the slots of one frame.
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
    fn entries_come_back_as_they_were() {
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
