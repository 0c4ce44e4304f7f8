//! The disk as a block device ([`SimulatedDisk`]): requests answered from memory, queued commands, and the order of
//! transfers.
//!
//! The surface serves one transfer at a time. The disk chooses a transfer when the head becomes free, or earlier to
//! give the next completion time, from the commands that have arrived by then. A choice is final.
//!
//! # Not modelled
//! A limit on the host's commands in flight, a bus shared with other disks, and contention for the link between
//! memory and surface.

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

/// Tag of requests that arrive through [`BlockDevice::submit`].
const SUBMITTED: Tag = Tag::MAX;

/// A completion that the host has not yet taken.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Done {
    tag: Tag,
    at_ns: u64,
    /// Bytes of a write that completed into the write cache; 0 for other commands.
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
    /// True if the cache gets the next transfer while stalled writes and queued commands both wait. The two
    /// alternate.
    cache_turn: bool,
    done: VecDeque<Done>,
    last_done_ns: u64,
    /// End of the last transfer between memory and host.
    link_free_ns: u64,
    counters: Counters,
}

impl SimulatedDisk {
    /// A new disk. The seed gives the initial angle, so the disks of one array do not turn in phase.
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

    /// The position of each byte on the surface.
    pub fn surface(&self) -> &Surface {
        &self.mechanism.surface
    }

    /// The seek time by distance.
    pub fn seek_curve(&self) -> &SeekCurve {
        self.mechanism.curve()
    }

    /// Transfer time of `bytes` over the link, in nanoseconds.
    #[inline]
    fn link_ns(&self, bytes: u64) -> u64 {
        transfer_ns(bytes, Some(self.link_rate))
    }

    /// Transfers bytes between memory and host, from `ready_ns` on and after earlier transfers. Returns the end.
    #[inline]
    fn link(&mut self, ready_ns: u64, bytes: u64) -> u64 {
        self.link_free_ns = self.link_free_ns.max(ready_ns) + self.link_ns(bytes);
        self.link_free_ns
    }

    /// Records the completion of a queued command, at `at_ns` or at the previous completion if that is later.
    #[inline]
    fn complete(&mut self, tag: Tag, at_ns: u64, cached_bytes: u64) {
        self.last_done_ns = self.last_done_ns.max(at_ns);
        self.done.push_back(Done { tag, at_ns: self.last_done_ns, cached_bytes });
    }

    /// Accepts a valid request. Returns its completion time if known; otherwise queues the request.
    #[inline]
    fn take(&mut self, now_ns: u64, request: &Request, tag: Tag) -> Option<u64> {
        let ready_ns = now_ns + self.overhead_ns;
        let Request { op, offset, length } = *request;
        if op != Op::Flush && length == 0 {
            return Some(ready_ns);
        }
        self.advance(now_ns);
        // The range of a flush is ignored, so it need not be valid.
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

    /// Puts a write into the cache, which has room from `now_ns` on.
    #[inline]
    fn keep(&mut self, now_ns: u64, command: &Command) {
        let cache = self.cache.as_mut().expect("a caller has asked it for room");
        if cache.is_empty() {
            self.mechanism.free_ns = self.mechanism.free_ns.max(now_ns);
        }
        cache.insert(command.first, command.end);
    }

    /// Performs the transfers that begin before `now_ns`.
    #[inline]
    fn advance(&mut self, now_ns: u64) {
        while self.mechanism.free_ns < now_ns && self.step(true) {}
    }

    /// Performs transfers until a completion is available or no command waits.
    #[inline]
    fn plan(&mut self) {
        while self.done.is_empty() && self.step(false) {}
    }

    /// Performs the next transfer. Returns `false` if there is none. Cached writes go to the surface only if `idle`
    /// permits background work, or if stalled writes need room.
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
            // No cached run waits, so only runs being written take up room.
            self.admit();
            return true;
        }
        false
    }

    /// Serves the command that the scheduler chooses.
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

    /// Writes one cached run to the surface, at most as many bytes as pass in one revolution.
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

    /// Admits stalled writes to the cache in order of arrival, while there is room.
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

    /// Writes all cached runs to the surface before any other command. Returns the end.
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
        // Writing of cached runs begins when the head is free, so the disk is busy for at least 1 ns more.
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
        // Requests queued at the power cut are never answered.
        self.done.retain(|done| done.at_ns <= now_ns);
        self.queue.clear();
        self.stalled.clear();
        self.segments.clear();
        self.mechanism.interrupt(now_ns);
        self.link_free_ns = self.link_free_ns.min(now_ns);
        self.last_done_ns = self.last_done_ns.min(now_ns);
    }

    fn secure_erase(&mut self) {
        // The host erases these bytes on purpose, so the counters do not report them as lost.
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
