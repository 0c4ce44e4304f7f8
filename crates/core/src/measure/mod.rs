//! Measurement records: what happened in each interval, with an exact latency histogram.
//!
//! Leaves out judgement: steady state (`lowtide_record::analysis`) and comparisons
//! (`lowtide_report::compare`).

mod distribution;
mod gap;
mod latency;
mod recorder;

pub use distribution::Distribution;
pub use gap::{Cause, Clock, Gap, Reading};
pub use latency::Latency;
pub use recorder::{Interval, Recorder};
