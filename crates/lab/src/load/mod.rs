//! The load: runs the workload of a prepared cell, interval by interval, until its time is over or it is steady.
//!
//! Preparation is in module `prepare`, storage in module `store`, and the order of cells in module `campaign`.

mod burst;
mod drive;
mod events;
mod host;
mod modelled;
mod terminals;
mod watch;

pub use drive::on_drive;
pub use events::EventOutcome;
pub use host::on_host;
pub use modelled::on_model;
pub use terminals::{EachMeasured, on_databases};

use lowtide_core::Interval;
use lowtide_record::analysis::Verdict;

/// A callback for every interval, with the completed share of the load and a function that computes the verdict so
/// far.
pub type Each<'a> = dyn FnMut(&Interval, f64, &dyn Fn() -> Verdict) + 'a;

/// The end of a load.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The load ran to its end, with this verdict.
    Complete(Verdict),
    /// The user interrupted it.
    Interrupted,
}
