//! Virtual time of an engine: what happens next, what was asked of the devices, what ended in which interval.
//!
//! Both engines have one. Leaves out what events and tags mean, and how long a measurement is: whoever hears of the intervals decides.

use super::Done;
use crate::tpcc::Kind;
use crate::{Interval, Tally};
use lowtide_core::storage::{Requests, Storage};
use lowtide_core::{Control, DeviceError, Nanos, Op, Request, Tag, VirtualTime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most of the work of requests that one burst does, beyond as much as its own.
const MOST_DEBT: u64 = 200_000;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happens<E> {
    /// A request is complete.
    Done(Tag),
    /// An event that was foreseen.
    Event(E),
    /// Whoever hears of the intervals says that it is enough, at this instant.
    Stop(u64),
}

/// The time, and everything that is under way in it.
pub(super) struct Timeline<'s, E> {
    pub(super) storage: Storage<'s>,
    pub(super) now_ns: u64,
    start_ns: u64,
    /// When the interval under way began.
    interval_ns: u64,
    requests: Requests,
    events: BinaryHeap<Reverse<(u64, u64, E)>>,
    sequence: u64,
    kinds: [Tally; Kind::ALL.len()],
    asked: Done,
    /// Processor time of a request, and of those that nobody has paid for yet.
    io_cpu_ns: u64,
    debt_ns: u64,
}

impl<'s, E: Ord + Copy> Timeline<'s, E> {
    /// A time that begins at `start`, in which a request takes the processors `io_cpu`.
    pub(super) fn new(storage: Storage<'s>, start: VirtualTime, io_cpu: Nanos) -> Timeline<'s, E> {
        Timeline {
            storage,
            now_ns: start.as_nanos(),
            start_ns: start.as_nanos(),
            interval_ns: start.as_nanos(),
            requests: Requests::default(),
            events: BinaryHeap::new(),
            sequence: 0,
            kinds: Default::default(),
            asked: Done::default(),
            io_cpu_ns: io_cpu.get(),
            debt_ns: 0,
        }
    }

    /// Milliseconds, and round again.
    pub(super) fn now_ms(&self) -> u32 {
        (self.now_ns / 1_000_000) as u32
    }

    /// Something will happen.
    pub(super) fn at(&mut self, at_ns: u64, event: E) {
        self.sequence += 1;
        self.events.push(Reverse((at_ns, self.sequence, event)));
    }

    /// Asks something of a device.
    pub(super) fn ask(&mut self, request: Request, device: usize, tag: Tag) -> Result<(), DeviceError> {
        self.debt_ns += self.io_cpu_ns;
        match request.op {
            Op::Read => {
                self.asked.reads += 1;
                self.asked.read_bytes += request.length;
            }
            Op::Write { .. } => {
                self.asked.writes += 1;
                self.asked.write_bytes += request.length;
            }
            _ => {}
        }
        self.requests.begin(&mut self.storage, self.now_ns, device, &request, tag)
    }

    /// The work of requests is somebody's: how much of it goes with a burst of so long.
    pub(super) fn take_debt(&mut self, ns: u64) -> u64 {
        let debt_ns = self.debt_ns.min(ns + MOST_DEBT);
        self.debt_ns -= debt_ns;
        debt_ns
    }

    /// A transaction is over.
    pub(super) fn ended(&mut self, kind: Kind, rolled_back: bool, began_ns: u64) {
        let tally = &mut self.kinds[kind as usize];
        let ended = if rolled_back { &mut tally.rolled_back } else { &mut tally.committed };
        *ended += 1;
        tally.latency.record(Nanos::new(self.now_ns - began_ns));
    }

    /// Goes to what happens next; `each` hears of every interval that ends before.
    pub(super) fn next(
        &mut self,
        interval: Nanos,
        each: &mut dyn FnMut(Interval, Done) -> Control,
    ) -> Result<Happens<E>, DeviceError> {
        let next_ns = self.events.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        let done = self.requests.next_done(&mut self.storage, next_ns)?;
        let at_ns = done.map_or(next_ns, |(at_ns, _)| at_ns);
        while at_ns >= self.interval_ns + interval.get() {
            let begin_ns = self.interval_ns - self.start_ns;
            self.interval_ns += interval.get();
            let kinds = std::mem::take(&mut self.kinds);
            let ended = Interval { start_ns: begin_ns, end_ns: self.interval_ns - self.start_ns, kinds };
            self.asked.counters = self.storage.counters();
            if each(ended, self.asked) == Control::Stop {
                return Ok(Happens::Stop(self.interval_ns));
            }
        }
        self.now_ns = at_ns;
        Ok(match done {
            Some((_, tag)) => Happens::Done(tag),
            None => Happens::Event(self.events.pop().expect("the clock ticks").0.2),
        })
    }

    /// Lets what is in flight complete.
    pub(super) fn drain(&mut self) {
        while matches!(self.requests.next_done(&mut self.storage, u64::MAX), Ok(Some(_))) {}
        self.storage.drain();
    }
}
