//! The load of terminals on a modelled storage engine on a simulated drive, in virtual time.
//!
//! The engine is in `lowtide_engines::model`.

use super::Ended;
use super::drive::context;
use super::terminals::EachMeasured;
use super::watch::{Interruptible, Watch};
use crate::experiment::{Load, Oltp};
use crate::prepare::PreparedDrive;
use crate::store::Measured;
use lowtide_core::storage::{Place, Storage};
use lowtide_core::{BlockDevice, DeviceError, Seed};
use lowtide_device::AnyDevice;
use lowtide_device::layout::lay_out;
use lowtide_engines::model::{self, Files, IoTotals, ModelLoad, ModelSettings};
use lowtide_record::Row;
use std::sync::atomic::AtomicBool;

/// Runs `load` on a modelled engine, and calls `each` for every interval.
///
/// The data is contiguous on the prepared drive, starting at the first file of the filesystem. The log is on the
/// drive `log` if given, else on the prepared drive. The settings place the system tablespace next to the log or on
/// the prepared drive.
///
/// # Errors
/// [`DeviceError`] if a drive refuses a request, or a request fails.
pub fn on_model(
    prepared: PreparedDrive<'_>,
    log: Option<&mut AnyDevice>,
    (load, oltp): (&Load, &Oltp),
    settings: &ModelSettings,
    seed: Seed,
    interrupt: &AtomicBool,
    each: &mut EachMeasured<'_>,
) -> Result<Ended, DeviceError> {
    let mut running = Interruptible::new(Watch::new(load, context(&prepared, false)), interrupt);
    let PreparedDrive { drive, now, layout, .. } = prepared;
    let model_load =
        ModelLoad { warehouses: oltp.warehouses, terminals: load.threads, interval: load.interval, seed };
    let first = layout.files.pieces().first().map_or(0, |piece| piece.device_offset);
    let place = |device, offset| Place { device, offset };
    let own_log = log.is_some();
    let (others, with_log) = settings.beside_data(own_log);
    // The other files are outside the layout's files, or before the data if there is no room outside.
    let (elsewhere, data) = match layout.elsewhere(others.get()) {
        Some(elsewhere) => (elsewhere, first),
        None => (first, first + others.get()),
    };
    let (devices, journals, log): (Vec<&mut (dyn BlockDevice + Send)>, _, _) = match log {
        Some(log) => {
            let beneath =
                lay_out(layout.filesystem, log.capacity(), with_log).expect("the plan checked that it fits");
            let first = beneath.files.pieces().first().map_or(0, |piece| piece.device_offset);
            (vec![drive, log], vec![layout.journal, beneath.journal], place(1, first))
        }
        None => (vec![drive], vec![layout.journal], place(0, elsewhere)),
    };
    let system = match own_log && !settings.system_with_log() {
        true => place(0, elsewhere),
        false => place(log.device, log.offset + settings.log().get()),
    };
    let storage = Storage { devices, data: place(0, data), log };
    let files = Files { storage, system, journals };
    let mut last = IoTotals::default();
    let on_interval = &mut |interval: lowtide_engines::Interval, done: IoTotals| {
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
        running.push(&row, |share, so_far| each(measured, share, so_far))
    };
    *now = model::run(settings, &model_load, files, *now, on_interval)?;
    Ok(running.ended())
}
