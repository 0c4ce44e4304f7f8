//! The engine: terminals that run transactions over the pool, the log and the cleaner, event after event.
//!
//! A terminal runs until it needs a page that is not in memory, a frame, a lock or the log; what it did until then is done at once, and
//! takes the time it takes on a processor. Leaves out how long a measurement is: whoever hears of the intervals decides.

mod writing;

use super::PAGE;
use super::cleaning::{Batch, Cleaner};
use super::latch::Latch;
use super::layout::{FILES, Page};
use super::pool::{Found, Pool};
use super::redo::Redo;
use super::session::{Next, Session};
use super::settings::InnodbSettings;
use super::work::{Act, Contents, locks};
use crate::Durability;
use crate::Interval;
use crate::model::processors::Processors;
use crate::model::timeline::{Happens, Timeline};
use crate::model::{Done, Files, ModelLoad};
use lowtide_core::storage::{Journal, Place};
use lowtide_core::{Control, DeviceError, Nanos, Request, Tag, VirtualTime};
use std::collections::{BTreeMap, VecDeque};

/// How often the cleaner looks.
const TENTH: u64 = 100_000_000;

/// Bytes of an entry in the change buffer.
const BUFFERED: u64 = 40;

/// What a tag says that a request was for; a read has its frame.
const FOR: Tag = 0xff << 32;
const READ: Tag = 0;
const MERGE: Tag = 1 << 32;
const TWICE: Tag = 2 << 32;
const TWICE_FLUSH: Tag = 3 << 32;
const PAGES: Tag = 4 << 32;
const PAGES_FLUSH: Tag = 5 << 32;
const LOG: Tag = 6 << 32;
const LOG_FLUSH: Tag = 7 << 32;
const JOURNAL: Tag = 8 << 32;
const LOG_JOURNAL: Tag = 9 << 32;
const TWICE_JOURNAL: Tag = 10 << 32;

/// A row that one transaction keeps from others.
#[derive(Debug, Default)]
struct Lock {
    held: bool,
    waiting: VecDeque<u32>,
}

/// What happens at an instant, apart from requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A terminal has done what it needed a processor for.
    Worked(u32),
    /// A terminal has looked at the end of the pool's list.
    Looked(u32),
    Tick,
}

/// The change buffer.
#[derive(Debug, Default)]
struct Buffered {
    /// How many entries wait for each page.
    entries: BTreeMap<Page, u32>,
    count: u64,
    /// Pages of the buffer itself.
    pages: Vec<Page>,
}

pub(super) struct Engine<'m, 's> {
    model: &'m InnodbSettings,
    time: Timeline<'s, Event>,
    tenth: u64,
    terminals: Vec<Session>,
    contents: Contents,
    pool: Pool,
    /// By frame, who waits until its page is read.
    readers: BTreeMap<u32, Vec<u32>>,
    /// Who waits for a frame.
    frameless: VecDeque<u32>,
    /// Who has read a page, and waits until enough of the least used ones are written.
    keeping: Vec<u32>,
    latch: Latch,
    locks: Vec<Lock>,
    processors: Processors,
    redo: Redo,
    /// Who waits until less of the log is needed.
    stalled: VecDeque<u32>,
    cleaner: Cleaner,
    batch: Option<Batch>,
    system: Place,
    journals: Vec<Option<Journal>>,
    /// By device, bytes that were written to those; they go round.
    journaled: Vec<u64>,
    buffered: Buffered,
    /// Processor time of a step.
    step_ns: u64,
    woken: Vec<u32>,
}

impl<'m, 's> Engine<'m, 's> {
    /// An engine that was at work for a while: its pool holds what it would hold by then.
    pub(super) fn new(
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
            readers: BTreeMap::new(),
            frameless: VecDeque::new(),
            keeping: Vec::new(),
            latch: Latch::new(model, steps),
            processors: Processors::new(model.machine.cores, model.machine.contention),
            redo: Redo::new(model),
            stalled: VecDeque::new(),
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

    /// Runs until `each`, which hears of every interval, says to stop; the instant of the end.
    pub(super) fn run(
        &mut self,
        interval: Nanos,
        each: &mut dyn FnMut(Interval, Done) -> Control,
    ) -> Result<u64, DeviceError> {
        self.time.at(self.time.now_ns + TENTH, Event::Tick);
        for terminal in 0..self.terminals.len() as u32 {
            self.begin(terminal)?;
        }
        loop {
            match self.time.next(interval, each)? {
                Happens::Stop(at_ns) => return Ok(at_ns),
                Happens::Done(tag) => self.done(tag)?,
                Happens::Event(Event::Worked(terminal)) => self.worked(terminal)?,
                Happens::Event(Event::Looked(terminal)) => self.go(terminal)?,
                Happens::Event(Event::Tick) => self.tick()?,
            }
        }
    }

    /// Lets what is in flight complete.
    pub(super) fn drain(&mut self) {
        self.time.drain();
    }

    fn now_ms(&self) -> u32 {
        self.time.now_ms()
    }
    fn ask(&mut self, request: Request, device: usize, tag: Tag) -> Result<(), DeviceError> {
        self.time.ask(request, device, tag)
    }
    /// Where a page lies: the device, and the first byte.
    fn place(&self, page: Page) -> (usize, u64) {
        let (Place { device, offset }, page) = match self.contents.of_system(page) {
            Some(page) => (self.system, page),
            None => (self.time.storage.data, page),
        };
        (device, offset + u64::from(page) * PAGE)
    }
    fn read(&mut self, page: Page, tag: Tag) -> Result<(), DeviceError> {
        let (device, offset) = self.place(page);
        self.ask(Request::read(offset, PAGE), device, tag)
    }

    /// A terminal begins its next transaction.
    fn begin(&mut self, terminal: u32) -> Result<(), DeviceError> {
        self.terminals[terminal as usize].next_transaction(&mut self.contents, self.time.now_ns);
        self.enter(terminal)
    }

    /// A transaction that changes something may begin while the log has room.
    fn enter(&mut self, terminal: u32) -> Result<(), DeviceError> {
        if self.terminals[terminal as usize].work.log > 0 && self.age() >= self.redo.full() {
            self.stalled.push_back(terminal);
            self.hurry();
            return self.write_pages();
        }
        self.lock(terminal)
    }

    /// Takes the rows that the transaction keeps from others, and goes on.
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

    /// Does steps until something is missing, and has a processor for that long.
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
            return self.worked_without(terminal);
        }
        let debt_ns = self.time.take_debt(ns);
        self.terminals[it].steps = steps;
        if let Some(ns) = self.processors.take(terminal, ns + debt_ns) {
            self.work(terminal, ns);
        }
        Ok(())
    }

    /// A terminal has a processor for so long, or until it has had the pool's lock as often as it needs it.
    fn work(&mut self, terminal: u32, ns: u64) {
        let had_ns = self.latch.take(self.time.now_ns, self.terminals[terminal as usize].steps, 0);
        self.time.at(had_ns.max(self.time.now_ns + ns), Event::Worked(terminal));
    }

    /// Does a step, where its page is here or need not be.
    fn act(&mut self, page: Page, act: Act) -> bool {
        match self.pool.find(page) {
            Found::Here(frame) => {
                self.pool.touch(frame, self.time.now_ms());
                if act != Act::Read {
                    self.pool.change(frame, self.redo.made());
                }
                true
            }
            Found::Missing if act == Act::Make => match self.pool.take(page, false) {
                Some(frame) => {
                    self.pool.change(frame, self.redo.made());
                    true
                }
                None => false,
            },
            Found::Missing if act == Act::Add && self.model.change_buffer => {
                self.buffer(page);
                true
            }
            Found::Coming(_) | Found::Missing => false,
        }
    }

    /// An entry for a page that is not in memory goes into the change buffer.
    fn buffer(&mut self, page: Page) {
        *self.buffered.entries.entry(page).or_default() += 1;
        self.buffered.count += 1;
        let full = (self.buffered.count * BUFFERED * 3 / 2).div_ceil(PAGE);
        while (self.buffered.pages.len() as u64) < full {
            let page = self.contents.page_for_changes();
            self.buffered.pages.push(page);
        }
        // In the order of the pages they are for: an entry's place is a share of the buffer.
        let place = u64::from(page) * self.buffered.pages.len() as u64 / u64::from(self.contents.pages());
        let page = self.buffered.pages[place as usize];
        match self.pool.find(page) {
            Found::Here(frame) => {
                self.pool.touch(frame, self.now_ms());
                self.pool.change(frame, self.redo.made());
            }
            // It is read behind the transaction's back: the buffer is small, and used all the time.
            Found::Coming(_) => {}
            Found::Missing => {
                if let Some(frame) = self.pool.take(page, false) {
                    self.pool.change(frame, self.redo.made());
                }
            }
        }
    }

    /// A terminal has worked, and leaves its processor to another.
    fn worked(&mut self, terminal: u32) -> Result<(), DeviceError> {
        if let Some((next, ns)) = self.processors.leave() {
            self.work(next, ns);
        }
        self.worked_without(terminal)
    }

    fn worked_without(&mut self, terminal: u32) -> Result<(), DeviceError> {
        match self.terminals[terminal as usize].next {
            Next::Fetch => self.fetch(terminal),
            Next::Commit => self.commit(terminal),
        }
    }

    /// Has the page read that a terminal needs, or gives it a frame for it.
    fn fetch(&mut self, terminal: u32) -> Result<(), DeviceError> {
        let step = self.terminals[terminal as usize].step().expect("it is at a step");
        match self.pool.find(step.page) {
            Found::Here(_) => return self.go(terminal),
            Found::Coming(frame) => {
                self.readers.entry(frame).or_default().push(terminal);
                return Ok(());
            }
            Found::Missing => {}
        }
        if !self.has_frame() {
            self.frameless.push_back(terminal);
            return self.write_pages();
        }
        if step.act == Act::Make {
            return self.go(terminal);
        }
        let frame = self.pool.take(step.page, true).expect("one is free");
        self.readers.entry(frame).or_default().push(terminal);
        self.read(step.page, READ | Tag::from(frame))
    }

    /// Whether a frame is free, or one can be freed at once.
    fn has_frame(&mut self) -> bool {
        self.free_ahead();
        if self.pool.free() > 0 {
            return true;
        }
        let mut next = self.pool.least_used();
        for _ in 0..self.cleaner.searched() {
            let Some(frame) = next else { break };
            next = self.pool.used_after(frame);
            if self.pool.evict(frame) {
                return true;
            }
        }
        self.cleaner.needs_frame(&self.pool);
        false
    }

    /// Frees frames before they are needed, where the engine does: from the end of the list on, at once what is not changed, and what is
    /// once it is written.
    fn free_ahead(&mut self) {
        let wanted = self.cleaner.to_free(&self.pool);
        let (mut next, mut freed) = (self.pool.least_used(), 0);
        while let Some(frame) = next.filter(|_| freed < wanted) {
            next = self.pool.used_after(frame);
            if self.pool.evict(frame) {
                freed += 1;
            } else if !self.cleaner.enqueue_to_free(&self.pool, frame) {
                break;
            }
        }
    }

    /// The end of a transaction: what it changed is in the log.
    fn commit(&mut self, terminal: u32) -> Result<(), DeviceError> {
        let it = &self.terminals[terminal as usize];
        let (log, rolled_back) = (it.work.log, it.work.rolled_back);
        self.redo.make(log);
        if log == 0 || rolled_back || self.model.durability != Durability::Full {
            return self.end(terminal);
        }
        self.redo.wait(terminal);
        self.write_log()
    }

    /// A transaction is over, and the next begins.
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

    /// A request is complete.
    fn done(&mut self, tag: Tag) -> Result<(), DeviceError> {
        let frame = tag as u32;
        match tag & FOR {
            READ => self.read_by(frame),
            MERGE => self.arrived(frame),
            TWICE => self.sync(TWICE_JOURNAL),
            TWICE_FLUSH => self.write_runs(),
            PAGES => {
                let batch = self.batch.as_mut().expect("it is being written");
                batch.under_way -= 1;
                if batch.next < batch.runs.len() {
                    return self.write_runs();
                }
                match batch.under_way {
                    0 => self.sync_next(),
                    _ => Ok(()),
                }
            }
            PAGES_FLUSH => self.sync_next(),
            JOURNAL | LOG_JOURNAL | TWICE_JOURNAL => self.commit_journal(tag & FOR, frame as usize + 1),
            LOG => self.sync(LOG_JOURNAL),
            _ => self.log_written(),
        }
    }

    /// A page was read by whoever waits for it first. Under the pool's lock it sees to it that more can be read, and goes on after.
    fn read_by(&mut self, frame: u32) -> Result<(), DeviceError> {
        let written = self.cleaner.keeps_margin(&self.pool);
        let looks = self.cleaner.take_looks();
        let had_ns = self.latch.take(self.time.now_ns, 0, looks);
        if written {
            self.write_pages()?;
        }
        if (written || had_ns > self.time.now_ns)
            && let Some(terminals) = self.readers.get_mut(&frame)
        {
            let terminal = terminals.remove(0);
            match written && self.batch.is_some() {
                true => self.keeping.push(terminal),
                false => self.time.at(had_ns, Event::Looked(terminal)),
            }
        }
        self.arrived(frame)
    }

    /// A page was read.
    fn arrived(&mut self, frame: u32) -> Result<(), DeviceError> {
        self.pool.arrived(frame, self.now_ms());
        if let Some(count) = self.buffered.entries.remove(&self.pool.page(frame)) {
            self.buffered.count -= u64::from(count);
            self.pool.change(frame, self.redo.made());
        }
        for terminal in self.readers.remove(&frame).unwrap_or_default() {
            self.go(terminal)?;
        }
        Ok(())
    }
}
