//! A log disk on a medium ([`Disk`]), which handles one request after another: reads, writes, cleaning, checkpoints.
//!
//! Every request does its own I/O. Submodules: `cleaning`, `checkpoints`, and `marks`, which record flushed slots. A
//! log disk has no threads; its `Medium` may have some.

mod checkpoints;
mod cleaning;
mod marks;

use crate::error::LogError;
use crate::format::geometry::PAGE_ENTRIES;
use crate::format::{BLOCK, Checkpoint, Geometry, Kind, Lba, Seq, Superblock, checkpoint};
use crate::log::{Counters, Entry, Expected, Located, Log, Stall};
use crate::reader::{Reader, load_pages};
use crate::recover::{self, Recovery, Unknown};
use crate::{Aligned, Medium, format::checkpoint::Use};
use cleaning::{Cleaning, Refusals};

/// Options of a new log disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Size of a segment in bytes.
    pub segment: u64,
    /// The share of slots that is not part of the capacity.
    pub reserve: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { segment: 4 << 20, reserve: 0.1 }
    }
}

/// Options of an open log disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Memory for the map in bytes. Pages that changed since the last checkpoint may exceed it.
    pub map_memory: usize,
    /// Slots between checkpoints, which limits the length of a recovery.
    pub checkpoint_slots: u64,
}

impl Default for Running {
    fn default() -> Running {
        Running { map_memory: usize::MAX, checkpoint_slots: (1 << 30) / BLOCK as u64 }
    }
}

/// Blocks of one step of an unmap.
const UNMAPPED_AT_ONCE: u32 = 64 * PAGE_ENTRIES;

/// A log disk.
#[derive(Debug)]
pub struct Disk<M> {
    medium: M,
    log: Log,
    running: Running,
    recovery: Recovery,
    cleaning: Option<Cleaning>,
    /// Slots to clean before the next write.
    owed: u32,
    /// Read errors, which decide which segments are cleaned.
    refusals: Refusals,
    /// Whether no checkpoint was made since the opening. Nothing may be written before the first checkpoint.
    fresh: bool,
    /// Whether a write or flush failed, so that the contents of the medium are unknown.
    broken: bool,
}

impl<M: Medium> Disk<M> {
    /// Makes a new log disk with a random identity `id`. Destroys the contents of the medium.
    ///
    /// # Errors
    /// [`LogError::Geometry`], before anything is written, or [`LogError::Medium`].
    pub fn format(medium: M, options: Options, id: [u8; 16]) -> Result<Disk<M>, LogError> {
        let geometry = Geometry::new(medium.bytes(), options.segment, options.reserve)?;
        let superblock = Superblock { geometry, id, salt: crc32c::crc32c(&id) | 1 };
        let put = |offset, bytes: &[u8]| medium.write(offset, bytes).map_err(failed("formatting"));
        // The superblocks are written last, so that an incomplete log disk cannot be opened.
        put(0, &[0; 2 * BLOCK])?;
        for which in 0..2 {
            put(geometry.checkpoint(which).start, &[0; BLOCK])?;
        }
        if let Some(ring) = geometry.ring() {
            put(ring.start, &Aligned::zeroes((ring.end - ring.start) as usize))?;
        }
        medium.flush().map_err(failed("formatting"))?;
        let empty = checkpoint::SegmentState { used: Use::Free, live: 0, newest: 0, begun: 0 };
        let first = Checkpoint {
            generation: 0,
            next_seq: 1,
            clean: true,
            streams: [None; checkpoint::STREAMS],
            pages: vec![checkpoint::UNWRITTEN; geometry.pages() as usize],
            segments: vec![empty; geometry.segments as usize],
        };
        let log = Log::new(superblock, &first);
        let recovery = Recovery { clean: true, ..Recovery::default() };
        let mut disk = Disk {
            medium,
            log,
            running: Running::default(),
            recovery,
            cleaning: None,
            owed: 0,
            refusals: Refusals::default(),
            fresh: false,
            broken: false,
        };
        disk.checkpoint(true)?;
        let block = superblock.write();
        for at in 0..2 {
            disk.medium.write(at * BLOCK as u64, &block).map_err(failed("formatting"))?;
        }
        disk.medium.flush().map_err(failed("formatting"))?;
        Ok(disk)
    }

    /// Opens the log disk of a medium. Opening writes nothing.
    ///
    /// # Errors
    /// [`LogError`] if there is no log disk, or damage would make it return wrong data.
    pub fn open(medium: M, running: Running) -> Result<Disk<M>, LogError> {
        Disk::open_as(medium, running, Unknown::Refused)
    }

    /// Opens a log disk even if durable slots are lost and their blocks are unknown, so that some blocks may read as
    /// older data. [`Disk::recovery`] returns their number. After a write or a clean close, nothing records the loss.
    pub fn open_with_old_data(medium: M, running: Running) -> Result<Disk<M>, LogError> {
        Disk::open_as(medium, running, Unknown::Accepted)
    }

    fn open_as(medium: M, running: Running, unknown: Unknown) -> Result<Disk<M>, LogError> {
        let (log, recovery) = recover::open(&medium, unknown)?;
        let (cleaning, refusals) = (None, Refusals::default());
        Ok(Disk { medium, log, running, recovery, cleaning, owed: 0, refusals, fresh: true, broken: false })
    }

    /// The options.
    pub fn running(&self) -> Running {
        self.running
    }
    /// Changes the options.
    pub fn set_running(&mut self, running: Running) {
        self.running = running;
    }
    /// The report of the recovery.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }
    /// Sizes and positions.
    pub fn geometry(&self) -> &Geometry {
        self.log.geometry()
    }
    /// The counters since the opening.
    pub fn counters(&self) -> Counters {
        *self.log.counters()
    }
    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }
    /// Returns the medium without closing the log disk.
    pub fn into_medium(self) -> M {
        self.medium
    }
    /// The medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }
    /// Number of live slots: blocks and pages of the map.
    pub fn live_slots(&self) -> u64 {
        let segments = self.log.segments();
        (0..self.geometry().segments).map(|segment| u64::from(segments.live(segment))).sum()
    }
    /// Number of live blocks, at most the capacity.
    pub fn live_blocks(&self) -> u64 {
        let pages = self.log.map_pages();
        // Blocks of an unreadable page of the map count until their segment is cleaned.
        self.live_slots().saturating_sub(pages).min(self.geometry().blocks.into())
    }
    /// Bytes of memory of the map.
    pub fn map_memory(&mut self) -> usize {
        self.log.map().memory()
    }

    /// Reads a block.
    ///
    /// # Errors
    /// [`LogError::Unreadable`] if its checksum is wrong or it is out of date, which leaves `into` unchanged, or
    /// another [`LogError`].
    pub fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), LogError> {
        match self.find(lba, into)? {
            None => Ok(()),
            Some(expected) if self.reader().read_slot(&self.medium, expected, Kind::Data, lba, into)? => {
                Ok(())
            }
            Some(_) => Err(self.unreadable(lba)),
        }
    }

    /// Looks up a block. Returns the slot to read, or `None` if the data is in memory and now in `into`.
    ///
    /// # Errors
    /// [`LogError::Unreadable`], or another [`LogError`].
    pub fn find(&mut self, lba: Lba, into: &mut [u8]) -> Result<Option<Expected>, LogError> {
        self.within(lba, 1)?;
        let reader = self.reader();
        let found = loop {
            match self.log.locate(lba) {
                Ok(Located::Hole) => {
                    into.fill(0);
                    break None;
                }
                Ok(Located::Lost) => return Err(LogError::Unreadable(lba)),
                // Recovery may have read these bytes from the medium, so they may be damaged.
                Ok(Located::InMemory(expected, bytes)) => {
                    break (!reader.take(bytes, expected.oldest, Kind::Data, lba, into)).then_some(expected);
                }
                Ok(Located::At(expected)) => break Some(expected),
                Err(missing) => load_pages(&self.medium, &mut self.log, vec![missing.0])?,
            }
        };
        self.shrink();
        Ok(found)
    }

    fn unreadable(&mut self, lba: Lba) -> LogError {
        self.log.count_bad();
        LogError::Unreadable(lba)
    }

    /// A reader for the slots that [`Disk::find`] returns.
    pub fn reader(&self) -> Reader {
        Reader::new(*self.log.superblock())
    }

    /// The map entry of a block.
    pub fn entry(&mut self, lba: Lba) -> Result<Entry, LogError> {
        self.within(lba, 1)?;
        loop {
            match self.log.map().get(lba) {
                Ok(entry) => return Ok(entry),
                Err(missing) => {
                    self.shrink();
                    load_pages(&self.medium, &mut self.log, vec![missing.0])?;
                }
            }
        }
    }

    /// Writes a block, which is durable after a flush.
    pub fn write(&mut self, lba: Lba, data: &[u8]) -> Result<(), LogError> {
        self.within(lba, 1)?;
        while !self.make_room()? {}
        self.append(lba, data)
    }

    /// Does one step of the work before the next write. Returns whether there is room for it now.
    pub fn make_room(&mut self) -> Result<bool, LogError> {
        self.ensure_intact()?;
        let owed = match self.owed {
            0 => {
                if self.fresh
                    || self.log.tail_slots() >= self.running.checkpoint_slots
                    || self.log.map().changed() > self.most_changed()
                {
                    self.checkpoint(false)?;
                }
                self.price()
            }
            owed => owed,
        };
        self.owed = owed - self.with_all_segments(|disk| disk.clean_step(owed))?;
        self.shrink();
        Ok(self.owed == 0)
    }

    /// Writes a block after [`Disk::make_room`] returned true.
    pub fn append(&mut self, lba: Lba, data: &[u8]) -> Result<(), LogError> {
        self.ensure_intact()?;
        self.within(lba, 1)?;
        self.with_all_segments(|disk| disk.retry(true, |log| log.write(lba, data)))?;
        self.run_jobs()
    }

    /// Unmaps blocks, which then read as zeroes. Durable after a flush.
    pub fn unmap(&mut self, first: Lba, count: u32) -> Result<(), LogError> {
        if count == 0 {
            return Ok(());
        }
        self.within(first, count)?;
        let mut at = first;
        while at < first + count {
            // The pages of a step are loaded together and evicted before the next step.
            let end = (at / UNMAPPED_AT_ONCE + 1).saturating_mul(UNMAPPED_AT_ONCE).min(first + count);
            while !self.make_room()? {}
            let pages = (Geometry::page_of(at).0..=Geometry::page_of(end - 1).0).collect();
            load_pages(&self.medium, &mut self.log, pages)?;
            self.with_all_segments(|disk| disk.retry(true, |log| log.unmap(&[(at, end - at)])))?;
            self.run_jobs()?;
            self.shrink();
            at = end;
        }
        Ok(())
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// [`LogError::Medium`]. It is then unknown which writes are durable, and further writes are refused.
    pub fn flush(&mut self) -> Result<(), LogError> {
        if let Some(seq) = self.seal()? {
            let mark = self.mark();
            self.sync()?;
            self.put_mark(mark)?;
            self.durable(seq);
        }
        Ok(())
    }

    /// Flushes to release segments. No mark is written, because this flush is not reported to a client.
    pub(crate) fn flush_for_room(&mut self) -> Result<(), LogError> {
        if let Some(seq) = self.seal()? {
            self.sync()?;
            self.log.durable(seq);
        }
        Ok(())
    }

    /// Hands all pending bytes to the medium. After the caller has flushed the medium and written the mark
    /// ([`Disk::mark`]), all slots up to the returned one are durable ([`Disk::durable`]). Returns `None` if all
    /// slots are durable already.
    pub fn seal(&mut self) -> Result<Option<Seq>, LogError> {
        self.ensure_intact()?;
        if self.fresh {
            self.sync_recovered()?;
            return self.mark_recovered_slots().map(|()| None);
        }
        if !self.log.is_dirty() {
            return Ok(None);
        }
        let seq = self.log.seal();
        self.run_jobs().map(|()| Some(seq))
    }

    /// Notes that all slots up to `seq` of [`Disk::seal`], and their mark, are durable.
    pub fn durable(&mut self, seq: Seq) {
        self.log.marked(seq);
        self.log.durable(seq);
    }

    /// Notes that a flush failed. Further writes are refused.
    pub fn mark_broken(&mut self) {
        self.broken = true;
    }

    /// Syncs the recovered slots, which may still be in the page cache.
    fn sync_recovered(&mut self) -> Result<(), LogError> {
        self.sync()?;
        // Releases the segments that the recovered slots replaced.
        self.log.durable(0);
        Ok(())
    }

    /// Closes the log disk cleanly, so that the next opening needs no recovery.
    pub fn close(mut self) -> Result<M, LogError> {
        self.ensure_intact()?;
        if !self.fresh || !self.recovery.clean {
            self.checkpoint(true)?;
        }
        Ok(self.medium)
    }

    /// Returns whether to begin a checkpoint, so that no write has to wait for one. The reasons are that half of the
    /// allowed changes were made since the last checkpoint, or that there is little room and a checkpoint would
    /// release several times as much room as it takes.
    pub fn wants_checkpoint(&mut self) -> bool {
        if self.fresh {
            return false;
        }
        let changed = self.log.map().changed();
        let frees = || self.log.dead_until().1 * self.geometry().data_slots() as usize;
        self.log.tail_slots() >= self.running.checkpoint_slots / 2
            || changed > self.most_changed() / 2
            || self.price() > 0 && frees() > 4 * changed.max(1)
    }

    /// Returns whether to flush without a request, because there is little room and a flush would release segments.
    pub fn wants_flush(&self) -> bool {
        self.price() > 0 && self.log.dead_until().0 > 0
    }

    /// Returns whether an unrequested flush is worth its time: writes must clean, and a flush would release at least
    /// a sixteenth of the target of free segments.
    pub fn flush_frees_much(&self) -> bool {
        let much = (self.kept_free() as usize / 16).max(2);
        self.price() > 0 && self.log.segments().dead() >= much && self.log.dead_until().0 >= much
    }

    /// Returns whether the next write must clean.
    pub fn wants_room(&self) -> bool {
        self.owed > 0 || self.price() > 0
    }

    fn most_changed(&self) -> usize {
        (self.running.map_memory / BLOCK / 2).max(1024)
    }

    /// Fails if an earlier write or flush failed.
    ///
    /// # Errors
    /// [`LogError::Broken`].
    pub fn ensure_intact(&self) -> Result<(), LogError> {
        if self.broken { Err(LogError::Broken) } else { Ok(()) }
    }
    fn put(&mut self, offset: u64, data: Aligned, what: &'static str) -> Result<(), LogError> {
        self.medium.write_owned(offset, data).map_err(failed(what)).inspect_err(|_| self.broken = true)
    }
    fn sync(&mut self) -> Result<(), LogError> {
        // A repeated flush would succeed although writes were lost.
        self.medium.flush().map_err(failed("flushing")).inspect_err(|_| self.broken = true)
    }

    /// Slots to clean per write: 0 at the target of free segments, one per write halfway, and more as free segments
    /// run out.
    fn price(&self) -> u32 {
        let (spare, goal) = (self.log.spare_segments() as u32, self.kept_free());
        goal.saturating_sub(spare) * 2 / (spare + 1)
    }

    /// The target of free segments, above which nothing is cleaned.
    pub fn kept_free(&self) -> u32 {
        self.geometry().kept_free()
    }

    /// Repeats `act` and resolves its stalls. If `clean` is set, segments may be cleaned for it; cleaning itself only
    /// releases dead segments.
    fn retry<T>(
        &mut self,
        clean: bool,
        mut act: impl FnMut(&mut Log) -> Result<T, Stall>,
    ) -> Result<T, LogError> {
        let segments = self.geometry().segments;
        let (mut fruitless, mut tries) = (0, 0);
        loop {
            match act(&mut self.log) {
                Ok(done) => return Ok(done),
                Err(Stall::Missing(page)) => load_pages(&self.medium, &mut self.log, vec![page])?,
                Err(Stall::NoSegment) => {
                    let before = self.log.segments().free();
                    self.free_dead()?;
                    if clean && self.log.segments().free() == before {
                        self.clean_a_segment()?;
                    }
                    fruitless = if self.log.segments().free() > before { 0 } else { fruitless + 1 };
                    // If only excluded segments have free space, each written segment may release another one for
                    // ever.
                    tries += 1;
                    if fruitless > segments || tries > 4 * segments.clamp(64, 256) {
                        return Err(self.exhausted());
                    }
                }
            }
        }
    }

    /// Repeats `act` if it failed for lack of room and an excluded segment has become readable.
    fn with_all_segments<T>(
        &mut self,
        act: impl Fn(&mut Self) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        match act(self) {
            Err(LogError::Exhausted { .. }) if self.retry_stuck()? => act(self),
            done => done,
        }
    }

    /// Releases dead segments by a flush or, if that is not enough, a checkpoint. A checkpoint also writes the
    /// changed pages of the map, whose reserve of segments becomes free.
    fn free_dead(&mut self) -> Result<(), LogError> {
        let free = self.log.segments().free();
        let map_grew = self.log.map().changed() >= self.geometry().data_slots() as usize;
        if self.log.segments().dead() > 0 || map_grew {
            self.flush_for_room()?;
            if self.log.segments().free() == free {
                self.checkpoint(false)?;
            }
        }
        Ok(())
    }

    fn exhausted(&self) -> LogError {
        let segments = self.log.segments();
        LogError::Exhausted { dead: segments.dead(), stuck: segments.stuck_count() }
    }

    fn run_jobs(&mut self) -> Result<(), LogError> {
        while let Some(job) = self.log.job() {
            self.put(job.offset, job.data, "writing the log")?;
        }
        Ok(())
    }

    fn shrink(&mut self) {
        let most = self.log.map().pages_in(self.running.map_memory);
        self.log.map().shrink(most);
    }

    fn within(&self, first: Lba, count: u32) -> Result<(), LogError> {
        let blocks = self.geometry().blocks;
        match u64::from(first) + u64::from(count) {
            end if end > u64::from(blocks) => {
                Err(LogError::OutOfRange { block: u64::from(blocks).max(first.into()), blocks })
            }
            _ => Ok(()),
        }
    }
}

fn failed(what: &'static str) -> impl Fn(std::io::Error) -> LogError {
    move |source| LogError::Medium { what, source }
}
