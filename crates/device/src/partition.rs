//! A partition: a range of a device. The device outside the partition stays unused (the reserve).
//!
//! # Not modelled
//! Partition tables. Creating a partition writes nothing to the device.

use lowtide_core::{BlockDevice, Bytes, Completion, DeviceError, Op, Request, Tag, VirtualTime, Wraps};

/// A range of a device.
#[derive(Debug)]
pub struct Partition<D> {
    inner: D,
    start: u64,
    length: u64,
}

impl<D: BlockDevice> Partition<D> {
    /// The partition of `length` bytes that begins at byte `start` of `inner`.
    ///
    /// # Errors
    /// * [`DeviceError::OutOfRange`] if the partition reaches past the end of the device.
    /// * [`DeviceError::Unaligned`] if the partition does not begin and end at a logical block.
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

    /// Translates a request to the address range of the inner device.
    fn translate(&self, request: &Request) -> Result<Request, DeviceError> {
        let Request { op, offset, length } = *request;
        if op == Op::Flush {
            return Ok(*request);
        }
        if offset.saturating_add(length) > self.length {
            return Err(DeviceError::OutOfRange { offset, length, capacity: self.length });
        }
        Ok(Request { offset: offset + self.start, ..*request })
    }

    /// Returns the inner device in its present state.
    pub fn into_inner(self) -> D {
        self.inner
    }
}

impl<D: BlockDevice> Wraps for Partition<D> {
    type Inner = D;

    fn inner(&self) -> &D {
        &self.inner
    }
    fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }
    fn capacity(&self) -> Bytes {
        Bytes::new(self.length)
    }
    fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
        match self.translate(request) {
            Ok(request) => self.inner.submit(now, &request),
            Err(error) => Completion { at: now, status: Err(error) },
        }
    }
    fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
        match self.translate(request) {
            Ok(request) => self.inner.begin(now, &request, tag),
            Err(error) => Some(Completion { at: now, status: Err(error) }),
        }
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
}
