//! The load: runs a prepared cell's workload and hands out its intervals, until its time is over or it is steady.
//!
//! Not here: preparation, storage, and which cell comes next (`campaign`).

mod burst;
mod drive;
mod events;
mod host;
mod modelled;
mod terminals;
mod watch;

pub use drive::on_drive;
pub use events::Told;
pub use host::on_host;
pub use modelled::on_model;
pub use terminals::on_databases;

use lowtide_core::Interval;
use lowtide_record::analysis::Verdict;

/// What hears of every interval, of how far the load is, and may ask what can be said so far.
pub type Each<'a> = dyn FnMut(&Interval, f64, &dyn Fn() -> Verdict) + 'a;

/// How a load ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// At its end, with this verdict.
    Complete(Verdict),
    /// Someone interrupted it.
    Interrupted,
}
