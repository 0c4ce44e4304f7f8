//! Clients that have not chosen an export yet ([`WaitingRoom`]): a limited number.
//!
//! When a new client exceeds the limit, the client that has been silent longest is dismissed. A client that never
//! sends anything, or stops in a TLS handshake, therefore does not keep other clients out. Module `conversation` has
//! the time limit of a negotiation.

use crate::event::Event;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The negotiating clients.
#[derive(Debug)]
pub(super) struct WaitingRoom {
    most: usize,
    since: Instant,
    visits: Mutex<Vec<Arc<Visit>>>,
}

/// A negotiating client.
#[derive(Debug)]
pub(super) struct Visit {
    /// Maximum number of negotiating clients.
    pub(super) most: usize,
    since: Instant,
    /// The time when the client connected or last sent data, in nanoseconds after `since`.
    heard_ns: AtomicU64,
    /// Set when the client is dismissed.
    pub(super) dismissed: Event,
}

impl Visit {
    /// Notes that the client sent something.
    pub(super) fn hear(&self) {
        self.heard_ns.store(self.since.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

impl WaitingRoom {
    pub(super) fn new(most: usize) -> WaitingRoom {
        WaitingRoom { most, since: Instant::now(), visits: Mutex::default() }
    }

    fn visits(&self) -> MutexGuard<'_, Vec<Arc<Visit>>> {
        self.visits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client, and dismisses another one if the limit is reached.
    ///
    /// # Errors
    /// If the process has no more file descriptors.
    pub(super) fn enter(&self) -> io::Result<Arc<Visit>> {
        let (most, since, heard_ns) = (self.most, self.since, AtomicU64::new(0));
        let visit = Arc::new(Visit { most, since, heard_ns, dismissed: Event::new()? });
        visit.hear();
        let mut visits = self.visits();
        if visits.len() >= self.most {
            let heard = |visit: &Arc<Visit>| visit.heard_ns.load(Ordering::Relaxed);
            let silent = (0..visits.len()).min_by_key(|&number| heard(&visits[number]));
            silent.into_iter().for_each(|number| visits.remove(number).dismissed.set());
        }
        visits.push(Arc::clone(&visit));
        Ok(visit)
    }

    /// Removes a client.
    pub(super) fn leave(&self, visit: &Arc<Visit>) {
        self.visits().retain(|other| !Arc::ptr_eq(other, visit));
    }
}
