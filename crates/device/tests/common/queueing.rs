//! A queueing member for tests, which serves requests in random order and panics if it is called out of order of
//! time.
#![allow(dead_code, missing_docs)]

use lowtide_core::rng::{Rng, below};
use lowtide_core::{BlockDevice, Bytes, Completion, Counters, Op, Request, Seed, Tag, VirtualTime};

/// Serves queued requests in random order, each in a random time of up to a millisecond. Like a disk with a cache, it
/// answers flushes and some reads at once.
pub struct Queueing {
    capacity: u64,
    clock_ns: u64,
    waiting: Vec<(Tag, u64)>,
    serving: Option<(Tag, u64)>,
    counters: Counters,
    rng: Rng,
}

impl Queueing {
    pub fn new(capacity: u64, seed: Seed) -> Self {
        let (waiting, rng) = (Vec::new(), seed.stream());
        Queueing { capacity, clock_ns: 0, waiting, serving: None, counters: Counters::default(), rng }
    }
}

impl BlockDevice for Queueing {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.capacity)
    }
    fn submit(&mut self, _: VirtualTime, _: &Request) -> Completion {
        panic!("composites begin what they ask of members");
    }
    fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
        let now_ns = now.as_nanos();
        assert!(now_ns >= self.clock_ns, "asked at {now_ns} after {}", self.clock_ns);
        if let Some((_, done_ns)) = self.serving {
            assert!(now_ns <= done_ns, "asked at {now_ns} before what is complete at {done_ns} was taken");
        }
        assert!(request.op == Op::Flush || request.offset + request.length <= self.capacity, "{request:?}");
        self.clock_ns = now_ns;
        match request.op {
            Op::Read => self.counters.host_read_bytes += request.length,
            Op::Write { .. } => self.counters.host_written_bytes += request.length,
            Op::Trim => self.counters.trimmed_bytes += request.length,
            Op::WriteZeroes | Op::Flush => {}
        }
        let service_ns = 1 + below(&mut self.rng, 1_000_000);
        if request.op == Op::Flush || (request.op == Op::Read && below(&mut self.rng, 4) == 0) {
            return Some(Completion { at: VirtualTime::from_nanos(now_ns + service_ns), status: Ok(()) });
        }
        match self.serving {
            None => self.serving = Some((tag, now_ns + service_ns)),
            Some((other, _)) => {
                let in_use = other == tag || self.waiting.iter().any(|(other, _)| *other == tag);
                assert!(!in_use, "tag {tag} twice");
                self.waiting.push((tag, service_ns));
            }
        }
        None
    }
    fn next_done(&self) -> Option<VirtualTime> {
        self.serving.map(|(_, done_ns)| VirtualTime::from_nanos(done_ns))
    }
    fn finish(&mut self) -> Option<(Tag, Completion)> {
        let (tag, done_ns) = self.serving.take()?;
        self.clock_ns = done_ns;
        if !self.waiting.is_empty() {
            let (next, service_ns) =
                self.waiting.swap_remove(below(&mut self.rng, self.waiting.len() as u64) as usize);
            self.serving = Some((next, done_ns + service_ns));
        }
        Some((tag, Completion { at: VirtualTime::from_nanos(done_ns), status: Ok(()) }))
    }
    fn idle_until(&mut self, until: VirtualTime) {
        self.clock_ns = self.clock_ns.max(until.as_nanos());
    }
    fn power_cut(&mut self, _: VirtualTime) {}
    fn secure_erase(&mut self) {}
    fn counters(&self) -> Counters {
        self.counters
    }
}

/// The requests of a run of [`drive`] and their results.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Driven {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub queued: usize,
    /// Number of completions of each request.
    pub done: Vec<u64>,
}

/// Submits `count` mixed requests, up to 32 at a time, with occasional calls of `submit`. Checks that each request
/// completes exactly once and not before its submission, and that queued requests complete in order of time.
pub fn drive(device: &mut dyn BlockDevice, seed: u64, count: usize) -> Driven {
    let mut rng = Seed::new(seed).part("drive", 0).stream();
    let sectors = device.capacity().get() / 512;
    let mut seen = Driven { done: vec![0; count], ..Driven::default() };
    let (mut since, mut open) = (vec![0; count], vec![false; count]);
    let (mut now, mut in_flight, mut last) = (0, 0, 0);
    let mut asked = 0;
    while asked < count || in_flight > 0 {
        let next = device.next_done().map(VirtualTime::as_nanos);
        assert_eq!(next.is_some(), in_flight > 0, "seed {seed}: something is next while something is queued");
        if asked == count || in_flight >= 32 || (next.is_some() && below(&mut rng, 3) == 0) {
            let next = next.expect("something is in flight");
            if let Some((tag, completion)) = device.finish() {
                let at_ns = completion.at.as_nanos();
                assert_eq!((at_ns, completion.status), (next, Ok(())), "seed {seed}: as was told");
                assert!(at_ns >= last, "seed {seed}: {at_ns} after {last}");
                assert!(
                    std::mem::take(&mut open[tag as usize]),
                    "seed {seed}: {tag} comes twice or was not queued"
                );
                assert!(at_ns >= since[tag as usize], "seed {seed}: {tag} before it was asked for");
                (seen.done[tag as usize], last, in_flight) = (at_ns, at_ns, in_flight - 1);
            }
            now = now.max(next);
            continue;
        }
        // Advance at most to the next step, or freely if nothing is queued.
        let gap = below(&mut rng, 300_000);
        now = next.map_or(now + gap, |next| (now + gap).min(next).max(now));
        let length = (1 + below(&mut rng, 64)) * 512;
        let offset = below(&mut rng, sectors - 64) * 512;
        let request = match below(&mut rng, 12) {
            0..=5 => Request::read(offset, length),
            6..=9 => Request::write(offset, length),
            10 => Request::trim(offset, length),
            _ => Request::flush(),
        };
        match request.op {
            Op::Read => seen.read_bytes += length,
            Op::Write { .. } => seen.written_bytes += length,
            _ => {}
        }
        since[asked] = now;
        let at = VirtualTime::from_nanos(now);
        let answer = if below(&mut rng, 50) == 0 {
            Some(device.submit(at, &request))
        } else {
            device.begin(at, &request, asked as Tag)
        };
        match answer {
            Some(completion) => {
                assert!(completion.at >= at && completion.status.is_ok(), "seed {seed}: {request:?}");
                seen.done[asked] = completion.at.as_nanos();
            }
            None => {
                (open[asked], in_flight) = (true, in_flight + 1);
                seen.queued += 1;
            }
        }
        asked += 1;
    }
    assert!(device.next_done().is_none() && device.finish().is_none(), "seed {seed}: nothing is left");
    seen
}
