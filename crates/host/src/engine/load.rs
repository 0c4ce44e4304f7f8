//! The input of an engine ([`Load`]) and its result ([`Summary`]).
//!
//! [`super::run()`] runs a load.

use super::{Engine, EngineChoice, sync, uring};
use crate::error::{HostError, IoFailure};
use crate::target::TestData;
use lowtide_core::measure::Gap;
use lowtide_core::trace::{Pacing, Trace};
use lowtide_core::workload::Arrival;
use lowtide_core::{Bytes, Nanos, Seed, Workload};
use std::fmt::{Arguments, Display};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The maximum size of a request: the largest buffer that io_uring registers.
const BLOCK_MAX: Bytes = Bytes::gib(1);

/// A workload, its target, and its duration.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// The existing files under test; see [`crate::target`].
    pub data: &'a TestData,
    /// The workload. Files are opened for writing only if the workload writes.
    pub workload: &'a Workload,
    /// A trace that replaces the workload's requests. `block` is then the length of its longest request, `depth` the
    /// maximum number of requests in flight, `threads` is 1, and the workload is a closed loop.
    pub replay: Option<(&'a Arc<Trace>, Pacing)>,
    /// The seed of addresses, arrivals and data.
    pub seed: Seed,
    /// The length of an interval.
    pub interval: Nanos,
    /// The duration without gaps; `None` for no limit.
    pub duration: Option<Nanos>,
    /// The number of completed requests at which to end; `None` for no limit. A few more complete until all threads
    /// have noticed.
    pub requests: Option<u64>,
    /// The engine.
    pub engine: EngineChoice,
    /// A flag that a signal handler or another thread sets to end the measurement.
    pub interrupt: &'a AtomicBool,
}

/// The reason for the end of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Its time or number of requests was reached.
    Duration,
    /// The callback returned [`Control::Stop`].
    Stopped,
    /// The interrupt flag was set.
    Interrupted,
}

/// The summary of a measurement.
#[derive(Debug)]
pub struct Summary {
    /// The engine that ran.
    pub engine: Engine,
    /// Features that the kernel refused, as text for people.
    pub notes: Vec<String>,
    /// Whether the files were opened with `O_DIRECT`.
    pub direct: bool,
    /// The duration without gaps.
    pub elapsed: Nanos,
    /// The periods during which lowtide did not run. Intervals continue as if there were no gaps, and requests in
    /// flight during a gap are not counted.
    pub gaps: Vec<Gap>,
    /// Completed requests of all intervals.
    pub completed: u64,
    /// Failed requests of all intervals.
    pub errors: u64,
    /// The first failed request.
    pub first_failure: Option<IoFailure>,
    /// Requests of an open loop that were due before the end and had not completed by then. A number far above
    /// threads × depth means that the target did not keep up.
    pub unfinished: u64,
    /// Threads that were given up, because their last requests had not completed ten seconds after the end.
    pub stuck_threads: u32,
    /// The reason for the end.
    pub ended: Ended,
}

impl Load<'_> {
    /// Returns whether the load writes or discards.
    pub(super) fn changes_data(&self) -> bool {
        match self.replay {
            Some((trace, _)) => trace.changes_data(),
            None => !self.workload.reads_only(),
        }
    }

    /// The unit of offsets and lengths.
    pub(super) fn unit(&self) -> Bytes {
        self.replay.map_or_else(|| self.workload.granule(), |(trace, _)| trace.granule())
    }

    /// Checks that `engine` can run the load.
    ///
    /// # Errors
    /// [`HostError::Invalid`] with the setting and the accepted values.
    pub(super) fn validate(&self, engine: Engine) -> Result<(), HostError> {
        let &Workload { block, threads, depth, arrival, .. } = self.workload;
        let workers = u64::from(threads) * u64::from(depth);
        let check = |good: bool, what, value: &dyn Display, accepted: Arguments<'_>| {
            let refused =
                || HostError::Invalid { what, value: value.to_string(), accepted: accepted.to_string() };
            good.then_some(()).ok_or_else(refused)
        };
        check(threads > 0, "the number of threads", &threads, format_args!("at least 1 is needed"))?;
        check(depth > 0, "the depth", &depth, format_args!("at least 1 is needed"))?;
        if engine == Engine::Uring {
            let accepted = format_args!("io_uring takes at most {} per thread", uring::DEPTH_MAX);
            check(depth <= uring::DEPTH_MAX, "the depth", &depth, accepted)?;
            let accepted = format_args!("at most {} are started", sync::THREADS_MAX);
            check(threads <= sync::THREADS_MAX, "the number of threads", &threads, accepted)?;
        } else {
            let most = sync::THREADS_MAX;
            let accepted = format_args!("the engine `sync` needs a thread for each and takes at most {most}");
            check(workers <= u64::from(most), "threads × depth", &workers, accepted)?;
        }
        let block_good = block > Bytes::ZERO && block <= BLOCK_MAX;
        let accepted = format_args!("more than 0 and at most {BLOCK_MAX} is accepted");
        check(block_good, "the block size of the workload", &block, accepted)?;
        let (size, block) = (self.data.size_each(), self.unit());
        let whole = size.get().is_multiple_of(block.get());
        let accepted = format_args!("a multiple of the block of {block} is needed");
        check(whole, "the size of a file under test", &size, accepted)?;
        for one in self.workload.blocks.iter().flat_map(|blocks| blocks.iter()) {
            // No request may cross from one file to the next.
            let whole = self.data.files().len() == 1 || size.get().is_multiple_of(one.size.get());
            let accepted =
                format_args!("a multiple of every block is needed, also of {}; or one file", one.size);
            check(whole, "the size of each of several files", &size, accepted)?;
        }
        if let Some((trace, _)) = self.replay {
            // A request that crosses from one file to the next would extend the first one.
            let files = self.data.files().len();
            check(files == 1, "the number of files", &files, format_args!("a trace is replayed on one"))?;
            check(threads == 1, "the number of threads", &threads, format_args!("a trace has one"))?;
            let end = trace.end();
            check(end <= size, "the size of the data", &size, format_args!("the trace reaches up to {end}"))?;
        }
        let accepted = format_args!("more than 0 is needed");
        check(self.interval > Nanos::ZERO, "the interval", &self.interval, accepted)?;
        if let Arrival::Fixed { per_second } | Arrival::Poisson { per_second } = arrival {
            // Outside these bounds, a schedule would exceed memory, or have no request in a lifetime.
            let good = (1e-3..=1e9).contains(&per_second);
            let accepted = format_args!("0.001 to 1000000000 are accepted");
            check(good, "the arrival rate per second", &per_second, accepted)?;
        }
        Ok(())
    }
}
