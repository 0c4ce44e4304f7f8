//! Starts the threads of a measurement and sets each one up.
//!
//! A thread sends [`Message::Ready`] once, then intervals, then [`Message::Ended`]. If it cannot be set up, it sends
//! [`Message::Failed`] only. [`super::run()`] waits for the threads.

use super::schedule::Schedule;
use super::worker::{Message, Replay, Shared, ThreadSummary, Worker};
use super::{Engine, null, sync, uring};
use crate::error::{HostError, Operation};
use lowtide_core::trace::Pacing;
use std::io;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// Stack size of a thread, in bytes.
const STACK: usize = 256 << 10;

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
    let mut common = None;
    for number in 0..workers {
        let (own, for_worker, to) = (Arc::clone(shared), Arc::clone(shared), outbox.clone());
        let ready = move |note| Worker::new(for_worker, number, workers, to, note);
        let body: Box<dyn FnOnce() -> io::Result<ThreadSummary> + Send> = match engine {
            Engine::Uring => {
                let schedule = schedule(number);
                Box::new(move || {
                    let (ring, note) = uring::Ring::new(&own, number)?;
                    uring::work(ready(note), ring, schedule)
                })
            }
            Engine::Null => {
                let schedule = schedule(number);
                Box::new(move || {
                    let buffers = own.buffers(depth, number)?;
                    Ok(null::work(ready(None), buffers, schedule))
                })
            }
            Engine::Sync => {
                if number % depth == 0 {
                    common = schedule(number / depth).map(|schedule| Arc::new(Mutex::new(schedule)));
                }
                let schedule = common.clone();
                Box::new(move || {
                    let buffers = own.buffers(1, number)?;
                    Ok(sync::work(ready(None), buffers, schedule))
                })
            }
        };
        let outbox = outbox.clone();
        let thread = move || {
            // The default timer slack would delay the starts of an open loop by up to 50 µs.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            let last = match catch_unwind(AssertUnwindSafe(body)) {
                Ok(result) => result.map_or_else(Message::Failed, Message::Ended),
                Err(payload) => Message::Panicked(payload),
            };
            // Sending fails if the collector has given up this thread.
            let _ = outbox.send(last);
        };
        std::thread::Builder::new()
            .name(format!("lowtide-{engine}-{number}"))
            .stack_size(STACK)
            .spawn(thread)
            .map_err(HostError::io(Operation::SetUp, &shared.data.files()[0]))?;
    }
    Ok(workers)
}
