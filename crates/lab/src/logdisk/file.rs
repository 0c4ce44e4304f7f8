//! A file, or whatever else can be read and written at a place, as a medium.
//!
//! Past the page cache where the file was opened so (`O_DIRECT`): what is written goes to the drive at once, in the sequence in which it
//! comes, and a flush has little left to do. Leaves out who else may use it: locks, and what a block device holds, are its caller's
//! to look at.

use crate::format::BLOCK;
use crate::medium::Medium;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// Bytes that are moved at a time between the caller's memory and memory that the kernel takes as it is.
const PIECE: usize = 1 << 20;

/// A file.
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    bytes: u64,
    /// For files past the page cache: memory at a multiple of a block.
    aligned: Option<Mutex<Aligned>>,
}

/// Memory, of which the part from `skip` on is aligned.
#[derive(Debug)]
struct Aligned {
    memory: Vec<u8>,
    skip: usize,
}

impl Aligned {
    fn new() -> Aligned {
        let memory = vec![0; PIECE + BLOCK];
        let skip = memory.as_ptr().align_offset(BLOCK);
        Aligned { memory, skip }
    }
    fn piece(&mut self, length: usize) -> &mut [u8] {
        &mut self.memory[self.skip..][..length]
    }
}

impl FileMedium {
    /// A file that is open for reading and writing, as large as it is now; `direct` where it was opened with `O_DIRECT`.
    ///
    /// # Errors
    /// Where its size cannot be had.
    pub fn new(mut file: File, direct: bool) -> io::Result<FileMedium> {
        // The length of a block device is where its end is.
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(FileMedium { file, bytes, aligned: direct.then(|| Mutex::new(Aligned::new())) })
    }
}

impl Medium for FileMedium {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let Some(aligned) = &self.aligned else { return self.file.read_exact_at(into, offset) };
        let mut aligned = aligned.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, to) in (offset..).step_by(PIECE).zip(into.chunks_mut(PIECE)) {
            let piece = aligned.piece(to.len());
            self.file.read_exact_at(piece, at)?;
            to.copy_from_slice(piece);
        }
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let Some(aligned) = &self.aligned else { return self.file.write_all_at(data, offset) };
        let mut aligned = aligned.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, from) in (offset..).step_by(PIECE).zip(data.chunks(PIECE)) {
            let piece = aligned.piece(from.len());
            piece.copy_from_slice(from);
            self.file.write_all_at(piece, at)?;
        }
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_in_long_pieces_is_read_in_short_ones_with_and_without_the_page_cache() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("medium");
        std::fs::write(&path, vec![0; 3 * PIECE]).expect("written");
        let data: Vec<u8> = (0..2 * PIECE + BLOCK).map(|n| (n / BLOCK) as u8 ^ n as u8).collect();
        for direct in [false, true] {
            // Aligned memory does no harm where the page cache is used, as on filesystems that have no other way.
            let file = File::options().read(true).write(true).open(&path).expect("open");
            let medium = FileMedium::new(file, direct).expect("a size");
            assert_eq!(medium.bytes(), 3 * PIECE as u64);
            medium.write(BLOCK as u64, &data).expect("written");
            medium.flush().expect("flushed");
            let mut block = [0; BLOCK];
            for (n, expected) in data.chunks(BLOCK).enumerate() {
                medium.read((n + 1) as u64 * BLOCK as u64, &mut block).expect("read");
                assert!(block == expected, "block {n}");
            }
        }
    }
}
