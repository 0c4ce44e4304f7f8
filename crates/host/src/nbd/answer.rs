//! Replies of the transmission phase, appended to a buffer.
//!
//! With structured replies, a read or block status is answered in one chunk. The caller sends the buffer.

use super::wire::{self, BASE_ALLOCATION_ID, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, error, state};

/// Converts a Linux error number to one of the protocol.
pub fn error_number(errno: i32) -> u32 {
    match errno {
        libc::EPERM | libc::EROFS => error::EPERM,
        libc::ENOMEM => error::ENOMEM,
        libc::EINVAL => error::EINVAL,
        libc::ENOSPC | libc::EDQUOT | libc::EFBIG => error::ENOSPC,
        libc::EOVERFLOW => error::EOVERFLOW,
        libc::ENOTSUP => error::ENOTSUP,
        libc::ESHUTDOWN => error::ESHUTDOWN,
        _ => error::EIO,
    }
}

fn chunk_header(out: &mut Vec<u8>, last: bool, kind: u16, cookie: u64, length: u32) {
    let flags = if last { wire::chunk::DONE } else { 0 };
    out.extend_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
}

fn simple(out: &mut Vec<u8>, cookie: u64, error: u32) {
    out.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&error.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
}

/// A success without data.
pub fn done(out: &mut Vec<u8>, cookie: u64) {
    simple(out, cookie, 0);
}

/// An error. `chunked` selects a chunk instead of a simple reply.
pub fn failed(out: &mut Vec<u8>, chunked: bool, cookie: u64, error: u32) {
    if chunked {
        chunk_header(out, true, wire::chunk::ERROR, cookie, 6);
        out.extend_from_slice(&error.to_be_bytes());
        out.extend_from_slice(&0u16.to_be_bytes());
    } else {
        simple(out, cookie, error);
    }
}

/// The data of a read, which `fill` provides; a chunk if `structured`.
///
/// # Errors
/// The Linux error number of `fill`; the buffer is then unchanged.
pub fn data(
    out: &mut Vec<u8>,
    structured: bool,
    cookie: u64,
    range: (u64, u32),
    fill: impl FnOnce(&mut [u8]) -> Result<(), i32>,
) -> Result<(), i32> {
    part(out, Some((structured, cookie, range)), range.1 as usize, fill)
}

/// A part of the data of a read. The first part passes `begins`, which starts the reply: whether it is structured,
/// its cookie, and the range of all parts, which form one chunk.
///
/// # Errors
/// The Linux error number of `fill`; the buffer is then unchanged.
pub fn part(
    out: &mut Vec<u8>,
    begins: Option<(bool, u64, (u64, u32))>,
    bytes: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), i32>,
) -> Result<(), i32> {
    let before = out.len();
    match begins {
        Some((true, cookie, range)) => chunk_of_data(out, true, cookie, range),
        Some((false, cookie, _)) => simple(out, cookie, 0),
        None => {}
    }
    append(out, before, bytes, fill)
}

/// A chunk of a read; `last` marks the last one.
///
/// # Errors
/// The Linux error number of `fill`; the buffer is then unchanged.
pub fn chunk(
    out: &mut Vec<u8>,
    last: bool,
    cookie: u64,
    range: (u64, u32),
    fill: impl FnOnce(&mut [u8]) -> Result<(), i32>,
) -> Result<(), i32> {
    let before = out.len();
    chunk_of_data(out, last, cookie, range);
    append(out, before, range.1 as usize, fill)
}

fn chunk_of_data(out: &mut Vec<u8>, last: bool, cookie: u64, (offset, length): (u64, u32)) {
    chunk_header(out, last, wire::chunk::OFFSET_DATA, cookie, 8 + length);
    out.extend_from_slice(&offset.to_be_bytes());
}

fn append(
    out: &mut Vec<u8>,
    before: usize,
    bytes: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<(), i32>,
) -> Result<(), i32> {
    let begin = out.len();
    out.resize(begin + bytes, 0);
    fill(&mut out[begin..]).inspect_err(|_| out.truncate(before))
}

/// An unallocated read, or an unallocated chunk of one, for structured replies.
pub fn hole(out: &mut Vec<u8>, last: bool, cookie: u64, (offset, length): (u64, u32)) {
    chunk_header(out, last, wire::chunk::OFFSET_HOLE, cookie, 12);
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
}

/// A block status: the length of each extent, and whether it is allocated.
pub fn extents(out: &mut Vec<u8>, cookie: u64, runs: &[(u32, bool)]) {
    chunk_header(out, true, wire::chunk::BLOCK_STATUS, cookie, 4 + 8 * runs.len() as u32);
    out.extend_from_slice(&BASE_ALLOCATION_ID.to_be_bytes());
    for (length, allocated) in runs {
        let states = if *allocated { 0 } else { state::HOLE | state::ZERO };
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&states.to_be_bytes());
    }
}
