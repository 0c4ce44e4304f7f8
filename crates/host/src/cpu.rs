//! Processor time of this process, in user and kernel mode together.

use crate::clock::ns;
use lowtide_core::Nanos;
use rustix::time::ClockId;

/// Processor time that all threads of this process have used since its start.
pub fn time() -> Nanos {
    Nanos::new(ns(ClockId::ProcessCPUTime))
}

/// Processor time that the calling thread has used since its start.
pub fn thread_time() -> Nanos {
    Nanos::new(ns(ClockId::ThreadCPUTime))
}
