//! The event loop of a device made of devices ([`Composite`]): it accepts requests, and runs internal steps in order
//! of time until a request is complete.

use super::{Requests, earlier};
use lowtide_core::{Completion, Request, Tag, VirtualTime};

/// A device made of devices. The required methods come first; the provided methods follow from them.
pub(crate) trait Composite {
    /// Accepts a request. Returns its completion, or `None` if the request waits, under `tag` or for
    /// [`Composite::wait`].
    fn take(&mut self, now: VirtualTime, request: &Request, tag: Option<Tag>) -> Option<Completion>;

    /// The instant of the next internal step.
    fn next_inside(&self) -> Option<u64>;

    /// Runs the next internal step, if it is at or before `until_ns`. Returns whether it was.
    fn step(&mut self, until_ns: u64) -> bool;

    fn requests(&self) -> &Requests;

    fn requests_mut(&mut self) -> &mut Requests;

    /// Accepts a request and runs steps until it is complete.
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

    /// The next instant at which a request completes or, while requests wait for parts, a step is due.
    #[inline]
    fn next_answer(&self) -> Option<u64> {
        let requests = self.requests();
        if !requests.any() {
            return None;
        }
        let inside = if requests.waiting() { self.next_inside() } else { None };
        earlier(requests.first(), inside)
    }

    /// Runs the next step. Returns a request that is complete then.
    #[inline]
    fn answer(&mut self) -> Option<(Tag, Completion)> {
        let at_ns = self.next_answer()?;
        if self.requests().first() != Some(at_ns) {
            self.step(at_ns);
        }
        self.requests_mut().take(at_ns)
    }

    /// Runs all steps at or before `until_ns`.
    #[inline]
    fn advance(&mut self, until_ns: u64) {
        while self.step(until_ns) {}
    }

    /// Runs steps until no request waits. The caller can still collect the completions.
    fn finish_all(&mut self) {
        while self.requests().waiting() && self.step(u64::MAX) {}
    }
}
