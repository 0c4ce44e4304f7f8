//! The array: combines controller, link, cache and members into a device.
//!
//! A write occupies the controller, then the link, then the members. A read occupies the controller, then the
//! members, and the link once a member has the data. Requests go to members in order of time, after all earlier
//! completions of members were collected. `map` has the addresses, and `write_cache` the contents of the cache.

use super::map::Map;
use super::spec::{ArraySpec, MirrorRead, group_sizes};
use super::write_cache::WriteCache;
use crate::composite::{Calendar, Composite, Members, Requests, Step, Work, earlier, transfer_ns};
use crate::spec::{AnyDevice, SpecError, fail};
use crate::state::{Sink, Source};
use lowtide_core::{
    BlockDevice, Bytes, Completion, Counters, Op, Request, Seed, StateError, Tag, VirtualTime,
};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{Read, Write};

/// The purpose of a part that a member has queued.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Part {
    /// A part of a request, submitted at `asked_ns`, that sends `link_bytes` to the host.
    Of { number: usize, asked_ns: u64, link_bytes: u64 },
    /// A write from the cache.
    Destage { group: usize, number: usize },
}

/// A write that waits for room in the cache.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Stalled {
    number: usize,
    offset: u64,
    length: u64,
}

/// The parts that a member has to serve, if copies are chosen by them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Outstanding {
    queued: usize,
    until: BinaryHeap<Reverse<u64>>,
}

/// The earliest start of the transfer of data that a member, asked at `asked_ns`, has ready at `at_ns`. The member
/// streams its data, so that on an idle link the transfer ends with the member's completion, but not before one
/// transfer time after `asked_ns`.
fn streamed(asked_ns: u64, at_ns: u64, transfer_ns: u64) -> u64 {
    at_ns.saturating_sub(transfer_ns).max(asked_ns)
}

/// An array of devices in virtual time.
#[derive(Debug)]
pub struct Array {
    map: Map,
    copies: usize,
    mirror_read: MirrorRead,
    latency_ns: u64,
    request_ns: u64,
    link_rate: Option<u64>,
    chunk: u64,
    block: u64,
    members: Members<Part>,
    requests: Requests,
    link: Calendar,
    controller_busy_ns: u64,
    /// Members get no more requests before this instant.
    clock_ns: u64,
    /// The next copy in turn of each group.
    turns: Vec<usize>,
    outstanding: Vec<Outstanding>,
    cache: Option<WriteCache>,
    stalled: VecDeque<Stalled>,
    /// Instants at which writes from the cache are complete on all copies, with group and number.
    destaged: BinaryHeap<Reverse<(u64, usize, usize)>>,
}

impl Array {
    /// An array of new members, each with its own seed.
    ///
    /// # Errors
    /// [`SpecError`] if the description is inconsistent.
    pub fn new(spec: &ArraySpec, seed: Seed) -> Result<Self, SpecError> {
        spec.validate()?;
        let members = spec.members.iter().enumerate();
        let members: Result<Vec<AnyDevice>, SpecError> =
            members.map(|(n, member)| member.build(seed.part("member", n as u64))).collect();
        Self::of(spec, members?)
    }

    /// An array of existing devices. Only the parameters of `spec` are used.
    ///
    /// # Errors
    /// [`SpecError`] if the devices do not fit the level, or the chunk is not a multiple of their logical block.
    pub fn of(spec: &ArraySpec, members: Vec<AnyDevice>) -> Result<Self, SpecError> {
        let parameters = &spec.parameters;
        let shape = parameters.level.shape(members.len());
        let sizes = members.iter().map(|member| member.capacity().get());
        let sizes = group_sizes(shape, parameters.chunk.get(), sizes);
        let map = Map::new(shape, parameters.chunk.get(), &sizes);
        let block = members.iter().map(|member| member.logical_block().get()).max().unwrap_or(512);
        if members.len() != shape.groups * shape.copies || map.capacity() == 0 {
            return fail("members", format!("{} devices do not make an array", members.len()));
        }
        if !parameters.chunk.get().is_multiple_of(block) {
            let chunk = parameters.chunk;
            return fail("chunk", format!("{chunk} is not a multiple of the logical block of {block}"));
        }
        Ok(Array {
            map,
            copies: shape.copies,
            mirror_read: parameters.mirror_read,
            latency_ns: parameters.latency.get(),
            request_ns: parameters.request.get(),
            link_rate: parameters.link_rate.map(Bytes::get),
            chunk: parameters.chunk.get(),
            block,
            requests: Requests::default(),
            link: Calendar::default(),
            controller_busy_ns: 0,
            clock_ns: 0,
            turns: vec![0; shape.groups],
            outstanding: vec![Outstanding::default(); members.len()],
            cache: parameters.write_cache.as_ref().map(|cache| WriteCache::new(cache, shape.groups)),
            stalled: VecDeque::new(),
            destaged: BinaryHeap::new(),
            members: Members::new(members),
        })
    }

    /// Passes a request to its members.
    fn pass_on(&mut self, now_ns: u64, request: &Request, tag: Option<Tag>) -> Option<Completion> {
        let mut work = Work::new(tag, self.clock_ns);
        if request.op == Op::Flush {
            for member in 0..self.turns.len() * self.copies {
                self.ask(&mut work, now_ns, member, request, 0);
            }
        } else {
            // `split` borrows the map, and requests to members need the whole array.
            let map = std::mem::replace(&mut self.map, Map::nowhere());
            map.split(request.offset, request.length, |part| {
                let on_member = Request { op: request.op, offset: part.offset, length: part.length };
                let first = part.group * self.copies;
                if request.op == Op::Read {
                    self.read(&mut work, now_ns, part.group, &on_member);
                } else {
                    if let Some(cache) = &mut self.cache {
                        cache.forget(part.group, part.offset, part.length);
                    }
                    for member in first..first + self.copies {
                        self.ask(&mut work, now_ns, member, &on_member, 0);
                    }
                }
            });
            self.map = map;
            // The trimmed ranges made room in the cache.
            self.admit();
        }
        self.requests.submitted(work, self.latency_ns)
    }

    /// Reads from the cache, or from one copy.
    fn read(&mut self, work: &mut Work, now_ns: u64, group: usize, request: &Request) {
        let held = self.cache.as_ref().filter(|cache| cache.holds(group, request.offset, request.length));
        if let Some(cache) = held {
            let ready = self.clock_ns + cache.latency_ns;
            let transfer = transfer_ns(request.length, self.link_rate);
            work.complete(self.link.book(now_ns, ready, transfer), Ok(()));
            return;
        }
        let member = group * self.copies + self.choose(group, request.offset);
        self.ask(work, now_ns, member, request, request.length);
    }

    /// The copy to read.
    fn choose(&mut self, group: usize, offset: u64) -> usize {
        if self.copies == 1 {
            return 0;
        }
        let turn = self.turns[group];
        match self.mirror_read {
            MirrorRead::Primary => 0,
            MirrorRead::ByStripe => (offset / self.chunk) as usize % self.copies,
            MirrorRead::Alternate => {
                self.turns[group] = (turn + 1) % self.copies;
                turn
            }
            MirrorRead::ShorterQueue => {
                let (copies, clock_ns) = (self.copies, self.clock_ns);
                let members = &mut self.outstanding[group * copies..][..copies];
                for member in members.iter_mut() {
                    while member.until.peek().is_some_and(|Reverse(until)| *until <= clock_ns) {
                        member.until.pop();
                    }
                }
                let chosen = (0..copies)
                    .map(|n| (turn + n) % copies)
                    .min_by_key(|copy| members[*copy].queued + members[*copy].until.len())
                    .unwrap_or(0);
                self.turns[group] = (chosen + 1) % copies;
                chosen
            }
        }
    }

    /// Returns whether outstanding parts of members are counted.
    fn counts_outstanding(&self) -> bool {
        self.copies > 1 && self.mirror_read == MirrorRead::ShorterQueue
    }

    /// Counts a part passed to a member, if copies are chosen by outstanding parts.
    fn count_outstanding(&mut self, member: usize, completion: Option<&Completion>) {
        if !self.counts_outstanding() {
            return;
        }
        let outstanding = &mut self.outstanding[member];
        match completion {
            None => outstanding.queued += 1,
            Some(completion) => outstanding.until.push(Reverse(completion.at.as_nanos())),
        }
    }

    /// Passes a member its part of a request.
    fn ask(&mut self, work: &mut Work, now_ns: u64, member: usize, request: &Request, link_bytes: u64) {
        let asked_ns = self.clock_ns;
        let requests = &mut self.requests;
        let part = || Part::Of { number: work.queue(requests), asked_ns, link_bytes };
        let completion = self.members.begin(member, asked_ns, request, part);
        self.count_outstanding(member, completion.as_ref());
        if let Some(Completion { at, status }) = completion {
            let at_ns = at.as_nanos();
            let transfer = transfer_ns(link_bytes, self.link_rate);
            let earliest = streamed(asked_ns, at_ns, transfer);
            work.complete(self.link.book(now_ns, earliest, transfer).max(at_ns), status);
        }
    }

    /// Adds a write to the cache, or makes it wait for room.
    fn write_behind(&mut self, request: &Request, tag: Option<Tag>) -> Option<Completion> {
        let Request { offset, length, .. } = *request;
        let cache = self.cache.as_ref().expect("a write goes behind a cache");
        if self.stalled.is_empty() && cache.has_room(length) {
            let at_ns = self.clock_ns + cache.latency_ns + self.latency_ns;
            self.keep(offset, length);
            return Some(Completion { at: VirtualTime::from_nanos(at_ns), status: Ok(()) });
        }
        let number = self.requests.open(tag);
        self.stalled.push_back(Stalled { number, offset, length });
        None
    }

    /// Adds a range to the cache, and destages as much as the members accept.
    fn keep(&mut self, offset: u64, length: u64) {
        let map = std::mem::replace(&mut self.map, Map::nowhere());
        map.split(offset, length, |part| {
            let cache = self.cache.as_mut().expect("only an array with a cache keeps writes");
            cache.add(part.group, part.offset, part.length);
            self.destage(part.group);
        });
        self.map = map;
    }

    /// Destages waiting ranges to the members of a group, up to the allowed number of writes.
    fn destage(&mut self, group: usize) {
        let copies = self.copies;
        while let Some((number, range)) = self.cache.as_mut().and_then(|cache| cache.next(group, copies)) {
            // The battery does not protect the data after the completion, so the write must be durable by then.
            let op = Op::Write { fua: true };
            let request = Request { op, offset: range.offset, length: range.end - range.offset };
            for member in group * copies..(group + 1) * copies {
                let part = || Part::Destage { group, number };
                let completion = self.members.begin(member, self.clock_ns, &request, part);
                self.count_outstanding(member, completion.as_ref());
                if let Some(completion) = completion {
                    self.copied(group, number, completion.at.as_nanos());
                }
            }
        }
    }

    /// Records that a member has completed a write from the cache.
    fn copied(&mut self, group: usize, number: usize, at_ns: u64) {
        let cache = self.cache.as_mut().expect("it came from the cache");
        if let Some(done_ns) = cache.copied(group, number, at_ns) {
            self.destaged.push(Reverse((done_ns, group, number)));
        }
    }

    fn part_done(&mut self, step: Step<Part>) {
        let Step { member, part, completion } = step;
        if self.counts_outstanding() {
            self.outstanding[member].queued -= 1;
        }
        let at_ns = completion.at.as_nanos();
        match part {
            Part::Destage { group, number } => self.copied(group, number, at_ns),
            Part::Of { number, asked_ns, link_bytes } => {
                // No booking may be dropped here: the host may still submit a request before this instant.
                let transfer = transfer_ns(link_bytes, self.link_rate);
                let end_ns = self.link.book(0, streamed(asked_ns, at_ns, transfer), transfer).max(at_ns);
                self.requests.complete(number, end_ns, completion.status, self.latency_ns);
            }
        }
    }

    /// Admits waiting writes to the cache, in order, while there is room.
    fn admit(&mut self) {
        while let (Some(first), Some(cache)) = (self.stalled.front().copied(), &self.cache) {
            if !cache.has_room(first.length) {
                return;
            }
            let latency_ns = cache.latency_ns + self.latency_ns;
            self.stalled.pop_front();
            self.requests.complete(first.number, self.clock_ns, Ok(()), latency_ns);
            self.keep(first.offset, first.length);
        }
    }
}

impl Composite for Array {
    fn take(&mut self, now: VirtualTime, request: &Request, tag: Option<Tag>) -> Option<Completion> {
        if let Err(error) = request.check(self.map.capacity(), self.block) {
            return Some(Completion { at: now, status: Err(error) });
        }
        let now_ns = now.as_nanos();
        self.controller_busy_ns = self.controller_busy_ns.max(now_ns) + self.request_ns;
        let mut at_ns = self.controller_busy_ns;
        let write = matches!(request.op, Op::Write { .. });
        if write {
            let transfer = transfer_ns(request.length, self.link_rate);
            at_ns = self.link.book(now_ns, at_ns, transfer);
        }
        self.advance(at_ns);
        self.clock_ns = self.clock_ns.max(at_ns);
        if write && self.cache.as_ref().is_some_and(|cache| cache.takes(request.length)) {
            return self.write_behind(request, tag);
        }
        self.pass_on(now_ns, request, tag)
    }

    fn next_inside(&self) -> Option<u64> {
        let destaged = self.destaged.peek().map(|Reverse((at_ns, ..))| *at_ns);
        earlier(self.members.next_step(), destaged)
    }

    fn step(&mut self, until_ns: u64) -> bool {
        let Some(at_ns) = self.next_inside().filter(|at_ns| *at_ns <= until_ns) else { return false };
        self.clock_ns = self.clock_ns.max(at_ns);
        match self.destaged.peek().copied() {
            Some(Reverse((due_ns, group, number))) if due_ns <= at_ns => {
                self.destaged.pop();
                self.cache.as_mut().expect("it came from the cache").written(group, number);
                self.admit();
                self.destage(group);
            }
            _ => {
                if let Some(Some(step)) = self.members.step(at_ns) {
                    self.part_done(step);
                }
            }
        }
        true
    }

    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn requests_mut(&mut self) -> &mut Requests {
        &mut self.requests
    }
}

// Members have every capability: a call that is not handled would report a device without it.
#[deny(clippy::missing_trait_methods)]
impl BlockDevice for Array {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.map.capacity())
    }

    fn logical_block(&self) -> Bytes {
        Bytes::new(self.block)
    }

    fn raw_capacity(&self) -> Option<Bytes> {
        self.members.raw_capacity()
    }

    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        self.wait(now, request)
    }

    fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
        self.take(now, request, Some(tag))
    }

    fn next_done(&self) -> Option<VirtualTime> {
        self.next_answer().map(VirtualTime::from_nanos)
    }

    fn finish(&mut self) -> Option<(Tag, Completion)> {
        self.answer()
    }

    fn warm(&self, upcoming: &[Request]) {
        let mut for_members = vec![Vec::new(); self.turns.len()];
        for request in upcoming.iter().filter(|request| request.offset < self.map.capacity()) {
            // The first sector decides the group. The prefetch of the other sectors costs little.
            self.map.split(request.offset, 1, |part| {
                for_members[part.group].push(Request { offset: part.offset, ..*request });
            });
        }
        for (group, requests) in for_members.iter().enumerate() {
            for copy in 0..self.copies {
                self.members.device(group * self.copies + copy).warm(requests);
            }
        }
    }

    fn idle_until(&mut self, until: VirtualTime) {
        self.advance(until.as_nanos());
        self.members.idle_until(until);
    }

    fn busy_until(&self) -> VirtualTime {
        let inside_ns = self.next_inside().unwrap_or(0).max(self.controller_busy_ns);
        self.members.busy_until().max(VirtualTime::from_nanos(inside_ns))
    }

    fn power_cut(&mut self, now: VirtualTime) {
        // Operations in progress complete first. The cache keeps its contents and continues after the cut.
        self.advance(now.as_nanos());
        self.finish_all();
        self.members.power_cut(now);
        self.controller_busy_ns = self.controller_busy_ns.min(now.as_nanos());
        self.link = Calendar::default();
    }

    fn secure_erase(&mut self) {
        self.finish_all();
        if let Some(cache) = &mut self.cache {
            cache.clear();
        }
        while self.step(u64::MAX) {}
        self.members.secure_erase();
    }

    fn counters(&self) -> Counters {
        self.members.counters()
    }

    fn erase_counts(&self) -> Vec<u32> {
        self.members.erase_counts()
    }

    fn host_memory(&self) -> Bytes {
        self.members.host_memory()
    }

    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        Sink(out).value(&(
            &self.requests,
            &self.link,
            (self.controller_busy_ns, self.clock_ns),
            &self.turns,
            &self.outstanding,
            &self.cache,
            &self.stalled,
            &self.destaged,
        ))?;
        self.members.save(out)
    }

    fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        let busy;
        (
            self.requests,
            self.link,
            busy,
            self.turns,
            self.outstanding,
            self.cache,
            self.stalled,
            self.destaged,
        ) = Source(from).value()?;
        (self.controller_busy_ns, self.clock_ns) = busy;
        self.members.restore(from)
    }
}
