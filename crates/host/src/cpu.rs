//! Processor time of this process. Not here: its split into user and system.

use lowtide_core::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Processor time this process has used on all threads since it began.
pub fn time() -> Nanos {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Nanos::new(used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64)
}

/// Processor time the calling thread has used since it began.
pub fn thread_time() -> Nanos {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Nanos::new(used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64)
}
