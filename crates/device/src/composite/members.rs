//! The members of a composite, each with its own clock and queue.
//!
//! Requests to a member are in order of time: an instant before the member's last one is replaced by the last one.
//! Before a request, all earlier completions of the member must be collected ([`Members::step`]). The composite knows
//! the purpose of each part.

use crate::spec::AnyDevice;
use crate::state::{Sink, Source};
use lowtide_core::{BlockDevice, Bytes, Completion, Counters, Request, StateError, Tag, VirtualTime};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Read, Write};

/// One device, and its queued parts.
struct Member<T> {
    device: AnyDevice,
    clock_ns: u64,
    queued: Vec<Option<T>>,
    free: Vec<usize>,
}

/// A part that a member completed.
pub(crate) struct Step<T> {
    /// The number of the member.
    pub(crate) member: usize,
    /// The purpose of the part.
    pub(crate) part: T,
    /// The completion of the part.
    pub(crate) completion: Completion,
}

/// The members of a composite. `T` is the purpose of a queued part.
pub(crate) struct Members<T> {
    all: Vec<Member<T>>,
    queued: usize,
    /// The next step of each member; [`NEVER`] if there is none. The value is cached, because composites read it at
    /// every step, and updated after each call to the member.
    next_ns: Vec<u64>,
    /// The member with the earliest step.
    first: usize,
}

/// No step.
const NEVER: u64 = u64::MAX;

impl<T> Members<T> {
    pub(crate) fn new(devices: Vec<AnyDevice>) -> Self {
        let member = |device| Member { device, clock_ns: 0, queued: Vec::new(), free: Vec::new() };
        let all: Vec<Member<T>> = devices.into_iter().map(member).collect();
        let next_ns = vec![NEVER; all.len()];
        Members { all, queued: 0, next_ns, first: 0 }
    }

    /// Updates the next step of a member after a call to it.
    #[inline]
    fn changed(&mut self, n: usize) {
        let next = self.all[n].device.next_done().map_or(NEVER, |at| at.as_nanos());
        if next == self.next_ns[n] {
            return;
        }
        self.next_ns[n] = next;
        let mut first = 0;
        for (n, at_ns) in self.next_ns.iter().enumerate() {
            if *at_ns < self.next_ns[first] {
                first = n;
            }
        }
        self.first = first;
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = &AnyDevice> {
        self.all.iter().map(|member| &member.device)
    }

    pub(crate) fn device(&self, member: usize) -> &AnyDevice {
        &self.all[member].device
    }

    /// Passes a request to a member. Returns the completion if it is known at once; otherwise `part` is queued.
    pub(crate) fn begin(
        &mut self,
        n: usize,
        at_ns: u64,
        request: &Request,
        part: impl FnOnce() -> T,
    ) -> Option<Completion> {
        let member = &mut self.all[n];
        member.clock_ns = member.clock_ns.max(at_ns);
        let slot = member.free.last().copied().unwrap_or(member.queued.len());
        let now = VirtualTime::from_nanos(member.clock_ns);
        let completion = member.device.begin(now, request, slot as Tag);
        if completion.is_none() {
            match member.free.pop() {
                Some(slot) => member.queued[slot] = Some(part()),
                None => member.queued.push(Some(part())),
            }
            self.queued += 1;
        }
        self.changed(n);
        completion
    }

    /// The instant of the next step of any member.
    #[inline]
    pub(crate) fn next_step(&self) -> Option<u64> {
        let next_ns = *self.next_ns.get(self.first)?;
        (self.queued > 0 && next_ns != NEVER).then_some(next_ns)
    }

    /// Runs the earliest step of any member, if it is at or before `until_ns`. The inner `None` is a step without a
    /// completion.
    pub(crate) fn step(&mut self, until_ns: u64) -> Option<Option<Step<T>>> {
        let (at_ns, n) = (self.next_step()?, self.first);
        if at_ns > until_ns {
            return None;
        }
        let member = &mut self.all[n];
        member.clock_ns = member.clock_ns.max(at_ns);
        let finished = member.device.finish();
        self.changed(n);
        let (tag, completion) = match finished {
            None => return Some(None),
            Some(finished) => finished,
        };
        let member = &mut self.all[n];
        let slot = tag as usize;
        let part = member.queued[slot].take().expect("a member completes what it has queued, once");
        member.free.push(slot);
        self.queued -= 1;
        Some(Some(Step { member: n, part, completion }))
    }

    pub(crate) fn idle_until(&mut self, until: VirtualTime) {
        for member in &mut self.all {
            member.clock_ns = member.clock_ns.max(until.as_nanos());
            member.device.idle_until(VirtualTime::from_nanos(member.clock_ns));
        }
        (0..self.all.len()).for_each(|n| self.changed(n));
    }

    /// The latest busy-until time of the members.
    pub(crate) fn busy_until(&self) -> VirtualTime {
        self.devices().map(BlockDevice::busy_until).max().unwrap_or(VirtualTime::START)
    }

    pub(crate) fn power_cut(&mut self, now: VirtualTime) {
        for member in &mut self.all {
            member.device.power_cut(now);
        }
        (0..self.all.len()).for_each(|n| self.changed(n));
    }

    pub(crate) fn secure_erase(&mut self) {
        for member in &mut self.all {
            member.device.secure_erase();
        }
        (0..self.all.len()).for_each(|n| self.changed(n));
    }

    pub(crate) fn save(&self, out: &mut dyn Write) -> Result<(), StateError>
    where
        T: Serialize,
    {
        for member in &self.all {
            Sink(out).value(&(member.clock_ns, &member.queued, &member.free))?;
            member.device.save(out)?;
        }
        Ok(())
    }

    pub(crate) fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError>
    where
        T: DeserializeOwned,
    {
        for member in &mut self.all {
            (member.clock_ns, member.queued, member.free) = Source(from).value()?;
            member.device.restore(from)?;
        }
        self.queued = self.all.iter().map(|member| member.queued.iter().flatten().count()).sum();
        (0..self.all.len()).for_each(|n| self.changed(n));
        Ok(())
    }

    /// All NAND of the members; `None` if no member has NAND.
    pub(crate) fn raw_capacity(&self) -> Option<Bytes> {
        let raw: Vec<Bytes> = self.devices().filter_map(BlockDevice::raw_capacity).collect();
        (!raw.is_empty()).then(|| raw.into_iter().sum())
    }

    pub(crate) fn host_memory(&self) -> Bytes {
        self.devices().map(BlockDevice::host_memory).sum()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.devices().fold(Counters::default(), |sum, device| sum + device.counters())
    }

    pub(crate) fn erase_counts(&self) -> Vec<u32> {
        self.devices().flat_map(BlockDevice::erase_counts).collect()
    }
}

impl<T> std::fmt::Debug for Members<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} members, {} parts queued", self.all.len(), self.queued)
    }
}
