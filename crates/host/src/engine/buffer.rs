//! The memory of requests ([`Buffers`]), one part per request in flight.
//!
//! Each thread has one mapping, aligned for direct I/O, on huge pages if possible; io_uring registers it in few
//! pieces. Threads share no buffers.

#![allow(unsafe_code)]

use crate::pattern;
use crate::region::Region;
use lowtide_core::Seed;
use std::io;

/// `slots` parts of `block` bytes to read to, and as many to write from.
#[derive(Debug)]
pub(super) struct Buffers {
    region: Region,
    /// Distance between parts: `block` rounded up for alignment.
    stride: usize,
    block: usize,
    /// Offset of the write parts.
    writes_at: usize,
}

impl Buffers {
    /// Memory for `slots` requests of `block` bytes. Write parts hold random bytes of `seed`.
    pub(super) fn new(
        slots: usize,
        block: usize,
        reads: bool,
        writes: bool,
        seed: Seed,
    ) -> io::Result<Buffers> {
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let stride = block.next_multiple_of(pattern::PAGE);
        let part = stride.checked_mul(slots).ok_or_else(out_of_memory)?;
        let parts = usize::from(reads) + usize::from(writes);
        let region = Region::new(part.checked_mul(parts).ok_or_else(out_of_memory)?)?;
        let writes_at = if reads { part } else { 0 };
        let mut buffers = Buffers { region, stride, block, writes_at };
        if writes {
            let mut rng = seed.stream();
            (0..slots).for_each(|slot| pattern::randomise(buffers.write_piece(slot), &mut rng));
        }
        Ok(buffers)
    }

    /// The entire memory, for registration.
    pub(super) fn memory(&self) -> libc::iovec {
        libc::iovec { iov_base: self.region.as_ptr().cast(), iov_len: self.region.length() }
    }

    fn piece(&self, slot: usize, offset: usize) -> *mut u8 {
        let at = offset + slot * self.stride;
        assert!(at + self.block <= self.region.length(), "slot {slot} exists");
        self.region.as_ptr().wrapping_add(at)
    }

    /// The address to which `slot` reads.
    #[inline]
    pub(super) fn read_ptr(&self, slot: usize) -> *mut u8 {
        self.piece(slot, 0)
    }

    /// The address from which `slot` writes.
    #[inline]
    pub(super) fn write_ptr(&self, slot: usize) -> *mut u8 {
        self.piece(slot, self.writes_at)
    }

    /// The read part of `slot`, which must have no read in flight.
    pub(super) fn read_piece(&mut self, slot: usize) -> &mut [u8] {
        // SAFETY: `piece` checked the bounds, and the memory is initialised (zero at first). Only this part is
        // borrowed, because the kernel may access the others.
        unsafe { std::slice::from_raw_parts_mut(self.read_ptr(slot), self.block) }
    }

    /// The write part of `slot`, which must have no write in flight.
    pub(super) fn write_piece(&mut self, slot: usize) -> &mut [u8] {
        // SAFETY: as for `read_piece`.
        unsafe { std::slice::from_raw_parts_mut(self.write_ptr(slot), self.block) }
    }
}
