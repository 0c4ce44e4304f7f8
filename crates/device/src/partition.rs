//! A partition: a part of a device, with the rest left unused (the reserve).
//!
//! Leaves out partition tables: nothing is written to describe the partition.

use lowtide_core::{
    BlockDevice, Bytes, Completion, Counters, DeviceError, Op, Request, StateError, Tag, VirtualTime,
};
use std::io::{Read, Write};

/// Part of a device that begins at `start`.
#[derive(Debug)]
pub struct Partition<D> {
    inner: D,
    start: u64,
    length: u64,
}

impl<D: BlockDevice> Partition<D> {
    /// The `length` bytes of `inner` from `start`.
    ///
    /// # Errors
    /// [`DeviceError::OutOfRange`] where the device ends before the partition does, [`DeviceError::Unaligned`]
    /// where it does not begin and end with a logical block.
    pub fn new(inner: D, start: Bytes, length: Bytes) -> Result<Self, DeviceError> {
        let (capacity, block) = (inner.capacity().get(), inner.logical_block().get());
        let (offset, length) = (start.get(), length.get());
        if offset.checked_add(length).is_none_or(|end| end > capacity) {
            return Err(DeviceError::OutOfRange { offset, length, capacity });
        }
        if !offset.is_multiple_of(block) || !length.is_multiple_of(block) {
            return Err(DeviceError::Unaligned { offset, length, block });
        }
        Ok(Partition { inner, start: offset, length })
    }

    /// The request as the whole device sees it.
    fn inside(&self, request: &Request) -> Result<Request, DeviceError> {
        let Request { op, offset, length } = *request;
        if op == Op::Flush {
            return Ok(*request);
        }
        if offset.saturating_add(length) > self.length {
            return Err(DeviceError::OutOfRange { offset, length, capacity: self.length });
        }
        Ok(Request { offset: offset + self.start, ..*request })
    }

    /// The whole device again, with its history.
    pub fn into_inner(self) -> D {
        self.inner
    }
}

impl<D: BlockDevice> BlockDevice for Partition<D> {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.length)
    }
    fn logical_block(&self) -> Bytes {
        self.inner.logical_block()
    }
    fn raw_capacity(&self) -> Option<Bytes> {
        self.inner.raw_capacity()
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        match self.inside(request) {
            Ok(request) => self.inner.submit(now, &request),
            Err(error) => Completion { at: now, status: Err(error) },
        }
    }
    fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
        match self.inside(request) {
            Ok(request) => self.inner.begin(now, &request, tag),
            Err(error) => Some(Completion { at: now, status: Err(error) }),
        }
    }
    fn next_done(&self) -> Option<VirtualTime> {
        self.inner.next_done()
    }
    fn finish(&mut self) -> Option<(Tag, Completion)> {
        self.inner.finish()
    }
    fn warm(&self, upcoming: &[Request]) {
        if self.start == 0 {
            self.inner.warm(upcoming);
        } else {
            let shifted: Vec<Request> = upcoming
                .iter()
                .map(|request| Request { offset: request.offset.wrapping_add(self.start), ..*request })
                .collect();
            self.inner.warm(&shifted);
        }
    }
    fn idle_until(&mut self, until: VirtualTime) {
        self.inner.idle_until(until);
    }
    fn busy_until(&self) -> VirtualTime {
        self.inner.busy_until()
    }
    fn power_cut(&mut self, now: VirtualTime) {
        self.inner.power_cut(now);
    }
    fn secure_erase(&mut self) {
        self.inner.secure_erase();
    }
    fn counters(&self) -> Counters {
        self.inner.counters()
    }
    fn erase_counts(&self) -> Vec<u32> {
        self.inner.erase_counts()
    }
    fn host_memory(&self) -> Bytes {
        self.inner.host_memory()
    }
    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        self.inner.save(out)
    }
    fn restore(&mut self, from: &mut dyn Read) -> Result<(), StateError> {
        self.inner.restore(from)
    }
}
