//! Bursts: a load that alternates with pauses, on a drive in virtual time or on the host.
//!
//! Each burst is one interval. Interval times exclude the pauses. Each burst draws its requests anew; a sequential
//! burst begins at the start of the data. Module `watch` decides when the load stops.

use crate::prepare::wait;
use lowtide_core::virtual_load::{Span, run_span};
use lowtide_core::{
    BlockDevice, Control, DeviceError, Extents, Interval, Nanos, Seed, VirtualTime, Workload,
};
use lowtide_host::HostError;
use lowtide_host::engine::{self, Ended, Load, Summary};
use std::path::Path;

/// Runs bursts on a device until `each` returns [`Control::Stop`]. Returns the end of the last burst.
///
/// # Errors
/// As [`run_span`].
pub(super) fn on_device(
    device: &mut dyn BlockDevice,
    extents: &Extents,
    workload: &Workload,
    seed: Seed,
    (start, burst, pause): (VirtualTime, Nanos, Nanos),
    each: &mut dyn FnMut(Interval) -> Control,
) -> Result<VirtualTime, DeviceError> {
    let (mut now, mut under_load_ns) = (start, 0);
    for number in 0.. {
        let mut control = Control::Continue;
        let one = &mut |interval: Interval| {
            control = each(shifted(interval, under_load_ns));
            Control::Stop
        };
        let span = Span { start: now, interval: burst, requests: None };
        now = run_span(device, extents, workload, seed.part("burst", number), span, one)?;
        if control == Control::Stop {
            break;
        }
        under_load_ns += burst.get();
        now = now + pause;
        device.idle_until(now);
    }
    Ok(now)
}

/// Runs bursts on the host until `each` returns [`Control::Stop`]. Returns the engine's summary of all bursts.
///
/// # Errors
/// As [`engine::run`].
pub(super) fn on_host(
    load: &Load<'_>,
    (burst, pause): (Nanos, Nanos),
    each: &mut dyn FnMut(Interval) -> Control,
) -> Result<Summary, HostError> {
    let mut under_load_ns = 0;
    let mut total: Option<Summary> = None;
    for number in 0.. {
        let (mut control, mut end_ns) = (Control::Continue, 0);
        let one = &mut |interval: Interval| {
            end_ns = interval.end_ns;
            control = each(shifted(interval, under_load_ns));
            Control::Stop
        };
        let seed = load.seed.part("burst", number);
        let request = Load { seed, interval: burst, duration: None, requests: None, ..*load };
        let mut one = engine::run(&request, one)?;
        one.gaps.iter_mut().for_each(|gap| gap.at_ns += under_load_ns);
        under_load_ns += end_ns;
        let ended = one.ended;
        total = Some(match total {
            None => one,
            Some(before) => sum(before, one),
        });
        if control == Control::Stop || ended == Ended::Interrupted {
            break;
        }
        match wait(pause, Path::new(""), load.interrupt) {
            Err(HostError::Interrupted { .. }) => {
                total = total.map(|total| Summary { ended: Ended::Interrupted, ..total });
                break;
            }
            waited => waited?,
        }
    }
    Ok(total.expect("at least one burst ran"))
}

fn shifted(interval: Interval, by_ns: u64) -> Interval {
    Interval { start_ns: interval.start_ns + by_ns, end_ns: interval.end_ns + by_ns, ..interval }
}

/// The summary of two consecutive bursts.
fn sum(first: Summary, second: Summary) -> Summary {
    Summary {
        completed: first.completed + second.completed,
        errors: first.errors + second.errors,
        first_failure: first.first_failure.or(second.first_failure),
        unfinished: first.unfinished + second.unfinished,
        stuck_threads: first.stuck_threads + second.stuck_threads,
        elapsed: first.elapsed + second.elapsed,
        gaps: [first.gaps, second.gaps].concat(),
        ended: second.ended,
        ..first
    }
}
