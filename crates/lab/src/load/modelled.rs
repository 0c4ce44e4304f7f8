//! The load of terminals on a modelled storage engine on a simulated drive, in virtual time.
//!
//! Leaves out the engine itself (`lowtide_oltp::model`).

use super::Ended;
use super::drive::context;
use super::terminals::EachMeasured;
use super::watch::{Going, Watch};
use crate::experiment::Load;
use crate::prepare::PreparedDrive;
use crate::record::Row;
use crate::store::Measured;
use lowtide_core::storage::{Place, Storage};
use lowtide_core::{DeviceError, Seed};
use lowtide_device::AnyDevice;
use lowtide_oltp::model::{self, Done, ModelLoad, ModelSettings};
use std::sync::atomic::AtomicBool;

/// Runs `load` on a model of an engine whose data lie on a prepared drive, after its log or with that on a drive of its own; `each` hears
/// of every interval. Files lie in one piece, where the filesystem begins to put them.
///
/// # Errors
/// [`DeviceError`] where a drive refuses a request, or fails at one.
pub fn on_model(
    prepared: PreparedDrive<'_>,
    log: Option<&mut AnyDevice>,
    load: &Load,
    settings: &ModelSettings,
    seed: Seed,
    interrupt: &AtomicBool,
    each: &mut EachMeasured<'_>,
) -> Result<Ended, DeviceError> {
    let oltp = load.oltp.as_ref().expect("a load of terminals");
    let mut going = Going::new(Watch::new(load, context(&prepared, false)), interrupt);
    let PreparedDrive { drive, now, extents, .. } = prepared;
    let asked =
        ModelLoad { warehouses: oltp.warehouses, terminals: load.threads, interval: load.interval, seed };
    let first = extents.pieces().first().map_or(0, |piece| piece.device_offset);
    let storage = match log {
        Some(log) => Storage {
            devices: vec![drive, log],
            data: Place { device: 0, offset: first },
            log: Place { device: 1, offset: 0 },
        },
        None => Storage {
            data: Place { device: 0, offset: first + settings.log().get() },
            log: Place { device: 0, offset: first },
            devices: vec![drive],
        },
    };
    let mut last = Done::default();
    let on_interval = &mut |interval: lowtide_oltp::terminals::Interval, done: Done| {
        let row = Row {
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            reads: done.reads - last.reads,
            read_bytes: done.read_bytes - last.read_bytes,
            writes: done.writes - last.writes,
            write_bytes: done.write_bytes - last.write_bytes,
            counters: Some(done.counters),
            ..Row::default()
        };
        last = done;
        let measured = Measured::of_terminals(row, &interval);
        let row = measured.row.clone();
        going.push(&row, |share, so_far| each(measured, share, so_far))
    };
    *now = model::run(settings, &asked, storage, *now, on_interval)?;
    Ok(going.ended())
}
