//! Owned memory for I/O ([`Region`]): zeroed, aligned for direct requests, on huge pages if possible.

#![allow(unsafe_code)]

use crate::memory::{PAGE, map, unmap};
use std::io;
use std::ptr::NonNull;

/// An owned, zeroed, aligned mapping.
#[derive(Debug)]
pub(crate) struct Region {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Region {}

impl Region {
    /// Maps at least `length` zero bytes.
    pub(crate) fn new(length: usize) -> io::Result<Region> {
        let length = length.max(1).checked_next_multiple_of(PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let base = map(length).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Region { base, length })
    }

    /// The first byte.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `length` initialised bytes (zero at first) and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.length) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; borrows have ended, and users that lend the memory to the kernel
        // keep this value until the kernel is done with it.
        unsafe { unmap(self.as_ptr(), self.length) };
    }
}
