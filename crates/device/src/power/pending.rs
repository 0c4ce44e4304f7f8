//! The writes that a power cut may still take back ([`Pending`]), oldest first.
//!
//! A write that is durable stays while an older one is not, since the older one's undo would bring back what it
//! replaced; it goes as soon as it is the oldest. Each call but [`Pending::overwrite`] and [`Pending::cut`] is constant
//! time on average. Leaves out the order of time, which is the caller's: it tells what happened when it happens.

use super::fate::Fate;
use super::left::Left;
use super::{Cache, Tear};
use lowtide_core::rng::Rng;
use lowtide_core::{Seed, VirtualTime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The number of a write: they count up from 0 in the order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(u64);

impl Number {
    /// How many writes came before it.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A part of a write, whose bytes are to be exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// First byte on the device.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Where the same bytes begin in the write's undo: bytes from its start.
    pub skip: u64,
}

/// Writes and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// How many.
    pub writes: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, bytes: u64) {
        self.writes += 1;
        self.bytes += bytes;
    }
}

/// What became of the writes that were not durable when the power was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Loss {
    /// Those that survived.
    pub kept: Tally,
    /// Those of which nothing did.
    pub dropped: Tally,
    /// Those of which a part did; all their bytes.
    pub torn: Tally,
    /// Bytes that were acknowledged and did not survive, of dropped and torn writes.
    pub acknowledged_bytes_lost: u64,
}

/// A write that was not durable when the power was cut, and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutWrite {
    /// Its number.
    pub number: Number,
    /// First byte on the device.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Whether it was acknowledged; otherwise it was in flight.
    pub acknowledged: bool,
    /// Runs of bytes that survived: first, and one past the last.
    pub survived: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight,
    Acknowledged,
    Durable,
}

#[derive(Debug, Clone)]
struct Entry<U> {
    fua: bool,
    state: State,
    left: Left,
    bytes_left: u64,
    undo: U,
}

impl<U> Entry<U> {
    /// Exchanges what is left between two bytes; how many bytes that was.
    fn swap(&mut self, first: u64, end: u64, swap: &mut impl FnMut(Part, &mut U)) -> u64 {
        let (Entry { left, undo, .. }, mut bytes) = (self, 0);
        let start = left.range().0;
        left.pieces(first, end, |from, to| {
            bytes += to - from;
            swap(Part { offset: from, length: to - from, skip: from - start }, undo);
        });
        bytes
    }
}

/// An acknowledged write in the cache's memory.
#[derive(Debug, Clone, Copy)]
struct Held {
    number: Number,
    at: VirtualTime,
    bytes: u64,
}

/// The writes that a power cut may still take back. `U` is what undoes one: the bytes it replaced, or what stands for
/// them.
///
/// ```
/// use lowtide_core::{Bytes, Seed, VirtualTime};
/// use lowtide_device::power::{Cache, Pending, Tear};
///
/// let mut pending = Pending::new(Cache::Volatile { size: Bytes::mib(1), honours_flush: true });
/// let mut contents = vec![0; 8192];
///
/// let undo = contents[..4096].to_vec();
/// contents[..4096].fill(1);
/// let number = pending.write(0, 4096, false, undo);
/// pending.acknowledged(number, VirtualTime::START);
///
/// let loss = pending.cut(Seed::new(7), Tear::Page, &mut |part, undo| {
///     let (here, there, length) = (part.offset as usize, part.skip as usize, part.length as usize);
///     contents[here..here + length].swap_with_slice(&mut undo[there..there + length]);
/// });
/// assert_eq!(contents[0] == 1, loss.kept.writes == 1, "it was kept, or it is as if it had never been");
/// ```
#[derive(Debug, Clone)]
pub struct Pending<U> {
    cache: Cache,
    /// By number, without gaps.
    entries: VecDeque<Entry<U>>,
    /// The number of the first entry.
    first: u64,
    /// Bytes of entries that are not durable.
    bytes: u64,
    /// What the memory holds, in the order of acknowledgement; some of it is durable.
    held: VecDeque<Held>,
    held_bytes: u64,
    cuts: u64,
}

impl<U> Pending<U> {
    /// Nothing written yet.
    pub fn new(cache: Cache) -> Self {
        let (entries, held) = (VecDeque::new(), VecDeque::new());
        Pending { cache, entries, first: 0, bytes: 0, held, held_bytes: 0, cuts: 0 }
    }

    /// What the writes are kept in.
    pub fn cache(&self) -> Cache {
        self.cache
    }

    /// A write of `length` bytes at `offset` was submitted; `undo` brings back what was there. Its number.
    pub fn write(&mut self, offset: u64, length: u64, fua: bool, undo: U) -> Number {
        let number = self.next_number();
        let left = Left::whole(offset, offset.saturating_add(length));
        self.entries.push_back(Entry { fua, state: State::InFlight, left, bytes_left: length, undo });
        self.bytes += length;
        number
    }

    /// The number that the next write will have.
    pub fn next_number(&self) -> Number {
        Number(self.first + self.entries.len() as u64)
    }

    /// A write was acknowledged at `at`. One that was forgotten meanwhile, by a cut or an erasure, stays so.
    pub fn acknowledged(&mut self, number: Number, at: VirtualTime) {
        let Some(entry) = self.entry(number).filter(|entry| entry.state == State::InFlight) else { return };
        entry.state = State::Acknowledged;
        let (fua, (first, end)) = (entry.fua, entry.left.range());
        let Cache::Volatile { size, honours_flush } = self.cache else {
            return self.durable(number);
        };
        if fua && honours_flush {
            self.durable(number);
        }
        // It passes through the memory all the same, and pushes out what is older.
        self.held.push_back(Held { number, at, bytes: end - first });
        self.held_bytes += end - first;
        while self.held_bytes > size.get() {
            self.destage();
        }
    }

    /// A flush that was asked for at `asked` is complete: what was acknowledged by then is durable.
    pub fn flushed(&mut self, asked: VirtualTime) {
        if matches!(self.cache, Cache::Volatile { honours_flush: false, .. }) {
            return;
        }
        while self.held.front().is_some_and(|held| held.at <= asked) {
            self.destage();
        }
    }

    /// A range was trimmed or made zero, which is durable at once: no undo brings back what it held.
    pub fn overwrite(&mut self, offset: u64, length: u64) {
        for entry in &mut self.entries {
            let removed = entry.left.cut(offset, offset.saturating_add(length));
            entry.bytes_left -= removed;
            if entry.state != State::Durable {
                self.bytes -= removed;
            }
        }
    }

    /// Bytes that a power cut may take back, in flight or acknowledged.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets everything: after an orderly shutdown all is durable, after a secure erase nothing is there.
    pub fn clear(&mut self) {
        self.first += self.entries.len() as u64;
        self.entries.clear();
        self.held.clear();
        (self.bytes, self.held_bytes) = (0, 0);
    }

    /// The power is cut. `swap` exchanges a part of the newest contents with the same part of an undo; afterwards the
    /// contents are what survived. The choice follows from `seed` and how many cuts came before.
    pub fn cut(&mut self, seed: Seed, tear: Tear, swap: &mut impl FnMut(Part, &mut U)) -> Loss {
        self.cut_reporting(seed, tear, swap, &mut |_| {})
    }

    /// As [`Pending::cut`]; `report` hears of each write that was not durable, oldest first.
    pub fn cut_reporting(
        &mut self,
        seed: Seed,
        tear: Tear,
        swap: &mut impl FnMut(Part, &mut U),
        report: &mut impl FnMut(CutWrite),
    ) -> Loss {
        let mut rng = seed.part("power-cut", self.cuts).stream();
        self.cuts += 1;
        // Back to what was there before the oldest; each undo becomes a redo.
        for entry in self.entries.iter_mut().rev() {
            entry.swap(0, u64::MAX, swap);
        }
        let mut loss = Loss::default();
        for (number, entry) in (self.first..).map(Number).zip(&mut self.entries) {
            let (first, end) = entry.left.range();
            let acknowledged = entry.state == State::Acknowledged;
            if let Some(survived) = redo(entry, &mut rng, tear, &mut loss, swap) {
                report(CutWrite { number, offset: first, length: end - first, acknowledged, survived });
            }
        }
        self.clear();
        loss
    }

    /// Writes that are kept, be it for the sake of an older one.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.entries.len()
    }

    fn entry(&mut self, number: Number) -> Option<&mut Entry<U>> {
        self.entries.get_mut(usize::try_from(number.0.checked_sub(self.first)?).ok()?)
    }

    /// The write that is longest in the memory leaves it for the medium.
    fn destage(&mut self) {
        if let Some(held) = self.held.pop_front() {
            self.held_bytes -= held.bytes;
            self.durable(held.number);
        }
    }

    fn durable(&mut self, number: Number) {
        let Some(entry) = self.entry(number).filter(|entry| entry.state != State::Durable) else { return };
        entry.state = State::Durable;
        let bytes = entry.bytes_left;
        self.bytes -= bytes;
        while self.entries.front().is_some_and(|entry| entry.state == State::Durable) {
            self.entries.pop_front();
            self.first += 1;
        }
    }
}

/// Applies what survives of a write; which bytes of one that is not durable.
fn redo<U>(
    entry: &mut Entry<U>,
    rng: &mut Rng,
    tear: Tear,
    loss: &mut Loss,
    swap: &mut impl FnMut(Part, &mut U),
) -> Option<Vec<(u64, u64)>> {
    if entry.state == State::Durable {
        entry.swap(0, u64::MAX, swap);
        return None;
    }
    let ((first, end), bytes) = (entry.left.range(), entry.bytes_left);
    let (tally, runs) = match Fate::draw(rng, tear, first, end) {
        Fate::Kept => (&mut loss.kept, vec![(first, end)]),
        Fate::Dropped => (&mut loss.dropped, Vec::new()),
        Fate::Torn(runs) => (&mut loss.torn, runs),
    };
    let survived: u64 = runs.iter().map(|(from, to)| entry.swap(*from, *to, swap)).sum();
    tally.add(bytes);
    if entry.state == State::Acknowledged {
        loss.acknowledged_bytes_lost += bytes - survived;
    }
    Some(runs)
}
