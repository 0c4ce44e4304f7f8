//! A file or block device as a medium ([`FileMedium`]).
//!
//! With `O_DIRECT`, a write reaches the drive at once and in order, so that a flush has little work left. Locks and
//! interlocks are the caller's task.

use lowtide_host::block::Guard;
use lowtide_logdisk::{Aligned, BLOCK, Medium};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};
use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// A file or block device.
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    bytes: u64,
    /// Whether the file was opened with `O_DIRECT`, which needs memory aligned to a block.
    direct: bool,
    /// Holds the lower levels of a block device.
    _guard: Guard,
}

impl FileMedium {
    /// A medium over a file that is open for reading and writing. `direct` must be true if the file was opened with
    /// `O_DIRECT`.
    ///
    /// # Errors
    /// The size of the file cannot be determined.
    pub fn new(mut file: File, direct: bool) -> io::Result<FileMedium> {
        // The metadata of a block device has no length.
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(FileMedium { file, bytes, direct, _guard: Guard::default() })
    }

    /// Keeps `guard` until the medium is dropped.
    pub(super) fn guarded(self, guard: Guard) -> FileMedium {
        FileMedium { _guard: guard, ..self }
    }

    fn accepts(&self, memory: *const u8) -> bool {
        !self.direct || memory.align_offset(BLOCK) == 0
    }
}

impl Medium for FileMedium {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if self.accepts(into.as_ptr()) {
            return self.file.read_exact_at(into, offset);
        }
        let mut bytes = Aligned::zeroes(into.len());
        self.file.read_exact_at(&mut bytes, offset)?;
        into.copy_from_slice(&bytes);
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.accepts(data.as_ptr()) {
            return self.file.write_all_at(data, offset);
        }
        self.file.write_all_at(&Aligned::copy_of(data), offset)
    }
    fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }
    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if !self.accepts(data.as_ptr()) {
            return self.write_durably(offset, &Aligned::copy_of(data));
        }
        // The kernel sends a FUA write if the drive supports FUA, otherwise a write and a flush.
        match pwritev2(&self.file, &[IoSlice::new(data)], offset, ReadWriteFlags::DSYNC) {
            Ok(written) if written == data.len() => Ok(()),
            Ok(_) | Err(Errno::INTR | Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.write(offset, data)?;
                self.flush()
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_writes_read_back_in_blocks_with_and_without_o_direct() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("medium");
        std::fs::write(&path, vec![0; 3 << 20]).expect("written");
        let data: Vec<u8> = (0..(2 << 20) + BLOCK).map(|n| (n / BLOCK) as u8 ^ n as u8).collect();
        for direct in [false, true] {
            // `direct` only aligns memory here, because the test's filesystem may not support O_DIRECT.
            let file = File::options().read(true).write(true).open(&path).expect("open");
            let medium = FileMedium::new(file, direct).expect("a size");
            assert_eq!(medium.bytes(), 3 << 20);
            medium.write(BLOCK as u64, &data).expect("written");
            medium.flush().expect("flushed");
            // Writes the first block again, from unaligned memory.
            medium
                .write_durably(BLOCK as u64, &[&[0], &data[..BLOCK]].concat()[1..])
                .expect("written durably");
            let mut block = [0; BLOCK + 1];
            for (n, expected) in data.chunks(BLOCK).enumerate() {
                medium.read((n + 1) as u64 * BLOCK as u64, &mut block[1..]).expect("read");
                assert!(&block[1..] == expected, "block {n}");
            }
        }
    }
}
