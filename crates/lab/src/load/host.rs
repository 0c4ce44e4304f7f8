//! The load on files, or a device, of the host, in wall time.

use super::watch::Watch;
use super::{Ended, burst};
use crate::analysis::{Context, Medium};
use crate::experiment::{Length, Load};
use crate::prepare::PreparedHost;
use crate::record::Row;
use lowtide_core::{Interval, Seed};
use lowtide_host::HostError;
use lowtide_host::engine::{self, EngineChoice, Summary};
use std::sync::atomic::AtomicBool;

/// Runs `load` on a prepared target; `each` hears of every interval and of how far the load is.
///
/// # Errors
/// [`HostError`] where the engine cannot run or the target fails.
pub fn on_host(
    prepared: &PreparedHost<'_>,
    load: &Load,
    engine: EngineChoice,
    seed: Seed,
    interrupt: &AtomicBool,
    each: &mut dyn FnMut(&Interval, f64),
) -> Result<(Ended, Summary), HostError> {
    let data = prepared.data;
    let workload = load.workload();
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
        each(&interval, watch.progress(&row));
        control
    };
    let (duration, requests) = match load.length {
        Length::For(span) => (Some(span), None),
        Length::Requests(number) => (None, Some(number)),
        Length::UntilSteady { .. } => (None, None),
    };
    let interval = load.interval;
    let request =
        engine::Load { data, workload: &workload, seed, interval, duration, requests, engine, interrupt };
    let summary = match load.bursts() {
        Some(when) => burst::on_host(&request, when, on_interval)?,
        None => engine::run(&request, on_interval)?,
    };
    let ended = match summary.ended {
        engine::Ended::Interrupted => Ended::Interrupted,
        engine::Ended::Duration | engine::Ended::Stopped => Ended::Complete(watch.verdict()),
    };
    Ok((ended, summary))
}
