//! Filling: every byte of a test file, or of the part of a device under test, written once, in order, 1 MiB at a time, past the page cache where the
//! filesystem lets it.
//!
//! The bytes are random and stamped (see `pattern`), so that neither compression nor deduplication in a drive
//! turns the fill into less than it says. Leaves out random fills: those are workloads.

use crate::error::{HostError, Operation};
use crate::{pattern, region};
use lowtide_core::{Bytes, Seed};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of one write.
const CHUNK: usize = 1 << 20;

/// Writes bytes `0..size` of `file`, the first of which is byte `data_offset` of the test data. Tells
/// `progress` the bytes of each write done.
///
/// # Errors
/// [`HostError::Interrupted`] once `interrupt` is set, [`HostError::Io`] where the kernel refuses a write.
pub(crate) fn fill(
    (file, path): (&File, &Path),
    size: Bytes,
    data_offset: u64,
    seed: Seed,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(Bytes),
) -> Result<(), HostError> {
    let mut rng = seed.part("fill", data_offset).stream();
    let mut buffer = region::Region::new(CHUNK).map_err(HostError::io(Operation::SetUp, path))?;
    // Sizes are multiples of 4 KiB (see `Layout`), so each write is aligned. Where direct I/O is refused, writes
    // go through the page cache and are synced at the end.
    let _ = rustix::fs::fcntl_setfl(file, OFlags::DIRECT);
    let mut offset = 0;
    while offset < size.get() {
        if interrupt.load(Ordering::Relaxed) {
            return Err(HostError::Interrupted { path: path.to_owned() });
        }
        let length = (size.get() - offset).min(CHUNK as u64) as usize;
        let chunk = &mut buffer.bytes()[..length];
        pattern::randomise(chunk, &mut rng);
        pattern::stamp(chunk, data_offset + offset, 0);
        write_all((file, path), chunk, offset)?;
        offset += length as u64;
        progress(Bytes::new(length as u64));
    }
    Ok(())
}

fn write_all((file, path): (&File, &Path), chunk: &[u8], offset: u64) -> Result<(), HostError> {
    loop {
        match file.write_all_at(chunk, offset) {
            Ok(()) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && is_direct(file) => {
                let _ = rustix::fs::fcntl_setfl(file, OFlags::empty());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(HostError::io_at(Operation::Fill, path, offset)(error)),
        }
    }
}

fn is_direct(file: &File) -> bool {
    rustix::fs::fcntl_getfl(file).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
}
