//! The log as a state machine without I/O ([`Log`]): requests go in, and bytes to write come out.
//!
//! ```text
//!   write, unmap ─► host stream  ──┐
//!   clean        ─► moved stream ──┼─► jobs ─► medium        map: the slot of each block
//!   checkpoint   ─► map stream   ──┘                         segments: live and free
//! ```
//!
//! The caller loads the pages that are [`Missing`], writes the [`Job`]s, flushes, and reports completed flushes to
//! the log. Module `disk` uses the medium, and module `recover` recovers the log.

mod map;
mod recent;
mod segments;
mod stream;

pub use map::{Entry, Map, Missing};
pub(crate) use recent::Recent;
pub use segments::{Safe, Segments};
pub use stream::{Common, Job, Resumed, ResumedSegment, Stream};

use crate::format::checkpoint::{STREAMS, UNWRITTEN, Use};
use crate::format::mark::SlotContents;
use crate::format::{BLOCK, Checkpoint, Geometry, Kind, Lba, Mark, Seq, Slot, Superblock, unmaps};
use std::collections::VecDeque;

/// Bytes that are gathered before a write. A flush writes fewer bytes.
pub const CHUNK: usize = 256 << 10;

/// Free segments that are reserved for cleaning.
const FOR_CLEANING: usize = 3;

/// Free segments that are reserved for a checkpoint, in addition to the segments for changed pages of the map.
const FOR_CHECKPOINT: usize = 4;

/// A stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamId {
    /// Writes of the host.
    Host = 0,
    /// Blocks that cleaning moves.
    Moved = 1,
    /// Pages of the map.
    Map = 2,
}

/// A condition that the caller must resolve before it repeats a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// A page of the map must be loaded.
    Missing(u32),
    /// No segment is free. A segment must be cleaned, or a flush or checkpoint must release dead segments.
    NoSegment,
}

impl From<Missing> for Stall {
    fn from(missing: Missing) -> Stall {
        Stall::Missing(missing.0)
    }
}

/// The location of a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Located<'a> {
    /// Unallocated; reads as zeroes.
    Hole,
    /// Its data was lost.
    Lost,
    /// In memory, and possibly not on the medium yet: the slot and its bytes.
    InMemory(Expected, &'a [u8]),
    /// On the medium.
    At(Expected),
}

/// A slot to be read, and the smallest sequence number that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The slot.
    pub slot: Slot,
    /// The first number of its segment's current generation. A slot with a smaller one is out of date.
    pub oldest: Seq,
}

/// Counters since the log was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Blocks written by the host.
    pub host_blocks: u64,
    /// Blocks moved by cleaning.
    pub moved_blocks: u64,
    /// Pages of the map written.
    pub map_pages: u64,
    /// Bytes written to the medium.
    pub written_bytes: u64,
    /// Segments cleaned.
    pub cleaned: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Blocks with a wrong checksum.
    pub bad_blocks: u64,
    /// Marks written.
    pub marks: u64,
}

impl Counters {
    /// The counters in the order of the fields.
    pub(crate) fn values(self) -> [u64; 8] {
        let Counters { host_blocks, moved_blocks, map_pages, written_bytes, cleaned, checkpoints, .. } = self;
        [
            host_blocks,
            moved_blocks,
            map_pages,
            written_bytes,
            cleaned,
            checkpoints,
            self.bad_blocks,
            self.marks,
        ]
    }

    /// The inverse of [`Counters::values`].
    pub(crate) fn from_values(values: [u64; 8]) -> Counters {
        let [host_blocks, moved_blocks, map_pages, written_bytes, cleaned, checkpoints, bad_blocks, marks] =
            values;
        Counters {
            host_blocks,
            moved_blocks,
            map_pages,
            written_bytes,
            cleaned,
            checkpoints,
            bad_blocks,
            marks,
        }
    }
}

/// The log.
#[derive(Debug)]
pub struct Log {
    superblock: Superblock,
    map: Map,
    segments: Segments,
    streams: [Stream; 3],
    jobs: VecDeque<Job>,
    next_seq: Seq,
    safe: Safe,
    /// The number of the last begun checkpoint.
    begun: u64,
    /// The newest slots, for marks.
    recent: Recent,
    next_mark: u64,
    /// The last checkpoint or a mark covers all slots up to this one.
    marked: Seq,
    counters: Counters,
}

impl Log {
    /// The log of a checkpoint, without later slots.
    pub(crate) fn new(superblock: Superblock, checkpoint: &Checkpoint) -> Log {
        Log {
            map: Map::new(
                checkpoint.pages.clone(),
                superblock.geometry.segments * superblock.geometry.segment_slots(),
            ),
            segments: Segments::new(&checkpoint.segments, &superblock.geometry),
            superblock,
            streams: [Stream::new(Use::Data, 0), Stream::new(Use::Data, 1), Stream::new(Use::Map, 2)],
            jobs: VecDeque::new(),
            next_seq: checkpoint.next_seq,
            safe: Safe {
                durable: checkpoint.next_seq.saturating_sub(1),
                replayed_from: checkpoint.next_seq,
                checkpoint: checkpoint.generation,
            },
            begun: checkpoint.generation,
            recent: Recent::default(),
            next_mark: 0,
            marked: checkpoint.next_seq.saturating_sub(1),
            counters: Counters::default(),
        }
    }

    /// Sizes and positions.
    pub fn geometry(&self) -> &Geometry {
        &self.superblock.geometry
    }
    /// The superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }
    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
    /// The map, for loading and evicting pages.
    pub fn map(&mut self) -> &mut Map {
        &mut self.map
    }
    /// The segments.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }
    pub(crate) fn segments_mut(&mut self) -> &mut Segments {
        &mut self.segments
    }
    /// The next bytes to write.
    pub fn job(&mut self) -> Option<Job> {
        self.jobs.pop_front()
    }
    /// Counts a block with a wrong checksum.
    pub fn count_bad(&mut self) {
        self.counters.bad_blocks += 1;
    }
    fn common(&self) -> Common {
        Common { geometry: self.superblock.geometry, salt: self.superblock.salt, durable: self.safe.durable }
    }

    /// Locates a block.
    pub fn locate(&mut self, lba: Lba) -> Result<Located<'_>, Missing> {
        let slot = match self.map.get(lba)? {
            Entry::Hole => return Ok(Located::Hole),
            Entry::Lost => return Ok(Located::Lost),
            Entry::At(slot) => slot,
        };
        let expected = self.expected(slot);
        Ok(self.in_memory(slot).map_or(Located::At(expected), |bytes| Located::InMemory(expected, bytes)))
    }

    /// The expectation of a slot that the map refers to.
    pub fn expected(&self, slot: Slot) -> Expected {
        let (segment, _) = self.superblock.geometry.place(slot);
        Expected { slot, oldest: self.segments.begun(segment) }
    }

    /// The bytes of a slot in a segment that is being written.
    pub fn in_memory(&self, slot: Slot) -> Option<&[u8]> {
        let (segment, number) = self.superblock.geometry.place(slot);
        self.streams.iter().find_map(|stream| stream.slot(segment, number))
    }

    /// Writes a block of the host.
    ///
    /// # Errors
    /// [`Stall`]; nothing was written.
    pub fn write(&mut self, lba: Lba, data: &[u8]) -> Result<(), Stall> {
        self.can_set(lba)?;
        self.can_append(StreamId::Host)?;
        let slot = self.append(StreamId::Host, Kind::Data, lba, data);
        self.set(lba, Entry::At(slot));
        self.counters.host_blocks += 1;
        Ok(())
    }

    /// Unmaps ranges of blocks: at most [`unmaps::RANGES`], none empty.
    ///
    /// # Errors
    /// [`Stall`]; nothing was changed.
    pub fn unmap(&mut self, ranges: &[(Lba, u32)]) -> Result<(), Stall> {
        for &(first, count) in ranges {
            let (from, _) = Geometry::page_of(first);
            let (to, _) = Geometry::page_of(first + count - 1);
            if let Some(page) = (from..=to).find(|&page| !self.map.has(page)) {
                return Err(Stall::Missing(page));
            }
        }
        self.can_append(StreamId::Host)?;
        let mut payload = [0; BLOCK];
        unmaps::write(ranges, &mut payload);
        self.append(StreamId::Host, Kind::Unmap, 0, &payload);
        // Marks can restore an unmap of a single range if its slot is damaged.
        let (lba, count) = if ranges.len() == 1 { ranges[0] } else { (0, 0) };
        self.recent.push(
            Some(StreamId::Host as usize),
            self.next_seq - 1,
            SlotContents { kind: Kind::Unmap, lba, count },
        );
        for &(first, count) in ranges {
            (first..first + count).for_each(|lba| self.set(lba, Entry::Hole));
        }
        Ok(())
    }

    /// Moves a live slot of a segment that is being cleaned. Without a payload, the block becomes lost.
    ///
    /// # Errors
    /// [`Stall`]; nothing was changed.
    pub fn move_block(&mut self, slot: Slot, lba: Lba, payload: Option<&[u8]>) -> Result<(), Stall> {
        self.can_set(lba)?;
        if self.map.get(lba)? != Entry::At(slot) {
            return Ok(());
        }
        self.can_append(StreamId::Moved)?;
        match payload {
            Some(payload) => {
                let to = self.append(StreamId::Moved, Kind::Data, lba, payload);
                self.set(lba, Entry::At(to));
            }
            None => {
                self.append(StreamId::Moved, Kind::Lost, lba, &[]);
                self.set(lba, Entry::Lost);
            }
        }
        self.counters.moved_blocks += 1;
        Ok(())
    }

    /// Marks the pages of the map in a segment as changed, so that the next checkpoint moves them.
    ///
    /// # Errors
    /// [`Stall::Missing`].
    pub fn move_pages(&mut self, segment: u32) -> Result<(), Stall> {
        let geometry = self.superblock.geometry;
        let within =
            |map: &Map, page: u32| map.place(page).is_some_and(|slot| geometry.place(slot).0 == segment);
        let pages: Vec<u32> = (0..geometry.pages()).filter(|&page| within(&self.map, page)).collect();
        for page in pages {
            if !self.map.has(page) {
                return Err(Stall::Missing(page));
            }
            self.map.touch(page);
        }
        Ok(())
    }

    /// The segment to clean next.
    pub fn victim(&self) -> Option<u32> {
        self.segments.victim(self.next_seq)
    }
    /// Counts a cleaned segment.
    pub fn emptied(&mut self) {
        self.counters.cleaned += 1;
    }
    /// Sets the live count of a segment to 0, because the complete map refers to no slot of it. The count was wrong
    /// because a page of the map was unreadable.
    pub fn abandon(&mut self, segment: u32) {
        self.segments.abandon(segment, self.next_seq, self.begun);
    }

    /// Hands out all pending bytes. All slots up to the returned one are durable once these bytes are written and
    /// flushed.
    pub fn seal(&mut self) -> Seq {
        let geometry = self.superblock.geometry;
        for at in 0..self.streams.len() {
            let job = self.streams[at].tail(&geometry);
            self.push(job);
        }
        self.next_seq - 1
    }
    /// Notes that all slots up to `seq` are durable, and releases segments.
    pub fn durable(&mut self, seq: Seq) {
        self.safe.durable = self.safe.durable.max(seq);
        self.segments.release(self.safe);
    }
    /// Returns whether a slot is not durable, or not covered by a mark on a log disk with marks.
    pub fn is_dirty(&self) -> bool {
        let newest = self.next_seq - 1;
        newest > self.safe.durable || (self.superblock.geometry.marks && newest > self.marked)
    }
    /// Notes a durable mark for all slots up to `seq`.
    pub fn marked(&mut self, seq: Seq) {
        self.marked = self.marked.max(seq);
    }
    /// Makes and counts a mark for all slots so far, which must become durable before the mark is written. Returns
    /// `None` if there is no ring, or nothing to mark.
    pub fn mark(&mut self) -> Option<Mark> {
        (self.superblock.geometry.marks && self.is_dirty()).then(|| self.mark_of(self.next_seq - 1))
    }
    /// Makes and counts a mark for all slots up to `durable`.
    fn mark_of(&mut self, durable: Seq) -> Mark {
        let mark = self.recent.mark(self.next_mark, durable);
        self.next_mark += 1;
        self.counters.marks += 1;
        self.counters.written_bytes += BLOCK as u64;
        mark
    }
    /// Makes and counts a mark for all slots that recovery found.
    pub(crate) fn mark_recovered(&mut self) -> Mark {
        self.mark_of(self.safe.durable)
    }
    /// Number of pages of the map in the log.
    pub fn map_pages(&self) -> u64 {
        self.map.places().iter().filter(|&&place| place != UNWRITTEN).count() as u64
    }
    /// Sets the number of the next mark, and the newest slots that recovery found.
    pub(crate) fn resume_marks(&mut self, next: u64, recent: Recent) {
        (self.next_mark, self.recent) = (next, recent);
    }
    /// Changes the geometry to that of another version. No slot moves.
    pub(crate) fn upgrade(&mut self, geometry: Geometry) {
        self.superblock.geometry = geometry;
    }
    /// Number of slots that recovery would replay.
    pub fn tail_slots(&self) -> u64 {
        self.next_seq - self.safe.replayed_from
    }

    /// Writes the changed pages of the map to the log, and returns a checkpoint to write once all jobs are durable.
    ///
    /// # Errors
    /// [`Stall::NoSegment`].
    pub fn checkpoint(&mut self, clean: bool) -> Result<Checkpoint, Stall> {
        // A failed checkpoint is repeated in its slot, because the other slot holds the only good one.
        self.begun = self.safe.checkpoint + 1;
        for page in self.map.changed_pages() {
            self.write_page(page)?;
        }
        // Recovery begins at the open segments of all streams.
        for which in [StreamId::Host, StreamId::Moved, StreamId::Map] {
            if self.streams[which as usize].segment().is_none() {
                self.begin_segment(which)?;
            }
            // Recovery could not read the header that names the next segment.
            if self.streams[which as usize].next().is_none() {
                let next = self.segments.take().ok_or(Stall::NoSegment)?;
                self.streams[which as usize].set_next(next);
            }
        }
        self.seal();
        let mut streams = [None; STREAMS];
        for (state, stream) in streams.iter_mut().zip(&self.streams) {
            *state = stream.state();
        }
        Ok(Checkpoint {
            generation: self.begun,
            next_seq: self.next_seq,
            clean,
            streams,
            pages: self.map.places().to_vec(),
            segments: self.segments.states(),
        })
    }
    /// Writes a page of the map to the log.
    fn write_page(&mut self, page: u32) -> Result<(), Stall> {
        if !self.streams[StreamId::Map as usize].has_room(&self.superblock.geometry) {
            self.begin_segment(StreamId::Map)?;
        }
        let payload = self.map.payload(page);
        let slot = self.append(StreamId::Map, Kind::Map, page, &payload);
        self.segments.gained(self.superblock.geometry.place(slot).0);
        if let Some(old) = self.map.placed(page, slot) {
            let (segment, _) = self.superblock.geometry.place(old);
            self.segments.lost(segment, self.next_seq, self.begun);
        }
        self.counters.map_pages += 1;
        Ok(())
    }
    /// Returns whether this or a newer checkpoint is durable already.
    pub fn is_past(&self, checkpoint: &Checkpoint) -> bool {
        self.safe.checkpoint >= checkpoint.generation
    }
    /// Notes a durable checkpoint, and releases segments.
    pub fn checkpointed(&mut self, checkpoint: &Checkpoint) {
        self.safe.checkpoint = checkpoint.generation;
        self.safe.replayed_from = checkpoint.next_seq;
        self.counters.checkpoints += 1;
        self.marked(checkpoint.next_seq - 1);
        self.durable(checkpoint.next_seq - 1);
    }

    fn can_set(&mut self, lba: Lba) -> Result<(), Stall> {
        let (page, _) = Geometry::page_of(lba);
        if self.map.has(page) { Ok(()) } else { Err(Stall::Missing(page)) }
    }
    fn can_append(&mut self, which: StreamId) -> Result<(), Stall> {
        if self.streams[which as usize].has_room(&self.superblock.geometry) {
            return Ok(());
        }
        let kept = match which {
            StreamId::Host => FOR_CLEANING + self.kept_for_checkpoint(),
            _ => self.kept_for_checkpoint(),
        };
        if self.segments.free() <= kept {
            return Err(Stall::NoSegment);
        }
        self.begin_segment(which)
    }
    fn kept_for_checkpoint(&self) -> usize {
        FOR_CHECKPOINT + self.map.changed() / self.superblock.geometry.data_slots() as usize
    }
    /// The number of dead segments that a flush would release, and the number of those that need a checkpoint.
    pub fn dead_until(&self) -> (usize, usize) {
        self.segments.dead_until(self.safe)
    }
    /// Free segments that the host may use before it has to wait for cleaning.
    pub fn spare_segments(&self) -> usize {
        self.segments.free().saturating_sub(FOR_CLEANING + self.kept_for_checkpoint())
    }

    /// Begins the next segment of a stream.
    fn begin_segment(&mut self, which: StreamId) -> Result<(), Stall> {
        let at = which as usize;
        if self.segments.free() < 1 + usize::from(self.streams[at].next().is_none()) {
            return Err(Stall::NoSegment);
        }
        let counted = which != StreamId::Map;
        let common = self.common();
        if let Some((segment, job, used)) = self.streams[at].finish(self.next_seq, counted, &common) {
            for n in 0..used {
                self.recent.push_kind(at, self.next_seq + n, Kind::Summary, n as u32);
            }
            self.next_seq += used;
            self.segments.written(segment, self.next_seq - 1);
            self.segments.close(segment, self.next_seq - 1, self.begun);
            self.push(Some(job));
        }
        let next = self.streams[at].take_next().or_else(|| self.segments.take()).expect("checked above");
        let after = self.segments.take().expect("checked above");
        self.segments.begin(next, self.streams[at].used, self.next_seq);
        self.streams[at].begin(next, after, self.next_seq, &common);
        if counted {
            self.recent.push_kind(at, self.next_seq, Kind::Segment, 0);
        }
        self.next_seq += Seq::from(counted);
        Ok(())
    }

    fn append(&mut self, which: StreamId, kind: Kind, lba: Lba, payload: &[u8]) -> Slot {
        let common = self.common();
        let stream = &mut self.streams[which as usize];
        let seq = self.next_seq;
        let (segment, number) = stream.append(kind, lba, seq, payload, &common);
        if which != StreamId::Map {
            self.next_seq += 1;
            if kind != Kind::Unmap {
                self.recent.push_kind(which as usize, seq, kind, lba);
            }
        }
        self.segments.written(segment, seq);
        let job = stream.whole(CHUNK, &common.geometry);
        self.push(job);
        common.geometry.slot(segment, number)
    }

    /// Sets the entry of a block, whose page must be in memory, to the newest slot.
    fn set(&mut self, lba: Lba, entry: Entry) {
        let geometry = self.superblock.geometry;
        if let Entry::At(slot) = entry {
            self.segments.gained(geometry.place(slot).0);
        }
        let Ok(old) = self.map.set(lba, entry) else { unreachable!("the page is in memory") };
        if let Entry::At(slot) = old {
            self.segments.lost(geometry.place(slot).0, self.next_seq - 1, self.begun);
        }
    }
    /// Sets the entry of a block during recovery.
    pub(crate) fn replay(&mut self, lba: Lba, entry: Entry) -> Result<(), Missing> {
        let (page, _) = Geometry::page_of(lba);
        if !self.map.has(page) {
            return Err(Missing(page));
        }
        self.set(lba, entry);
        Ok(())
    }
    /// Restores a stream after recovery.
    pub(crate) fn resume(&mut self, stream: usize, resumed: Resumed) {
        let used = self.streams[stream].used;
        self.streams[stream] = Stream::resumed(used, stream as u32, resumed, &self.superblock.geometry);
    }
    /// The present and next segments of all streams.
    pub(crate) fn open_segments(&self) -> Vec<u32> {
        self.streams.iter().flat_map(|stream| stream.segment().into_iter().chain(stream.next())).collect()
    }
    /// Ends recovery: all slots up to `durable` were found, and new slots are numbered from `next` on.
    pub(crate) fn resume_numbers(&mut self, durable: Seq, next: Seq) {
        self.next_seq = next;
        self.safe.durable = durable;
    }

    fn push(&mut self, job: Option<Job>) {
        if let Some(job) = job {
            self.counters.written_bytes += job.data.len() as u64;
            self.jobs.push_back(job);
        }
    }
}
