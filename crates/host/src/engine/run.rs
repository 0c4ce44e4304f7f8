//! Runs a measurement ([`run`]): delivers intervals when all threads have passed them, and ends the measurement.
//!
//! The work of the threads is in [`super::worker`].

use super::choice::Engine;
use super::collect::Collector;
use super::files::OpenFiles;
use super::load::{Ended, Load, Summary};
use super::threads;
use super::uring;
use super::worker::{GRACE, Message, NOTICE_NS, Replay, Shared};
use crate::clock::GapClock;
use crate::error::{HostError, Operation};
use lowtide_core::{Control, Interval, Nanos};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Interval between checks of the interrupt flag.
const TICK: Duration = Duration::from_millis(20);

/// Runs a load. Each interval, merged over all threads, is passed to `on_interval` on the calling thread, in order,
/// as soon as all threads have passed it. The last interval may be shorter. Intervals after [`Control::Stop`] are
/// still delivered, and their return values ignored.
///
/// # Errors
/// [`HostError::Invalid`] for an invalid load. [`HostError::NoUring`] if io_uring was chosen by name and the kernel
/// refuses it. [`HostError::Io`] if a file cannot be opened, or an engine not set up. [`HostError::TooManyErrors`] if
/// a thread had a thousand failures and hardly a success; single failures are counted in their interval. Intervals
/// before an error have been delivered.
///
/// # Panics
/// If one of its threads panics, with the same payload.
pub fn run(load: &Load<'_>, on_interval: &mut dyn FnMut(Interval) -> Control) -> Result<Summary, HostError> {
    let (engine, note) = load.engine.resolve(uring::probe)?;
    load.validate(engine)?;
    let workload = load.workload;
    let files = match engine {
        Engine::Null => OpenFiles { files: Vec::new(), direct: true },
        _ => OpenFiles::open(load.data, load.unit(), load.changes_data())?,
    };
    let shared = Arc::new(Shared {
        data: load.data.clone(),
        files,
        workload: workload.clone(),
        replay: load.replay.map(|(trace, pacing)| Replay::new(trace, pacing)),
        seed: load.seed,
        interval: load.interval,
        clock: OnceLock::new(),
        end_ns: AtomicU64::new(load.duration.map_or(u64::MAX, Nanos::get)),
        wanted: load.requests.map(|requests| AtomicI64::new(i64::try_from(requests).unwrap_or(i64::MAX))),
        first_failure: Mutex::new(None),
    });
    let (outbox, inbox) = channel();
    let workers = threads::start(engine, &shared, &outbox);
    drop(outbox);
    let mut notes: Vec<String> = note.into_iter().collect();
    let ready = workers.and_then(|workers| {
        notes.extend(all_ready(&inbox, workers, &shared)?);
        let clock = GapClock::start().map_err(HostError::io(Operation::SetUp, &load.data.files()[0]))?;
        Ok((workers, clock))
    });
    let (workers, clock) = ready.inspect_err(|_| {
        // Releases the threads that are ready; without a clock they end at once.
        shared.end_by(0);
        let _ = shared.clock.set(None);
    })?;
    let _ = shared.clock.set(Some(clock));
    let mut summary = Summary {
        engine,
        notes,
        direct: shared.files.direct,
        elapsed: Nanos::ZERO,
        gaps: Vec::new(),
        completed: 0,
        errors: 0,
        first_failure: None,
        unfinished: 0,
        stuck_threads: 0,
        ended: Ended::Duration,
    };
    let gave_up = collect(load, &shared, &inbox, workers, on_interval, &mut summary)?;
    let first = shared.first_failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (gave_up, first) {
        (Some(failures), Some(first)) => Err(HostError::TooManyErrors { failures, first }),
        (_, first_failure) => Ok(Summary { first_failure, ..summary }),
    }
}

/// Delivers intervals until all threads have ended. Returns the number of failures if a thread gave up.
fn collect(
    load: &Load<'_>,
    shared: &Shared,
    inbox: &Receiver<Message>,
    workers: u32,
    on_interval: &mut dyn FnMut(Interval) -> Control,
    summary: &mut Summary,
) -> Result<Option<u32>, HostError> {
    let mut collector = Collector::new(workers as usize, load.interval);
    let (mut running, mut gave_up, mut failure, mut early) = (workers, None, None, false);
    let mut deliver = |interval: Interval, summary: &mut Summary| {
        summary.errors += interval.errors;
        on_interval(interval)
    };
    while running > 0 {
        match inbox.recv_timeout(TICK) {
            Ok(Message::Interval(interval)) => collector.add(interval),
            Ok(Message::Ended(thread)) => {
                running -= 1;
                thread.tail.into_iter().for_each(|tail| collector.add(tail));
                summary.unfinished += thread.unfinished;
                summary.completed += thread.completed;
                gave_up = gave_up.max(thread.gave_up);
            }
            Ok(Message::Failed(error)) => {
                running -= 1;
                failure = Some(error);
                shared.end_by(shared.now().ns + NOTICE_NS);
            }
            Ok(Message::Panicked(payload)) => std::panic::resume_unwind(payload),
            Ok(Message::Ready(_)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let now_ns = shared.now().ns;
        while let Some(interval) = collector.complete() {
            if deliver(interval, summary) == Control::Stop && !early {
                (early, summary.ended) = (true, Ended::Stopped);
            }
        }
        if !early && now_ns < shared.end_ns() && load.interrupt.load(Ordering::Relaxed) {
            (early, summary.ended) = (true, Ended::Interrupted);
        }
        if early {
            shared.end_by(shared.now().ns + NOTICE_NS);
        }
        if now_ns > shared.end_ns().saturating_add((GRACE + GRACE / 10).as_nanos() as u64) {
            break;
        }
    }
    while let Some(interval) = collector.next() {
        deliver(interval, summary);
    }
    summary.stuck_threads = running;
    let end_ns = shared.end_ns();
    summary.elapsed = Nanos::new(end_ns);
    let clock = shared.clock.get().and_then(Option::as_ref);
    summary.gaps = clock.map(GapClock::gaps).unwrap_or_default();
    summary.gaps.retain(|gap| gap.at_ns <= end_ns);
    match failure {
        Some(source) => Err(HostError::io(Operation::SetUp, &load.data.files()[0])(source)),
        None => Ok(gave_up),
    }
}

/// Waits until all threads are ready. Returns the first note.
fn all_ready(inbox: &Receiver<Message>, workers: u32, shared: &Shared) -> Result<Option<String>, HostError> {
    let mut note = None;
    for _ in 0..workers {
        match inbox.recv() {
            Ok(Message::Ready(theirs)) => note = note.or(theirs),
            Ok(Message::Failed(source)) => {
                return Err(HostError::io(Operation::SetUp, &shared.data.files()[0])(source));
            }
            Ok(Message::Panicked(payload)) => std::panic::resume_unwind(payload),
            Ok(Message::Interval(_) | Message::Ended(_)) | Err(_) => {
                unreachable!("a thread first reports that it is ready")
            }
        }
    }
    Ok(note)
}
