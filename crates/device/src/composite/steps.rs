//! How a device made of devices answers ([`Composite`]): it takes requests, and lets what happens inside happen, one
//! thing after another in order of time, until a request is complete.
//!
//! Leaves out what happens inside.

use super::{Requests, earlier};
use lowtide_core::{Completion, Request, Tag, VirtualTime};

/// A device made of devices. What must be given is above, what follows from it below.
pub(crate) trait Composite {
    /// Takes a request: its completion, or `None` where it waits, under `tag` or for [`Composite::wait`].
    fn take(&mut self, now: VirtualTime, request: &Request, tag: Option<Tag>) -> Option<Completion>;

    /// The instant of the next thing that happens inside.
    fn next_inside(&self) -> Option<u64>;

    /// Lets the next thing happen, where that is by `until_ns`; whether it was.
    fn step(&mut self, until_ns: u64) -> bool;

    fn requests(&self) -> &Requests;

    fn requests_mut(&mut self) -> &mut Requests;

    /// Takes a request and lets things happen until it is complete.
    fn wait(&mut self, now: VirtualTime, request: &Request) -> Completion {
        if let Some(completion) = self.take(now, request, None) {
            return completion;
        }
        loop {
            if let Some(completion) = self.requests_mut().take_own() {
                return completion;
            }
            assert!(self.step(u64::MAX), "a request that waits, waits for something");
        }
    }

    /// When a caller must ask again: a request is complete then or, where some wait for parts, something happens.
    #[inline]
    fn next_answer(&self) -> Option<u64> {
        let requests = self.requests();
        if !requests.any() {
            return None;
        }
        let inside = if requests.waiting() { self.next_inside() } else { None };
        earlier(requests.first(), inside)
    }

    /// Lets happen what happens next; the request that is complete then, if one is.
    #[inline]
    fn answer(&mut self) -> Option<(Tag, Completion)> {
        let at_ns = self.next_answer()?;
        if self.requests().first() != Some(at_ns) {
            self.step(at_ns);
        }
        self.requests_mut().take(at_ns)
    }

    /// Lets everything happen that happens by `until_ns`.
    #[inline]
    fn advance(&mut self, until_ns: u64) {
        while self.step(until_ns) {}
    }

    /// Lets every request that waits be complete; the caller can still take them.
    fn finish_all(&mut self) {
        while self.requests().waiting() && self.step(u64::MAX) {}
    }
}
