//! A log on a medium, one request after the other: reads, writes, cleans, checkpoints.
//!
//! Whatever a request needs of the medium is done within it; `cleaning` has how segments are emptied, `marks` how what was flushed is
//! told from what was not. Leaves out threads: see `Medium` for what may be shared.

mod checkpoints;
mod cleaning;
mod marks;

use crate::error::LogError;
use crate::format::geometry::PAGE_ENTRIES;
use crate::format::{BLOCK, Checkpoint, Geometry, Kind, Lba, Seq, Superblock, checkpoint};
use crate::log::{Counters, Entry, Expected, Log, Stall, Where};
use crate::reader::{Reader, load_pages};
use crate::recover::{self, Recovery, Unknown};
use crate::{Aligned, Medium, format::checkpoint::Use};
use cleaning::{Cleaning, Refusals};

/// How a log disk is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Bytes of a segment.
    pub segment: u64,
    /// The share of slots that is never offered.
    pub reserve: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { segment: 4 << 20, reserve: 0.1 }
    }
}

/// How a log disk behaves while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Bytes of memory for the map; pages that were changed since the last checkpoint may take more.
    pub map_memory: usize,
    /// Slots after which a checkpoint is made, so that a recovery has no more to read.
    pub checkpoint_slots: u64,
}

impl Default for Running {
    fn default() -> Running {
        Running { map_memory: usize::MAX, checkpoint_slots: (1 << 30) / BLOCK as u64 }
    }
}

/// Blocks that are unmapped at a time.
const UNMAPPED_AT_ONCE: u32 = 64 * PAGE_ENTRIES;

/// A log disk.
#[derive(Debug)]
pub struct Disk<M> {
    medium: M,
    log: Log,
    running: Running,
    recovery: Recovery,
    cleaning: Option<Cleaning>,
    /// Slots that are still to be cleaned before the next write.
    owed: u32,
    /// What the medium did not give, and to be looked at before anything of a segment is moved.
    refusals: Refusals,
    /// No checkpoint was made since it was opened, so nothing may be written yet.
    fresh: bool,
    /// A write or a flush of the medium failed: it is not known any more what is there.
    broken: bool,
}

impl<M: Medium> Disk<M> {
    /// Makes a log disk; `id` is what tells it from others, and should be random. All there was is gone.
    ///
    /// # Errors
    /// [`LogError::Geometry`], before anything is written; [`LogError::Medium`].
    pub fn format(medium: M, options: Options, id: [u8; 16]) -> Result<Disk<M>, LogError> {
        let geometry = Geometry::new(medium.bytes(), options.segment, options.reserve)?;
        let superblock = Superblock { geometry, id, salt: crc32c::crc32c(&id) | 1 };
        let put = |offset, bytes: &[u8]| medium.write(offset, bytes).map_err(failed("formatting"));
        // Nothing is a log disk until everything is there.
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
            pages: vec![checkpoint::NOWHERE; geometry.pages() as usize],
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

    /// Opens the log disk of a medium. Writes nothing until something is to be written.
    ///
    /// # Errors
    /// [`LogError`]: there is none, or it is damaged in a way that would give wrong data.
    pub fn open(medium: M, running: Running) -> Result<Disk<M>, LogError> {
        Disk::open_as(medium, running, Unknown::Refused)
    }

    /// Opens it also where slots are lost that were durable, and nothing says which blocks they held: some may read as older data then.
    /// [`Disk::recovery`] says how many; nothing says so any more once it was closed or written.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn open_with_old_data(medium: M, running: Running) -> Result<Disk<M>, LogError> {
        Disk::open_as(medium, running, Unknown::Accepted)
    }

    fn open_as(medium: M, running: Running, unknown: Unknown) -> Result<Disk<M>, LogError> {
        let (log, recovery) = recover::open(&medium, unknown)?;
        let (cleaning, refusals) = (None, Refusals::default());
        Ok(Disk { medium, log, running, recovery, cleaning, owed: 0, refusals, fresh: true, broken: false })
    }

    /// How it behaves.
    pub fn running(&self) -> Running {
        self.running
    }
    /// Has it behave otherwise from now on.
    pub fn set_running(&mut self, running: Running) {
        self.running = running;
    }
    /// How it was found.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }
    /// Where everything lies.
    pub fn geometry(&self) -> &Geometry {
        self.log.geometry()
    }
    /// What was counted since it was opened.
    pub fn counters(&self) -> Counters {
        *self.log.counters()
    }
    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }
    /// The medium, given up without closing.
    pub fn into_medium(self) -> M {
        self.medium
    }
    /// The medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }
    /// Slots that are live: blocks, and pages of the map.
    pub fn live_slots(&self) -> u64 {
        let segments = self.log.segments();
        (0..self.geometry().segments).map(|segment| u64::from(segments.live(segment))).sum()
    }
    /// Blocks that are live: at most as many as are offered.
    pub fn live_blocks(&self) -> u64 {
        let pages = self.log.map_pages();
        // What was forgotten with a page of the map counts until its segment is cleaned.
        self.live_slots().saturating_sub(pages).min(self.geometry().blocks.into())
    }
    /// Bytes of memory that the map takes now.
    pub fn map_memory(&mut self) -> usize {
        self.log.map().memory()
    }

    /// Reads a block.
    ///
    /// # Errors
    /// [`LogError::Unreadable`] where its checksum does not fit or it is out of date, and `into` is as it was; [`LogError`].
    pub fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), LogError> {
        match self.find(lba, into)? {
            None => Ok(()),
            Some(expected) if self.reader().read_slot(&self.medium, expected, Kind::Data, lba, into)? => {
                Ok(())
            }
            Some(_) => Err(self.unreadable(lba)),
        }
    }

    /// A block, as far as it is known without the medium: the slot to be read, or `None` where `into` has it now.
    ///
    /// # Errors
    /// [`LogError::Unreadable`]; [`LogError`].
    pub fn find(&mut self, lba: Lba, into: &mut [u8]) -> Result<Option<Expected>, LogError> {
        self.within(lba, 1)?;
        let reader = self.reader();
        let found = loop {
            match self.log.locate(lba) {
                Ok(Where::Hole) => {
                    into.fill(0);
                    break None;
                }
                Ok(Where::Lost) => return Err(LogError::Unreadable(lba)),
                // It may have been read when the log was opened, and not been what it should be.
                Ok(Where::Here(expected, bytes)) => {
                    break (!reader.take(bytes, expected.oldest, Kind::Data, lba, into)).then_some(expected);
                }
                Ok(Where::At(expected)) => break Some(expected),
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

    /// For reading what [`Disk::find`] found.
    pub fn reader(&self) -> Reader {
        Reader::new(*self.log.superblock())
    }

    /// What the map says of a block.
    ///
    /// # Errors
    /// [`LogError`].
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

    /// Writes a block. It is durable after a flush.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn write(&mut self, lba: Lba, data: &[u8]) -> Result<(), LogError> {
        self.within(lba, 1)?;
        while !self.make_room()? {}
        self.append(lba, data)
    }

    /// Does a piece of what has to come before the next write: whether that may come now.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn make_room(&mut self) -> Result<bool, LogError> {
        self.is_whole()?;
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
        self.owed = owed - self.with_all_segments(|disk| disk.clean_a_piece(owed))?;
        self.shrink();
        Ok(self.owed == 0)
    }

    /// Writes a block for which there is room ([`Disk::make_room`]).
    ///
    /// # Errors
    /// [`LogError`].
    pub fn append(&mut self, lba: Lba, data: &[u8]) -> Result<(), LogError> {
        self.is_whole()?;
        self.within(lba, 1)?;
        self.with_all_segments(|disk| disk.retry(true, |log| log.write(lba, data)))?;
        self.run_jobs()
    }

    /// Says that blocks hold nothing any more: they read as zeroes. Durable after a flush, like a write.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn unmap(&mut self, first: Lba, count: u32) -> Result<(), LogError> {
        if count == 0 {
            return Ok(());
        }
        self.within(first, count)?;
        let mut at = first;
        while at < first + count {
            // The pages of a piece are loaded together, and let go before the next.
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

    /// Makes everything that was written before durable.
    ///
    /// # Errors
    /// [`LogError::Medium`]; it is not known then what is durable, and nothing is taken any more.
    pub fn flush(&mut self) -> Result<(), LogError> {
        if let Some(seq) = self.seal()? {
            let mark = self.mark();
            self.sync()?;
            self.put_mark(mark)?;
            self.durable(seq);
        }
        Ok(())
    }

    /// The same for want of room: no mark is written, since nobody is told of it. A flush that somebody waits for writes one.
    pub(crate) fn flush_for_room(&mut self) -> Result<(), LogError> {
        if let Some(seq) = self.seal()? {
            self.sync()?;
            self.log.durable(seq);
        }
        Ok(())
    }

    /// Hands everything that was written to the medium: once that was flushed after this, and the mark of it written ([`Disk::mark`]), all
    /// is durable up to the number given ([`Disk::durable`]). `None` where all is durable already.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn seal(&mut self) -> Result<Option<Seq>, LogError> {
        self.is_whole()?;
        if self.fresh {
            self.keep_what_was_found()?;
            return self.mark_what_was_found().map(|()| None);
        }
        if !self.log.is_dirty() {
            return Ok(None);
        }
        let seq = self.log.seal();
        self.run_jobs().map(|()| Some(seq))
    }

    /// Says that everything up to a number from [`Disk::seal`] is durable, and the mark of it.
    pub fn durable(&mut self, seq: Seq) {
        self.log.marked(seq);
        self.log.durable(seq);
    }

    /// Says that the medium failed to flush: nothing is taken any more.
    pub fn give_up(&mut self) {
        self.broken = true;
    }

    /// What was found when it was opened may have come no further than the memory of the machine.
    fn keep_what_was_found(&mut self) -> Result<(), LogError> {
        self.sync()?;
        // What it replaced is free.
        self.log.durable(0);
        Ok(())
    }

    /// Makes everything durable, and the next opening quick.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn close(mut self) -> Result<M, LogError> {
        self.is_whole()?;
        if !self.fresh || !self.recovery.clean {
            self.checkpoint(true)?;
        }
        Ok(self.medium)
    }

    /// Whether a checkpoint should be begun, so that no write has to wait for one: half of what may be changed since the last one is;
    /// or there is little room, and it frees several times what it writes.
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

    /// Whether a flush should come before it is asked for: there is little room, and it would free some.
    pub fn wants_flush(&self) -> bool {
        self.price() > 0 && self.log.dead_until().0 > 0
    }

    /// Whether a flush is worth its time although nobody asks for one: writes have to clean, and it would free a good part of what is to
    /// be kept free.
    pub fn flush_frees_much(&self) -> bool {
        let much = (self.kept_free() as usize / 16).max(2);
        self.price() > 0 && self.log.segments().dead() >= much && self.log.dead_until().0 >= much
    }

    /// Whether the next write has to clean.
    pub fn wants_room(&self) -> bool {
        self.owed > 0 || self.price() > 0
    }

    fn most_changed(&self) -> usize {
        (self.running.map_memory / BLOCK / 2).max(1024)
    }

    /// Refuses what would come after a write that is not there.
    ///
    /// # Errors
    /// [`LogError::Broken`].
    pub fn is_whole(&self) -> Result<(), LogError> {
        if self.broken { Err(LogError::Broken) } else { Ok(()) }
    }
    fn put(&mut self, offset: u64, data: Aligned, what: &'static str) -> Result<(), LogError> {
        self.medium.write_owned(offset, data).map_err(failed(what)).inspect_err(|_| self.broken = true)
    }
    fn sync(&mut self) -> Result<(), LogError> {
        // A second one would succeed, and what was lost would still be lost.
        self.medium.flush().map_err(failed("flushing")).inspect_err(|_| self.broken = true)
    }

    /// Slots that are cleaned for a write: the more, the fewer segments are free. At the goal none; halfway, as many as are written;
    /// near the end, whatever it takes.
    fn price(&self) -> u32 {
        let (spare, goal) = (self.log.spare_segments() as u32, self.kept_free());
        goal.saturating_sub(spare) * 2 / (spare + 1)
    }

    /// Free segments from which on nothing is cleaned.
    pub fn kept_free(&self) -> u32 {
        (self.geometry().segments / 64).max(4)
    }

    /// Does what a stall asks for until there is none. Where `clean` says so, segments are cleaned for it; the cleaner itself lives on
    /// what is dead already.
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
                    // Where what could be gained is in segments that are left alone, one may become free for each that is filled.
                    tries += 1;
                    if fruitless > segments || tries > 4 * segments.clamp(64, 256) {
                        return Err(self.exhausted());
                    }
                }
            }
        }
    }

    /// Does something that ends in want of room once more, where segments were left alone for what the medium did not give of them, and
    /// it gives one of them now.
    fn with_all_segments<T>(
        &mut self,
        act: impl Fn(&mut Self) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        match act(self) {
            Err(LogError::Exhausted { .. }) if self.one_more_is_given()? => act(self),
            done => done,
        }
    }

    /// Frees what is dead: by a flush, or, where that is not enough, a checkpoint; which also takes less the fewer pages of the map
    /// are changed.
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
