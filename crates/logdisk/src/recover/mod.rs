//! Recovery: the newest checkpoint, and a replay of later slots up to the first missing one ([`open`]).
//!
//! ```text
//!   superblock ─► checkpoint ─► the later segments of each data stream ─► slots in order of their numbers ─► map
//! ```
//!
//! Recovery writes nothing. Later slots and marks distinguish a damaged durable slot from the end of the log: slots
//! record the newest durable slot and their predecessor, and the newest mark covers the last flushed slots. Most
//! pages of the map are loaded later, on demand.

mod replay;

use crate::Medium;
use crate::error::LogError;
use crate::format::checkpoint::StreamState;
use crate::format::slot::{MOST_SEQ, SLOT};
use crate::format::{
    BLOCK, Checkpoint, FormatError, Geometry, Header, Kind, Mark, Seq, Slot, Superblock, summary,
};
use crate::log::{Log, Resumed, ResumedSegment, StreamId};
use crate::scan::{self, Record, read_around};
use replay::Replay;

/// The streams that are replayed.
const DATA: [usize; 2] = [StreamId::Host as usize, StreamId::Moved as usize];

/// Bits of the gap in sequence numbers after a recovery. The gap exceeds the number of slots that may be in flight at
/// a power cut, so that an old slot that appears later is never mistaken for a new one.
const GAP: u32 = 32;

/// The report of a recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the log disk was closed cleanly.
    pub clean: bool,
    /// Slots that were replayed.
    pub replayed: u64,
    /// Slots after the end of the log, which were dropped because an earlier one is missing.
    pub dropped: u64,
    /// Durable slots that are damaged.
    pub spoiled: u64,
    /// Blocks whose newest data was in damaged slots. Reading them is an error.
    pub lost: u64,
    /// Damaged slots whose blocks are unknown, so that some blocks may read as older data. 0 unless the caller
    /// accepted older data.
    pub unknown: u64,
    /// Whether a mark or the checkpoint covers the end of the log.
    pub marked: bool,
}

impl Recovery {
    /// Number of unreadable blocks of the durable end of the log, if any.
    pub fn damage(&self) -> Option<u64> {
        Some(self.lost + self.unknown).filter(|&blocks| blocks > 0)
    }
}

/// The handling of damaged durable slots whose blocks are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// The log disk is not opened, because any block may read as older data.
    Refused,
    /// The log disk is opened without these slots.
    Accepted,
}

/// A slot after the checkpoint.
#[derive(Debug, Clone, Copy)]
struct Later {
    record: Record,
    slot: Slot,
    stream: usize,
}

/// Reads the superblock of a medium.
pub fn superblock(medium: &impl Medium) -> Result<Superblock, LogError> {
    let mut first = None;
    for at in 0..2 {
        let mut block = vec![0; BLOCK];
        if medium.bytes() < (at + 1) * BLOCK as u64 {
            break;
        }
        let read = medium.read(at * BLOCK as u64, &mut block);
        let read = read.map_err(|source| LogError::Medium { what: "reading the superblock", source });
        match read.and_then(|()| Ok(Superblock::read(&block, medium.bytes())?)) {
            Ok(superblock) => return Ok(superblock),
            // The error of the first superblock is reported.
            Err(error) => first = Some(first.unwrap_or(error)),
        }
    }
    Err(first.unwrap_or(FormatError::NotOurs.into()))
}

/// Reads the newer of the readable checkpoints.
pub fn newest_checkpoint(medium: &impl Medium, superblock: &Superblock) -> Result<Checkpoint, LogError> {
    let geometry = &superblock.geometry;
    let read = |which| {
        let range = geometry.checkpoint(which);
        let (bytes, _) = scan::read_what_can_be(medium, range.start, geometry.needs() as usize);
        Checkpoint::read(&bytes, superblock.salt, geometry)
    };
    match (read(0), read(1)) {
        (Ok(a), Ok(b)) => Ok(if a.generation > b.generation { a } else { b }),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
        (Err(first), Err(second)) => Err(LogError::NoCheckpoint(Box::new([first, second]))),
    }
}

/// Reads the valid marks, newest first. Old marks stay valid, because slot numbers are unique.
fn marks(medium: &impl Medium, superblock: &Superblock) -> Vec<Mark> {
    let Some(ring) = superblock.geometry.ring() else { return Vec::new() };
    let (bytes, _) = scan::read_what_can_be(medium, ring.start, (ring.end - ring.start) as usize);
    let marks = bytes.chunks_exact(BLOCK).filter_map(|block| Mark::read(block, superblock.salt));
    let mut marks: Vec<Mark> = marks.collect();
    // Concurrent marks may have reached the medium in either order.
    marks.sort_by_key(|mark| std::cmp::Reverse((mark.durable, mark.number)));
    marks
}

/// Recovers the log of a medium.
///
/// # Errors
/// [`LogError`] if the medium fails, there is no log disk, or damage would make it return wrong data.
pub fn open(medium: &impl Medium, unknown: Unknown) -> Result<(Log, Recovery), LogError> {
    let superblock = superblock(medium)?;
    let checkpoint = newest_checkpoint(medium, &superblock)?;
    let mut log = Log::new(superblock, &checkpoint);
    let mut recovery = Recovery { clean: checkpoint.clean, ..Recovery::default() };
    let mut streams = Vec::new();
    for (stream, state) in DATA.iter().filter_map(|&stream| Some((stream, checkpoint.streams[stream]?))) {
        streams.push(follow(medium, &superblock, stream, state, checkpoint.next_seq));
    }
    let durable = streams.iter().map(|stream| stream.durable).max().unwrap_or(0);
    let marks = marks(medium, &superblock);
    let next_mark = marks.iter().map(|mark| mark.number + 1).max().unwrap_or(0);
    let marked = marks.first().map_or(0, |mark| mark.durable);
    let durable = durable.max(marked);
    let later = in_order(&streams, checkpoint.next_seq);
    let newest = later.last().map_or(checkpoint.next_seq, |last| last.record.seq).max(durable);
    let begun = |it: &PassedSegment| it.begun.unwrap_or(checkpoint.segments[it.segment as usize].begun);
    // If a stream passed a segment twice, the first pass has the oldest slots, so its `begun` must be set last.
    let passed = streams.iter().flat_map(|stream| stream.segments.iter().rev());
    let found = passed.map(|it| (it.segment, it.newest, begun(it)));
    log.segments_mut().found(&found.collect::<Vec<_>>());

    let end = end_of(medium, &superblock, &later, checkpoint.next_seq, durable)?;
    recovery.dropped = later.iter().filter(|it| it.record.seq >= end).count() as u64;
    let mut replay = Replay::new(medium, &superblock, &streams, &marks);
    replay.run(&mut log, &later, checkpoint.next_seq..end)?;
    let recent = replay.finish(&mut log, &mut recovery)?;
    if recovery.unknown > 0 && unknown == Unknown::Refused {
        return Err(LogError::Damaged(recovery.lost + recovery.unknown));
    }
    log.resume_marks(next_mark, recent);
    for (followed, &stream) in streams.iter().zip(&DATA) {
        let state = checkpoint.streams[stream].expect("a followed stream has a state");
        log.resume(stream, resume(medium, &superblock, followed, state, end));
    }
    if let Some(state) = checkpoint.streams[StreamId::Map as usize] {
        // Pages of the map that were written after the checkpoint are not valid.
        let begun = StreamTail::default();
        log.resume(StreamId::Map as usize, resume(medium, &superblock, &begun, state, end));
    }
    let open = log.open_segments();
    log.segments_mut().settle(&open, end - 1, checkpoint.generation);
    recovery.marked = marked >= end - 1 || end == checkpoint.next_seq;
    if recovery.replayed + recovery.dropped + recovery.spoiled > 0 || !later.is_empty() {
        recovery.clean = false;
    }
    // Slots that appear later may already be beyond the next gap.
    let next = ((newest >> GAP) + 2) << GAP;
    if next >= MOST_SEQ >> 1 {
        let why = "more than a log can count";
        return Err(FormatError::Value { what: "log", name: "sequence number", value: newest, why }.into());
    }
    log.resume_numbers(end - 1, next);
    Ok((log, recovery))
}

/// The slots of a stream after a checkpoint.
#[derive(Debug, Default)]
struct StreamTail {
    records: Vec<(Record, Slot)>,
    /// The segments of these slots.
    segments: Vec<PassedSegment>,
    durable: Seq,
}

/// A segment of a stream after a checkpoint.
#[derive(Debug, Clone, Copy)]
struct PassedSegment {
    segment: u32,
    newest: Seq,
    /// For a segment that was begun after the checkpoint: a bound above all numbers of its earlier generations.
    begun: Option<Seq>,
    next: Option<u32>,
}

/// Reads the segments of a stream from the state of a checkpoint on.
fn follow(
    medium: &impl Medium,
    superblock: &Superblock,
    stream: usize,
    state: StreamState,
    from: Seq,
) -> StreamTail {
    let geometry = &superblock.geometry;
    let mut followed = StreamTail::default();
    let (mut segment, mut first, mut least) = (state.segment, state.slot, from);
    let (mut named, mut begun) = (Some(state.next), None);
    loop {
        let found = match scan::by_summary(medium, superblock, segment) {
            // The summary is the newest slot of its segment: an older one is from a generation before the checkpoint.
            Some(found) if found.records.last().is_some_and(|last| last.seq >= least) => found,
            _ => scan::by_slots(&scan::image(medium, geometry, segment), superblock, least),
        };
        // A slot of any stream may record a durable slot that was not found.
        followed.durable = followed.durable.max(found.durable);
        // Another stream may have taken the segment that the header names.
        let other = |record: &Record| match record.kind {
            Kind::Segment => record.lba as usize != stream,
            kind => kind == Kind::Map,
        };
        if found.records.iter().any(|record| record.seq >= least && other(record)) {
            break;
        }
        let new = found.records.iter().filter(|record| record.number >= first && record.seq >= least);
        let new: Vec<(Record, Slot)> =
            new.map(|record| (*record, geometry.slot(segment, record.number))).collect();
        let Some(last) = new.last().map(|(record, _)| record.seq) else {
            // The only new slots were the summary, which is damaged: continue in the next segment.
            match named.take() {
                Some(next) => (segment, first, begun) = (next, 0, Some(least)),
                None => break,
            }
            continue;
        };
        let next = named.take().or(found.next);
        followed.segments.push(PassedSegment { segment, newest: last, begun, next });
        followed.records.extend(new);
        least = last + 1;
        let Some(next) = next else { break };
        (segment, first, begun) = (next, 0, Some(least));
    }
    followed
}

/// The state in which a stream continues after its last slot before `end`.
fn resume(
    medium: &impl Medium,
    superblock: &Superblock,
    followed: &StreamTail,
    state: StreamState,
    end: Seq,
) -> Resumed {
    let geometry = &superblock.geometry;
    let last = followed.records.iter().rfind(|(record, _)| record.seq < end);
    let (segment, mut number) = last.map_or((state.segment, state.slot), |&(record, slot)| {
        let byte = Geometry::within(record.number) + SLOT;
        (geometry.place(slot).0, Geometry::slot_from(byte.next_multiple_of(BLOCK)))
    });
    let passed = followed.segments.iter().find(|it| it.segment == segment);
    let named = if segment == state.segment { Some(state.next) } else { None };
    let next = passed.and_then(|it| it.next).or(named);
    let ended = last.is_some_and(|(record, _)| record.number + 1 == geometry.segment_slots());
    if ended {
        return Resumed { next, open: None };
    }
    number = number.min(geometry.segment_slots());
    let image = scan::image(medium, geometry, segment);
    let mut entries = vec![None; geometry.segment_slots() as usize];
    for record in scan::by_slots(&image, superblock, 0).records.iter().take_while(|it| it.number < number) {
        entries[record.number as usize] =
            Some(summary::Entry { kind: record.kind, lba: record.lba, seq: record.seq });
    }
    Resumed { next, open: Some(ResumedSegment { segment, slot: number, image: image.to_vec(), entries }) }
}

/// The slots of all streams in order of their numbers.
fn in_order(streams: &[StreamTail], from: Seq) -> Vec<Later> {
    let of_stream = |(stream, followed): (usize, &StreamTail)| {
        let records = followed.records.clone().into_iter();
        records.map(move |(record, slot)| Later { record, slot, stream }).collect::<Vec<_>>()
    };
    let mut all: Vec<Later> = streams.iter().enumerate().flat_map(of_stream).collect();
    all.retain(|later| later.record.seq >= from);
    all.sort_by_key(|later| later.record.seq);
    all
}

/// The end of the log: the first missing number after all durable ones, or the first invalid slot.
fn end_of(
    medium: &impl Medium,
    superblock: &Superblock,
    later: &[Later],
    from: Seq,
    durable: Seq,
) -> Result<Seq, LogError> {
    let mut expected = from;
    for it in later {
        let seq = it.record.seq;
        if seq > expected && expected > durable {
            return Ok(expected);
        }
        // A slot whose own header was read is valid; a summary only lists it.
        if seq > durable && it.record.before.is_none() && !matches!(it.record.kind, Kind::Summary) {
            let (bytes, skip) = read_around(medium, superblock.geometry.offset(it.slot), SLOT)?;
            let whole = Header::open(superblock.salt, &bytes[skip..][..SLOT]);
            if whole.is_none_or(|header| header.seq != seq) {
                return Ok(seq);
            }
        }
        expected = seq + 1;
    }
    // Durable slots may be missing at the very end.
    Ok(expected.max(durable + 1))
}
