//! Measurement records: what happened in each interval, with an exact latency histogram.
//!
//! Leaves out judgement: steady state, comparisons and percentiles across cells belong to the lab.

mod latency;
mod recorder;

pub use latency::Latency;
pub use recorder::{Interval, Recorder};
