//! The lock of the pool, which everybody needs and one has at a time.
//!
//! MySQL 5.1 to 5.5 took `buf_pool->mutex` to find a page, to put it to the front, and to look at the end of the list. Leaves out the
//! order of those who wait (they come in turns), and what waiting itself costs.

use super::settings::InnodbSettings;

/// The lock.
#[derive(Debug)]
pub(super) struct Latch {
    /// When the last who waits for it has had it.
    free_ns: u64,
    step_ns: u64,
    look_ns: u64,
}

impl Latch {
    /// The lock, where a transaction has so many steps on average.
    pub(super) fn new(model: &InnodbSettings, steps: f64) -> Latch {
        let step_ns = (model.pool_lock.get() as f64 / steps) as u64;
        Latch { free_ns: 0, step_ns, look_ns: model.look.get() }
    }

    /// Somebody needs it for so many steps, and to look at so many frames: when that is done.
    pub(super) fn take(&mut self, now_ns: u64, steps: u64, looks: u64) -> u64 {
        let ns = steps * self.step_ns + looks * self.look_ns;
        if ns == 0 {
            return now_ns;
        }
        self.free_ns = self.free_ns.max(now_ns) + ns;
        self.free_ns
    }
}
