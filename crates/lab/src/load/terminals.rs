//! The load of terminals on databases, in wall time.
//!
//! Not here: the terminals themselves (crate `lowtide-oltp`), and where the databases lie (`prepare`).

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

/// What hears of every interval, of how far the load is, and may ask what can be said so far.
pub type EachMeasured<'a> = dyn FnMut(Measured, f64, &dyn Fn() -> Verdict) + 'a;

/// Runs `load` on databases; `device` says what their device did in an interval, and `each` hears of all of it.
///
/// With how it ended and what was done come the gaps in which lowtide itself did not run.
///
/// # Errors
/// [`OltpError`] where a transaction fails for good; `each` has heard of the intervals until then.
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
    let clock = GapClock::start()
        .map_err(|error| OltpError::Invalid(format!("a measurement needs a clock: {error}")))?;
    let asked = terminals::Load {
        terminals: load.threads,
        think: oltp.think,
        interval: load.interval,
        clock: &clock,
        seed,
        interrupt,
    };
    let mut end_ns = 0;
    let summary = terminals::run(parts, &asked, &mut |interval: Interval| -> Control {
        end_ns = interval.end_ns;
        let measured = Measured::of_terminals(device(&interval), &interval);
        let control = watch.push(&measured.row);
        let share = watch.progress(&measured.row);
        each(measured, share, &|| watch.so_far());
        control
    })?;
    let ended = match summary.interrupted {
        true => Ended::Interrupted,
        false => Ended::Complete(watch.verdict()),
    };
    let mut gaps = clock.gaps();
    // Gaps before the terminals were connected, or after the end of the load, are not part of it.
    gaps.retain(|gap| (summary.began_ns..=summary.began_ns + end_ns).contains(&gap.at_ns));
    gaps.iter_mut().for_each(|gap| gap.at_ns -= summary.began_ns);
    Ok((ended, summary, gaps))
}
