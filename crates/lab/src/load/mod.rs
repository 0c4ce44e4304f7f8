//! The load: runs a prepared cell's workload and hands out its intervals, until its time is over or it is steady.
//!
//! Leaves out preparation, storage, and which cell comes next (`campaign`).

mod burst;
mod drive;
mod host;
mod watch;

pub use drive::on_drive;
pub use host::on_host;

use crate::analysis::Verdict;

/// How a load ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// At its end, with this verdict.
    Complete(Verdict),
    /// Someone interrupted it.
    Interrupted,
}
