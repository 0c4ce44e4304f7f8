//! The log as a state machine without any reading, writing or waiting: what is asked goes in, bytes to be written come out.
//!
//! ```text
//!   write, unmap ─► stream of the host ──┐
//!   clean        ─► stream of the moved ─┼─► jobs ─► medium        map: where each block lies
//!   checkpoint   ─► stream of the map ───┘                         segments: what is live, what is free
//! ```
//!
//! Who drives it reads what it says is [`Missing`], writes its [`Job`]s, flushes, and tells it so. Leaves out the medium and
//! time (`disk`), and how it is found again (`recover`).

mod map;
mod recent;
mod segments;
mod stream;

pub use map::{Entry, Map, Missing};
pub(crate) use recent::Recent;
pub use segments::{Safe, Segments};
pub use stream::{Common, Job, Resumed, ResumedSegment, Stream};

use crate::format::checkpoint::{NOWHERE, STREAMS, Use};
use crate::format::mark::Held;
use crate::format::{BLOCK, Checkpoint, Geometry, Kind, Lba, Mark, Seq, Slot, Superblock, unmaps};
use std::collections::VecDeque;

/// Bytes that are gathered before they are written, unless a flush comes.
pub const CHUNK: usize = 256 << 10;

/// Segments that the host leaves to the cleaner.
const FOR_CLEANING: usize = 3;

/// Segments that host and cleaner leave to a checkpoint, beside those that the changed pages of the map take.
const FOR_CHECKPOINT: usize = 4;

/// Which stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// What the host writes.
    Host = 0,
    /// What the cleaner moves.
    Moved = 1,
    /// Pages of the map.
    Map = 2,
}

/// Why something cannot be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// A page of the map has to be loaded.
    Missing(u32),
    /// No segment is free: something has to be cleaned, or what is dead be made free by a flush or a checkpoint.
    NoSegment,
}

impl From<Missing> for Stall {
    fn from(missing: Missing) -> Stall {
        Stall::Missing(missing.0)
    }
}

/// Where a block is.
#[derive(Debug, PartialEq, Eq)]
pub enum Where<'a> {
    /// Nowhere: it is zeroes.
    Hole,
    /// Its data was lost.
    Lost,
    /// Here: it may not be on the medium yet. Which slot, and all of it.
    Here(Expected, &'a [u8]),
    /// On the medium.
    At(Expected),
}

/// A slot to be read, and the smallest sequence number that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Which.
    pub slot: Slot,
    /// The first number of its segment's current generation: a slot with a smaller one is out of date.
    pub oldest: Seq,
}

/// What a log has counted since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Blocks that the host wrote.
    pub host_blocks: u64,
    /// Blocks that the cleaner moved.
    pub moved_blocks: u64,
    /// Pages of the map that were written.
    pub map_pages: u64,
    /// Bytes handed out to be written, all of them.
    pub written_bytes: u64,
    /// Segments that were cleaned.
    pub cleaned: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Blocks whose checksum did not fit.
    pub bad_blocks: u64,
    /// Marks.
    pub marks: u64,
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
    /// The number of the checkpoint that was begun last.
    begun: u64,
    /// The last slots, for marks.
    recent: Recent,
    /// The number of the next mark.
    next_mark: u64,
    /// Everything up to here is in the last checkpoint, or a mark says that it is durable.
    marked: Seq,
    counters: Counters,
}

impl Log {
    /// The log of a checkpoint, after which nothing was written that counts.
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

    /// Where everything lies.
    pub fn geometry(&self) -> &Geometry {
        &self.superblock.geometry
    }
    /// What the log is.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }
    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
    /// The map, to load and shrink.
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
    /// The next bytes to be written.
    pub fn job(&mut self) -> Option<Job> {
        self.jobs.pop_front()
    }
    /// Counts a block whose checksum did not fit.
    pub fn count_bad(&mut self) {
        self.counters.bad_blocks += 1;
    }
    fn common(&self) -> Common {
        Common { geometry: self.superblock.geometry, salt: self.superblock.salt, durable: self.safe.durable }
    }

    /// Where a block is.
    pub fn locate(&mut self, lba: Lba) -> Result<Where<'_>, Missing> {
        let slot = match self.map.get(lba)? {
            Entry::Hole => return Ok(Where::Hole),
            Entry::Lost => return Ok(Where::Lost),
            Entry::At(slot) => slot,
        };
        let expected = self.expected(slot);
        Ok(self.here(slot).map_or(Where::At(expected), |bytes| Where::Here(expected, bytes)))
    }

    /// What a slot that the map names must be.
    pub fn expected(&self, slot: Slot) -> Expected {
        let (segment, _) = self.superblock.geometry.place(slot);
        Expected { slot, oldest: self.segments.begun(segment) }
    }

    /// A slot of a segment that is being written.
    pub fn here(&self, slot: Slot) -> Option<&[u8]> {
        let (segment, number) = self.superblock.geometry.place(slot);
        self.streams.iter().find_map(|stream| stream.slot(segment, number))
    }

    /// Writes a block of the host's.
    ///
    /// # Errors
    /// [`Stall`]; nothing was written then.
    pub fn write(&mut self, lba: Lba, data: &[u8]) -> Result<(), Stall> {
        self.can_set(lba)?;
        self.can_append(Which::Host)?;
        let slot = self.append(Which::Host, Kind::Data, lba, data);
        self.set(lba, Entry::At(slot));
        self.counters.host_blocks += 1;
        Ok(())
    }

    /// Says that ranges of blocks hold nothing any more; at most [`unmaps::RANGES`], none empty.
    ///
    /// # Errors
    /// [`Stall`]; nothing was done then.
    pub fn unmap(&mut self, ranges: &[(Lba, u32)]) -> Result<(), Stall> {
        for &(first, count) in ranges {
            let (from, _) = Geometry::page_of(first);
            let (to, _) = Geometry::page_of(first + count - 1);
            if let Some(page) = (from..=to).find(|&page| !self.map.has(page)) {
                return Err(Stall::Missing(page));
            }
        }
        self.can_append(Which::Host)?;
        let mut payload = [0; BLOCK];
        unmaps::write(ranges, &mut payload);
        self.append(Which::Host, Kind::Unmap, 0, &payload);
        // A slot of a single range can be had from a mark, should it be spoiled.
        let (lba, count) = if ranges.len() == 1 { ranges[0] } else { (0, 0) };
        self.recent.push(
            Some(Which::Host as usize),
            self.next_seq - 1,
            Held { kind: Kind::Unmap, lba, count },
        );
        for &(first, count) in ranges {
            (first..first + count).for_each(|lba| self.set(lba, Entry::Hole));
        }
        Ok(())
    }

    /// Moves a slot of a segment that is cleaned, if it is live; its payload, or `None` where it cannot be read.
    ///
    /// # Errors
    /// [`Stall`]; nothing was done then.
    pub fn move_block(&mut self, slot: Slot, lba: Lba, payload: Option<&[u8]>) -> Result<(), Stall> {
        self.can_set(lba)?;
        if self.map.get(lba)? != Entry::At(slot) {
            return Ok(());
        }
        self.can_append(Which::Moved)?;
        match payload {
            Some(payload) => {
                let to = self.append(Which::Moved, Kind::Data, lba, payload);
                self.set(lba, Entry::At(to));
            }
            None => {
                self.append(Which::Moved, Kind::Lost, lba, &[]);
                self.set(lba, Entry::Lost);
            }
        }
        self.counters.moved_blocks += 1;
        Ok(())
    }

    /// Has the pages of the map that lie in a segment written anew by the next checkpoint.
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
    /// Counts a segment that was cleaned.
    pub fn emptied(&mut self) {
        self.counters.cleaned += 1;
    }
    /// Says that no block is in a segment any more, by the whole map: what still counts as live in it was forgotten with a page of the
    /// map that could not be read.
    pub fn abandon(&mut self, segment: u32) {
        self.segments.abandon(segment, self.next_seq, self.begun);
    }
    /// Says that a segment cannot be emptied, and is to be left alone.
    pub fn stuck(&mut self, segment: u32) {
        self.segments.stuck(segment);
    }
    /// Has all such segments tried again.
    pub fn try_stuck(&mut self) {
        self.segments.try_stuck();
    }

    /// Hands out what was written so far, and says up to which slot everything is durable once it is written and flushed.
    pub fn seal(&mut self) -> Seq {
        let geometry = self.superblock.geometry;
        for at in 0..self.streams.len() {
            let job = self.streams[at].tail(&geometry);
            self.push(job);
        }
        self.next_seq - 1
    }
    /// Says that everything up to `seq` is durable; segments become free by it.
    pub fn durable(&mut self, seq: Seq) {
        self.safe.durable = self.safe.durable.max(seq);
        self.segments.release(self.safe);
    }
    /// Whether anything is not durable, or no mark says that it is where there are marks.
    pub fn is_dirty(&self) -> bool {
        let newest = self.next_seq - 1;
        newest > self.safe.durable || (self.superblock.geometry.marks && newest > self.marked)
    }
    /// Says that a mark is durable of everything up to `seq`.
    pub fn marked(&mut self, seq: Seq) {
        self.marked = self.marked.max(seq);
    }
    /// The mark that says that everything as of now is durable, once it is: `None` where there is no ring for it, or something says so
    /// already. Counts it.
    pub fn mark(&mut self) -> Option<Mark> {
        (self.superblock.geometry.marks && self.is_dirty()).then(|| self.mark_of(self.next_seq - 1))
    }
    /// The mark that says that everything up to `durable` is.
    fn mark_of(&mut self, durable: Seq) -> Mark {
        let mark = self.recent.mark(self.next_mark, durable);
        self.next_mark += 1;
        self.counters.marks += 1;
        self.counters.written_bytes += BLOCK as u64;
        mark
    }
    /// The mark that says that everything is durable that was found when the log was opened.
    pub(crate) fn mark_of_found(&mut self) -> Mark {
        self.mark_of(self.safe.durable)
    }
    /// Pages of the map that are in the log.
    pub fn map_pages(&self) -> u64 {
        self.map.places().iter().filter(|&&place| place != NOWHERE).count() as u64
    }
    /// Goes on with marks behind those that there are, with the last slots as they were found.
    pub(crate) fn resume_marks(&mut self, next: u64, recent: Recent) {
        (self.next_mark, self.recent) = (next, recent);
    }
    /// Says that the log has sizes and places of another version from now on; no slot has moved.
    pub(crate) fn upgrade(&mut self, geometry: Geometry) {
        self.superblock.geometry = geometry;
    }
    /// Slots that a recovery would read forward over.
    pub fn tail_slots(&self) -> u64 {
        self.next_seq - self.safe.replayed_from
    }

    /// Writes the changed pages of the map to the log, and gives the state as of now: to be written once all jobs are durable.
    ///
    /// # Errors
    /// [`Stall::NoSegment`].
    pub fn checkpoint(&mut self, clean: bool) -> Result<Checkpoint, Stall> {
        // One that failed before is made again: the other place holds the only good one.
        self.begun = self.safe.checkpoint + 1;
        for page in self.map.changed_pages() {
            self.write_page(page)?;
        }
        // A recovery begins at the segments that the streams are in, so each has one.
        for which in [Which::Host, Which::Moved, Which::Map] {
            if self.streams[which as usize].segment().is_none() {
                self.turn(which)?;
            }
            // The header that named it could not be read.
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
        if !self.streams[Which::Map as usize].has_room(&self.superblock.geometry) {
            self.turn(Which::Map)?;
        }
        let payload = self.map.payload(page);
        let slot = self.append(Which::Map, Kind::Map, page, &payload);
        self.segments.gained(self.superblock.geometry.place(slot).0);
        if let Some(old) = self.map.placed(page, slot) {
            let (segment, _) = self.superblock.geometry.place(old);
            self.segments.lost(segment, self.next_seq, self.begun);
        }
        self.counters.map_pages += 1;
        Ok(())
    }
    /// Whether a checkpoint that is no older was made since this one was begun.
    pub fn is_past(&self, checkpoint: &Checkpoint) -> bool {
        self.safe.checkpoint >= checkpoint.generation
    }
    /// Says that a checkpoint, and everything before it, is durable; segments become free by it.
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
    fn can_append(&mut self, which: Which) -> Result<(), Stall> {
        if self.streams[which as usize].has_room(&self.superblock.geometry) {
            return Ok(());
        }
        let kept = match which {
            Which::Host => FOR_CLEANING + self.kept_for_checkpoint(),
            _ => self.kept_for_checkpoint(),
        };
        if self.segments.free() <= kept {
            return Err(Stall::NoSegment);
        }
        self.turn(which)
    }
    fn kept_for_checkpoint(&self) -> usize {
        FOR_CHECKPOINT + self.map.changed() / self.superblock.geometry.data_slots() as usize
    }
    /// How many segments without anything live a flush would free, and how many only a checkpoint.
    pub fn dead_until(&self) -> (usize, usize) {
        self.segments.dead_until(self.safe)
    }
    /// Free segments that the host may still take before it has to wait for cleaning.
    pub fn spare_segments(&self) -> usize {
        self.segments.free().saturating_sub(FOR_CLEANING + self.kept_for_checkpoint())
    }

    /// Begins the next segment of a stream.
    fn turn(&mut self, which: Which) -> Result<(), Stall> {
        let at = which as usize;
        if self.segments.free() < 1 + usize::from(self.streams[at].next().is_none()) {
            return Err(Stall::NoSegment);
        }
        let counted = which != Which::Map;
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
        let next = self.streams[at].take_next().or_else(|| self.segments.take()).expect("looked before");
        let after = self.segments.take().expect("looked before");
        self.segments.begin(next, self.streams[at].used, self.next_seq);
        self.streams[at].begin(next, after, self.next_seq, &common);
        if counted {
            self.recent.push_kind(at, self.next_seq, Kind::Segment, 0);
        }
        self.next_seq += Seq::from(counted);
        Ok(())
    }

    fn append(&mut self, which: Which, kind: Kind, lba: Lba, payload: &[u8]) -> Slot {
        let common = self.common();
        let stream = &mut self.streams[which as usize];
        let seq = self.next_seq;
        let (segment, number) = stream.append(kind, lba, seq, payload, &common);
        if which != Which::Map {
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

    /// Says what a block is from now on, by the newest slot; its page is in memory.
    fn set(&mut self, lba: Lba, entry: Entry) {
        let geometry = self.superblock.geometry;
        if let Entry::At(slot) = entry {
            self.segments.gained(geometry.place(slot).0);
        }
        let Ok(old) = self.map.set(lba, entry) else { unreachable!("the page was looked for") };
        if let Entry::At(slot) = old {
            self.segments.lost(geometry.place(slot).0, self.next_seq - 1, self.begun);
        }
    }
    /// The same while a log is read forward.
    pub(crate) fn replay(&mut self, lba: Lba, entry: Entry) -> Result<(), Missing> {
        let (page, _) = Geometry::page_of(lba);
        if !self.map.has(page) {
            return Err(Missing(page));
        }
        self.set(lba, entry);
        Ok(())
    }
    /// Goes on with a stream where it was.
    pub(crate) fn resume(&mut self, stream: usize, resumed: Resumed) {
        let used = self.streams[stream].used;
        self.streams[stream] = Stream::resumed(used, stream as u32, resumed, &self.superblock.geometry);
    }
    /// Segments that streams are in, or will be in next.
    pub(crate) fn open_segments(&self) -> Vec<u32> {
        self.streams.iter().flat_map(|stream| stream.segment().into_iter().chain(stream.next())).collect()
    }
    /// Goes on from here: everything up to `durable` was found, and no slot has the number `next` or a larger one.
    pub(crate) fn go_on_from(&mut self, durable: Seq, next: Seq) {
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
