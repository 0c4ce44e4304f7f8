//! Finds the log as it was: the newest checkpoint, and what was written after it, read forward up to the first slot that is missing.
//!
//! ```text
//!   superblock ─► checkpoint ─► for each stream of data its segments since ─► slots in the order of their numbers ─► map
//! ```
//!
//! Nothing is written. A slot that was durable and is gone is told apart from the end of the log by the slots after it, which say
//! what was durable when they were made, and what the slot before them was; at the very end, by the newest mark. Leaves out pages of
//! the map, which are read when they are needed.

mod replay;

use crate::Medium;
use crate::error::LogError;
use crate::format::checkpoint::StreamState;
use crate::format::slot::{MOST_SEQ, SLOT};
use crate::format::{
    BLOCK, Checkpoint, FormatError, Geometry, Header, Kind, Mark, Seq, Slot, Superblock, summary,
};
use crate::log::{Log, Resumed, ResumedSegment, Which};
use crate::scan::{self, Record, read_around};
use replay::Replay;

/// The streams that are read forward.
const DATA: [usize; 2] = [Which::Host as usize, Which::Moved as usize];

/// Numbers that are left out after a recovery: more than slots can be on their way to the medium when the power goes, so that
/// nothing that comes to light later is taken for new.
const GAP: u32 = 32;

/// What was done to find the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether it was closed in good order.
    pub clean: bool,
    /// Slots that were read forward over.
    pub replayed: u64,
    /// Slots after the end of the log: not all before them had come to the medium.
    pub dropped: u64,
    /// Durable slots that were spoiled.
    pub spoiled: u64,
    /// Blocks whose newest data was in those: reading them is an error.
    pub lost: u64,
    /// Those of them of which nothing says which blocks they held, so that blocks may read as older data: only where that was accepted.
    pub unknown: u64,
    /// Whether a mark, or the checkpoint, says that everything up to the end was durable.
    pub marked: bool,
}

impl Recovery {
    /// How many blocks of the durable end of the log cannot be read; `None` where all can.
    pub fn damage(&self) -> Option<u64> {
        Some(self.lost + self.unknown).filter(|&blocks| blocks > 0)
    }
}

/// What becomes of a log with durable slots that are spoiled, where nothing says which blocks they held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// It is not opened: any block may read as older data.
    Refused,
    /// It is opened without them.
    Accepted,
}

/// A slot after the checkpoint, and where.
#[derive(Debug, Clone, Copy)]
struct Later {
    record: Record,
    slot: Slot,
    /// Which stream.
    stream: usize,
}

/// The superblock of a medium.
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
            // The first says most, unless only it was overwritten.
            Err(error) => first = Some(first.unwrap_or(error)),
        }
    }
    Err(first.unwrap_or(FormatError::NotOurs.into()))
}

/// The newer checkpoint of those that can be read.
pub fn newest_checkpoint(medium: &impl Medium, superblock: &Superblock) -> Result<Checkpoint, LogError> {
    let geometry = &superblock.geometry;
    let read = |which| {
        let place = geometry.checkpoint(which);
        let (bytes, _) = scan::read_what_can_be(medium, place.start, geometry.needs() as usize);
        Checkpoint::read(&bytes, superblock.salt, geometry)
    };
    match (read(0), read(1)) {
        (Ok(a), Ok(b)) => Ok(if a.generation > b.generation { a } else { b }),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
        (Err(first), Err(second)) => Err(LogError::NoCheckpoint(Box::new([first, second]))),
    }
}

/// The readable marks, newest first. Old marks stay valid, because no slot number is used twice.
fn marks(medium: &impl Medium, superblock: &Superblock) -> Vec<Mark> {
    let Some(ring) = superblock.geometry.ring() else { return Vec::new() };
    let (bytes, _) = scan::read_what_can_be(medium, ring.start, (ring.end - ring.start) as usize);
    let marks = bytes.chunks_exact(BLOCK).filter_map(|block| Mark::read(block, superblock.salt));
    let mut marks: Vec<Mark> = marks.collect();
    // Two marks in flight together may have reached the medium in either order.
    marks.sort_by_key(|mark| std::cmp::Reverse((mark.durable, mark.number)));
    marks
}

/// The log of a medium.
///
/// # Errors
/// [`LogError`]: the medium fails, there is no log, or it is damaged in a way that would give wrong data.
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
    let begun = |it: &Passed| it.begun.unwrap_or(checkpoint.segments[it.segment as usize].begun);
    // The first pass over a segment has its oldest slots. The order is reversed, so that its `begun` is kept.
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
        let state = checkpoint.streams[stream].expect("it was followed");
        log.resume(stream, resume(medium, &superblock, followed, state, end));
    }
    if let Some(state) = checkpoint.streams[Which::Map as usize] {
        // What it wrote after the checkpoint is nothing that counts.
        let begun = Followed::default();
        log.resume(Which::Map as usize, resume(medium, &superblock, &begun, state, end));
    }
    let open = log.open_segments();
    log.segments_mut().settle(&open, end - 1, checkpoint.generation);
    recovery.marked = marked >= end - 1 || end == checkpoint.next_seq;
    if recovery.replayed + recovery.dropped + recovery.spoiled > 0 || !later.is_empty() {
        recovery.clean = false;
    }
    // Two: what is still to come to light may have gone beyond the next one.
    let next = ((newest >> GAP) + 2) << GAP;
    if next >= MOST_SEQ >> 1 {
        let why = "more than a log can count";
        return Err(FormatError::Value { what: "log", name: "sequence number", value: newest, why }.into());
    }
    log.go_on_from(end - 1, next);
    Ok((log, recovery))
}

/// What a stream wrote after a checkpoint.
#[derive(Debug, Default)]
struct Followed {
    records: Vec<(Record, Slot)>,
    /// Segments it went through.
    segments: Vec<Passed>,
    durable: Seq,
}

/// A segment that a stream went through.
#[derive(Debug, Clone, Copy)]
struct Passed {
    segment: u32,
    newest: Seq,
    /// For a segment that was begun after the checkpoint: greater than every number of its earlier generations.
    begun: Option<Seq>,
    next: Option<u32>,
}

/// Goes through the segments of a stream from where a checkpoint left it.
fn follow(
    medium: &impl Medium,
    superblock: &Superblock,
    stream: usize,
    state: StreamState,
    from: Seq,
) -> Followed {
    let geometry = &superblock.geometry;
    let mut followed = Followed::default();
    let (mut segment, mut first, mut least) = (state.segment, state.slot, from);
    let (mut named, mut begun) = (Some(state.next), None);
    loop {
        let found = match scan::by_summary(medium, superblock, segment) {
            // The summary is the newest of the segment: an older one is of a life before the checkpoint.
            Some(found) if found.records.last().is_some_and(|last| last.seq >= least) => found,
            _ => scan::by_slots(&scan::image(medium, geometry, segment), superblock, least),
        };
        // Whoever wrote it: it may tell of slots that were durable and are not found from an older checkpoint.
        followed.durable = followed.durable.max(found.durable);
        // Another stream may have begun the segment since it was named.
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
            // Nothing was left to write but the summary, and that is spoiled: the next segment has more.
            match named.take() {
                Some(next) => (segment, first, begun) = (next, 0, Some(least)),
                None => break,
            }
            continue;
        };
        let next = named.take().or(found.next);
        followed.segments.push(Passed { segment, newest: last, begun, next });
        followed.records.extend(new);
        least = last + 1;
        let Some(next) = next else { break };
        (segment, first, begun) = (next, 0, Some(least));
    }
    followed
}

/// Where a stream goes on: after its last slot before `end`.
fn resume(
    medium: &impl Medium,
    superblock: &Superblock,
    followed: &Followed,
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

/// The slots of all streams in the order of their numbers.
fn in_order(streams: &[Followed], from: Seq) -> Vec<Later> {
    let of_stream = |(stream, followed): (usize, &Followed)| {
        let records = followed.records.clone().into_iter();
        records.map(move |(record, slot)| Later { record, slot, stream }).collect::<Vec<_>>()
    };
    let mut all: Vec<Later> = streams.iter().enumerate().flat_map(of_stream).collect();
    all.retain(|later| later.record.seq >= from);
    all.sort_by_key(|later| later.record.seq);
    all
}

/// The first number that does not count any more: the first missing one after everything that was durable, or the first that is
/// not whole.
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
        // Read with the slots themselves it is whole; a summary only says that it was made.
        if seq > durable && it.record.before.is_none() && !matches!(it.record.kind, Kind::Summary) {
            let (bytes, skip) = read_around(medium, superblock.geometry.offset(it.slot), SLOT)?;
            let whole = Header::open(superblock.salt, &bytes[skip..][..SLOT]);
            if whole.is_none_or(|header| header.seq != seq) {
                return Ok(seq);
            }
        }
        expected = seq + 1;
    }
    // What was durable and is gone at the very end is still missing.
    Ok(expected.max(durable + 1))
}
