//! The interface of a drive to the server that serves it ([`Drive`]).
//!
//! Crate `lowtide-live` implements the interface, with a model, contents and a cache.

use super::contents::Run;
use crate::event::Event;
use crate::nbd::Export;
use lowtide_core::Request;

/// The number that the server gives to a request in flight.
pub type Ticket = u64;

/// A drive that is served live. Instants are nanoseconds of the server's monotonic clock.
///
/// The server checks requests: every range is inside the drive, and only flushes have no length.
pub trait Drive: Send {
    /// The export that clients see.
    fn export(&self) -> &Export;

    /// Returns whether the drive times its answers. Other drives answer as soon as they can.
    fn keeps_time(&self) -> bool {
        false
    }

    /// The number of power cuts so far. A power cut loses all requests in flight.
    fn life(&self) -> u64;

    /// Gives the drive an event that wakes the server, for completions on other threads. The server then calls
    /// [`Drive::next_due`].
    fn set_waker(&mut self, _waker: Event) {}

    /// Submits a request that arrived at `now_ns`. `data` holds the data of a write, else nothing.
    fn submit(&mut self, now_ns: u64, ticket: Ticket, request: Request, data: &[u8]);

    /// The instant at which [`Drive::due`] must be called next; `None` if nothing is in flight.
    fn next_due(&self) -> Option<u64>;

    /// Returns a request whose answer is due at `now_ns`, with the Linux error number if it failed. The server
    /// repeats the call until it returns `None`.
    fn due(&mut self, now_ns: u64) -> Option<(Ticket, Result<(), i32>)>;

    /// Copies the bytes of the read that [`Drive::due`] returned last.
    ///
    /// # Errors
    /// A Linux error number.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), i32>;

    /// Returns the run of allocated or unallocated bytes that begins at `offset`, at most `length` bytes long.
    ///
    /// # Errors
    /// A Linux error number.
    fn run(&self, offset: u64, length: u64) -> Result<Run, i32>;
}
