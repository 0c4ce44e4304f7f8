//! The latch of the buffer pool.
//!
//! MySQL 5.1 to 5.5 took `buf_pool->mutex` to look up a page, to move it to the front, and to scan the LRU
//! tail.
//!
//! # Not modelled
//!
//! The order in which InnoDB grants the latch: waiters are served first in, first out. The processor time of waiting.

use super::settings::InnodbSettings;

/// The latch of the pool.
#[derive(Debug)]
pub(super) struct Latch {
    /// Time at which the last waiter releases the latch.
    free_ns: u64,
    step_ns: u64,
    look_ns: u64,
}

impl Latch {
    /// Creates a latch for transactions with `steps` steps on average.
    pub(super) fn new(model: &InnodbSettings, steps: f64) -> Latch {
        let step_ns = (model.pool_lock.get() as f64 / steps) as u64;
        Latch { free_ns: 0, step_ns, look_ns: model.look.get() }
    }

    /// Queues for the latch, to be held for a number of steps and scanned frames. Returns the time of the release.
    pub(super) fn take(&mut self, now_ns: u64, steps: u64, scanned: u64) -> u64 {
        let ns = steps * self.step_ns + scanned * self.look_ns;
        if ns == 0 {
            return now_ns;
        }
        self.free_ns = self.free_ns.max(now_ns) + ns;
        self.free_ns
    }
}
