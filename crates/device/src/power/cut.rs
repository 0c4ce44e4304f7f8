//! A device whose power can be cut, in virtual time ([`PowerCut`]). It records which write each sector holds.
//!
//! The completion of a request may be known long before its instant. Its write or flush takes effect at that instant.
//!
//! # Not modelled
//! Contents. The losses that the inner device counts by itself affect only its timing.

use super::runs::Runs;
use super::{Cache, Loss, Number, Pending, Tear};
use lowtide_core::{BlockDevice, Completion, Op, Request, Seed, StateError, Tag, VirtualTime, Wraps};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{Read, Write};

/// The effect of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    Write(Number),
    /// The flush submitted at this instant.
    Flush(VirtualTime),
}

/// A device whose power can be cut.
#[derive(Debug)]
pub struct PowerCut<D> {
    inner: D,
    tear: Tear,
    seed: Seed,
    /// Records the write that each sector holds.
    tracks: bool,
    pending: Pending<Runs>,
    holds: Runs,
    /// Effects of queued requests.
    queued: BTreeMap<Tag, Effect>,
    /// Effects of known completions, by instant and then in the order in which they became known.
    known: BinaryHeap<Reverse<(VirtualTime, u64, Effect)>>,
    sequence: u64,
    loss: Loss,
}

impl<D: BlockDevice> PowerCut<D> {
    /// `inner` with the write cache `cache`. `seed` determines the writes that survive a cut.
    pub fn new(inner: D, cache: Cache, tear: Tear, seed: Seed) -> Self {
        PowerCut {
            inner,
            tear,
            seed,
            tracks: true,
            pending: Pending::new(cache),
            holds: Runs::default(),
            queued: BTreeMap::new(),
            known: BinaryHeap::new(),
            sequence: 0,
            loss: Loss::default(),
        }
    }

    /// Like [`PowerCut::new`], but only counts losses and does not record the write of each sector. Memory use does
    /// not depend on the size of the device.
    pub fn counting(inner: D, cache: Cache, tear: Tear, seed: Seed) -> Self {
        PowerCut { tracks: false, ..PowerCut::new(inner, cache, tear, seed) }
    }

    /// Sets the pieces into which later cuts tear writes.
    pub fn set_tear(&mut self, tear: Tear) {
        self.tear = tear;
    }

    /// The write that a sector of 512 bytes holds; `None` if the sector is unwritten or trimmed.
    pub fn holds(&self, sector: u64) -> Option<Number> {
        self.holds.get(sector.checked_mul(512)?)
    }

    /// The number of the next write. Refused and empty writes have no number.
    pub fn next_number(&self) -> Number {
        self.pending.next_number()
    }

    /// The outcome of the last power cut for writes that were not durable.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// The inner device.
    pub fn into_inner(self) -> D {
        self.inner
    }

    /// Applies the effects of completions up to `now`.
    fn settle(&mut self, now: VirtualTime) {
        while let Some(Reverse((at, _, told))) = self.known.peek().copied().filter(|it| it.0.0 <= now) {
            self.known.pop();
            match told {
                Effect::Write(number) => self.pending.acknowledged(number, at),
                Effect::Flush(asked) => self.pending.flushed(asked),
            }
        }
    }

    /// Records a request that the device accepted at `now`; returns the effect of its completion.
    fn taken(&mut self, now: VirtualTime, request: &Request) -> Option<Effect> {
        let Request { op, offset, length } = *request;
        let end = offset.saturating_add(length);
        match op {
            Op::Write { fua } if length > 0 => {
                let number = self.pending.next_number();
                let undo = if self.tracks { self.holds.set(offset, end, number) } else { Runs::default() };
                Some(Effect::Write(self.pending.write(offset, length, fua, undo)))
            }
            Op::Trim | Op::WriteZeroes => {
                self.pending.overwrite(offset, length);
                self.holds.take(offset, end);
                None
            }
            Op::Flush => Some(Effect::Flush(now)),
            Op::Read | Op::Write { .. } => None,
        }
    }

    /// Schedules the effect of a known completion.
    fn completes(&mut self, told: Option<Effect>, completion: &Completion) {
        if let Some(told) = told {
            self.sequence += 1;
            self.known.push(Reverse((completion.at, self.sequence, told)));
        }
    }
}

impl<D: BlockDevice> Wraps for PowerCut<D> {
    type Inner = D;

    fn inner(&self) -> &D {
        &self.inner
    }
    fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        self.settle(now);
        let completion = self.inner.submit(now, request);
        if completion.status.is_ok() {
            let told = self.taken(now, request);
            self.completes(told, &completion);
        }
        completion
    }
    fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
        self.settle(now);
        let completion = self.inner.begin(now, request, tag);
        match &completion {
            None => {
                if let Some(told) = self.taken(now, request) {
                    self.queued.insert(tag, told);
                }
            }
            Some(completion) if completion.status.is_ok() => {
                let told = self.taken(now, request);
                self.completes(told, completion);
            }
            Some(_) => {}
        }
        completion
    }
    fn finish(&mut self) -> Option<(Tag, Completion)> {
        let (tag, completion) = self.inner.finish()?;
        let told = self.queued.remove(&tag);
        self.completes(told, &completion);
        Some((tag, completion))
    }
    fn idle_until(&mut self, until: VirtualTime) {
        self.settle(until);
        self.inner.idle_until(until);
    }
    fn power_cut(&mut self, now: VirtualTime) {
        self.settle(now);
        let holds = &mut self.holds;
        self.loss = self.pending.cut(self.seed, self.tear, &mut |part, undo| {
            holds.exchange(undo, part.offset, part.offset + part.length);
        });
        self.known.clear();
        self.queued.clear();
        self.inner.power_cut(now);
    }
    fn secure_erase(&mut self) {
        self.pending.clear();
        self.holds = Runs::default();
        self.inner.secure_erase();
    }
    fn save(&self, _: &mut dyn Write) -> Result<(), StateError> {
        Err(StateError::NO_FORM)
    }
    fn restore(&mut self, _: &mut dyn Read) -> Result<(), StateError> {
        Err(StateError::NO_FORM)
    }
}
