//! The load on a simulated drive, in virtual time.

use super::Ended;
use super::watch::Watch;
use crate::analysis::{Context, Medium};
use crate::experiment::{Length, Load};
use crate::prepare::PreparedDrive;
use crate::record::Row;
use lowtide_core::{BlockDevice, Bytes, Control, DeviceError, Interval, Seed, virtual_load};
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `load` on a prepared drive; `each` hears of every interval and of how far the load is.
///
/// # Errors
/// [`DeviceError`] where the drive refuses a request; planned loads fit, so this is a bug of the model.
pub fn on_drive(
    prepared: PreparedDrive<'_>,
    load: &Load,
    seed: Seed,
    interrupt: &AtomicBool,
    each: &mut dyn FnMut(&Interval, f64),
) -> Result<Ended, DeviceError> {
    let PreparedDrive { drive, now, extents, written_before } = prepared;
    let context = Context {
        capacity: drive.capacity(),
        raw_capacity: drive.raw_capacity(),
        data: Bytes::new(extents.length()),
        read_only: load.workload().reads_only(),
        medium: Medium::Flash,
        written_before: Some(written_before),
    };
    let mut watch = Watch::new(load, context);
    let mut interrupted = false;
    let on_interval = &mut |interval: Interval| {
        interrupted = interrupt.load(Ordering::Relaxed);
        if interrupted {
            return Control::Stop;
        }
        let row = Row::of(&interval);
        let control = watch.push(&row);
        each(&interval, watch.progress(&row));
        control
    };
    let workload = load.workload();
    let requests = match load.length {
        Length::Requests(number) => Some(number),
        Length::For(_) | Length::UntilSteady { .. } => None,
    };
    let span = virtual_load::Span { start: *now, interval: load.interval, requests };
    *now = virtual_load::run_span(drive, &extents, &workload, seed, span, on_interval)?;
    Ok(if interrupted { Ended::Interrupted } else { Ended::Complete(watch.verdict()) })
}
