//! A flag that threads wait for with poll(2) ([`Event`]).

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A flag that can be polled: its descriptor is readable while it is set. Clones share the flag.
#[derive(Debug, Clone)]
pub struct Event(Arc<OwnedFd>);

impl Event {
    /// A flag that is not set.
    ///
    /// # Errors
    /// If the process has no more file descriptors.
    pub fn new() -> io::Result<Event> {
        Ok(Event(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Sets the flag and wakes every waiter.
    pub fn set(&self) {
        // Fails only if the counter is full: then the flag is set already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Clears the flag.
    pub fn clear(&self) {
        // Fails only if the flag is not set.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }

    /// Returns whether the flag is set.
    pub fn is_set(&self) -> bool {
        let mut fds = [PollFd::new(self, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
