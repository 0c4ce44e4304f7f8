//! Requests that wait for their parts, and completed requests that the caller has not collected, in order of
//! completion.

use lowtide_core::{Completion, DeviceError, Tag, VirtualTime};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The waiter of a request: the caller, with a tag, or `submit` itself.
type Waiter = Option<Tag>;

/// A request with incomplete parts.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Open {
    waiter: Waiter,
    parts: u32,
    done_ns: u64,
    status: Result<(), DeviceError>,
}

/// A completed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    done_ns: u64,
    /// The order of requests that complete at the same instant.
    sequence: u64,
    tag: Tag,
    status: Result<(), DeviceError>,
}

impl Ord for Done {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.done_ns, self.sequence).cmp(&(other.done_ns, other.sequence))
    }
}

impl PartialOrd for Done {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// All requests of a composite that the caller has not collected.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Requests {
    open: Vec<Option<Open>>,
    free: Vec<usize>,
    done: BinaryHeap<Reverse<Done>>,
    own: Option<Completion>,
    sequence: u64,
}

/// A request while members are asked for its parts.
pub(crate) struct Work {
    tag: Option<Tag>,
    /// The latest completion of the parts that completed at once.
    done_ns: u64,
    status: Result<(), DeviceError>,
    /// The number of the request, once a part is queued.
    number: Option<usize>,
}

impl Work {
    pub(crate) fn new(tag: Option<Tag>, now_ns: u64) -> Self {
        Work { tag, done_ns: now_ns, status: Ok(()), number: None }
    }

    /// Counts a queued part; returns the number of the request.
    pub(crate) fn queue(&mut self, requests: &mut Requests) -> usize {
        let number = *self.number.get_or_insert_with(|| requests.open(self.tag));
        requests.add_part(number);
        number
    }

    /// Counts a part that completed at once.
    pub(crate) fn complete(&mut self, at_ns: u64, status: Result<(), DeviceError>) {
        self.done_ns = self.done_ns.max(at_ns);
        if self.status.is_ok() {
            self.status = status;
        }
    }
}

impl Requests {
    /// Ends the submission of a request: its completion, or `None` if a part is queued.
    pub(crate) fn submitted(&mut self, work: Work, latency_ns: u64) -> Option<Completion> {
        let Work { done_ns, status, number, .. } = work;
        let Some(number) = number else {
            return Some(Completion { at: VirtualTime::from_nanos(done_ns + latency_ns), status });
        };
        self.complete(number, done_ns, status, latency_ns);
        None
    }

    /// Adds a request and returns its number. The request has one part for its submission, so that it cannot complete
    /// before all other parts are added.
    pub(crate) fn open(&mut self, waiter: Waiter) -> usize {
        let open = Some(Open { waiter, parts: 1, done_ns: 0, status: Ok(()) });
        match self.free.pop() {
            Some(number) => {
                self.open[number] = open;
                number
            }
            None => {
                self.open.push(open);
                self.open.len() - 1
            }
        }
    }

    /// Adds a part to a request.
    pub(crate) fn add_part(&mut self, number: usize) {
        self.open[number].as_mut().expect("parts are added before the request is complete").parts += 1;
    }

    /// Completes a part of a request at `at_ns`. The request completes `latency_ns` after its last part.
    pub(crate) fn complete(
        &mut self,
        number: usize,
        at_ns: u64,
        status: Result<(), DeviceError>,
        latency_ns: u64,
    ) {
        let open = self.open[number].as_mut().expect("a part belongs to a request that waits");
        open.done_ns = open.done_ns.max(at_ns);
        if open.status.is_ok() {
            open.status = status;
        }
        open.parts -= 1;
        if open.parts > 0 {
            return;
        }
        let open = self.open[number].take().expect("just seen");
        self.free.push(number);
        let done_ns = open.done_ns + latency_ns;
        match open.waiter {
            None => {
                self.own = Some(Completion { at: VirtualTime::from_nanos(done_ns), status: open.status });
            }
            Some(tag) => {
                self.sequence += 1;
                self.done.push(Reverse(Done { done_ns, sequence: self.sequence, tag, status: open.status }));
            }
        }
    }

    /// Returns whether a caller waits for a request.
    pub(crate) fn any(&self) -> bool {
        !self.done.is_empty() || self.waiting()
    }

    /// Returns whether a request waits for its parts.
    pub(crate) fn waiting(&self) -> bool {
        self.free.len() < self.open.len()
    }

    /// The instant of the earliest known completion.
    pub(crate) fn first(&self) -> Option<u64> {
        self.done.peek().map(|Reverse(done)| done.done_ns)
    }

    /// Removes the earliest completion, if it is at or before `until_ns`.
    pub(crate) fn take(&mut self, until_ns: u64) -> Option<(Tag, Completion)> {
        if self.first()? > until_ns {
            return None;
        }
        let Reverse(done) = self.done.pop()?;
        Some((done.tag, Completion { at: VirtualTime::from_nanos(done.done_ns), status: done.status }))
    }

    /// Removes the completion that `submit` waits for.
    pub(crate) fn take_own(&mut self) -> Option<Completion> {
        self.own.take()
    }
}
