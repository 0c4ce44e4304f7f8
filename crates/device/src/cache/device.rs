//! The cache: routes requests to the two devices, and runs promotion and write-back in the background.
//!
//! Both devices may queue. Promotion writes data that was read from the backing device to the flash. Write-back reads
//! dirty lines from the flash and writes them to the backing device. The `directory` records the state of each line.

use super::directory::Directory;
use super::lines::{Grid, Ranges};
use super::spec::{CacheSpec, Mode};
use super::streams::Streams;
use crate::composite::{Composite, Members, Requests, Step, Work, earlier, insert};
use crate::spec::{AnyDevice, SpecError, fail};
use crate::state::{Sink, Source};
use lowtide_core::{
    BlockDevice, Bytes, Completion, Counters, Op, Request, Seed, StateError, Tag, VirtualTime,
};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Write};

const FLASH: usize = 0;
const BACKING: usize = 1;

/// The purpose of a part that a device has queued.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Part {
    /// A part of a request. Data that it reads may be promoted.
    Of { number: usize, promotion: Option<usize> },
    /// A part of background work.
    Behind(Behind),
    /// A write to the flash without a waiter.
    Alone,
}

/// A part of background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Behind {
    /// Data to be promoted was read.
    Promote(usize),
    /// Dirty blocks were read or written.
    WriteBack(usize),
}

/// Blocks on their way into the flash.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Promotion {
    /// Lines, with the blocks that have not been written since.
    lines: Vec<(u64, u64)>,
    /// The number of incomplete reads.
    left: u32,
}

/// A line that is being written back.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct WriteBack {
    line: u64,
    /// Blocks that have not been written since.
    blocks: u64,
    /// True once these blocks are read.
    read: bool,
    left: u32,
}

/// The counters of a cache, in bytes. They never decrease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// Read by the host from the flash.
    pub read_hit: u64,
    /// Read by the host from the backing device.
    pub read_missed: u64,
    /// Written to the flash by promotion.
    pub promoted: u64,
    /// Written by the host to the backing device alone.
    pub written_around: u64,
    /// Dirty blocks written to the backing device.
    pub written_back: u64,
}

/// A flash cache in virtual time.
#[derive(Debug)]
pub struct Cache {
    grid: Grid,
    mode: Mode,
    promote: bool,
    bypass: Option<u64>,
    /// The number of dirty lines above which write-back begins.
    threshold: u32,
    depth: u32,
    latency_ns: u64,
    capacity: u64,
    block: u64,
    members: Members<Part>,
    requests: Requests,
    directory: Directory,
    streams: Streams,
    promotions: Vec<Option<Promotion>>,
    write_backs: Vec<Option<WriteBack>>,
    writing_back: u32,
    /// Parts of background work with known completions, by their instants.
    behind: BinaryHeap<Reverse<(u64, Behind)>>,
    /// The devices get no more requests before this instant.
    clock_ns: u64,
    read_bytes: u64,
    written_bytes: u64,
    traffic: Traffic,
}

impl Cache {
    /// An empty cache in front of a new device.
    ///
    /// # Errors
    /// [`SpecError`] if the description is inconsistent.
    pub fn new(spec: &CacheSpec, seed: Seed) -> Result<Self, SpecError> {
        spec.validate()?;
        let flash = spec.flash.build(seed.part("flash", 0)).map_err(|error| error.within("flash"))?;
        let backing = spec.backing.build(seed.part("backing", 0)).map_err(|error| error.within("backing"))?;
        Self::of(spec, flash, backing)
    }

    /// A cache of two existing devices. Only the parameters of `spec` are used, which must be valid.
    ///
    /// # Errors
    /// [`SpecError`] if the flash is smaller than a line, or a block is not a multiple of a logical block.
    pub fn of(spec: &CacheSpec, flash: AnyDevice, backing: AnyDevice) -> Result<Self, SpecError> {
        let parameters = &spec.parameters;
        let grid = Grid { line: parameters.line.get(), block: parameters.block() };
        let slots = u32::try_from(flash.capacity().get() / grid.line).unwrap_or(u32::MAX);
        let block = flash.logical_block().max(backing.logical_block()).get();
        if slots == 0 || slots == u32::MAX || !grid.block.is_multiple_of(block) {
            return fail("flash", format!("{} holds {slots} lines in blocks of {block}", flash.capacity()));
        }
        Ok(Cache {
            grid,
            mode: parameters.mode,
            promote: parameters.promote,
            bypass: parameters.bypass_sequential.map(Bytes::get),
            threshold: (f64::from(slots) * parameters.dirty_threshold) as u32,
            depth: parameters.write_back_depth,
            latency_ns: parameters.latency.get(),
            capacity: backing.capacity().get() / grid.block * grid.block,
            block,
            members: Members::new(vec![flash, backing]),
            requests: Requests::default(),
            directory: Directory::new(slots),
            streams: Streams::default(),
            promotions: Vec::new(),
            write_backs: Vec::new(),
            writing_back: 0,
            behind: BinaryHeap::new(),
            clock_ns: 0,
            read_bytes: 0,
            written_bytes: 0,
            traffic: Traffic::default(),
        })
    }

    /// The traffic of the two devices.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// The numbers of lines that fit into the flash, that are in it, and that are dirty.
    pub fn lines(&self) -> (u32, u32, u32) {
        (self.directory.size(), self.directory.held(), self.directory.dirty())
    }

    /// The counters of the flash.
    pub fn flash_counters(&self) -> Counters {
        self.members.device(FLASH).counters()
    }

    /// The counters of the backing device.
    pub fn backing_counters(&self) -> Counters {
        self.members.device(BACKING).counters()
    }

    fn flush(&mut self, work: &mut Work) {
        // Without write-back, the flash holds copies only.
        if self.mode == Mode::WriteBack {
            self.ask(work, FLASH, &Request::flush(), None);
        }
        self.ask(work, BACKING, &Request::flush(), None);
    }

    fn read(&mut self, work: &mut Work, request: &Request) {
        self.read_bytes += request.length;
        let bypass = self.bypasses(request);
        let (grid, promote) = (self.grid, self.promote && !bypass);
        let (mut missed, mut lines) = (Ranges::default(), Vec::new());
        for piece in grid.pieces(request.offset, request.length) {
            let touched = grid.touched(piece);
            let mut valid = 0;
            if let Some(slot) = self.directory.find(piece.line) {
                valid = self.directory.valid(slot) & touched;
                self.directory.touch(slot);
                for (begin, end) in grid.runs(valid) {
                    let (begin, end) = (begin.max(piece.begin), end.min(piece.end));
                    self.traffic.read_hit += end - begin;
                    self.ask(work, FLASH, &Request::read(self.place(slot) + begin, end - begin), None);
                }
            }
            for (begin, end) in grid.runs(touched & !valid) {
                let (begin, end) = (begin.max(piece.begin), end.min(piece.end));
                missed.push(piece.line * grid.line + begin, piece.line * grid.line + end);
            }
            let whole = grid.covered(piece) & !valid;
            if promote && whole != 0 {
                lines.push((piece.line, whole));
            }
        }
        let promotion = (!lines.is_empty()).then(|| {
            let left = missed.0.len() as u32;
            insert(&mut self.promotions, Promotion { lines, left })
        });
        for (begin, end) in missed.0 {
            self.traffic.read_missed += end - begin;
            self.ask(work, BACKING, &Request::read(begin, end - begin), promotion);
        }
    }

    fn write(&mut self, work: &mut Work, request: &Request, fua: bool) {
        self.written_bytes += request.length;
        let bypass = self.bypasses(request);
        let (grid, behind) = (self.grid, self.mode == Mode::WriteBack);
        let mut around = Ranges::default();
        for piece in grid.pieces(request.offset, request.length) {
            let (touched, whole) = (grid.touched(piece), grid.covered(piece));
            self.supersede(piece.line, touched);
            let mut slot = self.directory.find(piece.line);
            if slot.is_none() && whole != 0 && !bypass {
                slot = self.directory.allocate(piece.line);
            }
            // A partly written block must be written to the device that has its other bytes.
            let here = slot.map_or(0, |slot| touched & (whole | self.directory.valid(slot)));
            if let Some(slot) = slot {
                self.directory.touch(slot);
                for (begin, end) in grid.runs(here) {
                    let (begin, end) = (begin.max(piece.begin), end.min(piece.end));
                    let (op, offset) = (Op::Write { fua: fua && behind }, self.place(slot) + begin);
                    self.ask(work, FLASH, &Request { op, offset, length: end - begin }, None);
                }
                if behind {
                    self.directory.soil(slot, here);
                } else {
                    self.directory.fill(slot, here);
                }
            }
            let there = if behind { touched & !here } else { touched };
            for (begin, end) in grid.runs(there) {
                let (begin, end) = (begin.max(piece.begin), end.min(piece.end));
                if here == 0 || behind {
                    self.traffic.written_around += end - begin;
                }
                around.push(piece.line * grid.line + begin, piece.line * grid.line + end);
            }
        }
        for (begin, end) in around.0 {
            let request = Request { op: Op::Write { fua }, offset: begin, length: end - begin };
            self.ask(work, BACKING, &request, None);
        }
    }

    /// Trims or writes zeroes on the backing device. The flash is not trimmed.
    fn discard(&mut self, work: &mut Work, request: &Request) {
        for piece in self.grid.pieces(request.offset, request.length) {
            let whole = self.grid.covered(piece);
            self.supersede(piece.line, whole);
            if let Some(slot) = self.directory.find(piece.line) {
                self.directory.forget(slot, whole);
            }
        }
        self.ask(work, BACKING, request, None);
    }

    /// Returns whether the request belongs to a sequential stream that bypasses the cache.
    fn bypasses(&mut self, request: &Request) -> bool {
        self.bypass.is_some_and(|least| self.streams.length(request.offset, request.length) >= least)
    }

    /// The start of a slot on the flash, in bytes.
    fn place(&self, slot: u32) -> u64 {
        u64::from(slot) * self.grid.line
    }

    /// Excludes newly written blocks from background work in progress, whose data is older.
    fn supersede(&mut self, line: u64, blocks: u64) {
        for promotion in self.promotions.iter_mut().flatten() {
            for (_, under_way) in promotion.lines.iter_mut().filter(|(other, _)| *other == line) {
                *under_way &= !blocks;
            }
        }
        for write_back in self.write_backs.iter_mut().flatten().filter(|it| it.line == line) {
            write_back.blocks &= !blocks;
        }
    }

    /// Passes a device its part of a request.
    fn ask(&mut self, work: &mut Work, member: usize, request: &Request, promotion: Option<usize>) {
        let requests = &mut self.requests;
        let part = || Part::Of { number: work.queue(requests), promotion };
        let Some(completion) = self.members.begin(member, self.clock_ns, request, part) else { return };
        let at_ns = completion.at.as_nanos();
        work.complete(at_ns, completion.status);
        if let Some(promotion) = promotion {
            self.behind.push(Reverse((at_ns, Behind::Promote(promotion))));
        }
    }

    /// Passes a device a part of background work.
    fn ask_behind(&mut self, member: usize, request: &Request, behind: Behind) {
        if let Some(completion) = self.members.begin(member, self.clock_ns, request, || Part::Behind(behind))
        {
            self.behind.push(Reverse((completion.at.as_nanos(), behind)));
        }
    }

    /// Writes the data of a promotion to the flash, as far as there is room.
    fn promote(&mut self, number: usize) {
        let promotion = self.promotions[number].as_mut().expect("it is on its way");
        promotion.left -= 1;
        if promotion.left > 0 {
            return;
        }
        let lines = self.promotions[number].take().expect("just seen").lines;
        for (line, blocks) in lines.into_iter().filter(|(_, blocks)| *blocks != 0) {
            let slot = self.directory.find(line).or_else(|| self.directory.allocate(line));
            let Some(slot) = slot else { continue };
            let new = blocks & !self.directory.valid(slot);
            self.directory.fill(slot, new);
            for (begin, end) in self.grid.runs(new) {
                self.traffic.promoted += end - begin;
                let request = Request::write(self.place(slot) + begin, end - begin);
                self.members.begin(FLASH, self.clock_ns, &request, || Part::Alone);
            }
        }
    }

    /// Begins to write back lines while too many are dirty.
    fn write_back(&mut self) {
        while self.writing_back < self.depth
            && self.directory.dirty().saturating_sub(self.writing_back) > self.threshold
        {
            let Some((line, slot, blocks)) = self.directory.next_dirty() else { return };
            self.writing_back += 1;
            let left = self.grid.runs(blocks).count() as u32;
            let number = insert(&mut self.write_backs, WriteBack { line, blocks, read: false, left });
            for (begin, end) in self.grid.runs(blocks) {
                let request = Request::read(self.place(slot) + begin, end - begin);
                self.ask_behind(FLASH, &request, Behind::WriteBack(number));
            }
        }
    }

    /// Continues a write-back of which a part was read or written.
    fn wrote_back(&mut self, number: usize) {
        let under_way = self.write_backs[number].as_mut().expect("it is on its way");
        under_way.left -= 1;
        if under_way.left > 0 {
            return;
        }
        let WriteBack { line, blocks, read, .. } = *under_way;
        if read || blocks == 0 {
            self.write_backs[number] = None;
            self.writing_back -= 1;
            self.directory.cleaned(line, blocks);
            self.write_back();
            return;
        }
        (under_way.read, under_way.left) = (true, self.grid.runs(blocks).count() as u32);
        for (begin, end) in self.grid.runs(blocks) {
            self.traffic.written_back += end - begin;
            // The flash copy no longer counts after the completion, so the write must be durable by then.
            let op = Op::Write { fua: true };
            let request = Request { op, offset: line * self.grid.line + begin, length: end - begin };
            self.ask_behind(BACKING, &request, Behind::WriteBack(number));
        }
    }

    fn go_on(&mut self, behind: Behind) {
        match behind {
            Behind::Promote(number) => self.promote(number),
            Behind::WriteBack(number) => self.wrote_back(number),
        }
    }
}

impl Composite for Cache {
    fn take(&mut self, now: VirtualTime, request: &Request, tag: Option<Tag>) -> Option<Completion> {
        if let Err(error) = request.check(self.capacity, self.block) {
            return Some(Completion { at: now, status: Err(error) });
        }
        self.advance(now.as_nanos());
        self.clock_ns = self.clock_ns.max(now.as_nanos());
        let mut work = Work::new(tag, self.clock_ns);
        match request.op {
            Op::Flush => self.flush(&mut work),
            _ if request.length == 0 => {}
            Op::Read => self.read(&mut work, request),
            Op::Write { fua } => self.write(&mut work, request, fua),
            Op::Trim | Op::WriteZeroes => self.discard(&mut work, request),
        }
        self.write_back();
        self.requests.submitted(work, self.latency_ns)
    }

    fn next_inside(&self) -> Option<u64> {
        let behind = self.behind.peek().map(|Reverse((at_ns, _))| *at_ns);
        earlier(self.members.next_step(), behind)
    }

    fn step(&mut self, until_ns: u64) -> bool {
        let Some(at_ns) = self.next_inside().filter(|at_ns| *at_ns <= until_ns) else { return false };
        // Earlier completions of both devices were collected, so this instant is the earliest for a new request.
        self.clock_ns = self.clock_ns.max(at_ns);
        if let Some(Step { part, completion, .. }) = self.members.step(at_ns).flatten() {
            match part {
                Part::Of { number, promotion } => {
                    let at_ns = completion.at.as_nanos();
                    self.requests.complete(number, at_ns, completion.status, self.latency_ns);
                    promotion.into_iter().for_each(|promotion| self.promote(promotion));
                }
                Part::Behind(behind) => self.go_on(behind),
                Part::Alone => {}
            }
        } else if let Some(Reverse((due_ns, behind))) = self.behind.peek().copied()
            && due_ns <= at_ns
        {
            self.behind.pop();
            self.go_on(behind);
        }
        true
    }

    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn requests_mut(&mut self) -> &mut Requests {
        &mut self.requests
    }
}

// Members have every capability: a call that is not handled would report a device without it.
#[deny(clippy::missing_trait_methods)]
impl BlockDevice for Cache {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.capacity)
    }

    fn logical_block(&self) -> Bytes {
        Bytes::new(self.block)
    }

    fn raw_capacity(&self) -> Option<Bytes> {
        self.members.raw_capacity()
    }

    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        self.wait(now, request)
    }

    fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
        self.take(now, request, Some(tag))
    }

    fn next_done(&self) -> Option<VirtualTime> {
        self.next_answer().map(VirtualTime::from_nanos)
    }

    fn finish(&mut self) -> Option<(Tag, Completion)> {
        self.answer()
    }

    // The device of a request is unknown before the lookup in the directory.
    fn warm(&self, _: &[Request]) {}

    fn idle_until(&mut self, until: VirtualTime) {
        self.advance(until.as_nanos());
        self.members.idle_until(until);
    }

    fn busy_until(&self) -> VirtualTime {
        let inside_ns = self.next_inside().unwrap_or(0);
        self.members.busy_until().max(VirtualTime::from_nanos(inside_ns))
    }

    fn power_cut(&mut self, now: VirtualTime) {
        // Operations in progress complete first. The directory survives.
        self.advance(now.as_nanos());
        self.finish_all();
        self.members.power_cut(now);
    }

    fn secure_erase(&mut self) {
        self.finish_all();
        self.directory = Directory::new(self.directory.size());
        self.streams = Streams::default();
        for promotion in self.promotions.iter_mut().flatten() {
            promotion.lines.clear();
        }
        for write_back in self.write_backs.iter_mut().flatten() {
            write_back.blocks = 0;
        }
        while self.step(u64::MAX) {}
        self.members.secure_erase();
    }

    fn counters(&self) -> Counters {
        let (flash, all) = (self.flash_counters(), self.members.counters());
        // Without write-back, the flash loses copies only.
        let copies = if self.mode == Mode::WriteThrough { flash.lost_bytes } else { 0 };
        Counters {
            host_read_bytes: self.read_bytes,
            host_written_bytes: self.written_bytes,
            lost_bytes: all.lost_bytes - copies,
            ..all
        }
    }

    fn erase_counts(&self) -> Vec<u32> {
        self.members.erase_counts()
    }

    fn host_memory(&self) -> Bytes {
        self.members.host_memory()
    }

    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        Sink(out).value(&(
            &self.requests,
            &self.directory,
            &self.streams,
            &self.promotions,
            &self.write_backs,
            self.writing_back,
            &self.behind,
            self.clock_ns,
            (self.read_bytes, self.written_bytes),
            self.traffic,
        ))?;
        self.members.save(out)
    }

    fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        let bytes;
        (
            self.requests,
            self.directory,
            self.streams,
            self.promotions,
            self.write_backs,
            self.writing_back,
            self.behind,
            self.clock_ns,
            bytes,
            self.traffic,
        ) = Source(from).value()?;
        (self.read_bytes, self.written_bytes) = bytes;
        self.members.restore(from)
    }
}
