//! A stream of slots into a sequence of segments ([`Stream`]). The segment being written is kept in memory until it
//! is full.
//!
//! Each block of the medium is written only once: after a flush within a block, the next slot begins in a later
//! block. Module `segments` chooses segments, and module `log` decides when to write.

use crate::Aligned;
use crate::format::checkpoint::{StreamState, Use};
use crate::format::slot::{HEADER, SLOT};
use crate::format::{BLOCK, Geometry, Header, Kind, Lba, Predecessor, Seq, summary};

/// Bytes to write to the medium.
#[derive(Debug, PartialEq, Eq)]
pub struct Job {
    /// The offset.
    pub offset: u64,
    /// The bytes.
    pub data: Aligned,
}

/// A segment that is being written.
#[derive(Debug)]
struct Open {
    segment: u32,
    image: Vec<u8>,
    entries: Vec<Option<summary::Entry>>,
    /// The next slot.
    slot: u32,
    /// The end of the newest slot, in bytes.
    filled: usize,
    /// Bytes that were handed out: complete blocks.
    handed: usize,
}

/// The state of a stream after recovery.
#[derive(Debug)]
pub struct Resumed {
    /// The next segment, if known.
    pub next: Option<u32>,
    /// The segment to continue.
    pub open: Option<ResumedSegment>,
}

/// A partly written segment.
#[derive(Debug)]
pub struct ResumedSegment {
    /// Its number.
    pub segment: u32,
    /// The first unwritten slot. Its block holds no valid slot.
    pub slot: u32,
    /// Its bytes on the medium.
    pub image: Vec<u8>,
    /// Its slots.
    pub entries: Vec<Option<summary::Entry>>,
}

/// A stream.
#[derive(Debug)]
pub struct Stream {
    /// The use of its segments.
    pub used: Use,
    /// Its number, which the segment headers contain.
    number: u32,
    open: Option<Open>,
    /// The next segment, which the header of the present one names.
    next: Option<u32>,
    /// The newest slot since the log was opened.
    before: Option<Predecessor>,
    /// Memory of the previous segment, for reuse.
    spare: Vec<u8>,
}

/// Values that all slots of a log have in common.
#[derive(Debug, Clone, Copy)]
pub struct Common {
    /// Sizes and positions.
    pub geometry: Geometry,
    /// The initial value of checksums.
    pub salt: u32,
    /// The newest durable slot.
    pub durable: Seq,
}

impl Stream {
    /// A new stream.
    pub fn new(used: Use, number: u32) -> Stream {
        Stream { used, number, open: None, next: None, before: None, spare: Vec::new() }
    }

    /// Continues a stream after recovery.
    pub fn resumed(used: Use, number: u32, resumed: Resumed, geometry: &Geometry) -> Stream {
        let Resumed { next, open } = resumed;
        let open = open.map(|it| {
            let first_of_summary = geometry.segment_slots() - geometry.summary_slots();
            // A partly written summary is rewritten from its start.
            let slot = it.slot.min(first_of_summary);
            let handed = Geometry::within(slot) / BLOCK * BLOCK;
            Open { segment: it.segment, image: it.image, entries: it.entries, slot, filled: handed, handed }
        });
        // No predecessor: slots record only the low bits of its number, and numbers leap at each opening.
        Stream { used, number, open, next, before: None, spare: Vec::new() }
    }

    /// Returns whether the segment has room for another slot.
    pub fn has_room(&self, geometry: &Geometry) -> bool {
        self.open.as_ref().is_some_and(|open| open.slot < geometry.data_range().end)
    }
    /// The segment being written.
    pub fn segment(&self) -> Option<u32> {
        self.open.as_ref().map(|open| open.segment)
    }
    /// The next segment.
    pub fn next(&self) -> Option<u32> {
        self.next
    }
    /// Sets the next segment.
    pub fn set_next(&mut self, next: u32) {
        self.next = Some(next);
    }
    /// Takes the next segment.
    pub fn take_next(&mut self) -> Option<u32> {
        self.next.take()
    }
    /// The state for a checkpoint, after all bytes were handed out.
    pub fn state(&self) -> Option<StreamState> {
        let (open, next) = (self.open.as_ref()?, self.next?);
        Some(StreamState { segment: open.segment, slot: open.slot, next })
    }
    /// The bytes of a slot of the segment being written.
    pub fn slot(&self, segment: u32, number: u32) -> Option<&[u8]> {
        let open = self.open.as_ref().filter(|open| open.segment == segment)?;
        Some(&open.image[Geometry::within(number)..][..SLOT])
    }

    /// Begins a segment. Its header is slot `seq` and names the segment after it.
    pub fn begin(&mut self, segment: u32, next: u32, seq: Seq, common: &Common) {
        debug_assert!(self.open.is_none());
        let geometry = &common.geometry;
        // Unused slots are zeroes.
        let mut image = std::mem::take(&mut self.spare);
        image.clear();
        image.resize(geometry.segment_bytes() as usize, 0);
        self.open = Some(Open {
            segment,
            image,
            entries: vec![None; geometry.segment_slots() as usize],
            slot: 0,
            filled: 0,
            handed: 0,
        });
        self.next = Some(next);
        self.append(Kind::Segment, self.number, seq, &next.to_le_bytes(), common);
    }

    /// Appends a slot, for which there must be room. Returns its segment and number.
    pub fn append(&mut self, kind: Kind, lba: Lba, seq: Seq, payload: &[u8], common: &Common) -> (u32, u32) {
        let open = self.open.as_mut().expect("a segment was begun");
        let number = open.slot;
        let slot = &mut open.image[Geometry::within(number)..][..SLOT];
        slot[HEADER..][..payload.len()].copy_from_slice(payload);
        let header = Header { kind, lba, seq, before: self.before, durable: common.durable };
        header.seal(common.salt, slot);
        open.entries[number as usize] = Some(summary::Entry { kind, lba, seq });
        open.slot += 1;
        open.filled = Geometry::within(number) + SLOT;
        self.before = Some(Predecessor::new(kind, lba, seq));
        (open.segment, number)
    }

    /// Hands out complete blocks, if they are at least `least` bytes.
    pub fn whole(&mut self, least: usize, geometry: &Geometry) -> Option<Job> {
        let open = self.open.as_mut()?;
        let end = open.filled / BLOCK * BLOCK;
        (end >= open.handed + least.max(BLOCK)).then(|| open.hand_out(end, geometry))
    }

    /// Hands out all remaining bytes. The next slot begins in a later block.
    pub fn tail(&mut self, geometry: &Geometry) -> Option<Job> {
        let open = self.open.as_mut()?;
        // An earlier flush skipped the end of its last block, so there may be nothing to hand out.
        if open.filled <= open.handed {
            return None;
        }
        let end = open.filled.next_multiple_of(BLOCK);
        let job = open.hand_out(end, geometry);
        open.slot = Geometry::slot_from(end);
        Some(job)
    }

    /// Ends the segment with its summary. If `counted`, the slots of the summary are numbered from `seq` on;
    /// otherwise all have the number `seq`. Returns the segment, its remaining bytes, and the number of sequence
    /// numbers used.
    pub fn finish(&mut self, seq: Seq, counted: bool, common: &Common) -> Option<(u32, Job, Seq)> {
        let geometry = &common.geometry;
        let mut open = self.open.take()?;
        let first = geometry.segment_slots() - geometry.summary_slots();
        for n in 0..geometry.summary_slots() {
            let at = n as usize * summary::ENTRIES;
            let seq = if counted { seq + Seq::from(n) } else { seq };
            let number = first + n;
            let slot = &mut open.image[Geometry::within(number)..][..SLOT];
            let next = self.next.unwrap_or(open.segment);
            summary::write(&open.entries[at..at + summary::ENTRIES], next, &mut slot[HEADER..]);
            let header =
                Header { kind: Kind::Summary, lba: n, seq, before: self.before, durable: common.durable };
            header.seal(common.salt, slot);
            self.before = Some(Predecessor::new(Kind::Summary, n, seq));
        }
        let end = (Geometry::within(geometry.segment_slots() - 1) + SLOT).next_multiple_of(BLOCK);
        let job = open.hand_out(end, geometry);
        self.spare = open.image;
        Some((open.segment, job, if counted { geometry.summary_slots().into() } else { 0 }))
    }
}

impl Open {
    fn hand_out(&mut self, end: usize, geometry: &Geometry) -> Job {
        let data = Aligned::copy_of(&self.image[self.handed..end]);
        let offset = geometry.segment_offset(self.segment) + self.handed as u64;
        self.handed = end;
        Job { offset, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common() -> Common {
        Common { geometry: Geometry::new(64 << 20, 1 << 20, 0.1).expect("it can be"), salt: 1, durable: 0 }
    }

    #[test]
    fn an_empty_flush_writes_nothing() {
        let common = common();
        let mut stream = Stream::new(Use::Data, 0);
        stream.begin(3, 4, 1, &common);
        stream.append(Kind::Data, 5, 2, &[7; BLOCK], &common);
        assert!(stream.tail(&common.geometry).is_some());
        let before = stream.state();
        assert!(stream.tail(&common.geometry).is_none());
        assert_eq!(stream.state(), before);
    }

    #[test]
    fn every_block_is_handed_out_only_once() {
        let common = common();
        let geometry = &common.geometry;
        for every in [1, 2, 3, 31, 127, 1000] {
            let mut stream = Stream::new(Use::Data, 0);
            stream.begin(3, 4, 1, &common);
            let (mut seq, mut end) = (2, geometry.segment_offset(3));
            let mut check = |job: Job| {
                assert!(
                    job.offset >= end
                        && job.offset.is_multiple_of(BLOCK as u64)
                        && job.data.len().is_multiple_of(BLOCK)
                );
                end = job.offset + job.data.len() as u64;
            };
            while stream.has_room(geometry) {
                stream.append(Kind::Data, seq as u32, seq, &[7; BLOCK], &common);
                seq += 1;
                if seq % every == 0 {
                    stream.tail(geometry).into_iter().for_each(&mut check);
                }
                stream.whole(64 << 10, geometry).into_iter().for_each(&mut check);
            }
            let (segment, job, used) = stream.finish(seq, true, &common).expect("it was open");
            assert_eq!((segment, used), (3, 1));
            check(job);
            assert!(end <= geometry.segment_offset(4));
        }
    }
}
