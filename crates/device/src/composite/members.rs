//! The devices that a composite is made of, each with a clock of its own and a table of what it has queued.
//!
//! A member is asked in order of time: an instant before the last one it was told becomes that one. Before it is
//! asked, what it completes earlier must have been taken from it ([`Members::step`]). Leaves out what the parts are for.

use crate::spec::AnyDevice;
use lowtide_core::{BlockDevice, Completion, Counters, Request, Tag, VirtualTime};

/// One device and what it has queued.
struct Member<T> {
    device: AnyDevice,
    clock_ns: u64,
    queued: Vec<Option<T>>,
    free: Vec<usize>,
}

/// A part that a member completed.
pub(crate) struct Step<T> {
    /// Which member.
    pub(crate) member: usize,
    /// What it was for.
    pub(crate) part: T,
    /// How it ended.
    pub(crate) completion: Completion,
}

/// The members of a composite; `T` says what a queued part is for.
pub(crate) struct Members<T> {
    all: Vec<Member<T>>,
    queued: usize,
}

impl<T> Members<T> {
    pub(crate) fn new(devices: Vec<AnyDevice>) -> Self {
        let member = |device| Member { device, clock_ns: 0, queued: Vec::new(), free: Vec::new() };
        Members { all: devices.into_iter().map(member).collect(), queued: 0 }
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = &AnyDevice> {
        self.all.iter().map(|member| &member.device)
    }

    pub(crate) fn device(&self, member: usize) -> &AnyDevice {
        &self.all[member].device
    }

    /// Asks a member; its completion where it answers at once. `part` is kept where it does not.
    pub(crate) fn begin(
        &mut self,
        member: usize,
        at_ns: u64,
        request: &Request,
        part: impl FnOnce() -> T,
    ) -> Option<Completion> {
        let member = &mut self.all[member];
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
        completion
    }

    /// The next step of any member, and whose.
    fn next(&self) -> Option<(VirtualTime, usize)> {
        if self.queued == 0 {
            return None;
        }
        let instants = self.all.iter().enumerate();
        instants.filter_map(|(n, member)| member.device.next_done().map(|at| (at, n))).min()
    }

    /// The instant of the next step of any member.
    pub(crate) fn next_step(&self) -> Option<u64> {
        self.next().map(|(at, _)| at.as_nanos())
    }

    /// Lets the member whose step is next take it, where that is by `until_ns`. The inner `None` is a step that
    /// completed nothing.
    pub(crate) fn step(&mut self, until_ns: u64) -> Option<Option<Step<T>>> {
        let (at, n) = self.next()?;
        if at.as_nanos() > until_ns {
            return None;
        }
        let member = &mut self.all[n];
        member.clock_ns = member.clock_ns.max(at.as_nanos());
        let Some((tag, completion)) = member.device.finish() else { return Some(None) };
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
    }

    pub(crate) fn power_cut(&mut self, now: VirtualTime) {
        for member in &mut self.all {
            member.device.power_cut(now);
        }
    }

    pub(crate) fn secure_erase(&mut self) {
        for member in &mut self.all {
            member.device.secure_erase();
        }
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
