//! [`Load`]: what an engine is asked to do, and [`Summary`]: what came of it.
//!
//! Not here: how it is run; see [`super::run()`].

use super::{Engine, EngineChoice, sync, uring};
use crate::error::{HostError, IoFailure};
use crate::target::TestData;
use lowtide_core::measure::Gap;
use lowtide_core::trace::{Pacing, Trace};
use lowtide_core::workload::Arrival;
use lowtide_core::{Bytes, Nanos, Seed, Workload};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes of a request at most: what io_uring registers in one piece.
const BLOCK_MAX: Bytes = Bytes::gib(1);

/// What to run, on what, for how long.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// The files under test. They exist; see [`crate::target`].
    pub data: &'a TestData,
    /// The workload. Files are opened for writing only if it writes.
    pub workload: &'a Workload,
    /// A trace in place of the workload's own requests. The workload then says how long its longest request is
    /// (`block`), how many are in flight at most (`depth`), and has one thread; it is no open loop.
    pub replay: Option<(&'a Arc<Trace>, Pacing)>,
    /// The seed of addresses, of arrivals and of what is written.
    pub seed: Seed,
    /// The length of an interval.
    pub interval: Nanos,
    /// How long to measure, gaps left out; `None`: until stopped.
    pub duration: Option<Nanos>,
    /// After how many completed requests to end; `None`: requests are not counted. A few more complete until every
    /// thread has heard of it.
    pub requests: Option<u64>,
    /// Which engine.
    pub engine: EngineChoice,
    /// Set by someone else, such as a signal handler, to end the measurement.
    pub interrupt: &'a AtomicBool,
}

/// Why a measurement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Its time was over, or its requests were done.
    Duration,
    /// The callback said [`Control::Stop`].
    Stopped,
    /// The interrupt flag was set.
    Interrupted,
}

/// A measurement as a whole.
#[derive(Debug)]
pub struct Summary {
    /// The engine that ran.
    pub engine: Engine,
    /// What the engine had to do without, for people.
    pub notes: Vec<String>,
    /// Whether requests went past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// How long it measured, gaps left out.
    pub elapsed: Nanos,
    /// When lowtide itself did not run. Intervals follow each other as if there were no gaps, and requests that were in flight
    /// over one are not counted.
    pub gaps: Vec<Gap>,
    /// Requests completed: the sum over all intervals.
    pub completed: u64,
    /// Requests that failed: the sum over all intervals.
    pub errors: u64,
    /// The first request that failed.
    pub first_failure: Option<IoFailure>,
    /// Open loops only: requests meant to start before the end that had not completed by then. Far more than
    /// threads × depth of them mean that the target did not keep up.
    pub unfinished: u64,
    /// Threads whose last requests did not come back within ten seconds of the end, and which were given up.
    pub stuck_threads: u32,
    /// Why it ended.
    pub ended: Ended,
}

impl Load<'_> {
    /// Whether something is written or discarded.
    pub(super) fn changes_data(&self) -> bool {
        match self.replay {
            Some((trace, _)) => trace.changes_data(),
            None => !self.workload.reads_only(),
        }
    }

    /// What every request is a multiple of.
    pub(super) fn unit(&self) -> Bytes {
        self.replay.map_or_else(|| self.workload.granule(), |(trace, _)| trace.granule())
    }

    /// Whether `engine` can run this.
    ///
    /// # Errors
    /// [`HostError::Invalid`] names the setting and what would be accepted.
    pub(super) fn validate(&self, engine: Engine) -> Result<(), HostError> {
        let &Workload { block, threads, depth, arrival, .. } = self.workload;
        let workers = u64::from(threads) * u64::from(depth);
        let check = |good: bool, what, value: &dyn ToString, accepted: &dyn Fn() -> String| {
            if good {
                Ok(())
            } else {
                Err(HostError::Invalid { what, value: value.to_string(), accepted: accepted() })
            }
        };
        check(threads > 0, "the number of threads", &threads, &|| "at least 1 is needed".to_owned())?;
        check(depth > 0, "the depth", &depth, &|| "at least 1 is needed".to_owned())?;
        if engine == Engine::Uring {
            let accepted = || format!("io_uring takes at most {} per thread", uring::DEPTH_MAX);
            check(depth <= uring::DEPTH_MAX, "the depth", &depth, &accepted)?;
            check(threads <= sync::THREADS_MAX, "the number of threads", &threads, &|| {
                format!("at most {} are started", sync::THREADS_MAX)
            })?;
        } else {
            check(workers <= u64::from(sync::THREADS_MAX), "threads × depth", &workers, &|| {
                format!("the engine `sync` needs a thread for each and takes at most {}", sync::THREADS_MAX)
            })?;
        }
        let block_good = block > Bytes::ZERO && block <= BLOCK_MAX;
        check(block_good, "the block size of the workload", &block, &|| {
            format!("more than 0 and at most {BLOCK_MAX} is accepted")
        })?;
        let (size, block) = (self.data.size_each(), self.unit());
        let whole = size.get().is_multiple_of(block.get());
        check(whole, "the size of a file under test", &size, &|| {
            format!("a multiple of the block of {block} is needed")
        })?;
        for one in self.workload.blocks.iter().flat_map(|blocks| blocks.iter()) {
            // As for a trace: no request may cross from one file to the next.
            let whole = self.data.files().len() == 1 || size.get().is_multiple_of(one.size.get());
            check(whole, "the size of each of several files", &size, &|| {
                format!("a multiple of every block is needed, also of {}; or one file", one.size)
            })?;
        }
        if let Some((trace, _)) = self.replay {
            // A request that crossed from one file to the next would make the first one grow.
            check(self.data.files().len() == 1, "the number of files", &self.data.files().len(), &|| {
                "a trace is replayed on one".to_owned()
            })?;
            check(threads == 1, "the number of threads", &threads, &|| "a trace has one".to_owned())?;
            check(trace.end() <= size, "the size of the data", &size, &|| {
                format!("the trace reaches up to {}", trace.end())
            })?;
        }
        check(self.interval > Nanos::ZERO, "the interval", &self.interval, &|| {
            "more than 0 is needed".to_owned()
        })?;
        if let Arrival::Fixed { per_second } | Arrival::Poisson { per_second } = arrival {
            // Beyond these a schedule would hold more requests than memory, or none in a lifetime.
            let good = (1e-3..=1e9).contains(&per_second);
            check(good, "the arrival rate per second", &per_second, &|| {
                "0.001 to 1000000000 are accepted".to_owned()
            })?;
        }
        Ok(())
    }
}
