//! A checkpoint: the state of the log at one instant, from which recovery starts ([`Checkpoint`]).
//!
//! ```text
//!    0  8 bytes  "ltcheck1"
//!    8  u32      CRC-32C of all that follows, begun with the salt
//!   12  u32      total length, header included
//!   16  u64      generation; the newer of two counts
//!   24  u64      the next sequence number
//!   32  u32      1 after a clean close, else 0
//!   36  u32      number of pages of the map
//!   40  u32      number of segments
//!   44  u32      0
//!   48  3 × 16   the host, moved and map streams: segment, next slot, segment after it, 0
//!   96           for each page of the map its slot, u32; UNWRITTEN if it was never written
//!                for each segment 16 bytes: u64 newest sequence number × 4 + use, u32 live slots, u32 span
//! ```
//!
//! Checkpoints alternate between two ranges, so that the older checkpoint is complete while the newer one is written.
//!
//! The span encodes the first sequence number of a segment: the newest one less the span, plus one. Its upper 6 bits
//! are a shift, and its lower 26 bits the value to shift, rounded up. 0 means unknown, as in checkpoints of programs
//! that wrote no spans; those programs ignore the field.

use super::fields::{put_u32, put_u64, u32_at, u64_at};
use super::slot::{MOST_SEQ, Seq};
use super::{BLOCK, FormatError, Geometry};

const MAGIC: &[u8; 8] = b"ltcheck1";
const HEAD: usize = 96;
const STREAM: usize = 16;
const SEGMENT: usize = 16;

/// Number of streams: host, moved, and map.
pub const STREAMS: usize = 3;

/// The slot of a page of the map that was never written: all its blocks are holes.
pub const UNWRITTEN: u32 = u32::MAX;

/// The use of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Use {
    /// Free.
    Free = 0,
    /// Data.
    Data = 1,
    /// Pages of the map.
    Map = 2,
}

/// The state of a segment in a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentState {
    /// Its use.
    pub used: Use,
    /// Its live slots.
    pub live: u32,
    /// Its newest slot.
    pub newest: Seq,
    /// Its first slot, or a lower bound if the span was rounded; 0 if unknown.
    pub begun: Seq,
}

/// The position of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamState {
    /// The segment being written.
    pub segment: u32,
    /// The first unwritten slot of the segment.
    pub slot: u32,
    /// The next segment.
    pub next: u32,
}

/// The state of the log at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Number of the checkpoint. The readable checkpoint with the larger number is valid.
    pub generation: u64,
    /// The next sequence number.
    pub next_seq: Seq,
    /// Whether a clean close wrote the checkpoint.
    pub clean: bool,
    /// The positions of the streams; `None` without a segment.
    pub streams: [Option<StreamState>; STREAMS],
    /// The slot of each page of the map, [`UNWRITTEN`] for pages that were never written.
    pub pages: Vec<u32>,
    /// All segments.
    pub segments: Vec<SegmentState>,
}

/// Maximum length of a checkpoint in bytes, rounded up to blocks.
pub fn bytes_for(segments: u64, pages: u64) -> u64 {
    (HEAD as u64 + pages * 4 + segments * SEGMENT as u64).next_multiple_of(BLOCK as u64)
}

/// Bits of a span without its shift.
const SPAN_BITS: u32 = 26;

/// Encodes the sequence numbers of a segment from `begun` to `newest`, rounded up.
fn span(begun: Seq, newest: Seq) -> u32 {
    if begun == 0 || begun > newest {
        return 0;
    }
    let numbers = newest - begun + 1;
    let significant = u64::BITS - numbers.leading_zeros();
    let mut shift = significant.saturating_sub(SPAN_BITS);
    let mut rounded = numbers.div_ceil(1 << shift);
    if rounded >> SPAN_BITS > 0 {
        (shift, rounded) = (shift + 1, rounded / 2);
    }
    shift << SPAN_BITS | rounded as u32
}

/// The first sequence number of a segment, or a lower bound; 0 if unknown.
fn begun(span: u32, newest: Seq) -> Seq {
    let (shift, rounded) = (span >> SPAN_BITS, u64::from(span & ((1 << SPAN_BITS) - 1)));
    let numbers = u128::from(rounded) << shift;
    match u64::try_from(numbers) {
        Ok(numbers) if numbers > 0 => (newest + 1).saturating_sub(numbers),
        _ => 0,
    }
}

impl Checkpoint {
    /// Encodes the checkpoint as complete blocks.
    pub fn write(&self, salt: u32) -> Vec<u8> {
        let length = bytes_for(self.segments.len() as u64, self.pages.len() as u64) as usize;
        let mut bytes = vec![0; length];
        bytes[..8].copy_from_slice(MAGIC);
        put_u32(&mut bytes, 12, length as u32);
        put_u64(&mut bytes, 16, self.generation);
        put_u64(&mut bytes, 24, self.next_seq);
        put_u32(&mut bytes, 32, self.clean.into());
        put_u32(&mut bytes, 36, self.pages.len() as u32);
        put_u32(&mut bytes, 40, self.segments.len() as u32);
        for (at, stream) in self.streams.iter().enumerate() {
            let state = stream.unwrap_or(StreamState { segment: UNWRITTEN, slot: 0, next: UNWRITTEN });
            for (word, value) in [state.segment, state.slot, state.next, 0].into_iter().enumerate() {
                put_u32(&mut bytes, 48 + at * STREAM + word * 4, value);
            }
        }
        for (at, &page) in self.pages.iter().enumerate() {
            put_u32(&mut bytes, HEAD + at * 4, page);
        }
        let table = HEAD + self.pages.len() * 4;
        for (at, segment) in self.segments.iter().enumerate() {
            put_u64(&mut bytes, table + at * SEGMENT, segment.newest << 2 | segment.used as u64);
            put_u32(&mut bytes, table + at * SEGMENT + 8, segment.live);
            put_u32(&mut bytes, table + at * SEGMENT + 12, span(segment.begun, segment.newest));
        }
        let crc = crc32c::crc32c_append(salt, &bytes[12..]);
        put_u32(&mut bytes, 8, crc);
        bytes
    }

    /// Decodes a checkpoint.
    ///
    /// # Errors
    /// [`FormatError`] if it is incomplete, damaged, or of another log.
    pub fn read(bytes: &[u8], salt: u32, geometry: &Geometry) -> Result<Checkpoint, FormatError> {
        if bytes.len() < HEAD || &bytes[..8] != MAGIC {
            return Err(FormatError::Checksum("checkpoint"));
        }
        let length = u32_at(bytes, 12) as usize;
        if length > bytes.len() || length < HEAD {
            return Err(FormatError::Checksum("checkpoint"));
        }
        let bytes = &bytes[..length];
        if crc32c::crc32c_append(salt, &bytes[12..]) != u32_at(bytes, 8) {
            return Err(FormatError::Checksum("checkpoint"));
        }
        let wrong = |name, value, why| FormatError::Value { what: "checkpoint", name, value, why };
        let (pages, segments) = (u32_at(bytes, 36), u32_at(bytes, 40));
        if pages != geometry.pages() {
            return Err(wrong("pages", pages.into(), "not those of the disk"));
        }
        if segments != geometry.segments {
            return Err(wrong("segments", segments.into(), "not those of the disk"));
        }
        if bytes_for(segments.into(), pages.into()) != length as u64 {
            return Err(wrong("length", length as u64, "not that of its tables"));
        }
        let next_seq = u64_at(bytes, 24);
        if !(1..=MOST_SEQ).contains(&next_seq) {
            return Err(wrong("sequence number", next_seq, "before the first one, or past the last"));
        }
        let generation = u64_at(bytes, 16);
        if generation > u64::from(u32::MAX) << 16 {
            return Err(wrong("generation", generation, "more than there can have been"));
        }
        let mut streams = [None; STREAMS];
        for (at, stream) in streams.iter_mut().enumerate() {
            let word = |n: usize| u32_at(bytes, 48 + at * STREAM + n * 4);
            let state = StreamState { segment: word(0), slot: word(1), next: word(2) };
            if state.segment == UNWRITTEN {
                continue;
            }
            if state.segment >= segments || state.next >= segments || state.slot > geometry.segment_slots() {
                return Err(wrong("stream", state.segment.into(), "past the last segment or slot"));
            }
            *stream = Some(state);
        }
        let named: Vec<u32> = streams.iter().flatten().flat_map(|it| [it.segment, it.next]).collect();
        let distinct: std::collections::BTreeSet<&u32> = named.iter().collect();
        if distinct.len() != named.len() {
            return Err(wrong("stream", named[0].into(), "in a segment that another is in"));
        }
        if streams[0].is_some() != streams[1].is_some() {
            return Err(wrong("stream", 1, "of the host without that of what is moved, or the other way"));
        }
        let slots = geometry.segments * geometry.segment_slots();
        let pages: Vec<u32> = (0..pages as usize).map(|at| u32_at(bytes, HEAD + at * 4)).collect();
        if let Some(&page) = pages.iter().find(|&&page| page != UNWRITTEN && page >= slots) {
            return Err(wrong("page of the map", page.into(), "past the last slot"));
        }
        let table = HEAD + pages.len() * 4;
        let state = |at: usize| {
            let word = u64_at(bytes, table + at * SEGMENT);
            let used = match word & 3 {
                0 => Use::Free,
                1 => Use::Data,
                2 => Use::Map,
                _ => return Err(wrong("use of a segment", word & 3, "0, 1 or 2")),
            };
            let live = u32_at(bytes, table + at * SEGMENT + 8);
            if live > geometry.segment_slots() {
                return Err(wrong("live slots", live.into(), "more than a segment has"));
            }
            let newest = word >> 2;
            let begun = begun(u32_at(bytes, table + at * SEGMENT + 12), newest);
            Ok(SegmentState { used, live, newest, begun })
        };
        let segments = (0..segments as usize).map(state).collect::<Result<Vec<_>, _>>()?;
        Ok(Checkpoint { generation, next_seq, clean: u32_at(bytes, 32) == 1, streams, pages, segments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(geometry: &Geometry) -> Checkpoint {
        let state = SegmentState { used: Use::Data, live: 4, newest: 1 << 50, begun: (1 << 50) - 300 };
        Checkpoint {
            generation: 5,
            next_seq: 1 << 55,
            clean: true,
            streams: [
                Some(StreamState { segment: 3, slot: 7, next: 4 }),
                Some(StreamState { segment: 5, slot: 7, next: 6 }),
                None,
            ],
            pages: (0..geometry.pages()).map(|n| if n % 2 == 0 { n } else { UNWRITTEN }).collect(),
            segments: vec![state; geometry.segments as usize],
        }
    }

    #[test]
    fn a_checkpoint_is_decoded_and_fits_its_range() {
        let geometry = Geometry::new(1 << 30, 1 << 20, 0.1).expect("it can be");
        let bytes = example(&geometry).write(3);
        assert_eq!(bytes.len() as u64, geometry.needs());
        assert_eq!(Checkpoint::read(&bytes, 3, &geometry), Ok(example(&geometry)));
    }

    #[test]
    fn the_first_number_of_a_segment_is_exact_or_a_close_lower_bound() {
        assert_eq!(begun(span(0, 7), 7), 0, "unknown");
        for newest in [1, 2, 253, 1 << 26, (1 << 33) + 5, (1 << 59) - 1] {
            for numbers in (0..60).flat_map(|bit| [1 << bit, (1 << bit) - 1, (1 << bit) + 1]) {
                let Some(first) = (newest + 1u64).checked_sub(numbers).filter(|&it| it > 0 && it <= newest)
                else {
                    continue;
                };
                let found = begun(span(first, newest), newest);
                let coarse = numbers >> (SPAN_BITS - 1);
                assert!(found <= first && first - found <= coarse, "{first} to {newest}: {found}");
                assert_eq!(span(found.max(1), newest), span(first, newest), "rounded once");
            }
        }
        for word in [u32::MAX, 1 << SPAN_BITS, 63 << SPAN_BITS | 1] {
            assert_eq!(begun(word, 7), 0, "nothing that is written");
        }
    }

    #[test]
    fn incomplete_and_changed_checkpoints_are_refused() {
        let geometry = Geometry::new(64 << 20, 1 << 20, 0.1).expect("it can be");
        let good = example(&geometry).write(3);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            assert!(Checkpoint::read(&bad, 3, &geometry).is_err(), "byte {at}");
        }
        assert!(Checkpoint::read(&good[..good.len() / 2], 3, &geometry).is_err());
        assert!(Checkpoint::read(&good, 4, &geometry).is_err(), "of another log");
    }

    #[test]
    fn numbers_past_the_end_are_refused() {
        let geometry = Geometry::new(64 << 20, 1 << 20, 0.1).expect("it can be");
        let mut odd = example(&geometry);
        odd.pages[0] = geometry.segments * geometry.segment_slots();
        assert!(matches!(Checkpoint::read(&odd.write(3), 3, &geometry), Err(FormatError::Value { .. })));
        let mut odd = example(&geometry);
        odd.streams[1] = Some(StreamState { segment: 0, slot: 0, next: geometry.segments });
        assert!(matches!(Checkpoint::read(&odd.write(3), 3, &geometry), Err(FormatError::Value { .. })));
    }
}
