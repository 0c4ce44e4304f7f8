//! What is stored on a drive that is served live: the newest bytes, in memory or in a sparse file ([`Contents`]).
//!
//! Nothing that was not written takes room, and all of it reads as zeroes. Not here: when a write is durable, which is
//! the drive's matter.

mod file;
mod memory;

pub use file::{SparseFile, SparseFileError};
pub use memory::Memory;

use std::io;

/// A run of bytes that are all there or all not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Bytes, at least 1.
    pub length: u64,
    /// Whether they are allocated; others read as zeroes.
    pub allocated: bool,
}

/// The bytes of a drive. Ranges lie inside it: the drive has checked them.
#[derive(Debug)]
pub enum Contents {
    /// In memory, gone with the process.
    Memory(Memory),
    /// In a sparse file.
    File(SparseFile),
}

impl Contents {
    /// Reads the bytes at `offset`.
    ///
    /// # Errors
    /// What the file's filesystem says.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        match self {
            Contents::Memory(memory) => {
                memory.read(offset, into);
                Ok(())
            }
            Contents::File(file) => file.read(offset, into),
        }
    }

    /// Writes bytes at `offset`.
    ///
    /// # Errors
    /// What the file's filesystem says: it may be full.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Contents::Memory(memory) => {
                memory.write(offset, bytes);
                Ok(())
            }
            Contents::File(file) => file.write(offset, bytes),
        }
    }

    /// Makes a range read as zeroes and gives its room back.
    ///
    /// # Errors
    /// What the file's filesystem says.
    pub fn clear(&mut self, offset: u64, length: u64) -> io::Result<()> {
        match self {
            Contents::Memory(memory) => {
                memory.clear(offset, length);
                Ok(())
            }
            Contents::File(file) => file.clear(offset, length),
        }
    }

    /// Whether the bytes from `offset` on are allocated, and how many are like the first, `length` at most.
    ///
    /// # Errors
    /// What the file's filesystem says.
    pub fn run(&self, offset: u64, length: u64) -> io::Result<Run> {
        match self {
            Contents::Memory(memory) => Ok(memory.run(offset, length)),
            Contents::File(file) => file.run(offset, length),
        }
    }

    /// Makes what was written survive this machine, where there is a file.
    ///
    /// # Errors
    /// What the file's filesystem says.
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
        fn contents_are_what_a_plain_array_holds(
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
    fn in_a_folder_contents_have_no_name_and_are_gone_at_the_end() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = || SparseFile::open(directory.path(), SIZE as u64, false).expect("a file without a name");
        let (first, second) = (open(), open());
        first.write(4096, b"here").expect("written");
        let mut found = [0; 4];
        second.read(4096, &mut found).expect("read");
        assert_eq!(found, [0; 4], "each is another");
        first.read(4096, &mut found).expect("read");
        assert_eq!(&found, b"here");
        assert!(std::fs::read_dir(directory.path()).expect("listed").next().is_none(), "it has a name");
        assert!(SparseFile::open(directory.path(), SIZE as u64, true).is_err(), "there is nothing to read");
    }

    #[test]
    fn what_was_never_written_takes_no_room() {
        let mut memory = Memory::new(1 << 42).expect("four tebibytes of addresses");
        memory.write(1 << 41, b"here");
        assert_eq!(memory.run(0, 1 << 42), Run { length: 1 << 41, allocated: false });
        assert_eq!(memory.run(1 << 41, 1 << 20), Run { length: 4096, allocated: true });
        memory.clear(0, 1 << 42);
        assert_eq!(memory.run(0, 1 << 42), Run { length: 1 << 42, allocated: false });
    }
}
