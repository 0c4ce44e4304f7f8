//! A drive with contents in virtual time ([`Drive`]). A model gives the duration of each request; [`Pending`] tracks
//! the writes that a power cut undoes.
//!
//! A write is in flight until its completion time or until the host waits for it, whichever comes first. A live drive
//! ([`lowtide_live`]) has the same components but answers in real time. The host and the choice of power cuts are in
//! `filesystem` and the parent module.

use lowtide_core::rng::{Rng, below};
use lowtide_core::{BlockDevice, Nanos, Op, Request, Seed, VirtualTime};
use lowtide_device::AnyDevice;
use lowtide_device::power::{Cache, Loss, Number, Part, Pending, Tear};

/// Bytes of a block, the unit of reads and writes.
pub(super) const BLOCK: u64 = 4096;

/// A drive whose power can be cut.
pub(super) struct Drive {
    model: AnyDevice,
    bytes: Vec<u8>,
    pending: Pending<Box<[u8]>>,
    /// Writes in flight, each with its acknowledgement time.
    in_flight: Vec<(VirtualTime, Number)>,
    now: VirtualTime,
    seed: Seed,
    rng: Rng,
}

impl Drive {
    /// Creates a zeroed drive of `room` bytes. `seed` determines the writes that a cut undoes.
    pub(super) fn new(model: AnyDevice, cache: Cache, room: u64, seed: Seed) -> Drive {
        Drive {
            model,
            bytes: vec![0; room as usize],
            pending: Pending::new(cache),
            in_flight: Vec::new(),
            now: VirtualTime::START,
            seed,
            rng: seed.part("instants", 0).stream(),
        }
    }

    /// The virtual time.
    pub(super) fn now(&self) -> VirtualTime {
        self.now
    }

    /// The size of the drive in bytes.
    pub(super) fn room(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Advances the clock by a span of host processor time.
    pub(super) fn pass(&mut self, span: Nanos) {
        self.now = self.now + span;
        self.settle(self.now);
    }

    /// Acknowledges the writes that complete at or before `by`.
    fn settle(&mut self, by: VirtualTime) {
        if self.in_flight.iter().all(|(at, _)| *at > by) {
            return;
        }
        // The cache takes writes in the order of their acknowledgement.
        self.in_flight.sort_unstable();
        let acknowledged = self.in_flight.partition_point(|(at, _)| *at <= by);
        for (at, number) in self.in_flight.drain(..acknowledged) {
            self.pending.acknowledged(number, at);
        }
    }

    /// Submits a write without waiting for it.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8], fua: bool) {
        self.settle(self.now);
        let request = Request { op: Op::Write { fua }, offset, length: bytes.len() as u64 };
        let completion = self.model.submit(self.now, &request);
        assert!(completion.status.is_ok(), "a model without faults: {completion:?}");
        let contents = &mut self.bytes[offset as usize..offset as usize + bytes.len()];
        let undo = Box::from(&*contents);
        contents.copy_from_slice(bytes);
        let number = self.pending.write(offset, bytes.len() as u64, fua, undo);
        self.in_flight.push((completion.at, number));
    }

    /// Waits for all writes.
    pub(super) fn wait(&mut self) {
        let last = self.in_flight.iter().map(|(at, _)| *at).max();
        self.now = self.now.max(last.unwrap_or(self.now));
        self.settle(self.now);
    }

    /// Flushes the write cache and waits for completion.
    pub(super) fn flush(&mut self) {
        self.settle(self.now);
        let asked = self.now;
        self.now = self.model.submit(asked, &Request::flush()).at;
        self.settle(self.now);
        self.pending.flushed(asked);
    }

    /// Reads and waits for completion.
    pub(super) fn read(&mut self, offset: u64, length: u64) -> &[u8] {
        self.now = self.model.submit(self.now, &Request::read(offset, length)).at;
        self.settle(self.now);
        self.peek(offset, length)
    }

    /// Returns contents without a request to the drive, for a page that the host has cached.
    pub(super) fn peek(&self, offset: u64, length: u64) -> &[u8] {
        &self.bytes[offset as usize..(offset + length) as usize]
    }

    /// Cuts the power at an instant between now and the last acknowledgement in flight, and restores it.
    pub(super) fn power_cut(&mut self, tear: Tear) -> Loss {
        let last = self.in_flight.iter().map(|(at, _)| at.as_nanos()).max().unwrap_or(0);
        let longest = last.saturating_sub(self.now.as_nanos());
        self.now = self.now + Nanos::new(below(&mut self.rng, longest + 1));
        self.settle(self.now);
        self.model.power_cut(self.now);
        self.in_flight.clear();
        let bytes = &mut self.bytes;
        self.pending.cut(self.seed, tear, &mut |part: Part, undo: &mut Box<[u8]>| {
            let (here, there, length) = (part.offset as usize, part.skip as usize, part.length as usize);
            bytes[here..here + length].swap_with_slice(&mut undo[there..there + length]);
        })
    }

    /// Makes all contents durable. Returns an image for [`Drive::restore`].
    pub(super) fn image(&mut self) -> Vec<u8> {
        self.wait();
        self.pending.clear();
        let used = self.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.bytes[..used].to_vec()
    }

    /// Replaces the contents by a durable image. The model does not see these writes.
    pub(super) fn restore(&mut self, image: &[u8]) {
        self.in_flight.clear();
        self.pending.clear();
        let (begin, rest) = self.bytes.split_at_mut(image.len());
        begin.copy_from_slice(image);
        rest.fill(0);
    }
}
