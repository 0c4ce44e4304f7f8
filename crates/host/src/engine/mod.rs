//! Engines: run a workload on files in wall time, and measure it interval by interval.
//!
//! ```text
//!   worker threads                         calling thread
//!   Generator ─► uring | sync ─► Recorder ──intervals──► Collector ──merged, in order──► on_interval
//!        ▲                                                   │
//!        └──────────────── end of the measurement ◄──────────┘  duration, Stop, interrupt, failure
//! ```
//!
//! Closed loops keep threads × depth requests in flight. Open loops start requests at their intended times and
//! measure latency from those times, so a stall counts for every request that waits behind it. The clock is read once
//! per batch of completions. That reading is also the start of the requests that replace the completed ones, so
//! latency includes the time to prepare a batch. A trace ([`Load::replay`]) replaces the generator; its flushes and
//! discards are carried out but not counted. While lowtide itself does not run, the clock stops ([`crate::clock`]),
//! and requests in flight at that time are not counted. Data is not verified.

mod buffer;
mod choice;
mod collect;
mod files;
mod load;
mod null;
mod run;
mod schedule;
mod sync;
mod threads;
mod uring;
mod worker;

pub use choice::{Engine, EngineChoice};
pub(crate) use files::memory_filesystem;
pub use load::{Ended, Load, Summary};
pub use lowtide_core::Control;
pub use run::run;

/// The engine that [`EngineChoice::Auto`] selects on this machine.
pub fn available() -> Engine {
    EngineChoice::Auto.resolve(uring::probe).map_or(Engine::Sync, |(engine, _)| engine)
}
