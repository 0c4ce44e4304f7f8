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
use lowtide_core::{BlockDevice, Bytes, DeviceError, Seed};
use lowtide_device::AnyDevice;
use lowtide_device::layout::{Filesystem, lay_out};
use lowtide_oltp::model::{self, Done, Files, ModelLoad, ModelSettings};
use std::sync::atomic::AtomicBool;

/// Runs `load` on a model of an engine whose data lie on a prepared drive, in one piece where the filesystem begins to put them; its log and
/// its system tablespace lie elsewhere on it, or the log, and with it what the settings say, on a drive of its own. `each` hears of
/// every interval.
///
/// # Errors
/// [`DeviceError`] where a drive refuses a request, or fails at one.
pub fn on_model(
    prepared: PreparedDrive<'_>,
    log: Option<&mut AnyDevice>,
    filesystem: Filesystem,
    load: &Load,
    settings: &ModelSettings,
    seed: Seed,
    interrupt: &AtomicBool,
    each: &mut EachMeasured<'_>,
) -> Result<Ended, DeviceError> {
    let oltp = load.oltp.as_ref().expect("a load of terminals");
    let mut going = Going::new(Watch::new(load, context(&prepared, false)), interrupt);
    let PreparedDrive { drive, now, extents, elsewhere, journal, .. } = prepared;
    let asked =
        ModelLoad { warehouses: oltp.warehouses, terminals: load.threads, interval: load.interval, seed };
    let first = extents.pieces().first().map_or(0, |piece| piece.device_offset);
    let place = |device, offset| Place { device, offset };
    let own_log = log.is_some();
    let (devices, journals): (Vec<&mut (dyn BlockDevice + Send)>, _) = match log {
        Some(log) => {
            let beneath_log = lay_out(filesystem, log.capacity(), Bytes::ZERO);
            (vec![drive, log], vec![journal, beneath_log.ok().and_then(|layout| layout.journal)])
        }
        None => (vec![drive], vec![journal]),
    };
    // What lies elsewhere on the drive, before the data where there is no room for it.
    let with_log = own_log && settings.system_with_log();
    let log_bytes = if own_log { 0 } else { settings.log().get() };
    let others = log_bytes + if with_log { 0 } else { settings.system().get() };
    let apart = elsewhere + others <= devices[0].capacity().get();
    let (elsewhere, data) = if apart { (elsewhere, first) } else { (first, first + others) };
    let log = if own_log { place(1, 0) } else { place(0, elsewhere) };
    let system = match with_log {
        true => place(1, settings.log().get()),
        false => place(0, elsewhere + log_bytes),
    };
    let storage = Storage { devices, data: place(0, data), log };
    let files = Files { storage, system, journals };
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
    *now = model::run(settings, &asked, files, *now, on_interval)?;
    Ok(going.ended())
}
