//! Runs a list of requests on a device in virtual time ([`Batch`]) and reports the completion of each.
//!
//! Use [`crate::virtual_load`] to generate requests from a workload, or to measure intervals and latency histograms.

use crate::block::{BlockDevice, Completion, DeviceError, Op, Request};
use crate::in_flight::InFlight;
use crate::units::{Bytes, VirtualTime};

/// Number of requests announced to the device in advance, so that it can load its tables into the processor's cache.
const AHEAD: usize = 64;

/// A value shared by all requests, or one value per request.
#[derive(Debug, Clone, Copy)]
pub enum Each<'a, T> {
    /// The value of every request.
    Same(T),
    /// One value per request.
    List(&'a [T]),
}

impl<T: Copy> Each<'_, T> {
    #[inline]
    fn get(&self, index: usize) -> T {
        match self {
            Each::Same(value) => *value,
            Each::List(values) => values[index],
        }
    }
}

/// Requests, stored column by column. Every list is as long as `offsets`.
#[derive(Debug, Clone, Copy)]
pub struct Requests<'a> {
    /// The operations.
    pub ops: Each<'a, Op>,
    /// First bytes; ignored for flushes.
    pub offsets: &'a [u64],
    /// Lengths in bytes; ignored for flushes.
    pub lengths: Each<'a, u64>,
}

impl Requests<'_> {
    /// Number of requests.
    pub fn count(&self) -> usize {
        self.offsets.len()
    }

    #[inline]
    fn get(&self, index: usize) -> Request {
        match self.ops.get(index) {
            Op::Flush => Request::flush(),
            op => Request { op, offset: self.offsets[index], length: self.lengths.get(index) },
        }
    }

    /// Checks every request against a device of this capacity and logical block.
    ///
    /// # Errors
    /// Position and [`DeviceError`] of the first request that does not fit. An empty request other than a flush is
    /// [`DeviceError::Unaligned`].
    pub fn check(&self, capacity: Bytes, block: Bytes) -> Result<(), (usize, DeviceError)> {
        let (capacity, block) = (capacity.get(), block.get());
        for index in 0..self.count() {
            let request = self.get(index);
            let Request { op, offset, length } = request;
            if length == 0 && op != Op::Flush {
                return Err((index, DeviceError::Unaligned { offset, length, block }));
            }
            request.check(capacity, block).map_err(|error| (index, error))?;
        }
        Ok(())
    }
}

/// When requests are submitted.
#[derive(Debug, Clone, Copy)]
pub enum Pace<'a> {
    /// A closed loop: `depth` requests are in flight, and each completion lets the next request start.
    Closed {
        /// Requests in flight; at least 1.
        depth: usize,
    },
    /// An open loop: each request starts at its own instant, however many requests are in flight.
    Open {
        /// Start of each request in nanoseconds of virtual time. The instants never decrease, and none is before the
        /// start of the batch.
        at_ns: &'a [u64],
    },
}

/// Buffers for the results, each as long as the list of requests.
#[derive(Debug)]
pub struct Answers<'a> {
    /// Instants of submission, in nanoseconds of virtual time.
    pub begun_ns: &'a mut [u64],
    /// Instants of completion, in nanoseconds of virtual time.
    pub done_ns: &'a mut [u64],
}

/// A run of a list of requests.
#[derive(Debug)]
pub struct Batch<'a> {
    requests: Requests<'a>,
    pace: Pace<'a>,
    now_ns: u64,
    next: usize,
    warmed: usize,
    /// Requests submitted and not yet waited for. Used only in a closed loop.
    outstanding: usize,
    in_flight: InFlight<()>,
    failed: Option<(usize, DeviceError)>,
}

impl<'a> Batch<'a> {
    /// Creates a batch that submits its first request at `start` or later.
    pub fn new(requests: Requests<'a>, pace: Pace<'a>, start: VirtualTime) -> Self {
        Batch {
            requests,
            pace,
            now_ns: start.as_nanos(),
            next: 0,
            warmed: 0,
            outstanding: 0,
            in_flight: InFlight::default(),
            failed: None,
        }
    }

    /// Submits up to `most` requests. Returns whether any are left to submit; `false` after a failed request.
    pub fn go_on<D: BlockDevice + ?Sized>(
        &mut self,
        device: &mut D,
        most: usize,
        answers: &mut Answers<'_>,
    ) -> bool {
        let end = self.requests.count().min(self.next + most);
        while self.next < end && self.failed.is_none() {
            self.warm(device);
            match self.pace {
                Pace::Closed { depth } if self.outstanding == depth => self.wait(device, answers),
                Pace::Closed { .. } => {}
                Pace::Open { at_ns } => {
                    self.now_ns = at_ns[self.next];
                    self.step_until(device, self.now_ns, answers);
                }
            }
            let (index, now) = (self.next, VirtualTime::from_nanos(self.now_ns));
            answers.begun_ns[index] = self.now_ns;
            self.next += 1;
            self.outstanding += 1;
            if let Some(completion) = device.begin(now, &self.requests.get(index), index as u64) {
                self.completes(index, completion, answers);
            }
        }
        self.next < self.requests.count() && self.failed.is_none()
    }

    /// Waits for all submitted requests. Returns the instant of the last completion, or the current instant of the
    /// batch if that is later.
    ///
    /// # Errors
    /// Position and error of the first completion that failed. After it, no more requests were submitted.
    pub fn finish<D: BlockDevice + ?Sized>(
        mut self,
        device: &mut D,
        answers: &mut Answers<'_>,
    ) -> (VirtualTime, Result<(), (usize, DeviceError)>) {
        self.step_until(device, u64::MAX, answers);
        let done_ns = answers.done_ns[..self.next].iter().copied().max().unwrap_or(0);
        (VirtualTime::from_nanos(self.now_ns.max(done_ns)), self.failed.map_or(Ok(()), Err))
    }

    #[inline]
    fn completes(&mut self, index: usize, completion: Completion, answers: &mut Answers<'_>) {
        answers.done_ns[index] = completion.at.as_nanos();
        if let Pace::Closed { .. } = self.pace {
            self.in_flight.push(completion.at.as_nanos(), ());
        }
        if let (Err(error), None) = (completion.status, &self.failed) {
            self.failed = Some((index, error));
        }
    }

    /// Advances to the next completion.
    #[inline]
    fn wait<D: BlockDevice + ?Sized>(&mut self, device: &mut D, answers: &mut Answers<'_>) {
        while let Some(at) = device.next_done() {
            if self.in_flight.first_ns() <= at.as_nanos() {
                break;
            }
            if let Some((tag, completion)) = device.finish() {
                self.completes(tag as usize, completion, answers);
            }
        }
        let (done_ns, ()) = self.in_flight.pop().expect("something is in flight");
        self.now_ns = self.now_ns.max(done_ns);
        self.outstanding -= 1;
    }

    /// Collects the queued requests that complete by `until_ns`.
    fn step_until<D: BlockDevice + ?Sized>(
        &mut self,
        device: &mut D,
        until_ns: u64,
        answers: &mut Answers<'_>,
    ) {
        while device.next_done().is_some_and(|at| at.as_nanos() <= until_ns) {
            if let Some((tag, completion)) = device.finish() {
                self.completes(tag as usize, completion, answers);
            }
        }
    }

    #[inline]
    fn warm<D: BlockDevice + ?Sized>(&mut self, device: &D) {
        if self.next < self.warmed {
            return;
        }
        let mut upcoming = [Request::flush(); AHEAD];
        let count = AHEAD.min(self.requests.count() - self.next);
        for (ahead, request) in upcoming[..count].iter_mut().enumerate() {
            *request = self.requests.get(self.next + ahead);
        }
        device.warm(&upcoming[..count]);
        self.warmed = self.next + count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Counters, Tag};
    use proptest::prelude::*;

    /// A server that handles one request at a time and takes one nanosecond per byte. If `queues` is set, it queues
    /// requests. It fails requests at the offset `fails_at`.
    struct Server {
        busy_ns: u64,
        queues: bool,
        queue: Vec<(u64, Tag)>,
        fails_at: u64,
    }

    impl Server {
        fn new(queues: bool) -> Self {
            Server { busy_ns: 0, queues, queue: Vec::new(), fails_at: u64::MAX }
        }
    }

    impl BlockDevice for Server {
        fn capacity(&self) -> Bytes {
            Bytes::mib(1)
        }
        fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
            self.busy_ns = self.busy_ns.max(now.as_nanos()) + request.length;
            let failed = DeviceError::WornOut;
            let status = if request.offset == self.fails_at { Err(failed) } else { Ok(()) };
            Completion { at: VirtualTime::from_nanos(self.busy_ns), status }
        }
        fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
            let completion = self.submit(now, request);
            if !self.queues {
                return Some(completion);
            }
            self.queue.push((completion.at.as_nanos(), tag));
            None
        }
        fn next_done(&self) -> Option<VirtualTime> {
            self.queue.first().map(|(at, _)| VirtualTime::from_nanos(*at))
        }
        fn finish(&mut self) -> Option<(Tag, Completion)> {
            let (at, tag) = self.queue.remove(0);
            Some((tag, Completion { at: VirtualTime::from_nanos(at), status: Ok(()) }))
        }
        fn idle_until(&mut self, _: VirtualTime) {}
        fn power_cut(&mut self, _: VirtualTime) {}
        fn secure_erase(&mut self) {}
        fn counters(&self) -> Counters {
            Counters::default()
        }
    }

    type Ended = (Vec<u64>, Vec<u64>, u64, Result<(), (usize, DeviceError)>);

    fn run(mut device: Server, requests: Requests<'_>, pace: Pace<'_>, step: usize) -> Ended {
        let (mut begun_ns, mut done_ns) = (vec![0; requests.count()], vec![0; requests.count()]);
        let mut answers = Answers { begun_ns: &mut begun_ns, done_ns: &mut done_ns };
        let mut batch = Batch::new(requests, pace, VirtualTime::from_nanos(100));
        while batch.go_on(&mut device, step, &mut answers) {}
        let (end, ended) = batch.finish(&mut device, &mut answers);
        (begun_ns, done_ns, end.as_nanos(), ended)
    }

    const WRITES: Each<'static, Op> = Each::Same(Op::Write { fua: false });

    proptest! {
        #[test]
        fn as_many_are_in_flight_as_asked_for(
            lengths in prop::collection::vec(1u64..9, 1..80), depth in 1usize..9, queues: bool, step in 1usize..20,
        ) {
            let lengths: Vec<u64> = lengths.iter().map(|length| length * 512).collect();
            let offsets = vec![0; lengths.len()];
            let requests = Requests { ops: WRITES, offsets: &offsets, lengths: Each::List(&lengths) };
            let (begun, done, end, ended) = run(Server::new(queues), requests, Pace::Closed { depth }, step);
            // The server is never idle, so completions are cumulative sums. Each request starts when the one `depth`
            // places earlier completes.
            let sums = lengths.iter().scan(100, |at, length| { *at += length; Some(*at) });
            prop_assert_eq!(&done, &sums.collect::<Vec<_>>());
            for index in 0..done.len() {
                prop_assert_eq!(begun[index], if index < depth { 100 } else { done[index - depth] });
            }
            prop_assert_eq!((end, ended), (*done.last().expect("some"), Ok(())));
        }

        #[test]
        fn an_open_load_does_not_wait(gaps in prop::collection::vec(0u64..2000, 1..80), queues: bool) {
            let at_ns: Vec<u64> = gaps.iter().scan(100, |at, gap| { *at += gap; Some(*at) }).collect();
            let offsets = vec![0; at_ns.len()];
            let requests = Requests { ops: WRITES, offsets: &offsets, lengths: Each::Same(512) };
            let (begun, done, _, _) = run(Server::new(queues), requests, Pace::Open { at_ns: &at_ns }, 7);
            prop_assert_eq!(&begun, &at_ns);
            let mut busy = 0;
            for (at, done) in at_ns.iter().zip(done) {
                busy = busy.max(*at) + 512;
                prop_assert_eq!(done, busy);
            }
        }
    }

    #[test]
    fn nothing_is_submitted_after_a_failure() {
        let device = Server { fails_at: 1024, ..Server::new(false) };
        let offsets = [0, 512, 1024, 1536, 2048];
        let requests = Requests { ops: WRITES, offsets: &offsets, lengths: Each::Same(512) };
        let (begun, _, end, ended) = run(device, requests, Pace::Closed { depth: 1 }, 100);
        assert_eq!(ended, Err((2, DeviceError::WornOut)));
        assert_eq!((begun[3], end), (0, 100 + 3 * 512));
    }

    #[test]
    fn requests_that_do_not_fit_are_found_before_any_is_submitted() {
        let check = |op, offset, length| {
            let requests =
                Requests { ops: Each::Same(op), offsets: &[0, offset], lengths: Each::Same(length) };
            requests.check(Bytes::new(8192), Bytes::new(512)).map_err(|(index, _)| index)
        };
        assert_eq!(check(Op::Read, 4096, 4096), Ok(()));
        assert_eq!(check(Op::Read, 4608, 4096), Err(1));
        assert_eq!(check(Op::Read, 100, 512), Err(1));
        assert_eq!(check(Op::Read, 0, 0), Err(0));
        assert_eq!(check(Op::Trim, u64::MAX - 511, 512), Err(1));
        assert_eq!(check(Op::Flush, 100, 0), Ok(()));
    }
}
