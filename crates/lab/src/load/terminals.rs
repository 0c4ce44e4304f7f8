//! The load of terminals on databases, in wall time.
//!
//! The terminals are in crate `lowtide-oltp`, and the directories of the databases in module `prepare`.

use super::Ended;
use super::watch::Watch;
use crate::experiment::{Load, Oltp};
use crate::store::Measured;
use lowtide_core::measure::Gap;
use lowtide_core::{Control, Seed};
use lowtide_engines::Interval;
use lowtide_host::clock::GapClock;
use lowtide_oltp::OltpError;
use lowtide_oltp::terminals::{self, Part, Summary};
use lowtide_record::Row;
use lowtide_record::analysis::{Context, Verdict};
use std::sync::atomic::AtomicBool;

/// As [`super::Each`], for intervals with transactions.
pub type EachMeasured<'a> = dyn FnMut(Measured, f64, &dyn Fn() -> Verdict) + 'a;

/// Runs `load` on databases, and calls `each` for every interval. `device` returns the I/O of their device in an
/// interval.
///
/// Also returns a summary, and the gaps during which lowtide did not run.
///
/// # Errors
/// [`OltpError`] if a transaction fails permanently. `each` has then been called for all earlier intervals.
pub fn on_databases(
    parts: &[Part<'_>],
    (load, oltp): (&Load, &Oltp),
    context: Context,
    seed: Seed,
    interrupt: &AtomicBool,
    device: &mut dyn FnMut(&Interval) -> Row,
    each: &mut EachMeasured<'_>,
) -> Result<(Ended, Summary, Vec<Gap>), OltpError> {
    let mut watch = Watch::new(load, context);
    let clock = GapClock::start().map_err(|error| {
        OltpError::Invalid(format!("the clock of the measurement cannot be read: {error}"))
    })?;
    let terminals_load = terminals::Load {
        terminals: load.threads,
        think: oltp.think,
        interval: load.interval,
        clock: &clock,
        seed,
        interrupt,
    };
    let mut end_ns = 0;
    let summary = terminals::run(parts, &terminals_load, &mut |interval: Interval| -> Control {
        end_ns = interval.end_ns;
        let measured = Measured::of_terminals(device(&interval), &interval);
        let control = watch.push(&measured.row);
        let share = watch.progress(&measured.row);
        each(measured, share, &|| watch.so_far());
        control
    })?;
    let ended = match summary.interrupted {
        true => Ended::Interrupted,
        false => Ended::Complete(watch.so_far()),
    };
    let mut gaps = clock.gaps();
    // Gaps before the terminals connected, or after the end of the load, do not affect it.
    gaps.retain(|gap| (summary.began_ns..=summary.began_ns + end_ns).contains(&gap.at_ns));
    gaps.iter_mut().for_each(|gap| gap.at_ns -= summary.began_ns);
    Ok((ended, summary, gaps))
}
