//! The engine: terminals that run statements under locks of tables, over the key cache and the page cache, event after event.
//!
//! A statement runs until it needs a page that is not in memory, or may not make another one dirty; what it did until then is done at
//! once, and takes the time it takes on a processor. It keeps its locks until its end, whatever it waits for.

use super::PAGE;
use super::cache::{Cache, Found, Order};
use super::contents::Contents;
use super::layout::{BLOCKS_PER_PAGE, Page};
use super::locks::Lock;
use super::settings::MyisamSettings;
use super::statement::{Act, Mode, Step, Work};
use super::writeback::{LOOK_NS, Run, Writeback};
use crate::Interval;
use crate::model::processors::Processors;
use crate::model::terminal::Terminal;
use crate::model::timeline::{Happens, Timeline};
use crate::model::{Done, ModelLoad};
use crate::tpcc::Table;
use lowtide_core::storage::{Place, Storage};
use lowtide_core::{Control, DeviceError, Nanos, Request, Tag, VirtualTime};
use std::collections::{BTreeMap, VecDeque};

/// What a tag says that a request was for; a read has its first page, and a write its number.
const FOR: Tag = 0xff << 32;
const READ: Tag = 0;
const WRITE: Tag = 1 << 32;

/// What happens at an instant, apart from requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A terminal has done what it needed a processor for.
    Worked(u32),
    /// The kernel looks for what has been dirty for long.
    Look,
}

/// What the engine does for a terminal.
#[derive(Debug)]
pub(super) struct Session {
    terminal: Terminal,
    pub(super) work: Work,
    /// The statement, the step and the lock it is at.
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
    /// The step it is at; `None` at the end of the statement.
    fn step(&self) -> Option<Step> {
        let end = self.work.statements[self.statement].steps_end;
        (self.at < end).then(|| self.work.steps[self.at])
    }
    /// The lock it needs next.
    fn next_lock(&self) -> Option<(Table, Mode)> {
        let end = self.work.statements[self.statement].locks_end;
        (self.locked < end).then(|| self.work.locks[self.locked])
    }
    /// The locks of the statement.
    fn locks(&self) -> std::ops::Range<usize> {
        let before = self.statement.checked_sub(1).map_or(0, |before| self.work.statements[before].locks_end);
        before..self.work.statements[self.statement].locks_end
    }
}

pub(super) struct Engine<'s> {
    time: Timeline<'s, Event>,
    sessions: Vec<Session>,
    contents: Contents,
    keys: Cache,
    pages: Cache,
    locks: [Lock; Table::ALL.len()],
    processors: Processors,
    writeback: Writeback,
    /// By the first page of a read, how many come with it; by page, who waits for it.
    reads: BTreeMap<Page, u32>,
    readers: BTreeMap<Page, Vec<u32>>,
    /// Who waits until less is dirty, or a page of memory is free.
    stopped: VecDeque<u32>,
    /// Processor time of a step.
    step_ns: u64,
}

impl<'s> Engine<'s> {
    /// An engine that was at work for a while: its caches hold what they would hold by then.
    pub(super) fn new(
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
            readers: BTreeMap::new(),
            stopped: VecDeque::new(),
            step_ns: (model.machine.cpu.get() as f64 / steps) as u64,
        }
    }

    /// Runs until `each`, which hears of every interval, says to stop; the instant of the end.
    pub(super) fn run(
        &mut self,
        interval: Nanos,
        each: &mut dyn FnMut(Interval, Done) -> Control,
    ) -> Result<u64, DeviceError> {
        self.time.at(self.time.now_ns + LOOK_NS, Event::Look);
        for terminal in 0..self.sessions.len() as u32 {
            self.begin(terminal)?;
        }
        loop {
            match self.time.next(interval, each)? {
                Happens::Stop(at_ns) => return Ok(at_ns),
                Happens::Done(tag) if tag & FOR == READ => self.read(tag as u32)?,
                Happens::Done(tag) => self.written(tag as u32 as usize)?,
                Happens::Event(Event::Worked(terminal)) => self.worked(terminal)?,
                Happens::Event(Event::Look) => {
                    self.time.at(self.time.now_ns + LOOK_NS, Event::Look);
                    self.writeback.look(self.time.now_ns);
                    self.write()?;
                }
            }
        }
    }

    /// Lets what is in flight complete.
    pub(super) fn drain(&mut self) {
        self.time.drain();
    }

    fn session(&mut self, terminal: u32) -> &mut Session {
        &mut self.sessions[terminal as usize]
    }

    /// A terminal begins its next transaction.
    fn begin(&mut self, terminal: u32) -> Result<(), DeviceError> {
        self.sessions[terminal as usize].next_transaction(&mut self.contents, self.time.now_ns);
        self.lock(terminal)
    }

    /// Takes the locks that the statement still needs, and goes on.
    fn lock(&mut self, terminal: u32) -> Result<(), DeviceError> {
        while let Some((table, mode)) = self.session(terminal).next_lock() {
            if !self.locks[table as usize].take(terminal, mode) {
                return Ok(());
            }
            self.session(terminal).locked += 1;
        }
        self.go(terminal)
    }

    /// Does steps until something is missing or the statement is over, and has a processor for that long.
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

    /// Does a step, where everything for it is in memory.
    fn act(&mut self, step: Step) -> bool {
        match step.act {
            Act::Key => match self.keys.find(step.place) {
                Found::Here(block) => {
                    self.keys.touch(block);
                    true
                }
                // It is copied out of the page cache, where it is there.
                _ => match self.pages.find(step.place / BLOCKS_PER_PAGE) {
                    Found::Here(frame) => {
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
                    if let Found::Here(frame) = self.pages.find(page) {
                        self.pages.touch(frame);
                    }
                }
                true
            }
            Act::Write => self.soil(step),
        }
    }

    /// Whether a page must be read: it is not in memory, and something is in it.
    fn is_missing(&self, page: Page) -> bool {
        !matches!(self.pages.find(page), Found::Here(_)) && !self.contents.is_empty(page)
    }

    /// Makes a page dirty, where it is here or new, and there may be another one.
    fn soil(&mut self, step: Step) -> bool {
        let full = self.writeback.is_full();
        let frame = match self.pages.find(step.place) {
            Found::Here(frame) if self.pages.is_dirty(frame) => {
                self.pages.touch(frame);
                return true;
            }
            Found::Here(frame) if !full => frame,
            Found::Missing
                if self.contents.is_empty(step.place) && !full && self.pages.take(step.place, false) =>
            {
                self.contents.write(step.place);
                let Found::Here(frame) = self.pages.find(step.place) else { unreachable!("it was made") };
                frame
            }
            _ => return false,
        };
        self.pages.touch(frame);
        if self.pages.soil(frame) {
            self.writeback.soil(step.file, step.place, self.time.now_ns);
        }
        true
    }

    /// A terminal has worked, and leaves its processor to another.
    fn worked(&mut self, terminal: u32) -> Result<(), DeviceError> {
        if let Some((next, ns)) = self.processors.leave() {
            self.time.at(self.time.now_ns + ns, Event::Worked(next));
        }
        if self.writeback.is_much() {
            self.write()?;
        }
        match self.session(terminal).step() {
            Some(_) => self.go(terminal),
            None => self.end(terminal),
        }
    }

    /// Has read what a step needs that cannot be done now, or waits until it may be.
    fn wait(&mut self, terminal: u32, step: Step) -> Result<(), DeviceError> {
        let (first, count) = match step.act {
            Act::Key | Act::NewKey => (step.place / BLOCKS_PER_PAGE, 1),
            Act::Read | Act::Write => (step.place, u32::from(step.count)),
        };
        let Some(page) = (first..first + count).find(|page| self.is_missing(*page)) else {
            // It may not become dirty, or there is no memory for it.
            return self.stop(terminal);
        };
        if self.pages.find(page) == Found::Missing {
            let mut taken = 0;
            while page + taken < first + count
                && self.pages.find(page + taken) == Found::Missing
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
        self.readers.entry(page).or_default().push(terminal);
        Ok(())
    }

    /// A terminal waits until something was written.
    fn stop(&mut self, terminal: u32) -> Result<(), DeviceError> {
        self.stopped.push_back(terminal);
        self.write()
    }

    /// Pages were read.
    fn read(&mut self, first: Page) -> Result<(), DeviceError> {
        let count = self.reads.remove(&first).expect("it was being read");
        (first..first + count).for_each(|page| self.pages.arrived(page));
        for page in first..first + count {
            for terminal in self.readers.remove(&page).unwrap_or_default() {
                self.go(terminal)?;
            }
        }
        self.go_on()
    }

    /// Begins as many writes as are to be made and may be under way.
    fn write(&mut self) -> Result<(), DeviceError> {
        while let Some((number, Run { first, count })) = self.writeback.next(self.time.now_ns) {
            (first..first + count).for_each(|page| self.pages.begin_write(page));
            let Place { device, offset } = self.time.storage.data;
            let request = Request::write(offset + u64::from(first) * PAGE, u64::from(count) * PAGE);
            self.time.ask(request, device, WRITE | number as Tag)?;
        }
        Ok(())
    }

    /// Pages were written.
    fn written(&mut self, number: usize) -> Result<(), DeviceError> {
        let Run { first, count } = self.writeback.written(number);
        (first..first + count).for_each(|page| self.pages.written(page));
        self.write()?;
        self.go_on()
    }

    /// Those that waited for memory, or until less is dirty, look again.
    fn go_on(&mut self) -> Result<(), DeviceError> {
        for _ in 0..self.stopped.len() {
            let Some(terminal) = self.stopped.pop_front() else { break };
            self.go(terminal)?;
        }
        Ok(())
    }

    /// A statement is over: others may have its tables. The next one begins, or the next transaction.
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
