//! What the loop that serves clients asks of a drive ([`Drive`]).
//!
//! Not here: how a drive answers; crate `lowtide-live` puts a model, contents and a cache together.

use super::contents::Run;
use super::server::Ring;
use crate::nbd::Export;
use lowtide_core::Request;

/// The name the loop gives to a request in flight.
pub type Ticket = u64;

/// A drive that is served live. Instants are nanoseconds on the loop's clock, which does not go back.
///
/// Requests have been checked: they lie inside the drive, in whole blocks, and have a length unless they are flushes.
pub trait Drive: Send {
    /// What clients are told of it.
    fn export(&self) -> &Export;

    /// Whether its answers have instants that must be met; others come as soon as they can.
    fn keeps_time(&self) -> bool {
        false
    }

    /// Which life it is in; the number grows with every power cut, which forgets what was in flight.
    fn life(&self) -> u64;

    /// Wakes the loop when something was done that [`Drive::next_due`] has to be asked about, from whatever thread.
    fn ring_by(&mut self, _ring: Ring) {}

    /// Takes a request that came at `now_ns`; `data` is as long as a write, and empty for anything else.
    fn submit(&mut self, now_ns: u64, ticket: Ticket, request: Request, data: &[u8]);

    /// When something is to be done next: a request answered, or a step of the model; `None` where nothing is in flight.
    fn next_due(&self) -> Option<u64>;

    /// A request whose answer is due at `now_ns`, with the error number of Linux where it failed. Called until it is
    /// `None`.
    fn due(&mut self, now_ns: u64) -> Option<(Ticket, Result<(), i32>)>;

    /// The bytes of the read that was due last: asked for, if at all, before the next is.
    ///
    /// # Errors
    /// The error number of Linux.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), i32>;

    /// Whether the bytes from `offset` on are allocated, and how many are like the first, `length` at most.
    ///
    /// # Errors
    /// The error number of Linux.
    fn run(&self, offset: u64, length: u64) -> Result<Run, i32>;
}
