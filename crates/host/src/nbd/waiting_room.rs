//! Clients that have not chosen an export yet ([`WaitingRoom`]): a limited number, apart from those that
//! have.
//!
//! When one more comes, the one that has sent nothing for the longest time is dismissed, in whatever phase it
//! is: a client that never sends anything, or stops in a TLS handshake, keeps nobody out. Not here: how long
//! each may take, which `negotiate` limits.

use crate::event::Event;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Room for clients that negotiate.
#[derive(Debug)]
pub(super) struct WaitingRoom {
    most: usize,
    since: Instant,
    visits: Mutex<Vec<Arc<Visit>>>,
}

/// A client in the room.
#[derive(Debug)]
pub(super) struct Visit {
    /// Most clients in the room.
    pub(super) most: usize,
    since: Instant,
    /// When it came, or last sent something.
    heard_ns: AtomicU64,
    /// Set when it has to go.
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

    /// Lets a client in; another goes for it where the room is full.
    ///
    /// # Errors
    /// Where the system has no more file descriptors.
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

    /// Notes that a client has left the room.
    pub(super) fn leave(&self, visit: &Arc<Visit>) {
        self.visits().retain(|other| !Arc::ptr_eq(other, visit));
    }
}
