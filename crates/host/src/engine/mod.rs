//! Engines: a workload run on files in wall time, measured interval by interval.
//!
//! ```text
//!   worker threads                         calling thread
//!   Generator ─► uring | sync ─► Recorder ──intervals──► Collector ──merged, in order──► on_interval
//!        ▲                                                   │
//!        └──────────────── end of the measurement ◄──────────┘  duration, Stop, interrupt, failure
//! ```
//!
//! Closed loops keep threads × depth requests in flight. Open loops start requests at their intended times
//! and count latency from those, so a stall is seen by every request that waited behind it. Every completion
//! is counted in the histogram of its interval. The clock is read once per batch of completions; that reading
//! is also the start of the requests that replace them, so latency errs on the long side by the time it takes
//! to prepare a batch. A trace ([`Load::replay`]) takes the place of the generator; its flushes and discards are
//! done and not counted. While lowtide itself does not run the clock stands still ([`crate::clock`]), and what was in flight
//! then is not counted. Not here: verification of what was read.

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

/// The engine that [`EngineChoice::Auto`] would use on this machine.
pub fn available() -> Engine {
    EngineChoice::Auto.resolve(uring::probe).map_or(Engine::Sync, |(engine, _)| engine)
}
