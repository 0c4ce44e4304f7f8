//! Loads in virtual time: runs a workload or replays a trace on a [`BlockDevice`] and reports its intervals.
//!
//! For simulated devices, this module takes the place of the host crate's engines. The load's own threads cost no
//! time. The caller's callback decides when to stop. Events during the load, such as power cuts, come from a
//! [`Script`].

use crate::block::{BlockDevice, Completion, DeviceError, Op, Request, Tag};
use crate::extents::Extents;
use crate::in_flight::InFlight;
use crate::measure::{Interval, Recorder};
use crate::rng::{Rng, Seed};
use crate::trace::{Pacing, Trace, Traced};
use crate::units::{Bytes, Nanos, VirtualTime};
use crate::workload::{Arrivals, Generator, Sync, Workload};

mod script;

pub use script::{Happening, Script, Scripted, run_scripted};

/// Number of requests announced to the device in advance, so that it can load its tables into the processor's cache.
const AHEAD: usize = 64;

/// The callback's decision after an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Continue the load.
    Continue,
    /// Stop the load.
    Stop,
}

/// An operation in flight.
#[derive(Debug, Clone, Copy)]
struct Operation {
    since_ns: u64,
    /// Four times the length in bytes, plus the kind. Packed, because many operations may be in flight.
    length_and_kind: u64,
}

/// Kinds of operation, in the low two bits of `length_and_kind`.
const WRITE: u64 = 0;
const READ: u64 = 1;
/// A flush, a trim or a write of zeroes, which is not counted as a read or write.
const NEITHER: u64 = 2;
/// A write that completes with the flush after it.
const UNFLUSHED: u64 = 3;

impl Operation {
    fn new(since_ns: u64, request: &Request, flushed: bool) -> Self {
        let kind = match request.op {
            Op::Read => READ,
            Op::Write { .. } if flushed => UNFLUSHED,
            Op::Write { .. } => WRITE,
            Op::Trim | Op::WriteZeroes | Op::Flush => NEITHER,
        };
        Operation { since_ns, length_and_kind: request.length << 2 | kind }
    }

    /// The operation after a failure: it moved no data, and no flush follows.
    fn failed(self) -> Self {
        Operation { length_and_kind: self.length_and_kind & !3 | NEITHER, ..self }
    }

    /// Returns whether the flush of a write must still be issued.
    #[inline]
    fn is_unflushed(self) -> bool {
        self.length_and_kind & 3 == UNFLUSHED
    }

    /// The operation once its flush has been issued.
    fn flushing(self) -> Self {
        Operation { length_and_kind: self.length_and_kind & !3 | WRITE, ..self }
    }

    fn record(self, recorder: &mut Recorder, now_ns: u64) {
        let (length, kind) = (self.length_and_kind >> 2, self.length_and_kind & 3);
        if kind != NEITHER {
            recorder.record(kind == READ, length, Nanos::new(now_ns - self.since_ns));
        }
    }
}

/// An operation with parts in the device's queue.
#[derive(Debug, Clone, Copy)]
struct Queued {
    operation: Operation,
    parts: u32,
    /// Latest completion of the finished parts.
    done_ns: u64,
}

/// Operations with queued parts, indexed by tag.
#[derive(Debug, Default)]
struct Waiting {
    slots: Vec<Option<Queued>>,
    free: Vec<usize>,
}

impl Waiting {
    /// The tag of the next operation to be added.
    #[inline]
    fn next_tag(&self) -> Tag {
        self.free.last().map_or(self.slots.len(), |&slot| slot) as Tag
    }

    fn add(&mut self, queued: Queued) {
        match self.free.pop() {
            Some(slot) => self.slots[slot] = Some(queued),
            None => self.slots.push(Some(queued)),
        }
    }

    /// Completes one part. Returns the operation and its completion if this was the last part.
    fn complete(&mut self, tag: Tag, completion: &Completion) -> Option<(u64, Operation)> {
        let slot = tag as usize;
        let queued = self.slots[slot].as_mut().expect("a device finishes what was queued");
        queued.done_ns = queued.done_ns.max(completion.at.as_nanos());
        if completion.status.is_err() {
            queued.operation = queued.operation.failed();
        }
        queued.parts -= 1;
        if queued.parts > 0 {
            return None;
        }
        self.free.push(slot);
        self.slots[slot].take().map(|queued| (queued.done_ns, queued.operation))
    }
}

/// Start, interval length and number of requests of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The instant at which the load begins.
    pub start: VirtualTime,
    /// Length of an interval.
    pub interval: Nanos,
    /// Number of requests, after whose completion the load ends. The last interval may then be shorter. If `None`,
    /// only the callback ends the load.
    pub requests: Option<u64>,
}

/// Runs `workload` over the data in `extents` from the instant `start`. Calls `each` after every interval of length
/// `interval` until it returns [`Control::Stop`]. Returns the instant of the end.
///
/// # Errors
/// [`DeviceError`] of the first request that the device refuses or fails, which ends the load.
pub fn run<D: BlockDevice + ?Sized>(
    device: &mut D,
    extents: &Extents,
    workload: &Workload,
    seed: Seed,
    start: VirtualTime,
    interval: Nanos,
    each: &mut dyn FnMut(Interval) -> Control,
) -> Result<VirtualTime, DeviceError> {
    run_span(device, extents, workload, seed, Span { start, interval, requests: None }, each)
}

/// Runs `workload` over the data in `extents` until its requests are complete or `each` returns [`Control::Stop`].
/// Returns the instant of the end.
///
/// # Errors
/// [`DeviceError`], as for [`run`].
pub fn run_span<D: BlockDevice + ?Sized>(
    device: &mut D,
    extents: &Extents,
    workload: &Workload,
    seed: Seed,
    span: Span,
    each: &mut dyn FnMut(Interval) -> Control,
) -> Result<VirtualTime, DeviceError> {
    let mut load = Load::new(device, extents, Source::new(workload, extents, seed), span);
    load.flushes = workload.sync == Sync::Flush;
    let recorder = Recorder::new(span.interval);
    let ended = match Arrivals::new(workload.arrival, 0, 1) {
        None => load.closed(recorder, workload.outstanding(), each),
        Some(arrivals) => {
            let starts = Starts::Drawn(arrivals, seed.part("arrivals", 0).stream());
            load.open(recorder, starts, each)
        }
    };
    let drained = drain(load.device);
    Ok(VirtualTime::from_nanos(ended?).max(drained))
}

/// Replays `trace` over the data in `extents`. The replay ends with the trace, after `span.requests` requests, or
/// when `each` returns [`Control::Stop`]. Returns the instant of the end.
///
/// # Errors
/// [`DeviceError`], as for [`run`].
///
/// # Panics
/// If the trace reaches past the end of the data. [`Trace::on`] makes it fit.
pub fn replay<D: BlockDevice + ?Sized>(
    device: &mut D,
    extents: &Extents,
    trace: &Trace,
    pacing: Pacing,
    span: Span,
    each: &mut dyn FnMut(Interval) -> Control,
) -> Result<VirtualTime, DeviceError> {
    let requests = span.requests.map_or(trace.count(), |wanted| wanted.min(trace.count()));
    let source = Source::Recorded { trace: trace.requests(), taken: 0 };
    let mut load = Load::new(device, extents, source, Span { requests: Some(requests), ..span });
    let recorder = Recorder::new(span.interval);
    let ended = match pacing {
        Pacing::AsFastAsPossible { depth } => load.closed(recorder, depth as usize, each),
        Pacing::Recorded => load.open(recorder, Starts::Recorded(trace.requests().iter()), each),
    };
    let drained = drain(load.device);
    Ok(VirtualTime::from_nanos(ended?).max(drained))
}

/// Start times of the requests of an open loop.
enum Starts<'a> {
    Drawn(Arrivals, Rng),
    Recorded(std::slice::Iter<'a, Traced>),
}

impl Starts<'_> {
    /// The next start in nanoseconds since the load began; `u64::MAX` after the last.
    fn next(&mut self) -> u64 {
        match self {
            Starts::Drawn(arrivals, rng) => arrivals.next(rng),
            Starts::Recorded(trace) => trace.next().map_or(u64::MAX, |traced| traced.at_ns),
        }
    }
}

/// Completes all queued requests, so that a later load on the device does not receive them. Returns the instant of
/// the last completion.
fn drain<D: BlockDevice + ?Sized>(device: &mut D) -> VirtualTime {
    let mut end = VirtualTime::START;
    while device.next_done().is_some() {
        if let Some((_, completion)) = device.finish() {
            end = end.max(completion.at);
        }
    }
    end
}

/// The source of requests.
enum Source<'a> {
    Drawn(Drawn),
    /// Used for at most as many requests as the trace has.
    Recorded {
        trace: &'a [Traced],
        taken: usize,
    },
}

impl Source<'_> {
    fn new(workload: &Workload, extents: &Extents, seed: Seed) -> Self {
        let generator = Generator::new(workload, Bytes::new(extents.length()), seed, 0, 1);
        Source::Drawn(Drawn { generator, batch: Vec::with_capacity(AHEAD), taken: 0 })
    }

    #[inline]
    fn next<D: BlockDevice + ?Sized>(&mut self, device: &D, extents: &Extents) -> Request {
        match self {
            Source::Drawn(drawn) => drawn.next(device, extents),
            Source::Recorded { trace, taken } => {
                *taken += 1;
                trace[*taken - 1].request
            }
        }
    }
}

/// Generates requests in batches, ahead of their use.
struct Drawn {
    generator: Generator,
    batch: Vec<Request>,
    taken: usize,
}

impl Drawn {
    #[inline]
    fn next<D: BlockDevice + ?Sized>(&mut self, device: &D, extents: &Extents) -> Request {
        if self.taken == self.batch.len() {
            self.batch.clear();
            self.taken = 0;
            let mut on_device = [Request::flush(); AHEAD];
            for slot in &mut on_device {
                let request = self.generator.next_request();
                let mut first = true;
                extents.split(&request, |part| {
                    if std::mem::take(&mut first) {
                        *slot = part;
                    }
                });
                self.batch.push(request);
            }
            device.warm(&on_device);
        }
        self.taken += 1;
        self.batch[self.taken - 1]
    }
}

struct Load<'a, D: ?Sized> {
    device: &'a mut D,
    extents: &'a Extents,
    source: Source<'a>,
    in_flight: InFlight<Operation>,
    waiting: Waiting,
    start_ns: u64,
    /// Number of requests still to be issued.
    left: u64,
    /// Each write is followed by a flush.
    flushes: bool,
    /// Number of failed requests. `None` if the first failure ends the load.
    failed: Option<u64>,
}

impl<'a, D: BlockDevice + ?Sized> Load<'a, D> {
    fn new(device: &'a mut D, extents: &'a Extents, source: Source<'a>, span: Span) -> Self {
        Load {
            device,
            extents,
            source,
            in_flight: InFlight::default(),
            waiting: Waiting::default(),
            start_ns: span.start.as_nanos(),
            left: span.requests.unwrap_or(u64::MAX),
            flushes: false,
            failed: None,
        }
    }

    /// Counts a failed request.
    ///
    /// # Errors
    /// The error itself if the first failure ends the load.
    fn fail(&mut self, error: DeviceError) -> Result<(), DeviceError> {
        *self.failed.as_mut().ok_or(error)? += 1;
        Ok(())
    }

    /// Submits the next request at `now_ns`.
    #[inline]
    fn issue(&mut self, now_ns: u64) -> Result<(), DeviceError> {
        let request = self.source.next(self.device, self.extents);
        self.submit(now_ns, &request, Operation::new(now_ns, &request, self.flushes))
    }

    /// Submits a request at `now_ns` on behalf of `operation`.
    #[inline]
    fn submit(
        &mut self,
        now_ns: u64,
        request: &Request,
        mut operation: Operation,
    ) -> Result<(), DeviceError> {
        let tag = self.waiting.next_tag();
        let mut done_ns = now_ns;
        let mut queued = 0;
        let mut status = Ok(());
        let (device, now) = (&mut *self.device, VirtualTime::from_nanos(now_ns));
        self.extents.split(request, |part| match device.begin(now, &part, tag) {
            None => queued += 1,
            Some(completion) => {
                done_ns = done_ns.max(completion.at.as_nanos());
                if status.is_ok() {
                    status = completion.status;
                }
            }
        });
        if let Err(error) = status {
            self.fail(error)?;
            operation = operation.failed();
        }
        match queued {
            0 => self.in_flight.push(done_ns, operation),
            parts => self.waiting.add(Queued { operation, parts, done_ns }),
        }
        Ok(())
    }

    /// Removes the next operation that completes by `until_ns`. The limit matters, because a request submitted at
    /// that time may change later completions. A write that needs a flush completes with the flush.
    #[inline]
    fn next_done(&mut self, until_ns: u64) -> Result<Option<(u64, Operation)>, DeviceError> {
        loop {
            match self.next_completion(until_ns)? {
                Some((done_ns, operation)) if operation.is_unflushed() => {
                    self.submit(done_ns, &Request::flush(), operation.flushing())?;
                }
                next => return Ok(next),
            }
        }
    }

    /// Like [`Load::next_done`], but also returns writes whose flush has not been issued.
    #[inline]
    fn next_completion(&mut self, until_ns: u64) -> Result<Option<(u64, Operation)>, DeviceError> {
        while let Some(at) = self.device.next_done() {
            if at.as_nanos() > until_ns {
                break;
            }
            if self.in_flight.first_ns() <= at.as_nanos() {
                break;
            }
            let Some((tag, completion)) = self.device.finish() else { continue };
            let operation = self.waiting.complete(tag, &completion);
            if let Err(error) = completion.status {
                self.fail(error)?;
            }
            if let Some((done_ns, operation)) = operation {
                self.in_flight.push(done_ns, operation);
            }
        }
        Ok(if self.in_flight.first_ns() <= until_ns { self.in_flight.pop() } else { None })
    }

    /// Passes the intervals that ended by `now_ns` to `each`.
    #[inline]
    fn hand_out(
        &self,
        recorder: &mut Recorder,
        now_ns: u64,
        each: &mut dyn FnMut(Interval) -> Control,
    ) -> Control {
        let since_start = now_ns - self.start_ns;
        if since_start < recorder.interval_end_ns() {
            return Control::Continue;
        }
        let counters = self.device.counters();
        while let Some(ended) = recorder.take_ended(since_start, Some(counters)) {
            if each(ended) == Control::Stop {
                return Control::Stop;
            }
        }
        Control::Continue
    }

    fn closed(
        &mut self,
        mut recorder: Recorder,
        outstanding: usize,
        each: &mut dyn FnMut(Interval) -> Control,
    ) -> Result<u64, DeviceError> {
        for _ in 0..outstanding {
            self.issue_wanted(self.start_ns)?;
        }
        let mut now_ns = self.start_ns;
        while let Some((done_ns, operation)) = self.next_done(u64::MAX)? {
            now_ns = done_ns;
            if self.hand_out(&mut recorder, now_ns, each) == Control::Stop {
                return Ok(now_ns);
            }
            operation.record(&mut recorder, now_ns);
            self.issue_wanted(now_ns)?;
        }
        Ok(self.finish(recorder, now_ns, each))
    }

    /// Issues the next request unless all requests have been issued.
    #[inline]
    fn issue_wanted(&mut self, now_ns: u64) -> Result<(), DeviceError> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.issue(now_ns)
    }

    /// Passes the last, shortened interval to `each`. Returns `now_ns`.
    fn finish(&self, recorder: Recorder, now_ns: u64, each: &mut dyn FnMut(Interval) -> Control) -> u64 {
        if let Some(last) = recorder.finish(now_ns - self.start_ns, Some(self.device.counters())) {
            each(last);
        }
        now_ns
    }

    fn open(
        &mut self,
        mut recorder: Recorder,
        mut starts: Starts<'_>,
        each: &mut dyn FnMut(Interval) -> Control,
    ) -> Result<u64, DeviceError> {
        let mut now_ns = self.start_ns;
        loop {
            let last = self.left == 0;
            let arrival_ns = if last { u64::MAX } else { self.start_ns + starts.next() };
            while let Some((done_ns, operation)) = self.next_done(arrival_ns)? {
                now_ns = done_ns;
                if self.hand_out(&mut recorder, now_ns, each) == Control::Stop {
                    return Ok(now_ns);
                }
                operation.record(&mut recorder, now_ns);
            }
            if last {
                return Ok(self.finish(recorder, now_ns, each));
            }
            if self.hand_out(&mut recorder, arrival_ns, each) == Control::Stop {
                return Ok(arrival_ns);
            }
            self.issue_wanted(arrival_ns)?;
        }
    }
}

#[cfg(test)]
mod tests;
