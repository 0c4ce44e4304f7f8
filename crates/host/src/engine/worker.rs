//! [`Worker`]: what a worker thread of either engine does besides moving bytes: it draws requests, counts
//! completions, hands in intervals and notices the end.
//!
//! Not here: waiting for requests; that is all that [`super::uring`] and [`super::sync`] differ in.

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

/// Failures of one thread at which the measurement is given up: each request that succeeds takes back
/// [`FORGIVEN`], so it is given up only where more than ten of eleven requests fail.
const FAILURES_MAX: u32 = 1000;
/// Failures that one success makes up for.
const FORGIVEN: u32 = 10;

/// How long requests in flight at the end may take before their thread is given up.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// How far ahead an early end is set, so that every thread cuts its last interval at the same instant.
pub(super) const NOTICE_NS: u64 = 1_000_000;

/// A trace, and how far it is.
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

/// What all threads of a measurement share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) data: TestData,
    pub(super) files: OpenFiles,
    pub(super) workload: Workload,
    /// The trace that takes the place of the workload's requests.
    pub(super) replay: Option<Replay>,
    pub(super) seed: Seed,
    pub(super) interval: Nanos,
    /// The clock of the measurement; set once every thread is ready, to nothing where there is none.
    pub(super) clock: OnceLock<Option<GapClock>>,
    /// When it ends, in nanoseconds since it began.
    pub(super) end_ns: AtomicU64,
    /// Completed requests that are still wanted, where they are counted.
    pub(super) wanted: Option<AtomicI64>,
    pub(super) first_failure: Mutex<Option<IoFailure>>,
}

impl Shared {
    /// What the clock of the measurement shows; 0 where there is none.
    #[inline]
    pub(super) fn now(&self) -> Reading {
        let clock = self.clock.get().and_then(Option::as_ref);
        clock.map_or(Reading { ns: 0, gaps: 0 }, GapClock::read)
    }

    /// Brings the end forward to `at_ns`.
    pub(super) fn end_by(&self, at_ns: u64) {
        self.end_ns.fetch_min(at_ns, Ordering::Relaxed);
    }
}

/// What threads tell the one that collects.
pub(super) enum Message {
    /// The thread can begin; with what it had to do without.
    Ready(Option<String>),
    /// A period has passed in the thread.
    Interval(Interval),
    /// The thread has ended.
    Done(Done),
    /// The thread could not be set up, or the kernel refused its ring.
    Failed(io::Error),
    /// A bug.
    Panicked(Box<dyn std::any::Any + Send>),
}

/// What a thread says last.
#[derive(Debug)]
pub(super) struct Done {
    /// The unfinished period.
    pub(super) tail: Option<Interval>,
    /// Requests of an open loop meant to start before the end that had not completed by then.
    pub(super) unfinished: u64,
    /// Set where the thread gave up: the requests that failed with hardly one between them that succeeded.
    pub(super) gave_up: Option<u32>,
    /// Requests completed, counted apart from the intervals.
    pub(super) completed: u64,
}

/// A request as an engine issues it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Issued {
    pub(super) op: Op,
    pub(super) length: u32,
    pub(super) file: u32,
    /// First byte, in the file.
    pub(super) offset: u64,
    /// First byte, in the test data.
    pub(super) data_offset: u64,
    /// When it started or was meant to, in nanoseconds since the measurement began.
    pub(super) start_ns: u64,
    /// For writes, a number no other write of this thread has.
    pub(super) number: u64,
    /// Gaps of the clock before it.
    pub(super) gaps: u32,
}

impl Issued {
    /// What stands in a slot before its first request.
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

    /// The bytes it moves: none where it only flushes or discards.
    pub(super) fn moves(&self) -> u32 {
        if matches!(self.op, Op::Read | Op::Write { .. }) { self.length } else { 0 }
    }
}

/// One thread's part in the measurement.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    /// Gaps of the clock before its last reading.
    gaps: u32,
    /// Draws requests, where no trace has them.
    generator: Option<Generator>,
    recorder: Recorder,
    outbox: Sender<Message>,
    numbers: u64,
    failures: u32,
    gave_up: Option<u32>,
    completed: u64,
}

impl Worker {
    /// Worker `worker` of `workers`, which had to do without what `note` says. Says that this thread is ready, and
    /// waits until all are.
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

    /// Nanoseconds since the measurement began, without its gaps.
    #[inline]
    pub(super) fn now_ns(&mut self) -> u64 {
        let reading = self.shared.now();
        self.gaps = reading.gaps;
        reading.ns
    }

    /// Hands in the periods that ended by `now_ns`; whether the measurement goes on.
    #[inline]
    pub(super) fn pass(&mut self, now_ns: u64) -> bool {
        let end_ns = self.shared.end_ns.load(Ordering::Relaxed);
        let passed_ns = now_ns.min(end_ns);
        while let Some(interval) = self.recorder.take_ended(passed_ns, None) {
            // Nobody listens any more where this thread was given up; it then ends by itself.
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

    /// The request as issued at the last reading of the clock: earlier gaps do not count against it.
    #[inline]
    pub(super) fn begun(&self, issued: Issued) -> Issued {
        Issued { gaps: self.gaps, ..issued }
    }

    /// Counts a request that completed by `now_ns` with `result`: bytes moved, or a negated error number. Of one that was in
    /// flight over a gap nobody knows how long it took, and it was not done in the time that counts: it is left out.
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

    /// One request fewer is wanted.
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
            // A trace has no other request to make up for it.
            self.count_down(now_ns);
        }
    }

    #[cold]
    fn fail(&mut self, issued: &Issued, now_ns: u64, result: i32) {
        self.recorder.record_error();
        if self.shared.replay.is_some() {
            // A trace has no other request to make up for it.
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

    /// The last word of this thread.
    pub(super) fn finish(self, unfinished: u64) -> Done {
        let end_ns = self.shared.end_ns.load(Ordering::Relaxed);
        let tail = self.recorder.finish(end_ns, None);
        Done { tail, unfinished, gave_up: self.gave_up, completed: self.completed }
    }
}
