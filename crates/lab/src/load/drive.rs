//! The load on a simulated drive, in virtual time.
//!
//! The load of terminals is in module `modelled`.

use super::events::{EventOutcome, Events, eventful};
use super::watch::{Interruptible, Watch};
use super::{Each, Ended, burst};
use crate::experiment::{Length, Load};
use crate::prepare::PreparedDrive;
use lowtide_core::storage::{Place, Storage};
use lowtide_core::{BlockDevice, Bytes, DeviceError, Interval, Seed, virtual_load};
use lowtide_engines::inserts;
use lowtide_record::Row;
use lowtide_record::analysis::{Context, Medium};
use std::sync::atomic::AtomicBool;

/// The context of the analysis of a load on a prepared drive.
pub(super) fn context(prepared: &PreparedDrive<'_>, read_only: bool) -> Context {
    let PreparedDrive { drive, layout, written_before, database, .. } = prepared;
    Context {
        capacity: drive.capacity(),
        raw_capacity: drive.raw_capacity(),
        data: database.as_ref().map_or(Bytes::new(layout.files.length()), |database| database.engine.data()),
        read_only,
        // Disks have no honeymoon, and for volumes of unknown devices it is unknown.
        medium: if drive.raw_capacity().is_some() { Medium::Flash } else { Medium::Other },
        written_before: Some(*written_before),
    }
}

/// Runs `load` on a prepared drive, and calls `each` for every interval. Also returns the outcomes of the events.
///
/// # Errors
/// [`DeviceError`] if a request fails. The plan ensures that the drive refuses no request.
pub fn on_drive(
    prepared: PreparedDrive<'_>,
    load: &Load,
    seed: Seed,
    interrupt: &AtomicBool,
    each: &mut Each<'_>,
) -> Result<(Ended, Vec<EventOutcome>), DeviceError> {
    let watch = Watch::new(load, context(&prepared, load.workload().reads_only()));
    let mut running = Interruptible::new(watch, interrupt);
    let PreparedDrive { drive, now, layout, database, cache, .. } = prepared;
    let extents = layout.files;
    let total = database.as_ref().map(|database| database.engine.total_rows());
    let mut rows = 0;
    let on_interval = &mut |interval: Interval| {
        let row = Row::of(&interval);
        rows += row.writes;
        running.push(&row, |share, so_far| {
            each(&interval, total.map_or(share, |total| rows as f64 / total as f64), so_far);
        })
    };
    let mut events = Vec::new();
    let workload = load.workload();
    let requests = match load.length {
        Length::Requests(number) => Some(number),
        Length::For(_) | Length::UntilSteady { .. } => None,
    };
    let span = virtual_load::Span { start: *now, interval: load.interval, requests };
    *now = if let Some(database) = database {
        let place = |offset| Place { device: 0, offset };
        let (data, log) = (place(database.data), place(database.log));
        let storage = Storage { devices: vec![drive.as_mut()], data, log };
        inserts::run(&database.engine, storage, seed, *now, load.interval, on_interval)?
    } else if let Some((burst, pause)) = load.bursts() {
        burst::on_device(drive.as_mut(), &extents, &workload, seed, (*now, burst, pause), on_interval)?
    } else if let (Some(replay), Some(pacing)) = (load.work.trace(), load.pacing()) {
        let trace = replay.trace.as_ref().expect("the plan read the trace");
        virtual_load::replay(drive, &extents, trace, pacing, span, on_interval)?
    } else if load.events.is_empty() {
        virtual_load::run_span(drive, &extents, &workload, seed, span, on_interval)?
    } else {
        let mut device = eventful(drive, cache, seed.part("events", 0));
        let mut script = Events::new(&load.events, *now);
        let device = &mut device;
        let ended =
            virtual_load::run_scripted(device, &extents, &workload, seed, span, &mut script, on_interval);
        events = script.outcomes(&ended);
        ended.end
    };
    Ok((running.ended(), events))
}
