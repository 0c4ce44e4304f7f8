//! Reading the slots of a segment: from its summary ([`by_summary`]), or slot by slot ([`by_slots`]).

use crate::error::LogError;
use crate::format::slot::{HEADER, SLOT};
use crate::format::{BLOCK, Geometry, Header, Kind, Lba, Predecessor, Seq, Superblock, summary};
use crate::{Aligned, Medium};

/// A slot of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Its number in the segment.
    pub number: u32,
    /// Its kind.
    pub kind: Kind,
    /// Its block.
    pub lba: Lba,
    /// Its sequence number.
    pub seq: Seq,
    /// Its predecessor, if the slot's own header was read; summaries do not list it.
    pub before: Option<Option<Predecessor>>,
}

/// The slots of a segment.
#[derive(Debug, Default)]
pub struct SegmentRecords {
    /// The used slots, in order.
    pub records: Vec<Record>,
    /// The next segment of the stream, if known.
    pub next: Option<u32>,
    /// The newest slot that was durable when these were written.
    pub durable: Seq,
}

/// Extends a range to complete blocks: the start, the length, and the offset of the range in it.
fn around(offset: u64, length: usize) -> (u64, usize, usize) {
    let begin = offset / BLOCK as u64 * BLOCK as u64;
    let skip = (offset - begin) as usize;
    (begin, (skip + length).next_multiple_of(BLOCK), skip)
}

/// Reads the blocks around a range. Returns the bytes and the offset of the range in them.
pub fn read_around(medium: &impl Medium, offset: u64, length: usize) -> Result<(Aligned, usize), LogError> {
    let (begin, length, skip) = around(offset, length);
    let mut bytes = Aligned::zeroes(length);
    let failed = |source| LogError::Medium { what: "reading the log", source };
    medium.read(begin, &mut bytes).map_err(failed)?;
    Ok((bytes, skip))
}

/// Announces a [`read_around`] to the medium.
pub fn will_read(medium: &impl Medium, offset: u64, length: usize) {
    let (begin, length, _) = around(offset, length);
    medium.will_read(begin, length);
}

/// Reads the blocks around a range. Unreadable blocks become zeroes, which have no valid checksum.
pub fn read_what_can_be(medium: &impl Medium, offset: u64, length: usize) -> (Aligned, usize) {
    if let Ok(read) = read_around(medium, offset, length) {
        return read;
    }
    let (begin, length, skip) = around(offset, length);
    let mut bytes = Aligned::zeroes(length);
    for (at, block) in (begin..).step_by(BLOCK).zip(bytes.chunks_mut(BLOCK)) {
        if medium.read(at, block).is_err() {
            block.fill(0);
        }
    }
    (bytes, skip)
}

/// The slots of a segment according to its summary, if that is complete and of the current generation.
pub fn by_summary(medium: &impl Medium, superblock: &Superblock, segment: u32) -> Option<SegmentRecords> {
    let geometry = &superblock.geometry;
    let first = geometry.segment_slots() - geometry.summary_slots();
    let offset = geometry.offset(geometry.slot(segment, first));
    let (bytes, skip) = read_what_can_be(medium, offset, geometry.summary_slots() as usize * SLOT);
    let (mut found, mut made) = (SegmentRecords::default(), None);
    for n in 0..geometry.summary_slots() {
        let slot = &bytes[skip + n as usize * SLOT..][..SLOT];
        let header = Header::open(superblock.salt, slot)?;
        if header.kind != Kind::Summary || header.lba != n {
            return None;
        }
        // A torn summary contains slots of an older summary. The summary slots of a data segment have consecutive
        // numbers; those of other segments share one number.
        let made = *made.get_or_insert(header.seq);
        if header.seq != made && header.seq != made + Seq::from(n) {
            return None;
        }
        let payload = &slot[HEADER..];
        let base = n * summary::ENTRIES as u32;
        found.records.extend(summary::read(payload).zip(base..).filter_map(|(entry, number)| {
            let entry = entry?;
            Some(Record { number, kind: entry.kind, lba: entry.lba, seq: entry.seq, before: None })
        }));
        found.next = Some(summary::next(payload)).filter(|&next| next < geometry.segments);
        found.durable = found.durable.max(header.durable);
        found.records.push(Record {
            number: first + n,
            kind: Kind::Summary,
            lba: n,
            seq: header.seq,
            before: None,
        });
    }
    found.records.sort_by_key(|record| record.number);
    // If the header has another number, the summary is of an earlier generation.
    let head = found.records.first().filter(|record| record.number == 0).map(|record| record.seq);
    let (bytes, skip) = read_what_can_be(medium, geometry.segment_offset(segment), SLOT);
    let begun = Header::open(superblock.salt, &bytes[skip..][..SLOT]).map(|header| header.seq);
    // If the header is unreadable, the summary may be torn; the caller then reads the slots themselves.
    (head.is_some() && head == begun).then_some(found)
}

/// The bytes of a segment. Unreadable blocks become zeroes.
pub fn image(medium: &impl Medium, geometry: &Geometry, segment: u32) -> Aligned {
    read_what_can_be(medium, geometry.segment_offset(segment), geometry.segment_bytes() as usize).0
}

/// The bytes of a slot in a segment.
pub fn slot(image: &[u8], number: u32) -> &[u8] {
    &image[Geometry::within(number)..][..SLOT]
}

/// The slots of a segment with valid checksums and increasing numbers from `least` on.
pub fn by_slots(image: &[u8], superblock: &Superblock, least: Seq) -> SegmentRecords {
    let geometry = &superblock.geometry;
    let mut found = SegmentRecords::default();
    let mut least = least;
    for number in 0..geometry.segment_slots() {
        let bytes = slot(image, number);
        let Some(header) = Header::open(superblock.salt, bytes) else { continue };
        if header.seq < least {
            continue;
        }
        least = header.seq + 1;
        found.durable = found.durable.max(header.durable);
        let next = |at: usize| u32::from_le_bytes(bytes[HEADER + at..][..4].try_into().expect("four bytes"));
        match header.kind {
            Kind::Segment => found.next = Some(next(0)),
            Kind::Summary => found.next = Some(summary::next(&bytes[HEADER..])),
            _ => {}
        }
        found.records.push(Record {
            number,
            kind: header.kind,
            lba: header.lba,
            seq: header.seq,
            before: Some(header.before),
        });
    }
    found.next = found.next.filter(|&next| next < geometry.segments);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::checkpoint::Use;
    use crate::log::{Common, Job, Stream};
    use std::cell::RefCell;
    use std::io;

    /// A medium in memory.
    struct Bytes(RefCell<Vec<u8>>);

    impl Medium for Bytes {
        fn bytes(&self) -> u64 {
            self.0.borrow().len() as u64
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

    /// The segment is so large that sixteen slots of its summary are complete sectors.
    #[test]
    fn a_summary_of_two_generations_is_invalid() {
        let geometry = Geometry { segment_frames: 32, segments: 1, blocks: 1, start: 1 << 20, marks: true };
        let superblock = Superblock { geometry, id: [1; 16], salt: 5 };
        let medium = Bytes(RefCell::new(vec![0; geometry.end() as usize]));
        let put = |job: Job| medium.write(job.offset, &job.data).expect("written");
        let life = |seq: Seq| {
            let common = Common { geometry, salt: superblock.salt, durable: seq - 1 };
            let mut stream = Stream::new(Use::Data, 0);
            stream.begin(0, 0, seq, &common);
            for n in 1..u64::from(geometry.data_range().end) {
                stream.append(Kind::Data, n as u32, seq + n, &[0; BLOCK], &common);
            }
            let (_, job, _) = stream.finish(seq + 10_000, true, &common).expect("it was begun");
            put(job);
            medium.0.borrow().clone()
        };
        let (old, new) = (life(1_000_000), life(2_000_000));
        let whole = by_summary(&medium, &superblock, 0).expect("it is of one life");
        assert!(whole.records.iter().all(|record| record.seq >= 2_000_000));
        // Every sixteenth slot begins at a sector.
        let slots = geometry.segment_slots();
        let within = |number| (geometry.segment_offset(0) as usize) + Geometry::within(number);
        let first = (slots - geometry.summary_slots() + 1..slots - 17)
            .find(|&slot| within(slot).is_multiple_of(512))
            .expect("there is one");
        let torn = within(first)..within(first + 16);
        assert!(torn.end.is_multiple_of(512) && old[torn.clone()] != new[torn.clone()]);
        medium.0.borrow_mut()[torn.clone()].copy_from_slice(&old[torn]);
        assert!(by_summary(&medium, &superblock, 0).is_none());
    }
}
