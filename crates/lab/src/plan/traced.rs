//! The trace of a plan: read once, fitted to each cell's data, and part of the plan's identity.
//!
//! The formats of traces are in `lowtide_files::trace`.

use super::PlanTarget;
use crate::experiment::{BadInput, Experiment, Length, Load, Pattern, ReplayPace, Settings, Work};
use lowtide_core::trace::{Trace, TraceError};
use lowtide_core::{Bytes, Nanos, Op};
use lowtide_files::trace;
use std::sync::Arc;

const KEY: &str = "workload.trace";

/// Reads the trace that the experiment names; `None` without a trace.
pub(super) fn read(
    experiment: &Experiment,
    target: &PlanTarget,
    scale: u64,
) -> Result<Option<Arc<Trace>>, BadInput> {
    let Some(replay) = experiment.load.work.trace() else { return Ok(None) };
    let trace = trace::read(&replay.path).map_err(|error| {
        experiment.blame(KEY, format!("{}: {error}", replay.path.display()), trace::ACCEPTED)
    })?;
    if scale > 1 {
        let help = "run it without `--scale`, on a device of its own size";
        return Err(experiment.blame(KEY, "a trace has a fixed size, which is not divided", help));
    }
    if replay.pace == ReplayPace::Recorded && trace.count() > 1 && trace.length() == Nanos::ZERO {
        let help =
            "`pace = \"as-fast-as-possible\"`; or a trace with times, such as version 3 of fio's iolog";
        return Err(experiment.blame(KEY, "all requests of the trace have the same time", help));
    }
    let files = experiment.steps.iter().map(|step| step.preparation.layout.files).max();
    if !target.is_simulated() && files > Some(1) {
        let help = "`layout.files = 1`: a request may cross from one file to the next";
        return Err(experiment.blame("before-each-cell.layout", "a trace on several files", help));
    }
    Ok(Some(Arc::new(trace)))
}

/// The size of the data for a trace on files, if the experiment gives none: up to the last byte of the trace.
pub(super) fn needs(trace: &Trace, settings: &Settings, target: &PlanTarget) -> Option<Bytes> {
    let files = matches!(target, PlanTarget::Host(_)) && settings.load.utilisation.is_none();
    files.then(|| trace.end().align_up(settings.load.block).max(settings.load.block))
}

/// Fits the trace to the data of a cell.
pub(super) fn place(
    experiment: &Experiment,
    settings: &mut Settings,
    trace: &Arc<Trace>,
    data: Bytes,
) -> Result<(), BadInput> {
    let load = &mut settings.load;
    let Work::Trace(replay) = &mut load.work else { panic!("the experiment has a trace") };
    let placed = if trace.end() <= data {
        Arc::clone(trace)
    } else {
        Arc::new(Trace::on((**trace).clone(), data, replay.wrap).map_err(|error| {
            let help = match error {
                TraceError::Beyond { .. } => {
                    "more data (`file_size`), or `wrap = true` to begin again from the front"
                }
                _ => "more data (`file_size`)",
            };
            experiment.blame(KEY, error.to_string(), help)
        })?)
    };
    // Later stages use the share of reads and the length of the load.
    (load.pattern, load.mix) = (Pattern::RandomMixed, placed.read_share());
    if let Length::Requests(wanted) = &mut load.length {
        *wanted = placed.count().min(*wanted);
    }
    replay.trace = Some(placed);
    Ok(())
}

/// The duration of a trace at its recorded times; `None` if it runs as fast as possible.
pub(super) fn longest(load: &Load) -> Option<Nanos> {
    let replay = load.work.trace().filter(|replay| replay.pace == ReplayPace::Recorded)?;
    Some(replay.trace.as_ref()?.length())
}

/// Describes a trace in one line.
pub(super) fn describe(trace: &Trace) -> String {
    let count = |wanted: fn(Op) -> bool| trace.requests().iter().filter(|it| wanted(it.request.op)).count();
    format!(
        "{} reads, {} writes, {} trims, {} flushes in {:.3} s, up to {}",
        count(|op| op == Op::Read),
        count(|op| matches!(op, Op::Write { .. })),
        count(|op| op == Op::Trim),
        count(|op| op == Op::Flush),
        trace.length().as_secs_f64(),
        trace.end()
    )
}

/// A hash of all requests of a trace (FNV-1a, 64 bits).
pub(super) fn digest(trace: &Trace) -> u64 {
    let numbers = trace.requests().iter().flat_map(|it| {
        let op = match it.request.op {
            Op::Read => 0,
            Op::Write { fua } => 1 + u64::from(fua),
            Op::Trim => 3,
            Op::WriteZeroes => 4,
            Op::Flush => 5,
        };
        [it.at_ns, op, it.request.offset, it.request.length]
    });
    let bytes = numbers.flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
