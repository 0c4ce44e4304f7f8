//! The common part of all worker threads ([`Worker`]): drawing requests, counting completions, delivering intervals,
//! and noticing the end.
//!
//! The engines [`super::uring`], [`super::sync`] and [`super::null`] carry out the requests.

use super::buffer::Buffers;
use super::files::OpenFiles;
use crate::clock::GapClock;
use crate::error::{IoFailure, Operation};
use crate::target::TestData;
use lowtide_core::measure::{Clock, Reading};
use lowtide_core::trace::{Pacing, Trace, Traced};
use lowtide_core::{Generator, Interval, Nanos, Op, Recorder, Seed, Workload};
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Failures of one thread at which the measurement is given up. Each success cancels [`FORGIVEN`] failures, so this
/// limit is reached only if more than ten of eleven requests fail.
const FAILURES_MAX: u32 = 1000;
/// Failures that one success cancels.
const FORGIVEN: u32 = 10;

/// The time for requests in flight at the end. A thread that takes longer is given up.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// Notice of an early end, in nanoseconds, so that all threads end their last interval at the same instant.
pub(super) const NOTICE_NS: u64 = 1_000_000;

/// A trace and the position in it.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) trace: Arc<Trace>,
    pub(super) pacing: Pacing,
    /// The position of the next request.
    next: AtomicUsize,
}

impl Replay {
    pub(super) fn new(trace: &Arc<Trace>, pacing: Pacing) -> Replay {
        Replay { trace: Arc::clone(trace), pacing, next: AtomicUsize::new(0) }
    }

    /// The next request; `None` after the last.
    fn take(&self) -> Option<&Traced> {
        self.trace.requests().get(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// The state that all threads of a measurement share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) data: TestData,
    pub(super) files: OpenFiles,
    pub(super) workload: Workload,
    /// The trace that replaces the generator.
    pub(super) replay: Option<Replay>,
    pub(super) seed: Seed,
    pub(super) interval: Nanos,
    /// The clock of the measurement, set when all threads are ready; it holds `None` if there will be no measurement.
    pub(super) clock: OnceLock<Option<GapClock>>,
    /// The end of the measurement, in nanoseconds of its clock.
    pub(super) end_ns: AtomicU64,
    /// The remaining number of requests, if it is limited.
    pub(super) wanted: Option<AtomicI64>,
    pub(super) first_failure: Mutex<Option<IoFailure>>,
}

impl Shared {
    /// Reads the clock of the measurement; 0 without one.
    #[inline]
    pub(super) fn now(&self) -> Reading {
        let clock = self.clock.get().and_then(Option::as_ref);
        clock.map_or(Reading { ns: 0, gaps: 0 }, GapClock::read)
    }

    /// The end of the measurement, in nanoseconds of its clock.
    #[inline]
    pub(super) fn end_ns(&self) -> u64 {
        self.end_ns.load(Ordering::Relaxed)
    }

    /// Memory for `slots` requests of thread `thread`.
    pub(super) fn buffers(&self, slots: u32, thread: u32) -> io::Result<Buffers> {
        let workload = &self.workload;
        let (reads, writes) = (workload.read_share > 0.0, !workload.reads_only());
        let seed = self.seed.part("write-data", u64::from(thread));
        Buffers::new(slots as usize, workload.block.get() as usize, reads, writes, seed)
    }

    /// Brings the end forward to `at_ns`.
    pub(super) fn end_by(&self, at_ns: u64) {
        self.end_ns.fetch_min(at_ns, Ordering::Relaxed);
    }
}

/// A message from a worker thread to the collector.
pub(super) enum Message {
    /// The thread is ready. The text names a feature that the kernel refused.
    Ready(Option<String>),
    /// An interval has passed.
    Interval(Interval),
    /// The thread has ended.
    Ended(ThreadSummary),
    /// The thread could not be set up, or the kernel refused to use its ring.
    Failed(io::Error),
    /// A bug.
    Panicked(Box<dyn std::any::Any + Send>),
}

/// The last report of a thread.
#[derive(Debug)]
pub(super) struct ThreadSummary {
    /// The last, unfinished interval.
    pub(super) tail: Option<Interval>,
    /// Requests of an open loop that were due before the end and had not completed by then.
    pub(super) unfinished: u64,
    /// The number of failures at which the thread gave up.
    pub(super) gave_up: Option<u32>,
    /// Number of completed requests.
    pub(super) completed: u64,
}

/// A request as an engine issues it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Issued {
    pub(super) op: Op,
    pub(super) length: u32,
    pub(super) file: u32,
    /// Offset in the file.
    pub(super) offset: u64,
    /// Offset in the test data.
    pub(super) data_offset: u64,
    /// Intended start, in nanoseconds of the measurement's clock.
    pub(super) start_ns: u64,
    /// A number that is unique among the writes of the thread.
    pub(super) number: u64,
    /// Gaps of the clock before the request.
    pub(super) gaps: u32,
}

impl Issued {
    /// The content of an unused slot.
    pub(super) const NONE: Issued = Issued {
        op: Op::Read,
        length: 0,
        file: 0,
        offset: 0,
        data_offset: 0,
        start_ns: 0,
        number: 0,
        gaps: 0,
    };

    /// The bytes to move: 0 for flushes and discards.
    pub(super) fn moves(&self) -> u32 {
        if matches!(self.op, Op::Read | Op::Write { .. }) { self.length } else { 0 }
    }
}

/// One thread of the measurement.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    /// Gaps of the clock before the last reading.
    gaps: u32,
    /// Draws requests; `None` with a trace.
    generator: Option<Generator>,
    recorder: Recorder,
    outbox: Sender<Message>,
    numbers: u64,
    failures: u32,
    gave_up: Option<u32>,
    completed: u64,
}

impl Worker {
    /// Worker `worker` of `workers`. Reports that the thread is ready, with a `note`, and waits until all are.
    pub(super) fn new(
        shared: Arc<Shared>,
        worker: u32,
        workers: u32,
        outbox: Sender<Message>,
        note: Option<String>,
    ) -> Worker {
        let workload = &shared.workload;
        let drawn = || Generator::new(workload, shared.data.size(), shared.seed, worker, workers);
        let generator = shared.replay.is_none().then(drawn);
        let recorder = Recorder::new(shared.interval);
        let _ = outbox.send(Message::Ready(note));
        shared.clock.wait();
        Worker {
            generator,
            recorder,
            outbox,
            gaps: 0,
            numbers: u64::from(worker) << 40,
            failures: 0,
            gave_up: None,
            completed: 0,
            shared,
        }
    }

    /// Nanoseconds of the measurement's clock.
    #[inline]
    pub(super) fn now_ns(&mut self) -> u64 {
        let reading = self.shared.now();
        self.gaps = reading.gaps;
        reading.ns
    }

    /// Delivers the intervals that ended by `now_ns`. Returns whether the measurement continues.
    #[inline]
    pub(super) fn pass(&mut self, now_ns: u64) -> bool {
        let end_ns = self.shared.end_ns();
        let passed_ns = now_ns.min(end_ns);
        while let Some(interval) = self.recorder.take_ended(passed_ns, None) {
            // Sending fails if the collector has given up this thread, which then ends by itself.
            let _ = self.outbox.send(Message::Interval(interval));
        }
        now_ns < end_ns
    }

    /// The next request, starting at `start_ns`; `None` at the end of a trace.
    #[inline]
    pub(super) fn next(&mut self, start_ns: u64) -> Option<Issued> {
        let request = match (&mut self.generator, &self.shared.replay) {
            (Some(generator), _) => generator.next_request(),
            (None, replay) => replay.as_ref()?.take()?.request,
        };
        let (file, offset) = self.shared.data.locate(request.offset);
        self.numbers += 1;
        Some(Issued {
            op: request.op,
            length: request.length as u32,
            file: file as u32,
            offset,
            data_offset: request.offset,
            start_ns,
            number: self.numbers,
            gaps: self.gaps,
        })
    }

    /// Restarts a request at the last reading of the clock, so that earlier gaps do not affect it.
    #[inline]
    pub(super) fn begun(&self, issued: Issued) -> Issued {
        Issued { gaps: self.gaps, ..issued }
    }

    /// Counts a request that completed at `now_ns` with `result`: bytes moved, or a negated error number. A request
    /// that was in flight during a gap is left out, because its latency is unknown.
    #[inline]
    pub(super) fn complete(&mut self, issued: &Issued, now_ns: u64, result: i32) {
        if i64::from(result) == i64::from(issued.moves()) {
            self.failures = self.failures.saturating_sub(FORGIVEN);
            if issued.gaps != self.gaps {
                self.leave_out(now_ns);
                return;
            }
            self.completed += 1;
            self.count_down(now_ns);
            if issued.moves() > 0 {
                let took = Nanos::new(now_ns.saturating_sub(issued.start_ns));
                self.recorder.record(issued.op == Op::Read, u64::from(issued.length), took);
            }
        } else {
            self.fail(issued, now_ns, result);
        }
    }

    /// Counts down the remaining requests.
    #[inline]
    fn count_down(&self, now_ns: u64) {
        if let Some(wanted) = &self.shared.wanted
            && wanted.fetch_sub(1, Ordering::Relaxed) <= 1
        {
            self.shared.end_by(now_ns + NOTICE_NS);
        }
    }

    #[cold]
    fn leave_out(&self, now_ns: u64) {
        if self.shared.replay.is_some() {
            // No other request of a trace replaces this one.
            self.count_down(now_ns);
        }
    }

    #[cold]
    fn fail(&mut self, issued: &Issued, now_ns: u64, result: i32) {
        self.recorder.record_error();
        if self.shared.replay.is_some() {
            // No other request of a trace replaces this one.
            self.count_down(now_ns);
        }
        self.failures += 1;
        if self.failures >= FAILURES_MAX && self.gave_up.is_none() {
            self.gave_up = Some(self.failures);
            self.shared.end_by(now_ns);
        }
        let mut first = self.shared.first_failure.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            let source = if result < 0 {
                io::Error::from_raw_os_error(-result)
            } else {
                io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("only {result} of {} bytes moved", issued.length),
                )
            };
            *first = Some(IoFailure {
                operation: match issued.op {
                    Op::Read => Operation::Read,
                    Op::Write { .. } | Op::WriteZeroes => Operation::Write,
                    Op::Trim => Operation::Discard,
                    Op::Flush => Operation::Sync,
                },
                path: self.shared.data.files()[issued.file as usize].clone(),
                offset: issued.offset,
                source,
            });
        }
    }

    /// Ends the thread.
    pub(super) fn finish(self, unfinished: u64) -> ThreadSummary {
        let tail = self.recorder.finish(self.shared.end_ns(), None);
        ThreadSummary { tail, unfinished, gave_up: self.gave_up, completed: self.completed }
    }
}
