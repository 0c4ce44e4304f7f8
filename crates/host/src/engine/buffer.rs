//! [`Buffers`]: the memory that requests read into and write from, one piece per request in flight.
//!
//! One mapping per thread, aligned for direct I/O and backed by huge pages where possible, which also lets
//! io_uring register it in few pieces. Not here: sharing between threads.

#![allow(unsafe_code)]

use crate::pattern;
use crate::region::Region;
use lowtide_core::Seed;
use std::io;

/// `slots` pieces of `block` bytes to read into, and as many to write from where the workload writes.
#[derive(Debug)]
pub(super) struct Buffers {
    region: Region,
    /// Bytes from one piece to the next: `block` rounded up for alignment.
    stride: usize,
    block: usize,
    /// Bytes from a slot's read piece to its write piece.
    writes_at: usize,
}

impl Buffers {
    /// Memory for `slots` requests of `block` bytes. Write pieces hold random bytes of `seed`.
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

    /// The whole memory, for registering.
    pub(super) fn whole(&self) -> libc::iovec {
        libc::iovec { iov_base: self.region.as_ptr().cast(), iov_len: self.region.length() }
    }

    fn piece(&self, slot: usize, offset: usize) -> *mut u8 {
        let at = offset + slot * self.stride;
        assert!(at + self.block <= self.region.length(), "slot {slot} exists");
        self.region.as_ptr().wrapping_add(at)
    }

    /// Where slot `slot` reads to.
    #[inline]
    pub(super) fn read_ptr(&self, slot: usize) -> *mut u8 {
        self.piece(slot, 0)
    }

    /// Where slot `slot` writes from.
    #[inline]
    pub(super) fn write_ptr(&self, slot: usize) -> *mut u8 {
        self.piece(slot, self.writes_at)
    }

    /// What slot `slot` reads to. For a caller with no read of that slot in flight.
    pub(super) fn read_piece(&mut self, slot: usize) -> &mut [u8] {
        // SAFETY: `piece` checked the bounds, memory is initialised (zero at first), and only this piece is
        // borrowed: the kernel may have its hands on the others.
        unsafe { std::slice::from_raw_parts_mut(self.read_ptr(slot), self.block) }
    }

    /// What slot `slot` writes from. For a caller with no write of that slot in flight.
    pub(super) fn write_piece(&mut self, slot: usize) -> &mut [u8] {
        // SAFETY: as for `read_piece`.
        unsafe { std::slice::from_raw_parts_mut(self.write_ptr(slot), self.block) }
    }
}
