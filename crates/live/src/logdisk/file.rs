//! A file, or whatever else can be read and written at a place, as a medium.
//!
//! Past the page cache where the file was opened so (`O_DIRECT`): what is written goes to the drive at once, in the sequence in which it
//! comes, and a flush has little left to do. Not here: who else may use it; locks, and what a block device holds, are its caller's
//! to look at.

use lowtide_host::block::Guard;
use lowtide_logdisk::{Aligned, BLOCK, Medium};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};
use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// A file.
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    bytes: u64,
    /// Past the page cache: memory begins at a multiple of a block.
    direct: bool,
    /// What the device lies on is held for as long as the device is.
    _guard: Guard,
}

impl FileMedium {
    /// A file that is open for reading and writing, as large as it is now; `direct` where it was opened with `O_DIRECT`.
    ///
    /// # Errors
    /// Where its size cannot be had.
    pub fn new(mut file: File, direct: bool) -> io::Result<FileMedium> {
        // The length of a block device is where its end is.
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(FileMedium { file, bytes, direct, _guard: Guard::default() })
    }

    /// The same, with what it lies on held for as long.
    pub fn guarded(self, guard: Guard) -> FileMedium {
        FileMedium { _guard: guard, ..self }
    }

    fn takes(&self, memory: *const u8) -> bool {
        !self.direct || memory.align_offset(BLOCK) == 0
    }
}

impl Medium for FileMedium {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if self.takes(into.as_ptr()) {
            return self.file.read_exact_at(into, offset);
        }
        let mut bytes = Aligned::zeroes(into.len());
        self.file.read_exact_at(&mut bytes, offset)?;
        into.copy_from_slice(&bytes);
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.takes(data.as_ptr()) {
            return self.file.write_all_at(data, offset);
        }
        self.file.write_all_at(&Aligned::copy_of(data), offset)
    }
    fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }
    fn write_durably(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if !self.takes(data.as_ptr()) {
            return self.write_durably(offset, &Aligned::copy_of(data));
        }
        // A write with forced unit access where the drive has one, else a write and a flush: the kernel knows.
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
    fn what_was_written_in_long_pieces_is_read_in_short_ones_with_and_without_the_page_cache() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("medium");
        std::fs::write(&path, vec![0; 3 << 20]).expect("written");
        let data: Vec<u8> = (0..(2 << 20) + BLOCK).map(|n| (n / BLOCK) as u8 ^ n as u8).collect();
        for direct in [false, true] {
            // Aligned memory does no harm where the page cache is used, as on filesystems that have no other way.
            let file = File::options().read(true).write(true).open(&path).expect("open");
            let medium = FileMedium::new(file, direct).expect("a size");
            assert_eq!(medium.bytes(), 3 << 20);
            medium.write(BLOCK as u64, &data).expect("written");
            medium.flush().expect("flushed");
            // The first block of them again, from memory that begins anywhere.
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
