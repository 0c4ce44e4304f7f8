//! The InnoDB engine: terminals run transactions over buffer pool, redo log and page cleaner, event by event.
//!
//! A terminal runs until it must wait for a page, a frame, a row lock or the log. The steps up to that point take
//! effect at once and then occupy a processor for their duration.

mod writing;

use super::PAGE;
use super::cleaning::{Batch, Cleaner, SEARCHED};
use super::latch::Latch;
use super::layout::{FILES, Page};
use super::pool::Pool;
use super::redo::Redo;
use super::session::{Next, Session};
use super::settings::InnodbSettings;
use super::work::{Act, Contents, locks};
use crate::Durability;
use crate::Interval;
use crate::model::frames::Lookup;
use crate::model::processors::Processors;
use crate::model::timeline::{Occurrence, Timeline};
use crate::model::{Files, IoTotals, ModelLoad};
use lowtide_core::storage::{Journal, Place};
use lowtide_core::{Control, DeviceError, Nanos, Request, Tag, VirtualTime};
use std::collections::{BTreeMap, VecDeque};

/// Period of the cleaner in nanoseconds: 100 ms.
const TENTH: u64 = 100_000_000;

/// Bytes of an entry in the change buffer.
const BUFFERED: u64 = 40;

/// Purpose of a request, in the upper bits of its tag. The lower bits of a read are its frame.
const FOR: Tag = 0xff << 32;
const READ: Tag = 0;
const MERGE: Tag = 1 << 32;
const DOUBLEWRITE: Tag = 2 << 32;
const DOUBLEWRITE_FLUSH: Tag = 3 << 32;
const PAGES: Tag = 4 << 32;
const PAGES_FLUSH: Tag = 5 << 32;
const LOG: Tag = 6 << 32;
const LOG_FLUSH: Tag = 7 << 32;
const JOURNAL: Tag = 8 << 32;
const LOG_JOURNAL: Tag = 9 << 32;
const DOUBLEWRITE_JOURNAL: Tag = 10 << 32;

/// A row lock.
#[derive(Debug, Default)]
struct Lock {
    held: bool,
    waiting: VecDeque<u32>,
}

/// A scheduled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A terminal has used its processor time.
    Worked(u32),
    /// A terminal has scanned the LRU tail.
    Scanned(u32),
    Tick,
}

/// The change buffer.
#[derive(Debug, Default)]
struct Buffered {
    /// For each page, the number of buffered entries.
    entries: BTreeMap<Page, u32>,
    count: u64,
    /// Pages of the change buffer itself.
    pages: Vec<Page>,
}

pub(in crate::model) struct Engine<'m, 's> {
    model: &'m InnodbSettings,
    time: Timeline<'s, Event>,
    tenth: u64,
    terminals: Vec<Session>,
    contents: Contents,
    pool: Pool,
    /// For each frame, the terminals that wait for the read of its page.
    page_waiters: BTreeMap<u32, Vec<u32>>,
    /// Terminals that wait for a frame.
    frame_waiters: VecDeque<u32>,
    /// Terminals that have read a page and wait for LRU flushes to restore the margin.
    margin_waiters: Vec<u32>,
    latch: Latch,
    locks: Vec<Lock>,
    processors: Processors,
    redo: Redo,
    /// Terminals that wait for a lower checkpoint age.
    age_waiters: VecDeque<u32>,
    cleaner: Cleaner,
    batch: Option<Batch>,
    system: Place,
    journals: Vec<Option<Journal>>,
    /// For each device, bytes written to its journal, which is a ring.
    journaled: Vec<u64>,
    buffered: Buffered,
    /// Processor time of a step.
    step_ns: u64,
    woken: Vec<u32>,
}

impl<'m, 's> Engine<'m, 's> {
    /// Creates an engine with a warm buffer pool.
    pub(in crate::model) fn new(
        model: &'m InnodbSettings,
        load: &ModelLoad,
        files: Files<'s>,
        start: VirtualTime,
    ) -> Engine<'m, 's> {
        let mut contents = Contents::new(load, model.foreign_keys, PAGE);
        let mut terminals: Vec<Session> =
            (0..load.terminals).map(|number| Session::new(load, number)).collect();
        let mut pool = Pool::new(model.frames(), model.old_ms);
        let steps = super::warm::warm(&mut pool, &mut contents, &mut terminals);
        Engine {
            model,
            time: Timeline::new(files.storage, start, model.machine.io_cpu),
            tenth: 0,
            locks: (0..locks(load.warehouses)).map(|_| Lock::default()).collect(),
            terminals,
            contents,
            pool,
            page_waiters: BTreeMap::new(),
            frame_waiters: VecDeque::new(),
            margin_waiters: Vec::new(),
            latch: Latch::new(model, steps),
            processors: Processors::new(model.machine.cores, model.machine.contention),
            redo: Redo::new(model),
            age_waiters: VecDeque::new(),
            cleaner: Cleaner::new(model),
            batch: None,
            system: files.system,
            journaled: vec![0; files.journals.len()],
            journals: files.journals,
            buffered: Buffered::default(),
            step_ns: (model.machine.cpu.get() as f64 / steps) as u64,
            woken: Vec::new(),
        }
    }

    /// Runs until `each` stops the run. `each` receives every interval. Returns the end time.
    pub(in crate::model) fn run(
        mut self,
        interval: Nanos,
        each: &mut dyn FnMut(Interval, IoTotals) -> Control,
    ) -> Result<u64, DeviceError> {
        self.time.at(self.time.now_ns + TENTH, Event::Tick);
        for terminal in 0..self.terminals.len() as u32 {
            self.begin(terminal)?;
        }
        loop {
            match self.time.next(interval, each)? {
                Occurrence::Stop(at_ns) => return Ok(at_ns),
                Occurrence::Completion(tag) => self.done(tag)?,
                Occurrence::Event(Event::Worked(terminal)) => self.worked(terminal)?,
                Occurrence::Event(Event::Scanned(terminal)) => self.go(terminal)?,
                Occurrence::Event(Event::Tick) => self.tick()?,
            }
        }
    }

    fn ask(&mut self, request: Request, device: usize, tag: Tag) -> Result<(), DeviceError> {
        self.time.ask(request, device, tag)
    }
    /// Device and offset of a page.
    fn place(&self, page: Page) -> (usize, u64) {
        let (Place { device, offset }, page) = match self.contents.system_page(page) {
            Some(page) => (self.system, page),
            None => (self.time.storage.data, page),
        };
        (device, offset + u64::from(page) * PAGE)
    }
    fn read(&mut self, page: Page, tag: Tag) -> Result<(), DeviceError> {
        let (device, offset) = self.place(page);
        self.ask(Request::read(offset, PAGE), device, tag)
    }

    /// Begins a terminal's next transaction.
    fn begin(&mut self, terminal: u32) -> Result<(), DeviceError> {
        self.terminals[terminal as usize].next_transaction(&mut self.contents, self.time.now_ns);
        self.enter(terminal)
    }

    /// Starts the transaction. A transaction that changes rows waits while the checkpoint age is at its limit.
    fn enter(&mut self, terminal: u32) -> Result<(), DeviceError> {
        if self.terminals[terminal as usize].work.log > 0 && self.age() >= self.redo.sync_limit() {
            self.age_waiters.push_back(terminal);
            self.flush_for_age();
            return self.write_pages();
        }
        self.lock(terminal)
    }

    /// Takes the transaction's row locks and continues with its steps.
    fn lock(&mut self, terminal: u32) -> Result<(), DeviceError> {
        while let Some(number) = self.terminals[terminal as usize].next_lock() {
            let lock = &mut self.locks[number as usize];
            if lock.held {
                lock.waiting.push_back(terminal);
                return Ok(());
            }
            lock.held = true;
            self.terminals[terminal as usize].locked += 1;
        }
        self.go(terminal)
    }

    /// Runs steps until a resource is missing. Requests a processor for their duration.
    fn go(&mut self, terminal: u32) -> Result<(), DeviceError> {
        let (mut ns, mut steps) = (0, 0);
        let it = terminal as usize;
        self.terminals[it].next = loop {
            let Some(step) = self.terminals[it].step() else { break Next::Commit };
            if !self.act(step.page, step.act) {
                break Next::Fetch;
            }
            ns += self.step_ns;
            steps += 1;
            self.terminals[it].at += 1;
        };
        if ns == 0 {
            return self.continue_after(terminal);
        }
        let debt_ns = self.time.take_debt(ns);
        self.terminals[it].steps = steps;
        if let Some(ns) = self.processors.take(terminal, ns + debt_ns) {
            self.work(terminal, ns);
        }
        Ok(())
    }

    /// Occupies a processor for `ns`, or longer if the pool latch is contended.
    fn work(&mut self, terminal: u32, ns: u64) {
        let release_ns = self.latch.take(self.time.now_ns, self.terminals[terminal as usize].steps, 0);
        self.time.at(release_ns.max(self.time.now_ns + ns), Event::Worked(terminal));
    }

    /// Runs a step if its page is in memory or need not be read. Returns false otherwise.
    fn act(&mut self, page: Page, act: Act) -> bool {
        match self.pool.find(page) {
            Lookup::Resident(frame) => {
                self.pool.touch(frame, self.time.now_ms());
                if act != Act::Read {
                    self.pool.mark_dirty(frame, self.redo.lsn());
                }
                true
            }
            Lookup::Absent if act == Act::Create => match self.pool.take(page, false) {
                Some(frame) => {
                    self.pool.mark_dirty(frame, self.redo.lsn());
                    true
                }
                None => false,
            },
            Lookup::Absent if act == Act::Add && self.model.change_buffer => {
                self.buffer(page);
                true
            }
            Lookup::Reading(_) | Lookup::Absent => false,
        }
    }

    /// Adds an entry to the change buffer.
    fn buffer(&mut self, page: Page) {
        *self.buffered.entries.entry(page).or_default() += 1;
        self.buffered.count += 1;
        let full = (self.buffered.count * BUFFERED * 3 / 2).div_ceil(PAGE);
        while (self.buffered.pages.len() as u64) < full {
            let page = self.contents.change_buffer_page();
            self.buffered.pages.push(page);
        }
        // Entries are ordered by page, so the page number determines the position in the buffer.
        let place = u64::from(page) * self.buffered.pages.len() as u64 / u64::from(self.contents.pages());
        let page = self.buffered.pages[place as usize];
        match self.pool.find(page) {
            Lookup::Resident(frame) => {
                self.pool.touch(frame, self.time.now_ms());
                self.pool.mark_dirty(frame, self.redo.lsn());
            }
            // The page is read in the background: the buffer is small and in constant use.
            Lookup::Reading(_) => {}
            Lookup::Absent => {
                if let Some(frame) = self.pool.take(page, false) {
                    self.pool.mark_dirty(frame, self.redo.lsn());
                }
            }
        }
    }

    /// Ends a processor burst of a terminal and gives the processor to the next terminal.
    fn worked(&mut self, terminal: u32) -> Result<(), DeviceError> {
        if let Some((next, ns)) = self.processors.leave() {
            self.work(next, ns);
        }
        self.continue_after(terminal)
    }

    fn continue_after(&mut self, terminal: u32) -> Result<(), DeviceError> {
        match self.terminals[terminal as usize].next {
            Next::Fetch => self.fetch(terminal),
            Next::Commit => self.commit(terminal),
        }
    }

    /// Reads the page that a terminal needs, or finds a frame for it.
    fn fetch(&mut self, terminal: u32) -> Result<(), DeviceError> {
        let step = self.terminals[terminal as usize].step().expect("the transaction has a next step");
        match self.pool.find(step.page) {
            Lookup::Resident(_) => return self.go(terminal),
            Lookup::Reading(frame) => {
                self.page_waiters.entry(frame).or_default().push(terminal);
                return Ok(());
            }
            Lookup::Absent => {}
        }
        if !self.has_frame() {
            self.frame_waiters.push_back(terminal);
            return self.write_pages();
        }
        if step.act == Act::Create {
            return self.go(terminal);
        }
        let frame = self.pool.take(step.page, true).expect("one is free");
        self.page_waiters.entry(frame).or_default().push(terminal);
        self.read(step.page, READ | Tag::from(frame))
    }

    /// Frees a frame if none is free. Returns false if no frame is replaceable.
    fn has_frame(&mut self) -> bool {
        self.free_ahead();
        if self.pool.free() > 0 {
            return true;
        }
        let mut next = self.pool.lru_tail();
        for _ in 0..SEARCHED {
            let Some(frame) = next else { break };
            next = self.pool.lru_newer(frame);
            if self.pool.evict(frame) {
                return true;
            }
        }
        self.cleaner.flush_lru(&self.pool);
        false
    }

    /// Frees frames ahead of demand, if the cleaner does so. Evicts clean pages at the LRU tail at once, and dirty
    /// pages after their write.
    fn free_ahead(&mut self) {
        let wanted = self.cleaner.to_free(&self.pool);
        let (mut next, mut freed) = (self.pool.lru_tail(), 0);
        while let Some(frame) = next.filter(|_| freed < wanted) {
            next = self.pool.lru_newer(frame);
            if self.pool.evict(frame) {
                freed += 1;
            } else if !self.cleaner.enqueue_for_eviction(&self.pool, frame) {
                break;
            }
        }
    }

    /// Commits a transaction: appends its records to the log.
    fn commit(&mut self, terminal: u32) -> Result<(), DeviceError> {
        let it = &self.terminals[terminal as usize];
        let (log, rolled_back) = (it.work.log, it.work.rolled_back);
        self.redo.append(log);
        if log == 0 || rolled_back || self.model.durability != Durability::Full {
            return self.end(terminal);
        }
        self.redo.wait(terminal);
        self.write_log()
    }

    /// Ends a transaction and begins the next.
    fn end(&mut self, terminal: u32) -> Result<(), DeviceError> {
        let it = &self.terminals[terminal as usize];
        self.time.ended(it.terminal.kind, it.work.rolled_back, it.terminal.began_ns);
        for number in it.work.locks.into_iter().flatten() {
            self.unlock(number)?;
        }
        self.begin(terminal)
    }

    fn unlock(&mut self, number: u32) -> Result<(), DeviceError> {
        let lock = &mut self.locks[number as usize];
        match lock.waiting.pop_front() {
            Some(next) => {
                self.terminals[next as usize].locked += 1;
                self.lock(next)
            }
            None => {
                lock.held = false;
                Ok(())
            }
        }
    }

    /// Handles the completion of a request.
    fn done(&mut self, tag: Tag) -> Result<(), DeviceError> {
        let frame = tag as u32;
        match tag & FOR {
            READ => self.read_by(frame),
            MERGE => self.arrived(frame),
            DOUBLEWRITE => self.sync(DOUBLEWRITE_JOURNAL),
            DOUBLEWRITE_FLUSH => self.write_runs(),
            PAGES => {
                let batch = self.batch.as_mut().expect("a batch is being written");
                batch.in_flight -= 1;
                if batch.next < batch.runs.len() {
                    return self.write_runs();
                }
                match batch.in_flight {
                    0 => self.sync_next(),
                    _ => Ok(()),
                }
            }
            PAGES_FLUSH => self.sync_next(),
            JOURNAL | LOG_JOURNAL | DOUBLEWRITE_JOURNAL => self.commit_journal(tag & FOR, frame as usize + 1),
            LOG => self.sync(LOG_JOURNAL),
            _ => self.log_written(),
        }
    }

    /// Completes a read. The first waiting terminal flushes LRU pages if needed, under the pool latch, before
    /// it continues.
    fn read_by(&mut self, frame: u32) -> Result<(), DeviceError> {
        let written = self.cleaner.keep_margin(&self.pool);
        let scanned = self.cleaner.take_scanned();
        let release_ns = self.latch.take(self.time.now_ns, 0, scanned);
        if written {
            self.write_pages()?;
        }
        if (written || release_ns > self.time.now_ns)
            && let Some(terminals) = self.page_waiters.get_mut(&frame)
        {
            let terminal = terminals.remove(0);
            match written && self.batch.is_some() {
                true => self.margin_waiters.push(terminal),
                false => self.time.at(release_ns, Event::Scanned(terminal)),
            }
        }
        self.arrived(frame)
    }

    /// Completes a read and resumes the terminals that wait for the page.
    fn arrived(&mut self, frame: u32) -> Result<(), DeviceError> {
        self.pool.arrived(frame, self.time.now_ms());
        if let Some(count) = self.buffered.entries.remove(&self.pool.page(frame)) {
            self.buffered.count -= u64::from(count);
            self.pool.mark_dirty(frame, self.redo.lsn());
        }
        for terminal in self.page_waiters.remove(&frame).unwrap_or_default() {
            self.go(terminal)?;
        }
        Ok(())
    }
}
