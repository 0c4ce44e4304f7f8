//! The bytes of a live drive, in memory or in a sparse file ([`Contents`]).
//!
//! Unwritten ranges take no space and read as zeroes. The drive decides which writes are durable.

mod file;
mod memory;

pub use file::{SparseFile, SparseFileError};
pub use memory::Memory;

use std::io;

/// A run of bytes that are all allocated or all unallocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Length in bytes, at least 1.
    pub length: u64,
    /// Whether the bytes are allocated. Unallocated bytes read as zeroes.
    pub allocated: bool,
}

/// The bytes of a drive. The drive has checked that every range is inside it.
#[derive(Debug)]
pub enum Contents {
    /// In memory; lost at the end of the process.
    Memory(Memory),
    /// In a sparse file.
    File(SparseFile),
}

impl Contents {
    /// Reads the bytes at `offset`.
    ///
    /// # Errors
    /// An error of the file.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        match self {
            Contents::Memory(memory) => memory.read(offset, into),
            Contents::File(file) => file.read(offset, into),
        }
    }

    /// Writes bytes at `offset`.
    ///
    /// # Errors
    /// An error of the file, such as a full filesystem.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Contents::Memory(memory) => memory.write(offset, bytes),
            Contents::File(file) => file.write(offset, bytes),
        }
    }

    /// Zeroes a range and frees its space.
    ///
    /// # Errors
    /// An error of the file.
    pub fn clear(&mut self, offset: u64, length: u64) -> io::Result<()> {
        match self {
            Contents::Memory(memory) => memory.clear(offset, length),
            Contents::File(file) => file.clear(offset, length),
        }
    }

    /// Returns the run that begins at `offset`, at most `length` bytes long.
    ///
    /// # Errors
    /// An error of the file.
    pub fn run(&self, offset: u64, length: u64) -> io::Result<Run> {
        match self {
            Contents::Memory(memory) => Ok(memory.run(offset, length)),
            Contents::File(file) => file.run(offset, length),
        }
    }

    /// Syncs the file, if there is one.
    ///
    /// # Errors
    /// An error of the file.
    pub fn sync(&self) -> io::Result<()> {
        match self {
            Contents::Memory(_) => Ok(()),
            Contents::File(file) => file.sync(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: usize = 300 * 1024;

    fn both(directory: &std::path::Path) -> [Contents; 2] {
        let memory = Memory::new(SIZE as u64).expect("small");
        let file = SparseFile::open(&directory.join("data"), SIZE as u64, false).expect("new");
        [Contents::Memory(memory), Contents::File(file)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn contents_behave_like_a_byte_array(
            steps in prop::collection::vec((0u8..3, 0usize..SIZE / 512, 1usize..160, any::<u8>()), 1..60),
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            for mut contents in both(directory.path()) {
                let mut plain = vec![0u8; SIZE];
                for (what, sector, sectors, byte) in &steps {
                    let offset = sector * 512;
                    let length = (sectors * 512).min(SIZE - offset);
                    if *what == 0 {
                        contents.clear(offset as u64, length as u64).expect("clears");
                        plain[offset..offset + length].fill(0);
                    } else {
                        contents.write(offset as u64, &vec![*byte; length]).expect("writes");
                        plain[offset..offset + length].fill(*byte);
                    }
                    let mut found = vec![1u8; length];
                    contents.read(offset as u64, &mut found).expect("reads");
                    prop_assert_eq!(&found, &plain[offset..offset + length]);
                }
                let mut found = vec![1u8; SIZE];
                contents.read(0, &mut found).expect("reads");
                prop_assert!(found == plain);
                let mut at = 0;
                while at < SIZE {
                    let run = contents.run(at as u64, (SIZE - at) as u64).expect("runs");
                    let end = at + run.length as usize;
                    prop_assert!(run.length > 0 && end <= SIZE);
                    prop_assert!(run.allocated || plain[at..end].iter().all(|byte| *byte == 0));
                    at = end;
                }
            }
        }
    }

    #[test]
    fn a_directory_gets_an_unnamed_temporary_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = || SparseFile::open(directory.path(), SIZE as u64, false).expect("an unnamed file");
        let (first, second) = (open(), open());
        first.write(4096, b"here").expect("written");
        let mut found = [0; 4];
        second.read(4096, &mut found).expect("read");
        assert_eq!(found, [0; 4], "the files differ");
        first.read(4096, &mut found).expect("read");
        assert_eq!(&found, b"here");
        assert!(std::fs::read_dir(directory.path()).expect("listed").next().is_none(), "the file has a name");
        assert!(SparseFile::open(directory.path(), SIZE as u64, true).is_err(), "there is nothing to read");
    }

    #[test]
    fn unwritten_ranges_take_no_memory() {
        let mut memory = Memory::new(1 << 42).expect("four tebibytes of addresses");
        memory.write(1 << 41, b"here").expect("memory");
        assert_eq!(memory.run(0, 1 << 42), Run { length: 1 << 41, allocated: false });
        assert_eq!(memory.run(1 << 41, 1 << 20), Run { length: 4096, allocated: true });
        memory.clear(0, 1 << 42).expect("memory");
        assert_eq!(memory.run(0, 1 << 42), Run { length: 1 << 42, allocated: false });
    }
}
