//! The load on files or a block device of the host, in wall time.
//!
//! The load on databases is in module `terminals`.

use super::watch::Watch;
use super::{Each, Ended, burst};
use crate::experiment::{Length, Load};
use crate::prepare::PreparedHost;
use lowtide_core::trace::Pacing;
use lowtide_core::{Bytes, Interval, Seed};
use lowtide_host::HostError;
use lowtide_host::engine::{self, EngineChoice, Summary};
use lowtide_record::Row;
use lowtide_record::analysis::{Context, Medium};
use std::sync::atomic::AtomicBool;

/// Limit of requests in flight when a trace is replayed at its recorded times. Further requests wait, and their
/// latency includes the wait.
const SLOTS: u64 = 64;
/// Bytes of memory for the buffers of read requests; write requests have the same amount.
const SLOT_MEMORY: u64 = 256 << 20;

fn slots(longest: Bytes) -> u32 {
    (SLOT_MEMORY / longest.get()).clamp(1, SLOTS) as u32
}

/// Runs `load` on a prepared target, and calls `each` for every interval.
///
/// # Errors
/// [`HostError`] if the engine cannot run or the target fails.
pub fn on_host(
    prepared: &PreparedHost<'_>,
    load: &Load,
    seed: Seed,
    interrupt: &AtomicBool,
    each: &mut Each<'_>,
) -> Result<(Ended, Summary), HostError> {
    let data = prepared.data;
    let mut workload = load.workload();
    let trace = load.work.trace().and_then(|replay| replay.trace.as_ref());
    let replay = trace.zip(load.pacing());
    if let Some((trace, pacing)) = replay {
        workload.block = trace.longest();
        workload.depth = match pacing {
            Pacing::AsFastAsPossible { depth } => depth,
            Pacing::Recorded => slots(trace.longest()),
        };
    }
    let context = Context {
        capacity: prepared.capacity,
        raw_capacity: None,
        data: data.size(),
        read_only: workload.reads_only(),
        medium: if prepared.rotational { Medium::Other } else { Medium::Unknown },
        written_before: prepared.written_before,
    };
    let mut watch = Watch::new(load, context);
    let on_interval = &mut |interval: Interval| {
        let row = Row::of(&interval);
        let control = watch.push(&row);
        each(&interval, watch.progress(&row), &|| watch.so_far());
        control
    };
    let (duration, requests) = match load.length {
        Length::For(span) => (Some(span), None),
        Length::Requests(number) => (None, Some(number)),
        Length::UntilSteady { .. } => (None, None),
    };
    let (interval, engine, workload) = (load.interval, EngineChoice::Auto, &workload);
    let request =
        engine::Load { data, workload, replay, seed, interval, duration, requests, engine, interrupt };
    let summary = match load.bursts() {
        Some(when) => burst::on_host(&request, when, on_interval)?,
        None => engine::run(&request, on_interval)?,
    };
    let ended = match summary.ended {
        engine::Ended::Interrupted => Ended::Interrupted,
        engine::Ended::Duration | engine::Ended::Stopped => Ended::Complete(watch.so_far()),
    };
    Ok((ended, summary))
}
