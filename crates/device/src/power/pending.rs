//! The writes that a power cut may undo ([`Pending`]), oldest first.
//!
//! A durable write stays listed while an older write is not durable, because the older write's undo would restore the
//! data that the durable write replaced. It is removed once it is the oldest. All calls except [`Pending::overwrite`]
//! and [`Pending::cut`] take constant time on average. The caller reports events in order of time.

use super::fate::Fate;
use super::left::Left;
use super::{Cache, Tear};
use lowtide_core::rng::Rng;
use lowtide_core::{Seed, VirtualTime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The number of a write. Numbers count from 0 in the order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(u64);

impl Number {
    /// Number of earlier writes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A part of a write whose bytes are to be exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// First byte on the device.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Offset of the same bytes in the write's undo.
    pub skip: u64,
}

/// A number of writes and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Number of writes.
    pub writes: u64,
    /// Total bytes.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, bytes: u64) {
        self.writes += 1;
        self.bytes += bytes;
    }
}

/// The outcome of a power cut for writes that were not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Loss {
    /// Writes that survived.
    pub kept: Tally,
    /// Writes that were lost.
    pub dropped: Tally,
    /// Writes that survived in part, with all their bytes.
    pub torn: Tally,
    /// Acknowledged bytes of dropped and torn writes that did not survive.
    pub acknowledged_bytes_lost: u64,
}

/// A write that was not durable when the power was cut, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutWrite {
    /// The number of the write.
    pub number: Number,
    /// First byte on the device.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Whether the write was acknowledged. If not, it was in flight.
    pub acknowledged: bool,
    /// Runs of bytes that survived, each from the first byte to one past the last.
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
    /// Exchanges the remaining bytes between two positions; returns their number.
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

/// The writes that a power cut may undo. `U` is the undo of a write: the bytes that it replaced, or a stand-in for
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
    /// Entries by number, without gaps.
    entries: VecDeque<Entry<U>>,
    /// The number of the first entry.
    first: u64,
    /// Bytes of entries that are not durable.
    bytes: u64,
    /// The contents of the cache memory in order of acknowledgement, including writes that are already durable.
    held: VecDeque<Held>,
    held_bytes: u64,
    cuts: u64,
}

impl<U> Pending<U> {
    /// A cache without writes.
    pub fn new(cache: Cache) -> Self {
        let (entries, held) = (VecDeque::new(), VecDeque::new());
        Pending { cache, entries, first: 0, bytes: 0, held, held_bytes: 0, cuts: 0 }
    }

    /// The cache that holds the writes.
    pub fn cache(&self) -> Cache {
        self.cache
    }

    /// Records a submitted write of `length` bytes at `offset`; `undo` restores the old data. Returns the write's
    /// number.
    pub fn write(&mut self, offset: u64, length: u64, fua: bool, undo: U) -> Number {
        let number = self.next_number();
        let left = Left::whole(offset, offset.saturating_add(length));
        self.entries.push_back(Entry { fua, state: State::InFlight, left, bytes_left: length, undo });
        self.bytes += length;
        number
    }

    /// The number of the next write.
    pub fn next_number(&self) -> Number {
        Number(self.first + self.entries.len() as u64)
    }

    /// Records that a write was acknowledged at `at`. Ignored if a cut or an erasure has removed the write.
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
        // Even a durable write occupies the memory and displaces older writes.
        self.held.push_back(Held { number, at, bytes: end - first });
        self.held_bytes += end - first;
        while self.held_bytes > size.get() {
            self.destage();
        }
    }

    /// Records the completion of a flush submitted at `asked`. Writes acknowledged by then are durable.
    pub fn flushed(&mut self, asked: VirtualTime) {
        if matches!(self.cache, Cache::Volatile { honours_flush: false, .. }) {
            return;
        }
        while self.held.front().is_some_and(|held| held.at <= asked) {
            self.destage();
        }
    }

    /// Records that a range was trimmed or zeroed, which is durable at once: undos no longer restore the range.
    pub fn overwrite(&mut self, offset: u64, length: u64) {
        for entry in &mut self.entries {
            let removed = entry.left.cut(offset, offset.saturating_add(length));
            entry.bytes_left -= removed;
            if entry.state != State::Durable {
                self.bytes -= removed;
            }
        }
    }

    /// Bytes that a power cut may undo, in flight or acknowledged.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes all writes: after an orderly shutdown all are durable, after a secure erase none exist.
    pub fn clear(&mut self) {
        self.first += self.entries.len() as u64;
        self.entries.clear();
        self.held.clear();
        (self.bytes, self.held_bytes) = (0, 0);
    }

    /// Cuts the power. `swap` exchanges a part of the newest contents with the same part of an undo. On return the
    /// contents are those that survived. The choice depends on `seed` and the number of earlier cuts.
    pub fn cut(&mut self, seed: Seed, tear: Tear, swap: &mut impl FnMut(Part, &mut U)) -> Loss {
        self.cut_reporting(seed, tear, swap, &mut |_| {})
    }

    /// Like [`Pending::cut`]. `report` receives each write that was not durable, oldest first.
    pub fn cut_reporting(
        &mut self,
        seed: Seed,
        tear: Tear,
        swap: &mut impl FnMut(Part, &mut U),
        report: &mut impl FnMut(CutWrite),
    ) -> Loss {
        let mut rng = seed.part("power-cut", self.cuts).stream();
        self.cuts += 1;
        // Restores the contents before the oldest write. Each undo becomes a redo.
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

    /// Number of entries, including durable writes that are kept because of an older one.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.entries.len()
    }

    fn entry(&mut self, number: Number) -> Option<&mut Entry<U>> {
        self.entries.get_mut(usize::try_from(number.0.checked_sub(self.first)?).ok()?)
    }

    /// Moves the oldest write in the memory to the medium.
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

/// Applies the surviving part of a write; returns the surviving bytes of a write that was not durable.
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
