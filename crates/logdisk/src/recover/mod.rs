//! Finds the log as it was: the newest checkpoint, and what was written after it, read forward up to the first slot that is missing.
//!
//! ```text
//!   superblock ─► checkpoint ─► for each stream of data its segments since ─► slots in the order of their numbers ─► map
//! ```
//!
//! Nothing is written. A slot that was durable and is gone is told apart from the end of the log by the slots after it, which say
//! what was durable when they were made, and what the slot before them was. Leaves out pages of the map, which are read when they
//! are needed.

pub mod scan;

use crate::error::LogError;
use crate::format::checkpoint::StreamState;
use crate::format::slot::{HEADER, MOST_SEQ, SLOT};
use crate::format::{
    BLOCK, Checkpoint, FormatError, Geometry, Header, Kind, Lba, Seq, Slot, Superblock, summary, unmaps,
};
use crate::log::{Entry, Log, Resumed, ResumedSegment, Which};
use crate::{Medium, disk};
use scan::{Record, read_around};
use std::collections::BTreeSet;

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
    /// Durable slots that were spoiled; their blocks cannot be read.
    pub spoiled: u64,
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

/// The log of a medium.
///
/// # Errors
/// [`LogError`]: the medium fails, there is no log, or it is damaged in a way that would give wrong data.
pub fn open(medium: &impl Medium) -> Result<(Log, Recovery), LogError> {
    let superblock = superblock(medium)?;
    let checkpoint = newest_checkpoint(medium, &superblock)?;
    let mut log = Log::new(superblock, &checkpoint);
    let mut recovery = Recovery { clean: checkpoint.clean, ..Recovery::default() };
    let mut streams = Vec::new();
    for (stream, state) in DATA.iter().filter_map(|&stream| Some((stream, checkpoint.streams[stream]?))) {
        streams.push(follow(medium, &superblock, stream, state, checkpoint.next_seq));
    }
    let durable = streams.iter().map(|stream| stream.durable).max().unwrap_or(0);
    let later = in_order(&streams, checkpoint.next_seq);
    let newest = later.last().map_or(checkpoint.next_seq, |last| last.record.seq).max(durable);
    let found = streams.iter().flat_map(|stream| stream.segments.iter().map(|it| (it.segment, it.newest)));
    log.segments_mut().found(&found.collect::<Vec<_>>());

    let end = end_of(medium, &superblock, &later, checkpoint.next_seq, durable)?;
    recovery.dropped = later.iter().filter(|it| it.record.seq >= end).count() as u64;
    let replay = Replay { medium, superblock: &superblock, streams: &streams, durable };
    replay.run(&mut log, &later, checkpoint.next_seq..end, &mut recovery)?;
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
    if recovery.replayed + recovery.dropped > 0 || !later.is_empty() {
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
    let mut named = Some(state.next);
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
                Some(next) => (segment, first) = (next, 0),
                None => break,
            }
            continue;
        };
        let next = named.take().or(found.next);
        followed.segments.push(Passed { segment, newest: last, next });
        followed.records.extend(new);
        least = last + 1;
        let Some(next) = next else { break };
        (segment, first) = (next, 0);
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

/// What is needed to read forward.
struct Replay<'a, M> {
    medium: &'a M,
    superblock: &'a Superblock,
    streams: &'a [Followed],
    durable: Seq,
}

impl<M: Medium> Replay<'_, M> {
    fn run(
        &self,
        log: &mut Log,
        later: &[Later],
        range: std::ops::Range<Seq>,
        recovery: &mut Recovery,
    ) -> Result<(), LogError> {
        let counted: Vec<&Later> = later.iter().filter(|it| it.record.seq < range.end).collect();
        self.load_pages(log, &counted)?;
        let mut expected = range.start;
        for it in counted {
            while expected < it.record.seq {
                self.missing(log, later, expected)?;
                recovery.spoiled += 1;
                expected += 1;
            }
            self.apply(log, it)?;
            recovery.replayed += 1;
            expected = it.record.seq + 1;
        }
        while expected < range.end {
            self.missing(log, later, expected)?;
            recovery.spoiled += 1;
            expected += 1;
        }
        Ok(())
    }

    /// Loads the pages of the map that will be changed, in the order in which they lie.
    fn load_pages(&self, log: &mut Log, later: &[&Later]) -> Result<(), LogError> {
        let blocks = self.superblock.geometry.blocks;
        let data = later
            .iter()
            .filter(|it| matches!(it.record.kind, Kind::Data | Kind::Lost) && it.record.lba < blocks);
        let pages: BTreeSet<u32> = data.map(|it| Geometry::page_of(it.record.lba).0).collect();
        disk::load_pages(self.medium, log, pages.into_iter().collect())
    }

    fn apply(&self, log: &mut Log, it: &Later) -> Result<(), LogError> {
        let (lba, blocks) = (it.record.lba, self.superblock.geometry.blocks);
        match it.record.kind {
            Kind::Data | Kind::Lost if lba >= blocks => Err(FormatError::Value {
                what: "slot",
                name: "block",
                value: lba.into(),
                why: "past the end of the disk",
            }
            .into()),
            Kind::Data => self.set(log, lba, Entry::At(it.slot)),
            Kind::Lost => self.set(log, lba, Entry::Lost),
            Kind::Unmap => {
                let (bytes, skip) = read_around(self.medium, self.superblock.geometry.offset(it.slot), SLOT)?;
                let slot = &bytes[skip..][..SLOT];
                if Header::open(self.superblock.salt, slot).is_none_or(|header| header.seq != it.record.seq) {
                    return Err(LogError::Damaged(it.record.seq));
                }
                for (first, count) in unmaps::read(&slot[HEADER..], blocks)? {
                    for lba in first..first + count {
                        self.set(log, lba, Entry::Hole)?;
                    }
                }
                Ok(())
            }
            Kind::Segment | Kind::Summary | Kind::Map => Ok(()),
        }
    }

    fn set(&self, log: &mut Log, lba: Lba, entry: Entry) -> Result<(), LogError> {
        while let Err(missing) = log.replay(lba, entry) {
            disk::load_pages(self.medium, log, vec![missing.0])?;
        }
        Ok(())
    }

    /// A durable slot that cannot be read: the slot after it in its stream says what it was.
    fn missing(&self, log: &mut Log, later: &[Later], seq: Seq) -> Result<(), LogError> {
        let damaged = LogError::Damaged(seq);
        if seq > self.durable {
            return Err(damaged);
        }
        let mut told = None;
        for stream in 0..self.streams.len() {
            let Some(after) = later.iter().find(|it| it.stream == stream && it.record.seq > seq) else {
                continue;
            };
            // A summary lists what it has: nothing of its stream is missing before one of its slots.
            let Some(Some(before)) = after.record.before else { continue };
            if before.is(seq) {
                told = Some((before.kind, before.lba));
            }
        }
        match told {
            Some((Kind::Data | Kind::Lost, lba)) if lba < self.superblock.geometry.blocks => {
                self.set(log, lba, Entry::Lost)
            }
            Some((Kind::Segment | Kind::Summary, _)) => Ok(()),
            _ => Err(damaged),
        }
    }
}
