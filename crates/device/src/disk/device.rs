//! The disk as a device ([`SimulatedDisk`]): what it answers at once, what it queues, and what it does when.
//!
//! The surface serves one transfer at a time. What comes next is chosen when a transfer ends, or when somebody asks
//! [`BlockDevice::next_done`] for what follows, from what has come by then; a choice once told stays.
//!
//! Leaves out a limit to the commands a host may have in flight, a bus shared with other disks, and that memory and
//! surface share the link.

use super::mechanism::Mechanism;
use super::queue::{Command, Queue};
use super::read_ahead::{Found, Segments};
use super::spec::{DiskSpec, SpecError};
use super::write_cache::WriteCache;
use super::{SECTOR, SeekCurve, Surface};
use crate::composite::transfer_ns;
use crate::state::{Sink, Source};
use lowtide_core::rng::below;
use lowtide_core::{
    BlockDevice, Bytes, Completion, Counters, Op, Request, Seed, StateError, Tag, VirtualTime,
};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{Read, Write};

/// The tag of a request that was submitted, not begun.
const SUBMITTED: Tag = Tag::MAX;

/// A completion that nobody has taken yet.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Done {
    tag: Tag,
    at_ns: u64,
    /// Bytes that only the write cache has.
    cached_bytes: u64,
}

/// A simulated hard disk.
#[derive(Debug)]
pub struct SimulatedDisk {
    spec: DiskSpec,
    capacity: u64,
    overhead_ns: u64,
    link_rate: u64,
    mechanism: Mechanism,
    queue: Queue,
    segments: Segments,
    cache: Option<WriteCache>,
    honours_flush: bool,
    /// Writes that wait for room in the cache.
    stalled: VecDeque<Command>,
    /// Whether the next transfer is the cache's, where writes and commands both wait.
    cache_turn: bool,
    done: VecDeque<Done>,
    last_done_ns: u64,
    /// When the link has moved what memory answered.
    link_free_ns: u64,
    counters: Counters,
}

impl SimulatedDisk {
    /// A disk that turns. The seed gives the angle at the start: disks of one array do not turn together.
    ///
    /// # Errors
    /// [`SpecError`] if the description is inconsistent.
    pub fn new(spec: &DiskSpec, seed: Seed) -> Result<Self, SpecError> {
        let (surface, curve) = (spec.surface()?, spec.seek_curve()?);
        let phase_ns = below(&mut seed.part("angle", 0).stream(), surface.revolution_ns());
        let capacity = spec.capacity.get();
        Ok(SimulatedDisk {
            capacity,
            overhead_ns: spec.interface.overhead.get(),
            link_rate: spec.interface.rate.get(),
            mechanism: Mechanism::new(surface, curve, spec.seek.write_settle.get(), phase_ns),
            queue: Queue::new(&spec.queue),
            segments: Segments::new(spec.read_ahead, capacity),
            cache: spec
                .write_cache
                .filter(|cache| cache.size > Bytes::ZERO)
                .map(|cache| WriteCache::new(cache.size.get(), &spec.queue)),
            honours_flush: spec.write_cache.is_none_or(|cache| cache.honours_flush),
            stalled: VecDeque::new(),
            cache_turn: false,
            done: VecDeque::new(),
            last_done_ns: 0,
            link_free_ns: 0,
            counters: Counters::default(),
            spec: spec.clone(),
        })
    }

    /// The description of the device.
    pub fn spec(&self) -> &DiskSpec {
        &self.spec
    }

    /// The position of each byte.
    pub fn surface(&self) -> &Surface {
        &self.mechanism.surface
    }

    /// The seek time by distance.
    pub fn seek_curve(&self) -> &SeekCurve {
        self.mechanism.curve()
    }

    /// Time of so many bytes on the link.
    #[inline]
    fn link_ns(&self, bytes: u64) -> u64 {
        transfer_ns(bytes, Some(self.link_rate))
    }

    /// Moves bytes between memory and host from `ready_ns` on, after those before them: when they are there.
    #[inline]
    fn link(&mut self, ready_ns: u64, bytes: u64) -> u64 {
        self.link_free_ns = self.link_free_ns.max(ready_ns) + self.link_ns(bytes);
        self.link_free_ns
    }

    /// A command of the queue is complete, at this instant or after the last one.
    #[inline]
    fn complete(&mut self, tag: Tag, at_ns: u64, cached_bytes: u64) {
        self.last_done_ns = self.last_done_ns.max(at_ns);
        self.done.push_back(Done { tag, at_ns: self.last_done_ns, cached_bytes });
    }

    /// A request of the host that is sound: its completion where it is known, else it is queued.
    #[inline]
    fn take(&mut self, now_ns: u64, request: &Request, tag: Tag) -> Option<u64> {
        let ready_ns = now_ns + self.overhead_ns;
        let Request { op, offset, length } = *request;
        if op != Op::Flush && length == 0 {
            return Some(ready_ns);
        }
        self.advance(now_ns);
        // The range of a flush may be any, and means nothing.
        let end = offset.wrapping_add(length);
        let mut command = Command { tag, since_ns: now_ns, ready_ns, first: offset, end, write: false };
        match op {
            Op::Trim => return Some(ready_ns),
            Op::Flush if self.honours_flush => return Some(self.flush(ready_ns)),
            Op::Flush => return Some(ready_ns),
            Op::Read => {
                self.counters.host_read_bytes += length;
                if let Some(at_ns) = self.read_from_memory(now_ns, &command) {
                    return Some(at_ns);
                }
            }
            Op::Write { .. } | Op::WriteZeroes => {
                self.counters.host_written_bytes += length;
                command.write = true;
                self.segments.invalidate(now_ns, command.first, command.end, &mut self.mechanism);
                let fua = op == Op::Write { fua: true } && self.honours_flush;
                if let Some(cache) = &mut self.cache {
                    if fua {
                        cache.drop_range(command.first, command.end);
                    } else if self.stalled.is_empty() && cache.has_room(now_ns, length) {
                        self.keep(now_ns, &command);
                        return Some(self.link(ready_ns, length));
                    } else {
                        self.stalled.push_back(command);
                        self.plan();
                        return None;
                    }
                }
            }
        }
        self.queue.push(command, &self.mechanism);
        self.plan();
        None
    }

    #[inline]
    fn read_from_memory(&mut self, now_ns: u64, command: &Command) -> Option<u64> {
        let Command { ready_ns, first, end, .. } = *command;
        if self.cache.as_ref().is_some_and(|cache| cache.holds(now_ns, first, end)) {
            return Some(self.link(ready_ns, end - first));
        }
        let idle = self.done.is_empty() && self.queue.is_empty() && self.stalled.is_empty();
        match self.segments.find(now_ns, first, end, idle, &mut self.mechanism) {
            Found::Whole(in_memory_ns) => {
                self.mechanism.free_ns = self.mechanism.free_ns.max(in_memory_ns);
                Some(self.link(ready_ns, end - first).max(in_memory_ns))
            }
            Found::From(_) => None,
        }
    }

    /// Takes a write into the cache, where there is room from `now_ns` on.
    #[inline]
    fn keep(&mut self, now_ns: u64, command: &Command) {
        let cache = self.cache.as_mut().expect("a caller has asked it for room");
        if cache.is_empty() {
            self.mechanism.free_ns = self.mechanism.free_ns.max(now_ns);
        }
        cache.insert(command.first, command.end);
    }

    /// Does everything that begins before `now_ns`.
    #[inline]
    fn advance(&mut self, now_ns: u64) {
        while self.mechanism.free_ns < now_ns && self.step(true) {}
    }

    /// Goes on until something that the host waits for is complete, where it waits for anything.
    #[inline]
    fn plan(&mut self) {
        while self.done.is_empty() && self.step(false) {}
    }

    /// The next transfer, whatever it is; `false` where nothing waits. Writes in the cache wait only for idle time,
    /// or for room.
    #[inline]
    fn step(&mut self, idle: bool) -> bool {
        let urgent = !self.stalled.is_empty();
        let cache_first = urgent && self.cache_turn;
        if !self.queue.is_empty() && !cache_first {
            self.cache_turn = true;
            self.serve();
            return true;
        }
        let held = self.cache.as_ref().is_some_and(|cache| !cache.is_empty());
        if held && (urgent || idle) {
            self.cache_turn = false;
            self.destage();
            return true;
        }
        if urgent {
            // Nothing is held, so all that takes room is landing.
            self.admit();
            return true;
        }
        false
    }

    /// Serves a command of the queue.
    #[inline]
    fn serve(&mut self) {
        let command = self.queue.take(&self.mechanism);
        let start_ns = self.mechanism.free_ns.max(command.ready_ns);
        let Command { tag, first, end, write, .. } = command;
        self.segments.stop(start_ns, &mut self.mechanism);
        let at_ns = if write {
            self.mechanism.transfer(start_ns, first, end, true).end_ns
        } else {
            let from = match self.segments.find(start_ns, first, end, false, &mut self.mechanism) {
                Found::From(from) => from,
                Found::Whole(_) => end,
            };
            let (begin_ns, end_ns) = if from < end {
                let transfer = self.mechanism.transfer(start_ns, from, end, false);
                self.segments.follow(first, end, transfer.end_ns, &self.mechanism);
                (transfer.begin_ns, transfer.end_ns)
            } else {
                (start_ns, start_ns)
            };
            (begin_ns + self.link_ns(end - first)).max(end_ns)
        };
        self.complete(tag, at_ns, 0);
    }

    /// Writes a run of the cache, a revolution's worth at most.
    fn destage(&mut self) {
        let Some(cache) = &mut self.cache else { return };
        let start_ns = self.mechanism.free_ns;
        self.segments.stop(start_ns, &mut self.mechanism);
        let surface = &self.mechanism.surface;
        let (rate, revolution_ns) = (surface.rate(self.mechanism.byte), surface.revolution_ns());
        let most = (rate * revolution_ns / 1_000_000_000).max(SECTOR).next_multiple_of(SECTOR);
        let (first, end) = cache.choose(&self.mechanism, most);
        let until_ns = self.mechanism.transfer(start_ns, first, end, true).end_ns;
        cache.land(first, end, until_ns);
        self.admit();
    }

    /// Lets writes in for which the last transfer has made room.
    fn admit(&mut self) {
        while let Some(command) = self.stalled.front().copied() {
            let Some(cache) = &mut self.cache else { return };
            let room_ns = self.mechanism.free_ns.max(cache.landed_ns());
            if !cache.has_room(room_ns, command.end - command.first) {
                return;
            }
            self.stalled.pop_front();
            self.keep(room_ns, &command);
            let bytes = command.end - command.first;
            self.complete(command.tag, room_ns.max(command.ready_ns) + self.link_ns(bytes), bytes);
        }
    }

    /// Writes everything in the cache, before anything else: when it is done.
    fn flush(&mut self, ready_ns: u64) -> u64 {
        let stalled = std::mem::take(&mut self.stalled);
        while self.cache.as_ref().is_some_and(|cache| !cache.is_empty()) {
            self.destage();
        }
        self.stalled = stalled;
        self.admit();
        let landed_ns = self.cache.as_ref().map_or(0, WriteCache::landed_ns);
        ready_ns.max(landed_ns)
    }

    fn completion(&self, at_ns: u64) -> Completion {
        Completion { at: VirtualTime::from_nanos(at_ns), status: Ok(()) }
    }
}

impl BlockDevice for SimulatedDisk {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.capacity)
    }

    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        if let Some(completion) = self.begin(now, request, SUBMITTED) {
            return completion;
        }
        loop {
            if let Some(index) = self.done.iter().rposition(|done| done.tag == SUBMITTED) {
                let done = self.done.remove(index).expect("found there");
                self.plan();
                return self.completion(done.at_ns);
            }
            let went_on = self.step(false);
            assert!(went_on, "a request that was queued is done some time");
        }
    }

    fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
        if let Err(error) = request.check(self.capacity, SECTOR) {
            return Some(Completion { at: now, status: Err(error) });
        }
        let at_ns = self.take(now.as_nanos(), request, tag)?;
        Some(self.completion(at_ns))
    }

    fn next_done(&self) -> Option<VirtualTime> {
        self.done.front().map(|done| VirtualTime::from_nanos(done.at_ns))
    }

    fn finish(&mut self) -> Option<(Tag, Completion)> {
        let done = self.done.pop_front()?;
        self.plan();
        Some((done.tag, self.completion(done.at_ns)))
    }

    fn idle_until(&mut self, until: VirtualTime) {
        self.advance(until.as_nanos());
    }

    fn busy_until(&self) -> VirtualTime {
        // What the cache holds is written when the head is free, and not before.
        let held = self.cache.as_ref().is_some_and(|cache| !cache.is_empty());
        VirtualTime::from_nanos((self.mechanism.free_ns + u64::from(held)).max(self.link_free_ns))
    }

    fn power_cut(&mut self, now: VirtualTime) {
        let now_ns = now.as_nanos();
        self.advance(now_ns);
        let unacknowledged: u64 =
            self.done.iter().filter(|done| done.at_ns > now_ns).map(|done| done.cached_bytes).sum();
        if let Some(cache) = &mut self.cache {
            self.counters.lost_bytes += cache.lose(now_ns).saturating_sub(unacknowledged);
        }
        // Nothing goes on without power: what was queued is never answered.
        self.done.retain(|done| done.at_ns <= now_ns);
        self.queue.clear();
        self.stalled.clear();
        self.segments.clear();
        self.mechanism.interrupt(now_ns);
        self.link_free_ns = self.link_free_ns.min(now_ns);
        self.last_done_ns = self.last_done_ns.min(now_ns);
    }

    fn secure_erase(&mut self) {
        // The bytes are erased on purpose, so none are lost.
        if let Some(cache) = &mut self.cache {
            cache.lose(u64::MAX);
        }
        self.segments.clear();
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        Sink(out).value(&(
            self.mechanism.position(),
            &self.queue,
            &self.segments,
            &self.cache,
            &self.stalled,
            self.cache_turn,
            &self.done,
            (self.last_done_ns, self.link_free_ns),
            self.counters,
        ))
    }

    fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        let (position, free);
        (
            position,
            self.queue,
            self.segments,
            self.cache,
            self.stalled,
            self.cache_turn,
            self.done,
            free,
            self.counters,
        ) = Source(from).value()?;
        self.mechanism.move_to(position);
        (self.last_done_ns, self.link_free_ns) = free;
        Ok(())
    }
}
