//! The sizes and positions of a log disk ([`Geometry`]): segments, slots, checkpoints, marks, and capacity.
//!
//! ```text
//!   frame (1 MiB) = 254 slots of 4128 bytes, and 64 unused bytes
//!   slot          = 32 bytes of header, 4096 bytes of payload
//!   address       = number of the slot over all segments, 32 bits: up to 16 TiB
//! ```

use super::slot::{SLOT, Slot};
use super::{BLOCK, Lba};
use std::ops::Range;

/// Size of a frame in bytes.
pub const FRAME: u64 = 1 << 20;

/// Slots of a frame.
pub const SLOTS_PER_FRAME: u32 = (FRAME / SLOT as u64) as u32;

/// Entries of a page of the map.
pub const PAGE_ENTRIES: u32 = (BLOCK / 4) as u32;

/// The accepted sizes of a segment, in frames.
pub const SEGMENT_FRAMES: std::ops::RangeInclusive<u32> = 1..=64;

/// Segments without data of the host: open segments, next segments, and segments that cleaning needs.
pub const SPARE_SEGMENTS: u32 = 16;

/// The factor by which a log disk may grow. Its checkpoints have room for that growth: about a hundred bytes per
/// segment.
const GROWTH: u64 = 16;

const FEWEST_SEGMENTS: u32 = 2 * SPARE_SEGMENTS;

/// Sizes and positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Frames of a segment.
    pub segment_frames: u32,
    /// Number of segments.
    pub segments: u32,
    /// Capacity in blocks.
    pub blocks: u32,
    /// Offset of segment 0, a multiple of a frame.
    pub start: u64,
    /// Whether there is a ring of marks before the segments; false in version 2.
    pub marks: bool,
}

/// Invalid sizes of a log disk.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GeometryError {
    /// The size of a segment is not accepted.
    #[error("a segment of {0} bytes: accepted are 1 MiB to 64 MiB, in steps of 1 MiB")]
    Segment(u64),
    /// The reserve is not accepted.
    #[error("a reserve of {0}: accepted are shares from 0.02 to 0.9")]
    Reserve(f64),
    /// The medium is too small.
    #[error("{bytes} bytes are too few: with segments of {segment} bytes a log disk needs {least}")]
    Small {
        /// Size of the medium in bytes.
        bytes: u64,
        /// Size of a segment in bytes.
        segment: u64,
        /// Minimum size in bytes.
        least: u64,
    },
    /// The log disk would shrink.
    #[error(
        "the capacity of {from} bytes would shrink: a log disk can only grow; make another one and copy the data"
    )]
    Shrunk {
        /// Capacity in bytes.
        from: u64,
    },
    /// The checkpoints of so large a log disk do not fit.
    #[error(
        "{bytes} bytes are too many: this log disk can grow to about {most}; make another one and copy the data"
    )]
    Grown {
        /// New size in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        most: u64,
    },
    /// The medium exceeds the address space.
    #[error("{bytes} bytes are too many: addresses of this version reach to {most}")]
    Large {
        /// Size of the medium in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        most: u64,
    },
}

impl Geometry {
    /// A new log disk on a medium of `bytes`, with segments of `segment` bytes, and a share `reserve` of slots
    /// outside the capacity.
    ///
    /// # Errors
    /// [`GeometryError`].
    pub fn new(bytes: u64, segment: u64, reserve: f64) -> Result<Geometry, GeometryError> {
        let frames = u32::try_from(segment / FRAME).unwrap_or(u32::MAX);
        if !segment.is_multiple_of(FRAME) || !SEGMENT_FRAMES.contains(&frames) {
            return Err(GeometryError::Segment(segment));
        }
        if !(0.02..=0.9).contains(&reserve) {
            return Err(GeometryError::Reserve(reserve));
        }
        // Leaves room for the checkpoints of the largest log disk that this one can grow to.
        let most = u64::from(u32::MAX - 1) / u64::from(SLOTS_PER_FRAME) * FRAME;
        if bytes > most {
            return Err(GeometryError::Large { bytes, most });
        }
        let start = Geometry::start(bytes.saturating_mul(GROWTH).min(most), segment);
        let least = Geometry::start(u64::from(FEWEST_SEGMENTS) * segment * GROWTH, segment)
            + u64::from(FEWEST_SEGMENTS) * segment;
        let segments = u32::try_from(bytes.saturating_sub(start) / segment).unwrap_or(0);
        if segments < FEWEST_SEGMENTS {
            return Err(GeometryError::Small { bytes, segment, least });
        }
        let mut geometry = Geometry { segment_frames: frames, segments, blocks: 0, start, marks: true };
        geometry.blocks = geometry.offered(reserve);
        Ok(geometry)
    }

    /// The log disk on a larger medium. Without a new `reserve`, the present reserve stays.
    ///
    /// # Errors
    /// [`GeometryError`] if it would shrink, or its checkpoints would not fit.
    pub fn grown(&self, bytes: u64, reserve: Option<f64>) -> Result<Geometry, GeometryError> {
        if let Some(reserve) = reserve.filter(|reserve| !(0.02..=0.9).contains(reserve)) {
            return Err(GeometryError::Reserve(reserve));
        }
        let segments = u32::try_from(bytes.saturating_sub(self.start) / self.segment_bytes()).unwrap_or(0);
        let mut grown = Geometry { segments, ..*self };
        if segments < self.segments {
            return Err(GeometryError::Shrunk { from: self.capacity() });
        }
        let before = u64::from(self.segments - SPARE_SEGMENTS);
        let same = u64::from(self.blocks) * u64::from(segments - SPARE_SEGMENTS) / before;
        grown.blocks = reserve.map_or(same as u32, |reserve| grown.offered(reserve));
        if grown.blocks < self.blocks {
            return Err(GeometryError::Shrunk { from: self.capacity() });
        }
        let slots = u64::from(segments) * u64::from(self.segment_slots());
        if slots > u64::from(u32::MAX) || grown.needs() > grown.checkpoint_bytes() {
            return Err(GeometryError::Grown { bytes, most: self.most_grown() });
        }
        Ok(grown)
    }

    /// Approximate maximum size of the medium in bytes.
    fn most_grown(&self) -> u64 {
        let by_checkpoints = self.checkpoint_bytes() / self.needs().max(1) * (self.end() - self.start);
        by_checkpoints.min(u64::from(u32::MAX / SLOTS_PER_FRAME) * FRAME)
    }

    /// Capacity in blocks for a reserve.
    fn offered(&self, reserve: f64) -> u32 {
        let slots = u64::from(self.segments - SPARE_SEGMENTS) * u64::from(self.data_slots());
        // Each page of the map needs two slots, for the last checkpoint and for the present state.
        (slots as f64 * (1.0 - reserve) / (1.0 + 2.0 / f64::from(PAGE_ENTRIES))) as u32
    }

    /// Offset of the first segment.
    fn start(bytes: u64, segment: u64) -> u64 {
        let slots = bytes / SLOT as u64;
        let checkpoint = super::checkpoint::bytes_for(bytes / segment, slots / u64::from(PAGE_ENTRIES) + 1);
        (CHECKPOINTS + 2 * checkpoint + RING).next_multiple_of(FRAME.max(segment))
    }

    /// The geometry with a ring of marks, for a log disk of version 2; `None` if both checkpoints leave no room for
    /// it.
    pub fn upgraded(&self) -> Option<Geometry> {
        let room = self.checkpoint_bytes().checked_sub(RING)?;
        (!self.marks && self.needs() <= room).then_some(Geometry { marks: true, ..*self })
    }

    /// Size of a segment in bytes.
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.segment_frames) * FRAME
    }
    /// Slots of a segment.
    pub fn segment_slots(&self) -> u32 {
        self.segment_frames * SLOTS_PER_FRAME
    }
    /// Summary slots of a segment, at its end.
    pub fn summary_slots(&self) -> u32 {
        self.segment_frames
    }
    /// The slots of a segment for data: all except the header, the summary, and one unused slot before the summary,
    /// so that the last block of data is not written twice.
    pub fn data_range(&self) -> Range<u32> {
        1..self.segment_slots() - self.summary_slots() - 1
    }
    /// Number of slots of a segment for data.
    pub fn data_slots(&self) -> u32 {
        self.data_range().len() as u32
    }
    /// The target of free segments, above which nothing is cleaned.
    pub fn kept_free(&self) -> u32 {
        (self.segments / 64).max(4)
    }
    /// Capacity in bytes.
    pub fn capacity(&self) -> u64 {
        u64::from(self.blocks) * BLOCK as u64
    }
    /// Pages of the map.
    pub fn pages(&self) -> u32 {
        self.blocks.div_ceil(PAGE_ENTRIES)
    }
    /// The page of the map for a block, and the index in it.
    pub fn page_of(lba: Lba) -> (u32, usize) {
        (lba / PAGE_ENTRIES, (lba % PAGE_ENTRIES) as usize)
    }
    /// Offset of a segment.
    pub fn segment_offset(&self, segment: u32) -> u64 {
        self.start + u64::from(segment) * self.segment_bytes()
    }
    /// The segment of a slot, and its number in it.
    pub fn place(&self, slot: Slot) -> (u32, u32) {
        (slot.get() / self.segment_slots(), slot.get() % self.segment_slots())
    }
    /// The slot `number` of a segment.
    pub fn slot(&self, segment: u32, number: u32) -> Slot {
        debug_assert!(number < self.segment_slots());
        Slot::new(segment * self.segment_slots() + number)
    }
    /// Offset of slot `number` in its segment.
    pub fn within(number: u32) -> usize {
        (u64::from(number / SLOTS_PER_FRAME) * FRAME) as usize + (number % SLOTS_PER_FRAME) as usize * SLOT
    }
    /// Offset of a slot.
    pub fn offset(&self, slot: Slot) -> u64 {
        let (segment, number) = self.place(slot);
        self.segment_offset(segment) + Geometry::within(number) as u64
    }
    /// The first slot that begins at or after an offset in a segment.
    pub fn slot_from(byte: usize) -> u32 {
        let frame = byte as u64 / FRAME;
        let slot = (byte as u64 % FRAME).div_ceil(SLOT as u64).min(u64::from(SLOTS_PER_FRAME));
        frame as u32 * SLOTS_PER_FRAME + slot as u32
    }
    /// The range of checkpoint 0 or 1.
    pub fn checkpoint(&self, which: usize) -> Range<u64> {
        let each = self.checkpoint_bytes();
        let begin = CHECKPOINTS + which as u64 * each;
        begin..begin + each
    }
    /// Maximum size of a checkpoint in bytes: half of the space before the ring and the segments.
    pub fn checkpoint_bytes(&self) -> u64 {
        let ring = if self.marks { RING } else { 0 };
        self.start.saturating_sub(CHECKPOINTS + ring) / 2 / BLOCK as u64 * BLOCK as u64
    }
    /// The range of the ring of marks, directly before the segments.
    pub fn ring(&self) -> Option<Range<u64>> {
        self.marks.then(|| self.start.saturating_sub(RING)..self.start)
    }
    /// Offset of a mark.
    pub fn mark(&self, number: u64) -> Option<u64> {
        self.ring().map(|ring| ring.start + number % MARKS * BLOCK as u64)
    }
    /// Size of a checkpoint in bytes.
    pub fn needs(&self) -> u64 {
        super::checkpoint::bytes_for(u64::from(self.segments), u64::from(self.pages()))
    }
    /// End of the used part of the medium.
    pub fn end(&self) -> u64 {
        self.segment_offset(self.segments)
    }
}

/// Offset of the checkpoints, after the superblocks.
const CHECKPOINTS: u64 = 2 * BLOCK as u64;

/// Marks of the ring, one block each.
pub const MARKS: u64 = 64;

/// Size of the ring in bytes.
const RING: u64 = MARKS * BLOCK as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_do_not_cross_frames_and_are_found_by_offset() {
        for number in 0..4 * SLOTS_PER_FRAME {
            let at = Geometry::within(number);
            assert_eq!(at as u64 / FRAME, ((at + SLOT - 1) as u64) / FRAME, "slot {number}");
            assert_eq!(Geometry::slot_from(at), number);
            assert_eq!(Geometry::slot_from(at + 1), number + 1);
        }
    }

    #[test]
    fn invalid_sizes_are_refused() {
        assert_eq!(Geometry::new(1 << 30, 3 << 19, 0.1), Err(GeometryError::Segment(3 << 19)));
        assert_eq!(Geometry::new(1 << 30, 1 << 20, 1.0), Err(GeometryError::Reserve(1.0)));
        assert!(matches!(Geometry::new(8 << 20, 1 << 20, 0.1), Err(GeometryError::Small { .. })));
        assert!(matches!(Geometry::new(1 << 50, 1 << 26, 0.1), Err(GeometryError::Large { .. })));
    }

    #[test]
    fn growing_keeps_positions_and_shrinking_is_refused() {
        for (bytes, segment) in [(64 << 20, 1 << 20), (8 << 30, 4 << 20), (32_000_000_000, 16 << 20)] {
            let geometry = Geometry::new(bytes, segment, 0.1).expect("it can be");
            assert_eq!(geometry.grown(bytes, None), Ok(geometry));
            let grown = geometry.grown(bytes * 3, None).expect("it can grow");
            assert_eq!(grown.start, geometry.start);
            let share = |of: &Geometry| f64::from(of.blocks) / f64::from(of.segments - SPARE_SEGMENTS);
            assert!((share(&grown) / share(&geometry) - 1.0).abs() < 1e-3);
            assert!(geometry.grown(bytes * 15, Some(0.02)).is_ok(), "{geometry:?}");
            assert!(matches!(geometry.grown(bytes / 2, None), Err(GeometryError::Shrunk { .. })));
            assert!(matches!(geometry.grown(bytes, Some(0.5)), Err(GeometryError::Shrunk { .. })));
            assert!(
                matches!(geometry.grown(bytes << 10, None), Err(GeometryError::Grown { .. })),
                "{geometry:?}"
            );
        }
    }

    #[test]
    fn an_upgrade_keeps_the_newest_checkpoint_of_version_2() {
        for (bytes, segment, growth) in
            [(64 << 20, 1 << 20, 1), (1 << 30, 4 << 20, 12), (32_000_000_000, 1 << 20, 16)]
        {
            let made = Geometry::new(bytes, segment, 0.1).expect("it can be");
            let old = Geometry { marks: false, ..made }.grown(bytes * growth, None).expect("it can grow");
            let Some(new) = old.upgraded() else {
                assert!(growth > 1, "{old:?}");
                continue;
            };
            let ring = new.ring().expect("it has one");
            for newest in 0..2 {
                let (kept, written) = (old.checkpoint(newest).start, new.checkpoint(1 - newest).start);
                let needs = new.needs();
                assert!(kept + needs <= written || written + needs <= kept, "{old:?}");
                assert!(kept + needs <= ring.start, "{old:?}");
            }
            assert_eq!(new.upgraded(), None);
        }
    }

    #[test]
    fn ranges_fit_the_medium_and_do_not_overlap() {
        for (bytes, segment) in
            [(64 << 20, 1 << 20), (1 << 30, 4 << 20), (32_000_000_000, 1 << 20), (15 << 40, 64 << 20)]
        {
            let geometry = Geometry::new(bytes, segment, 0.1).expect("it can be");
            assert!(geometry.end() <= bytes);
            assert!(geometry.checkpoint(0).end == geometry.checkpoint(1).start);
            let ring = geometry.ring().expect("it has one");
            assert!(geometry.checkpoint(1).end <= ring.start && ring.end == geometry.start, "{geometry:?}");
            assert_eq!(geometry.mark(MARKS - 1), Some(ring.end - BLOCK as u64));
            assert!(geometry.start.is_multiple_of(FRAME) && geometry.needs() <= geometry.checkpoint_bytes());
            let offered = geometry.capacity() as f64 / bytes as f64;
            assert!((0.2..0.9).contains(&offered), "{bytes}: {offered}");
        }
    }
}
