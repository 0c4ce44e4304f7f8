//! Measurement records: the operations of each interval, with latency histograms.
//!
//! Steady state is analysed in `lowtide_record::analysis`. Measurements are compared in `lowtide_report::compare`.

mod distribution;
mod gap;
mod latency;
mod recorder;

pub use distribution::Distribution;
pub use gap::{Cause, Clock, Gap, Reading};
pub use latency::Latency;
pub use recorder::{Interval, Recorder};
