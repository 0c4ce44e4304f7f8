//! The load on a simulated drive, in virtual time.

use super::events::{Events, Told, eventful};
use super::watch::{Going, Watch};
use super::{Each, Ended, burst};
use crate::experiment::{Length, Load};
use crate::prepare::PreparedDrive;
use lowtide_core::storage::{Place, Storage};
use lowtide_core::{BlockDevice, Bytes, DeviceError, Interval, Seed, virtual_load};
use lowtide_engines::inserts;
use lowtide_record::Row;
use lowtide_record::analysis::{Context, Medium};
use std::sync::atomic::AtomicBool;

/// What is known of a prepared drive apart from what is measured on it.
pub(super) fn context(prepared: &PreparedDrive<'_>, read_only: bool) -> Context {
    let PreparedDrive { drive, layout, written_before, database, .. } = prepared;
    Context {
        capacity: drive.capacity(),
        raw_capacity: drive.raw_capacity(),
        data: database.as_ref().map_or(Bytes::new(layout.files.length()), |database| database.engine.data()),
        read_only,
        // A disk, or a volume of which nobody tells what it is made of, has no honeymoon that is known of.
        medium: if drive.raw_capacity().is_some() { Medium::Flash } else { Medium::Other },
        written_before: Some(*written_before),
    }
}

/// Runs `load` on a prepared drive; `each` hears of every interval and of how far the load is. What came
/// of events is left in `told`.
///
/// # Errors
/// [`DeviceError`] where the drive refuses a request, which planned loads fit, or fails at one.
pub fn on_drive(
    prepared: PreparedDrive<'_>,
    load: &Load,
    seed: Seed,
    interrupt: &AtomicBool,
    each: &mut Each<'_>,
    told: &mut Vec<Told>,
) -> Result<Ended, DeviceError> {
    let watch = Watch::new(load, context(&prepared, load.workload().reads_only()));
    let mut going = Going::new(watch, interrupt);
    let PreparedDrive { drive, now, layout, database, cache, .. } = prepared;
    let extents = layout.files;
    let total = database.as_ref().map(|database| database.engine.total_rows());
    let mut rows = 0;
    let on_interval = &mut |interval: Interval| {
        let row = Row::of(&interval);
        rows += row.writes;
        going.push(&row, |share, so_far| {
            each(&interval, total.map_or(share, |total| rows as f64 / total as f64), so_far);
        })
    };
    if let Some(database) = database {
        let place = |offset| Place { device: 0, offset };
        let (data, log) = (place(database.data), place(database.log));
        let storage = Storage { devices: vec![drive.as_mut()], data, log };
        *now = inserts::run(&database.engine, storage, seed, *now, load.interval, on_interval)?;
        return Ok(going.ended());
    }
    let workload = load.workload();
    if let Some((burst, pause)) = load.bursts() {
        let when = (*now, burst, pause);
        *now = burst::on_device(drive.as_mut(), &extents, &workload, seed, when, on_interval)?;
        return Ok(going.ended());
    }
    let requests = match load.length {
        Length::Requests(number) => Some(number),
        Length::For(_) | Length::UntilSteady { .. } => None,
    };
    if let (Some(replay), Some(pacing)) = (load.work.trace(), load.pacing()) {
        let trace = replay.trace.as_ref().expect("the plan read the trace");
        let span = virtual_load::Span { start: *now, interval: load.interval, requests };
        *now = virtual_load::replay(drive, &extents, trace, pacing, span, on_interval)?;
        return Ok(going.ended());
    }
    let span = virtual_load::Span { start: *now, interval: load.interval, requests };
    if !load.events.is_empty() {
        let mut eventful = eventful(drive, cache, seed.part("events", 0));
        let mut events = Events::new(&load.events, *now);
        let ended = virtual_load::run_scripted(
            &mut eventful,
            &extents,
            &workload,
            seed,
            span,
            &mut events,
            on_interval,
        );
        *now = ended.end;
        *told = events.told(&ended);
        return Ok(going.ended());
    }
    *now = virtual_load::run_span(drive, &extents, &workload, seed, span, on_interval)?;
    Ok(going.ended())
}
