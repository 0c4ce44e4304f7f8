//! The limit on clients that use exports at the same time ([`Permits`]).
//!
//! Module `negotiate` refuses clients without a permit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A limited number of permits for clients.
#[derive(Debug, Clone)]
pub(super) struct Permits {
    used: Arc<AtomicUsize>,
    most: usize,
}

impl Permits {
    pub(super) fn new(most: usize) -> Permits {
        Permits { used: Arc::default(), most }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Takes a permit, if one is free.
    pub(super) fn take(&self) -> Option<Permit> {
        let more = |used: usize| (used < self.most).then_some(used + 1);
        let taken = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok();
        taken.then(|| Permit(Arc::clone(&self.used)))
    }
}

/// A permit, which is freed when dropped.
#[derive(Debug)]
pub(super) struct Permit(Arc<AtomicUsize>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
