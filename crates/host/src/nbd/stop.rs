//! How threads that wait are told to end ([`Stop`]).
//!
//! Not here: signals; whoever catches one calls [`Stop::stop`].

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A flag that can be polled. Clones are the same flag; once set it stays so.
#[derive(Debug, Clone)]
pub struct Stop(Arc<OwnedFd>);

impl Stop {
    /// Not set.
    pub fn new() -> io::Result<Stop> {
        Ok(Stop(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Sets it: everything that waits on it goes on.
    pub fn stop(&self) {
        // Fails only where the counter is full, and then it is set.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        let mut fds = [PollFd::new(self, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Stop {
    /// Readable once it is set.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
