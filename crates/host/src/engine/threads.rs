//! Starts the threads of a measurement and sets each up.
//!
//! A thread says [`Message::Ready`] once, or [`Message::Failed`]; then intervals; then [`Message::Done`]. Leaves
//! out waiting for them.

use super::schedule::Schedule;
use super::worker::{Message, Replay, Shared, Worker};
use super::{Engine, null, sync, uring};
use crate::error::{HostError, Operation};
use lowtide_core::trace::Pacing;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// Bytes of a thread's stack.
const STACK: usize = 256 << 10;

/// Starts the threads of `engine`; how many.
pub(super) fn start(
    engine: Engine,
    shared: &Arc<Shared>,
    outbox: &Sender<Message>,
) -> Result<u32, HostError> {
    let (threads, depth) = (shared.workload.threads, shared.workload.depth);
    let schedule = |thread| match &shared.replay {
        Some(Replay { trace, pacing: Pacing::Recorded, .. }) => Some(Schedule::recorded(trace)),
        Some(_) => None,
        None => Schedule::new(shared.workload.arrival, shared.seed, thread, threads),
    };
    let workers = if engine == Engine::Sync { threads * depth } else { threads };
    let mut turns = None;
    for number in 0..workers {
        let place = Place { shared: Arc::clone(shared), number, workers, outbox: outbox.clone() };
        let body: Box<dyn FnOnce(Place) -> Message + Send> = match engine {
            Engine::Uring => {
                let schedule = schedule(number);
                Box::new(move |place| on_ring(place, schedule))
            }
            Engine::Null => {
                let schedule = schedule(number);
                Box::new(move |place| nowhere(place, schedule))
            }
            Engine::Sync => {
                if number % depth == 0 {
                    turns = schedule(number / depth).map(|schedule| Arc::new(Mutex::new(schedule)));
                }
                let turns = turns.clone();
                Box::new(move |place| plainly(place, turns))
            }
        };
        let outbox = outbox.clone();
        let whole = move || {
            // Timers of this thread fire when they are due, not up to 50 µs later: starts of an open loop.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            let last = catch_unwind(AssertUnwindSafe(|| body(place))).unwrap_or_else(Message::Panicked);
            // Nobody listens where this thread was given up.
            let _ = outbox.send(last);
        };
        std::thread::Builder::new()
            .name(format!("lowtide-{engine}-{number}"))
            .stack_size(STACK)
            .spawn(whole)
            .map_err(HostError::io(Operation::SetUp, &shared.data.files()[0]))?;
    }
    Ok(workers)
}

/// One thread among the threads of a measurement.
struct Place {
    shared: Arc<Shared>,
    number: u32,
    workers: u32,
    outbox: Sender<Message>,
}

fn on_ring(place: Place, schedule: Option<Schedule>) -> Message {
    let (ring, note) = match uring::Ring::new(&place.shared, place.number) {
        Ok(made) => made,
        Err(error) => return Message::Failed(error),
    };
    let worker = Worker::new(place.shared, place.number, place.workers, place.outbox, note);
    uring::work(worker, ring, schedule).map_or_else(Message::Failed, Message::Done)
}

fn nowhere(place: Place, schedule: Option<Schedule>) -> Message {
    let buffers = match null::buffers(&place.shared, place.number) {
        Ok(buffers) => buffers,
        Err(error) => return Message::Failed(error),
    };
    let worker = Worker::new(place.shared, place.number, place.workers, place.outbox, None);
    Message::Done(null::work(worker, buffers, schedule))
}

fn plainly(place: Place, turns: Option<sync::Turns>) -> Message {
    let buffers = match sync::buffers(&place.shared, place.number) {
        Ok(buffers) => buffers,
        Err(error) => return Message::Failed(error),
    };
    let worker = Worker::new(place.shared, place.number, place.workers, place.outbox, None);
    Message::Done(sync::work(worker, buffers, turns))
}
