//! Discarding: declaring the data on a device unneeded (TRIM).
//!
//! `unsafe` because it is an `ioctl`. Module `erase` has the erase commands of drives: format, sanitize, secure
//! erase.
#![allow(unsafe_code)]

use lowtide_core::Bytes;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A kind of discard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    /// TRIM, UNMAP or Deallocate: a hint that the drive may ignore.
    Hint,
    /// A discard after which the data can no longer be read. Few drives support it.
    Secure,
}

/// Discards the first `size` bytes of a device.
pub(super) fn discard(file: &File, size: Bytes, how: Discard) -> io::Result<()> {
    // <linux/fs.h>: _IO(0x12, 119) and _IO(0x12, 125).
    let request = match how {
        Discard::Hint => 0x1277,
        Discard::Secure => 0x127d,
    };
    let range: [u64; 2] = [0, size.get()];
    // SAFETY: both requests read two numbers of 64 bits at the address, which `range` holds until the call is over.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request, range.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
