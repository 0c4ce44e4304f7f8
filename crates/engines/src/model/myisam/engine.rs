//! The MyISAM engine: terminals run statements under table locks, over key cache and page cache, event by event.
//!
//! A statement runs until it needs a page that is not in memory, or until the dirty limit stops a write. The steps up
//! to that point take effect at once and then occupy a processor for their duration. A statement holds its locks
//! until it ends, also while it waits.

use super::PAGE;
use super::cache::{Cache, Order};
use super::contents::Contents;
use super::layout::{BLOCKS_PER_PAGE, Page};
use super::locks::Lock;
use super::settings::MyisamSettings;
use super::statement::{Act, Mode, Step, Work};
use super::writeback::{LOOK_NS, Run, Writeback};
use crate::Interval;
use crate::model::frames::Lookup;
use crate::model::processors::Processors;
use crate::model::terminal::Terminal;
use crate::model::timeline::{Occurrence, Timeline};
use crate::model::{IoTotals, ModelLoad};
use crate::tpcc::Table;
use lowtide_core::storage::{Place, Storage};
use lowtide_core::{Control, DeviceError, Nanos, Request, Tag, VirtualTime};
use std::collections::{BTreeMap, VecDeque};

/// Purpose of a request, in the upper bits of its tag. The lower bits are the first page of a read, or the
/// number of a write.
const FOR: Tag = 0xff << 32;
const READ: Tag = 0;
const WRITE: Tag = 1 << 32;

/// A scheduled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A terminal has used its processor time.
    Worked(u32),
    /// The kernel looks for files that have been dirty for 30 s.
    Look,
}

/// A terminal's session: the current transaction and its progress.
#[derive(Debug)]
pub(super) struct Session {
    terminal: Terminal,
    pub(super) work: Work,
    /// Index of the current statement. `at` and `locked` are the indices of the next step and the next lock.
    statement: usize,
    at: usize,
    locked: usize,
}

impl Session {
    fn new(load: &ModelLoad, number: u32) -> Session {
        let terminal = Terminal::new(load, number);
        Session { terminal, work: Work::default(), statement: 0, at: 0, locked: 0 }
    }

    /// Begins the next transaction.
    pub(super) fn next_transaction(&mut self, contents: &mut Contents, now_ns: u64) {
        contents.work(&self.terminal.next_transaction(now_ns), &mut self.work);
        (self.statement, self.at, self.locked) = (0, 0, 0);
    }
    /// The next step; `None` at the end of the statement.
    fn step(&self) -> Option<Step> {
        let end = self.work.statements[self.statement].steps_end;
        (self.at < end).then(|| self.work.steps[self.at])
    }
    /// The next lock to take.
    fn next_lock(&self) -> Option<(Table, Mode)> {
        let end = self.work.statements[self.statement].locks_end;
        (self.locked < end).then(|| self.work.locks[self.locked])
    }
    /// Locks of the current statement.
    fn locks(&self) -> std::ops::Range<usize> {
        let before = self.statement.checked_sub(1).map_or(0, |before| self.work.statements[before].locks_end);
        before..self.work.statements[self.statement].locks_end
    }
}

pub(in crate::model) struct Engine<'s> {
    time: Timeline<'s, Event>,
    sessions: Vec<Session>,
    contents: Contents,
    keys: Cache,
    pages: Cache,
    locks: [Lock; Table::ALL.len()],
    processors: Processors,
    writeback: Writeback,
    /// Reads in flight: number of pages by first page.
    reads: BTreeMap<Page, u32>,
    /// For each page being read, the terminals that wait for it.
    page_waiters: BTreeMap<Page, Vec<u32>>,
    /// Terminals that wait for fewer dirty pages or for free memory.
    write_waiters: VecDeque<u32>,
    /// Processor time of a step.
    step_ns: u64,
}

impl<'s> Engine<'s> {
    /// Creates an engine with warm caches.
    pub(in crate::model) fn new(
        model: &MyisamSettings,
        load: &ModelLoad,
        storage: Storage<'s>,
        start: VirtualTime,
    ) -> Engine<'s> {
        let mut contents = Contents::new(load);
        let mut sessions: Vec<Session> =
            (0..load.terminals).map(|number| Session::new(load, number)).collect();
        let mut keys = Cache::new(model.blocks(), Order::Plain);
        let mut pages = Cache::new(model.pages(), Order::TwoLists);
        let steps = super::warm::warm(&mut keys, &mut pages, &mut contents, &mut sessions);
        Engine {
            time: Timeline::new(storage, start, model.machine.io_cpu),
            sessions,
            contents,
            keys,
            pages,
            locks: Default::default(),
            processors: Processors::new(model.machine.cores, model.machine.contention),
            writeback: Writeback::new(model.writes, model.most_dirty()),
            reads: BTreeMap::new(),
            page_waiters: BTreeMap::new(),
            write_waiters: VecDeque::new(),
            step_ns: (model.machine.cpu.get() as f64 / steps) as u64,
        }
    }

    /// Runs until `each` stops the run. `each` receives every interval. Returns the end time.
    pub(in crate::model) fn run(
        mut self,
        interval: Nanos,
        each: &mut dyn FnMut(Interval, IoTotals) -> Control,
    ) -> Result<u64, DeviceError> {
        self.time.at(self.time.now_ns + LOOK_NS, Event::Look);
        for terminal in 0..self.sessions.len() as u32 {
            self.begin(terminal)?;
        }
        loop {
            match self.time.next(interval, each)? {
                Occurrence::Stop(at_ns) => return Ok(at_ns),
                Occurrence::Completion(tag) if tag & FOR == READ => self.read(tag as u32)?,
                Occurrence::Completion(tag) => self.written(tag as u32 as usize)?,
                Occurrence::Event(Event::Worked(terminal)) => self.worked(terminal)?,
                Occurrence::Event(Event::Look) => {
                    self.time.at(self.time.now_ns + LOOK_NS, Event::Look);
                    self.writeback.look(self.time.now_ns);
                    self.write()?;
                }
            }
        }
    }

    fn session(&mut self, terminal: u32) -> &mut Session {
        &mut self.sessions[terminal as usize]
    }

    /// Begins a terminal's next transaction.
    fn begin(&mut self, terminal: u32) -> Result<(), DeviceError> {
        self.sessions[terminal as usize].next_transaction(&mut self.contents, self.time.now_ns);
        self.lock(terminal)
    }

    /// Takes the remaining locks of the statement and continues with its steps.
    fn lock(&mut self, terminal: u32) -> Result<(), DeviceError> {
        while let Some((table, mode)) = self.session(terminal).next_lock() {
            if !self.locks[table as usize].take(terminal, mode) {
                return Ok(());
            }
            self.session(terminal).locked += 1;
        }
        self.go(terminal)
    }

    /// Runs steps until a page is missing or the statement ends. Requests a processor for their duration.
    fn go(&mut self, terminal: u32) -> Result<(), DeviceError> {
        let (mut ns, began) = (0, self.session(terminal).at);
        while let Some(step) = self.session(terminal).step() {
            if !self.act(step) {
                if self.session(terminal).at == began {
                    return self.wait(terminal, step);
                }
                break;
            }
            ns += self.step_ns;
            self.session(terminal).at += 1;
        }
        let debt_ns = self.time.take_debt(ns);
        if let Some(ns) = self.processors.take(terminal, ns + debt_ns) {
            self.time.at(self.time.now_ns + ns, Event::Worked(terminal));
        }
        Ok(())
    }

    /// Runs a step if its pages are in memory. Returns false otherwise.
    fn act(&mut self, step: Step) -> bool {
        match step.act {
            Act::Key => match self.keys.find(step.place) {
                Lookup::Resident(block) => {
                    self.keys.touch(block);
                    true
                }
                // The block is copied from the page cache.
                _ => match self.pages.find(step.place / BLOCKS_PER_PAGE) {
                    Lookup::Resident(frame) => {
                        self.pages.touch(frame);
                        self.keys.take(step.place, false)
                    }
                    _ => self.contents.is_empty(step.place / BLOCKS_PER_PAGE),
                },
            },
            Act::NewKey => self.keys.take(step.place, false),
            Act::Read => {
                let all = step.place..step.place + u32::from(step.count);
                if all.clone().any(|page| self.is_missing(page)) {
                    return false;
                }
                for page in all {
                    if let Lookup::Resident(frame) = self.pages.find(page) {
                        self.pages.touch(frame);
                    }
                }
                true
            }
            Act::Write => self.mark_dirty(step),
        }
    }

    /// Returns true if a page must be read: it has contents but is not in memory.
    fn is_missing(&self, page: Page) -> bool {
        !matches!(self.pages.find(page), Lookup::Resident(_)) && !self.contents.is_empty(page)
    }

    /// Makes a page dirty if the page is in memory or new and the limit allows another dirty page. Returns false
    /// otherwise.
    fn mark_dirty(&mut self, step: Step) -> bool {
        let full = self.writeback.is_full();
        let frame = match self.pages.find(step.place) {
            Lookup::Resident(frame) if self.pages.is_dirty(frame) => {
                self.pages.touch(frame);
                return true;
            }
            Lookup::Resident(frame) if !full => frame,
            Lookup::Absent
                if self.contents.is_empty(step.place) && !full && self.pages.take(step.place, false) =>
            {
                self.contents.write(step.place);
                let Lookup::Resident(frame) = self.pages.find(step.place) else {
                    unreachable!("the page was created")
                };
                frame
            }
            _ => return false,
        };
        self.pages.touch(frame);
        if self.pages.mark_dirty(frame) {
            self.writeback.mark_dirty(step.file, step.place, self.time.now_ns);
        }
        true
    }

    /// Ends a processor burst of a terminal and gives the processor to the next terminal.
    fn worked(&mut self, terminal: u32) -> Result<(), DeviceError> {
        if let Some((next, ns)) = self.processors.leave() {
            self.time.at(self.time.now_ns + ns, Event::Worked(next));
        }
        if self.writeback.is_background_due() {
            self.write()?;
        }
        match self.session(terminal).step() {
            Some(_) => self.go(terminal),
            None => self.end(terminal),
        }
    }

    /// Reads the page that a step needs, or makes the terminal wait until the step is possible.
    fn wait(&mut self, terminal: u32, step: Step) -> Result<(), DeviceError> {
        let (first, count) = match step.act {
            Act::Key | Act::NewKey => (step.place / BLOCKS_PER_PAGE, 1),
            Act::Read | Act::Write => (step.place, u32::from(step.count)),
        };
        let Some(page) = (first..first + count).find(|page| self.is_missing(*page)) else {
            // The dirty limit is reached, or no memory is free.
            return self.stop(terminal);
        };
        if self.pages.find(page) == Lookup::Absent {
            let mut taken = 0;
            while page + taken < first + count
                && self.pages.find(page + taken) == Lookup::Absent
                && !self.contents.is_empty(page + taken)
                && self.pages.take(page + taken, true)
            {
                taken += 1;
            }
            if taken == 0 {
                return self.stop(terminal);
            }
            self.reads.insert(page, taken);
            let Place { device, offset } = self.time.storage.data;
            let request = Request::read(offset + u64::from(page) * PAGE, u64::from(taken) * PAGE);
            self.time.ask(request, device, READ | Tag::from(page))?;
        }
        self.page_waiters.entry(page).or_default().push(terminal);
        Ok(())
    }

    /// Makes a terminal wait for the completion of a write.
    fn stop(&mut self, terminal: u32) -> Result<(), DeviceError> {
        self.write_waiters.push_back(terminal);
        self.write()
    }

    /// Completes a read.
    fn read(&mut self, first: Page) -> Result<(), DeviceError> {
        let count = self.reads.remove(&first).expect("the read was in flight");
        (first..first + count).for_each(|page| self.pages.arrived(page));
        for page in first..first + count {
            for terminal in self.page_waiters.remove(&page).unwrap_or_default() {
                self.go(terminal)?;
            }
        }
        self.resume_write_waiters()
    }

    /// Submits all writes that are due.
    fn write(&mut self) -> Result<(), DeviceError> {
        while let Some((number, Run { first, count })) = self.writeback.next(self.time.now_ns) {
            (first..first + count).for_each(|page| self.pages.begin_write(page));
            let Place { device, offset } = self.time.storage.data;
            let request = Request::write(offset + u64::from(first) * PAGE, u64::from(count) * PAGE);
            self.time.ask(request, device, WRITE | number as Tag)?;
        }
        Ok(())
    }

    /// Completes a write.
    fn written(&mut self, number: usize) -> Result<(), DeviceError> {
        let Run { first, count } = self.writeback.written(number);
        (first..first + count).for_each(|page| self.pages.written(page));
        self.write()?;
        self.resume_write_waiters()
    }

    /// Resumes the terminals that wait for memory or for fewer dirty pages.
    fn resume_write_waiters(&mut self) -> Result<(), DeviceError> {
        for _ in 0..self.write_waiters.len() {
            let Some(terminal) = self.write_waiters.pop_front() else { break };
            self.go(terminal)?;
        }
        Ok(())
    }

    /// Ends a statement and releases its locks. Begins the terminal's next statement or transaction.
    fn end(&mut self, terminal: u32) -> Result<(), DeviceError> {
        let session = &mut self.sessions[terminal as usize];
        let mut granted = Vec::new();
        for number in session.locks() {
            let (table, mode) = session.work.locks[number];
            debug_assert!(mode == Mode::Read || self.locks[table as usize].has_writer());
            self.locks[table as usize].leave(mode, &mut granted);
        }
        session.statement += 1;
        let over = session.statement == session.work.statements.len();
        for next in granted {
            self.session(next).locked += 1;
            self.lock(next)?;
        }
        if !over {
            return self.lock(terminal);
        }
        let Session { terminal: it, work, .. } = &self.sessions[terminal as usize];
        self.time.ended(it.kind, work.rolled_back, it.began_ns);
        self.begin(terminal)
    }
}
