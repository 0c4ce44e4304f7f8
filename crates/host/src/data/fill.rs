//! Filling: writes every byte of a test file, or of the range of a device under test, once. Uses direct I/O if the
//! filesystem supports it.
//!
//! The bytes are random and stamped (see `pattern`), so that compression and deduplication in a drive do not reduce
//! the data. Filling by the load itself would write some blocks twice and others never.

use crate::error::{HostError, Operation};
use crate::{pattern, region};
use lowtide_core::{Bytes, Seed, rng};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

/// Bytes of one sequential write.
const CHUNK: usize = 1 << 20;
/// Random writes in flight, which keep the device busy.
const IN_FLIGHT: usize = 16;

/// The order in which the bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Ascending, 1 MiB at a time.
    Sequential,
    /// Blocks of this size, each once, in random order. At least 4 KiB.
    Random(Bytes),
}

/// Writes bytes `0..size` of `file`, the first of which is byte `data_offset` of the test data. Calls
/// `progress` with the bytes of each completed write.
///
/// # Errors
/// [`HostError::Interrupted`] once `interrupt` is set; [`HostError::Io`] if a write fails.
pub(crate) fn fill(
    (file, path): (&File, &Path),
    size: Bytes,
    data_offset: u64,
    order: Order,
    seed: Seed,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(Bytes),
) -> Result<(), HostError> {
    // Sizes are multiples of 4 KiB (see `Layout`), so each write is aligned. Without direct I/O, writes go
    // through the page cache and are synced at the end.
    let _ = rustix::fs::fcntl_setfl(file, OFlags::DIRECT);
    let seed = seed.part("fill", data_offset);
    let filling = Filling { file, path, size: size.get(), data_offset, interrupt };
    match order {
        Order::Sequential => {
            let mut writer = filling.writer(CHUNK, seed)?;
            (0..size.get().div_ceil(CHUNK as u64))
                .try_for_each(|number| writer.write(number).map(&mut *progress))
        }
        Order::Random(block) => filling.at_random((block.get() as usize).max(pattern::PAGE), seed, progress),
    }
}

/// The file to fill.
#[derive(Clone, Copy)]
struct Filling<'a> {
    file: &'a File,
    path: &'a Path,
    size: u64,
    data_offset: u64,
    interrupt: &'a AtomicBool,
}

impl<'a> Filling<'a> {
    fn writer(self, block: usize, seed: Seed) -> Result<Writer<'a>, HostError> {
        let buffer = region::Region::new(block).map_err(HostError::io(Operation::SetUp, self.path))?;
        Ok(Writer { filling: self, block, buffer, rng: seed.stream() })
    }

    /// Writes every block once in random order, with several threads.
    fn at_random(self, block: usize, seed: Seed, progress: &mut dyn FnMut(Bytes)) -> Result<(), HostError> {
        let blocks = self.size.div_ceil(block as u64);
        let mut order: Vec<u32> = (0..u32::try_from(blocks).unwrap_or(u32::MAX)).collect();
        rng::shuffle(&mut seed.part("order", 0).stream(), &mut order);
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let (sender, written) = mpsc::channel();
        std::thread::scope(|scope| {
            for thread in 0..IN_FLIGHT {
                let (sender, order, next, failed) = (sender.clone(), &order, &next, &failed);
                scope.spawn(move || {
                    let work = || -> Result<(), HostError> {
                        let mut writer = self.writer(block, seed.part("thread", thread as u64))?;
                        while let Some(&number) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                            // The receiver lives until every thread has ended.
                            let _ = sender.send(writer.write(u64::from(number))?);
                        }
                        Ok(())
                    };
                    if let Err(error) = work() {
                        next.store(order.len(), Ordering::Relaxed);
                        failed.lock().expect("no thread panics while holding the lock").get_or_insert(error);
                    }
                });
            }
            drop(sender);
            written.into_iter().for_each(progress);
        });
        failed.into_inner().expect("no thread panics while holding the lock").map_or(Ok(()), Err)
    }
}

/// Writes blocks, one at a time.
struct Writer<'a> {
    filling: Filling<'a>,
    block: usize,
    buffer: region::Region,
    rng: rng::Rng,
}

impl Writer<'_> {
    /// Writes the block with this number and returns its size.
    fn write(&mut self, number: u64) -> Result<Bytes, HostError> {
        let Filling { file, path, size, data_offset, interrupt } = self.filling;
        if interrupt.load(Ordering::Relaxed) {
            return Err(HostError::Interrupted(path.to_owned()));
        }
        let offset = number * self.block as u64;
        let length = (size - offset).min(self.block as u64) as usize;
        let chunk = &mut self.buffer.bytes()[..length];
        pattern::randomise(chunk, &mut self.rng);
        pattern::stamp(chunk, data_offset + offset, 0);
        write_all((file, path), chunk, offset)?;
        Ok(Bytes::new(length as u64))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_written_once_in_either_order() {
        let size = Bytes::kib(1000);
        for order in [Order::Sequential, Order::Random(Bytes::kib(12)), Order::Random(Bytes::new(512))] {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("f");
            let file = File::create_new(&path).expect("made");
            let (unset, mut reported) = (AtomicBool::new(false), Bytes::ZERO);
            let progress = &mut |bytes| reported += bytes;
            fill((&file, &path), size, 8192, order, Seed::new(3), &unset, progress).expect("filled");
            assert_eq!(reported, size, "{order:?}");
            let bytes = std::fs::read(&path).expect("read");
            assert_eq!(bytes.len() as u64, size.get());
            for (page, bytes) in bytes.chunks(pattern::PAGE).enumerate() {
                let stamp = u64::from_le_bytes(bytes[..8].try_into().expect("eight"));
                assert_eq!(stamp, 8192 + (page * pattern::PAGE) as u64, "{order:?}");
            }
            let error =
                fill((&file, &path), size, 0, order, Seed::new(3), &AtomicBool::new(true), &mut |_| {});
            assert!(matches!(error, Err(HostError::Interrupted { .. })), "{order:?}");
        }
    }
}
