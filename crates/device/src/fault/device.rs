//! A device with faults ([`Fault`]).
//!
//! The fate of a request is drawn at its submission, so that changing the faults does not affect requests in flight.

use super::{EndOfLife, Errors, FaultError, Faults, Slow};
use crate::composite::earlier;
use lowtide_core::rng::{Rng, unit};
use lowtide_core::{
    BlockDevice, Completion, DeviceError, Nanos, Op, Request, Seed, StateError, Tag, VirtualTime, Wraps,
};
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// The time a device takes to refuse a request.
pub const REFUSAL: Nanos = Nanos::from_micros(100);

/// The fate drawn for a request.
#[derive(Debug, Clone)]
struct Fate {
    since: VirtualTime,
    error: Option<DeviceError>,
    slow: Option<Slow>,
}

impl Fate {
    fn changes(&self) -> bool {
        self.error.is_some() || self.slow.is_some()
    }

    fn apply(self, mut completion: Completion) -> Completion {
        if let (Some(error), true) = (self.error, completion.status.is_ok()) {
            completion.status = Err(error);
        }
        if let Some(slow) = self.slow {
            let took = completion.at.as_nanos().saturating_sub(self.since.as_nanos());
            let takes = ((took as f64 * slow.factor) as u64).max(took).saturating_add(slow.added.get());
            completion.at = VirtualTime::from_nanos(self.since.as_nanos().saturating_add(takes));
        }
        completion
    }
}

/// A device with faults that can be changed while it runs.
#[derive(Debug)]
pub struct Fault<D> {
    inner: D,
    faults: Faults,
    any: bool,
    worn_out: bool,
    blocks: u64,
    rng: Rng,
    /// Fates of queued requests that will fail or be slow.
    drawn: BTreeMap<Tag, Fate>,
    /// Slow requests that the inner device has completed, by instant and then in order of completion.
    late: BTreeMap<(VirtualTime, u64), (Tag, Result<(), DeviceError>)>,
    sequence: u64,
}

impl<D: BlockDevice> Fault<D> {
    /// `inner` without faults. `seed` determines the requests that later faults affect.
    pub fn new(inner: D, seed: Seed) -> Self {
        Fault {
            inner,
            faults: Faults::default(),
            any: false,
            worn_out: false,
            blocks: 0,
            rng: seed.part("faults", 0).stream(),
            drawn: BTreeMap::new(),
            late: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// The current faults.
    pub fn faults(&self) -> Faults {
        self.faults
    }

    /// Replaces the faults. A worn-out device accepts writes again if the new faults have no end of life.
    ///
    /// # Errors
    /// [`FaultError`] if a number is out of range. The faults are then unchanged.
    pub fn set(&mut self, faults: Faults) -> Result<(), FaultError> {
        faults.validate()?;
        self.any = faults != Faults::default();
        self.faults = faults;
        self.worn_out = faults.end_of_life == Some(EndOfLife::Now);
        self.blocks = match faults.end_of_life {
            Some(EndOfLife::Worn { .. }) => self.inner.erase_counts().len() as u64,
            _ => 0,
        };
        Ok(())
    }

    /// Returns whether the device is at the end of its life and refuses writes.
    pub fn is_worn_out(&mut self) -> bool {
        if let (Some(EndOfLife::Worn { cycles }), false) = (self.faults.end_of_life, self.worn_out) {
            let used_up = self.blocks.saturating_mul(u64::from(cycles));
            self.worn_out = self.blocks > 0 && self.inner.counters().erases >= used_up;
        }
        self.worn_out
    }

    /// The inner device.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The inner device, as a mutable reference.
    pub fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// The inner device with its history.
    pub fn into_inner(self) -> D {
        self.inner
    }

    /// Draws the fate of a request.
    ///
    /// # Errors
    /// [`DeviceError`] if the request is refused at once.
    fn draw(&mut self, now: VirtualTime, request: &Request) -> Result<Fate, DeviceError> {
        request.check(self.inner.capacity().get(), self.inner.logical_block().get())?;
        let Request { op, offset, length } = *request;
        let writes = matches!(op, Op::Write { .. } | Op::WriteZeroes | Op::Trim);
        if writes && self.is_worn_out() {
            return Err(DeviceError::WornOut);
        }
        if matches!(op, Op::Write { .. } | Op::WriteZeroes) && self.fails(self.faults.write_errors, request) {
            return Err(DeviceError::WriteFailed { offset, length });
        }
        let unreadable = op == Op::Read && self.fails(self.faults.read_errors, request);
        let slow = self.faults.slow.filter(|slow| slow.until.is_none_or(|until| now < until));
        Ok(Fate {
            since: now,
            error: unreadable.then_some(DeviceError::ReadFailed { offset, length }),
            slow: slow.filter(|slow| unit(&mut self.rng) < slow.share),
        })
    }

    fn fails(&mut self, errors: Option<Errors>, request: &Request) -> bool {
        let Some(Errors { from, to, share }) = errors else { return false };
        let end = request.offset + request.length;
        let touches = end > from.get() && to.is_none_or(|to| request.offset < to.get());
        touches && unit(&mut self.rng) < share
    }

    fn first_late(&self) -> Option<VirtualTime> {
        self.late.first_key_value().map(|(key, _)| key.0)
    }
}

impl<D: BlockDevice> Wraps for Fault<D> {
    type Inner = D;

    fn inner(&self) -> &D {
        &self.inner
    }
    fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        if !self.any {
            return self.inner.submit(now, request);
        }
        match self.draw(now, request) {
            Err(error) => Completion { at: now + REFUSAL, status: Err(error) },
            Ok(fate) => fate.apply(self.inner.submit(now, request)),
        }
    }
    fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
        if !self.any {
            return self.inner.begin(now, request, tag);
        }
        let fate = match self.draw(now, request) {
            Err(error) => return Some(Completion { at: now + REFUSAL, status: Err(error) }),
            Ok(fate) => fate,
        };
        match self.inner.begin(now, request, tag) {
            Some(completion) => Some(fate.apply(completion)),
            None => {
                if fate.changes() {
                    self.drawn.insert(tag, fate);
                }
                None
            }
        }
    }
    fn next_done(&self) -> Option<VirtualTime> {
        earlier(self.inner.next_done(), self.first_late())
    }
    fn finish(&mut self) -> Option<(Tag, Completion)> {
        if let Some(at) = self.first_late()
            && self.inner.next_done().is_none_or(|next| at <= next)
        {
            let (_, (tag, status)) = self.late.pop_first()?;
            return Some((tag, Completion { at, status }));
        }
        let (tag, completion) = self.inner.finish()?;
        let Some(fate) = self.drawn.remove(&tag) else { return Some((tag, completion)) };
        let done = completion.at;
        let completion = fate.apply(completion);
        if completion.at <= done {
            return Some((tag, completion));
        }
        self.sequence += 1;
        self.late.insert((completion.at, self.sequence), (tag, completion.status));
        None
    }
    fn power_cut(&mut self, now: VirtualTime) {
        self.drawn.clear();
        self.late.retain(|(at, _), _| *at <= now);
        self.inner.power_cut(now);
    }
    /// Faults are not saved. Fails while a queued or late request is affected by a fault.
    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        if self.drawn.is_empty() && self.late.is_empty() {
            return self.inner.save(out);
        }
        Err(StateError::Cannot { why: "a fault changes requests that are under way" })
    }
    fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        self.drawn.clear();
        self.late.clear();
        self.inner.restore(from)
    }
}
