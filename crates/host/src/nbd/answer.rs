//! Replies of the transmission phase, written to the end of a buffer.
//!
//! A read or a block status is answered in chunks where the client asked for structured replies; one chunk holds it all.
//! Leaves out when they are sent.

use super::wire::{BASE_ALLOCATION_ID, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk, error, state};

/// The error number of the protocol for one of Linux.
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

fn chunk_header(out: &mut Vec<u8>, kind: u16, cookie: u64, length: u32) {
    out.extend_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&chunk::DONE.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
}

fn simple(out: &mut Vec<u8>, cookie: u64, error: u32) {
    out.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&error.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
}

/// Done, with nothing to send.
pub fn done(out: &mut Vec<u8>, cookie: u64) {
    simple(out, cookie, 0);
}

/// An error; `chunked` for commands that a structured client has answered in chunks.
pub fn failed(out: &mut Vec<u8>, chunked: bool, cookie: u64, error: u32) {
    if chunked {
        chunk_header(out, chunk::ERROR, cookie, 6);
        out.extend_from_slice(&error.to_be_bytes());
        out.extend_from_slice(&0u16.to_be_bytes());
    } else {
        simple(out, cookie, error);
    }
}

/// A read, in a chunk where it is `structured`, whose bytes `fill` puts into their place.
///
/// # Errors
/// What `fill` says, an error number of Linux; the buffer is then as it was.
pub fn data(
    out: &mut Vec<u8>,
    structured: bool,
    cookie: u64,
    (offset, length): (u64, u32),
    fill: impl FnOnce(&mut [u8]) -> Result<(), i32>,
) -> Result<(), i32> {
    let before = out.len();
    if structured {
        chunk_header(out, chunk::OFFSET_DATA, cookie, 8 + length);
        out.extend_from_slice(&offset.to_be_bytes());
    } else {
        simple(out, cookie, 0);
    }
    let begin = out.len();
    out.resize(begin + length as usize, 0);
    fill(&mut out[begin..]).inspect_err(|_| out.truncate(before))
}

/// A read of nothing but a hole; for structured clients.
pub fn hole(out: &mut Vec<u8>, cookie: u64, (offset, length): (u64, u32)) {
    chunk_header(out, chunk::OFFSET_HOLE, cookie, 12);
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
}

/// What is allocated: lengths, and whether each is.
pub fn extents(out: &mut Vec<u8>, cookie: u64, runs: &[(u32, bool)]) {
    chunk_header(out, chunk::BLOCK_STATUS, cookie, 4 + 8 * runs.len() as u32);
    out.extend_from_slice(&BASE_ALLOCATION_ID.to_be_bytes());
    for (length, allocated) in runs {
        let states = if *allocated { 0 } else { state::HOLE | state::ZERO };
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&states.to_be_bytes());
    }
}
