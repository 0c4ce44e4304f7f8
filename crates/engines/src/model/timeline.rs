//! Virtual time of an engine: events, requests in flight and transactions by interval.
//!
//! The engines define the meaning of events and tags.

use super::IoTotals;
use crate::tpcc::Kind;
use crate::{Interval, Tally};
use lowtide_core::storage::{Requests, Storage};
use lowtide_core::{Control, DeviceError, Nanos, Op, Request, Tag, VirtualTime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum request processor time charged to one burst beyond the burst's own length, in nanoseconds.
const MOST_DEBT: u64 = 200_000;

/// The next occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrence<E> {
    /// A request has completed.
    Completion(Tag),
    /// A scheduled event.
    Event(E),
    /// The receiver of the intervals stopped the run at this time.
    Stop(u64),
}

/// Current time, scheduled events and requests in flight.
pub(super) struct Timeline<'s, E> {
    pub(super) storage: Storage<'s>,
    pub(super) now_ns: u64,
    start_ns: u64,
    /// Start of the current interval.
    interval_ns: u64,
    requests: Requests,
    events: BinaryHeap<Reverse<(u64, u64, E)>>,
    sequence: u64,
    kinds: [Tally; Kind::ALL.len()],
    asked: IoTotals,
    /// Processor time of a request. `debt_ns` is the total not yet charged to a terminal.
    io_cpu_ns: u64,
    debt_ns: u64,
}

impl<'s, E: Ord + Copy> Timeline<'s, E> {
    /// Creates a timeline from `start`. Each request costs the processor time `io_cpu`.
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
            asked: IoTotals::default(),
            io_cpu_ns: io_cpu.get(),
            debt_ns: 0,
        }
    }

    /// Current time in milliseconds, modulo 2³².
    pub(super) fn now_ms(&self) -> u32 {
        (self.now_ns / 1_000_000) as u32
    }

    /// Schedules an event.
    pub(super) fn at(&mut self, at_ns: u64, event: E) {
        self.sequence += 1;
        self.events.push(Reverse((at_ns, self.sequence, event)));
    }

    /// Submits a request.
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

    /// Charges outstanding request processor time to a burst of `ns`. Returns the time added to the burst.
    pub(super) fn take_debt(&mut self, ns: u64) -> u64 {
        let debt_ns = self.debt_ns.min(ns + MOST_DEBT);
        self.debt_ns -= debt_ns;
        debt_ns
    }

    /// Counts the end of a transaction.
    pub(super) fn ended(&mut self, kind: Kind, rolled_back: bool, began_ns: u64) {
        let tally = &mut self.kinds[kind as usize];
        let ended = if rolled_back { &mut tally.rolled_back } else { &mut tally.committed };
        *ended += 1;
        tally.latency.record(Nanos::new(self.now_ns - began_ns));
    }

    /// Advances to the next occurrence. `each` receives every interval that ends before it.
    pub(super) fn next(
        &mut self,
        interval: Nanos,
        each: &mut dyn FnMut(Interval, IoTotals) -> Control,
    ) -> Result<Occurrence<E>, DeviceError> {
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
                return Ok(Occurrence::Stop(self.interval_ns));
            }
        }
        self.now_ns = at_ns;
        Ok(match done {
            Some((_, tag)) => Occurrence::Completion(tag),
            None => Occurrence::Event(self.events.pop().expect("an event is scheduled").0.2),
        })
    }
}

impl<E> Drop for Timeline<'_, E> {
    /// Completes the requests in flight, even after an error, so that a later load finds no request in the queue.
    fn drop(&mut self) {
        while matches!(self.requests.next_done(&mut self.storage, u64::MAX), Ok(Some(_))) {}
        self.storage.drain();
    }
}
