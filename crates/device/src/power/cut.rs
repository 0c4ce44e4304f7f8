//! A device whose power can be cut, in virtual time ([`PowerCut`]): it keeps, for each sector, which write it holds.
//!
//! A request's completion may be known long before its instant; what it makes durable counts from that instant on. Leaves
//! out contents, and what the device itself takes for lost: that has its effect on time alone.

use super::runs::Runs;
use super::{Cache, Loss, Number, Pending, Tear};
use lowtide_core::{BlockDevice, Completion, Op, Request, Seed, StateError, Tag, VirtualTime, Wraps};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{Read, Write};

/// What a completion tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Write(Number),
    /// The flush asked for at an instant.
    Flush(VirtualTime),
}

/// A device whose power can be cut.
#[derive(Debug)]
pub struct PowerCut<D> {
    inner: D,
    tear: Tear,
    seed: Seed,
    /// Whether it is kept what sectors hold.
    tracks: bool,
    pending: Pending<Runs>,
    holds: Runs,
    /// What the device has queued.
    queued: BTreeMap<Tag, Told>,
    /// Completions that are known, by instant and then in the order they became known.
    known: BinaryHeap<Reverse<(VirtualTime, u64, Told)>>,
    sequence: u64,
    loss: Loss,
}

impl<D: BlockDevice> PowerCut<D> {
    /// `inner`, whose acknowledged writes are kept in `cache`. What survives a cut follows from `seed`.
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

    /// The same without keeping what each sector holds: for what was lost alone, on a device of any size.
    pub fn counting(inner: D, cache: Cache, tear: Tear, seed: Seed) -> Self {
        PowerCut { tracks: false, ..PowerCut::new(inner, cache, tear, seed) }
    }

    /// From now on, writes tear into such pieces.
    pub fn set_tear(&mut self, tear: Tear) {
        self.tear = tear;
    }

    /// The write that a sector of 512 bytes holds; `None` where nothing was written, or it was trimmed since.
    pub fn holds(&self, sector: u64) -> Option<Number> {
        self.holds.get(sector.checked_mul(512)?)
    }

    /// The number that the next write will have. Refused writes and empty ones have none.
    pub fn next_number(&self) -> Number {
        self.pending.next_number()
    }

    /// What became of the writes that were not durable at the last power cut.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// The device itself.
    pub fn into_inner(self) -> D {
        self.inner
    }

    /// Takes what happened by `now` into account.
    fn settle(&mut self, now: VirtualTime) {
        while let Some(Reverse((at, _, told))) = self.known.peek().copied().filter(|it| it.0.0 <= now) {
            self.known.pop();
            match told {
                Told::Write(number) => self.pending.acknowledged(number, at),
                Told::Flush(asked) => self.pending.flushed(asked),
            }
        }
    }

    /// A request that the device took at `now`: what its completion will tell.
    fn taken(&mut self, now: VirtualTime, request: &Request) -> Option<Told> {
        let Request { op, offset, length } = *request;
        let end = offset.saturating_add(length);
        match op {
            Op::Write { fua } if length > 0 => {
                let number = self.pending.next_number();
                let undo = if self.tracks { self.holds.set(offset, end, number) } else { Runs::default() };
                Some(Told::Write(self.pending.write(offset, length, fua, undo)))
            }
            Op::Trim | Op::WriteZeroes => {
                self.pending.overwrite(offset, length);
                self.holds.take(offset, end);
                None
            }
            Op::Flush => Some(Told::Flush(now)),
            Op::Read | Op::Write { .. } => None,
        }
    }

    /// The completion of a request is known.
    fn completes(&mut self, told: Option<Told>, completion: &Completion) {
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
