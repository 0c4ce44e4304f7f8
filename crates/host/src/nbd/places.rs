//! How many clients may use exports at once ([`Places`]).
//!
//! Not here: what happens to one too many, which `negotiate` decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of places for clients.
#[derive(Debug, Clone)]
pub(super) struct Places {
    taken: Arc<AtomicUsize>,
    most: usize,
}

impl Places {
    pub(super) fn new(most: usize) -> Places {
        Places { taken: Arc::default(), most }
    }

    /// How many there are.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// A place, where one is free. It is free again when the place is dropped.
    pub(super) fn take(&self) -> Option<Place> {
        let more = |taken: usize| (taken < self.most).then_some(taken + 1);
        let taken = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok();
        taken.then(|| Place { taken: Arc::clone(&self.taken) })
    }
}

/// A taken place.
#[derive(Debug)]
pub(super) struct Place {
    taken: Arc<AtomicUsize>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}
