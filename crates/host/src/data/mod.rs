//! [`TestData`]: one logical range of bytes over one or several files of the same size.
//! [`crate::target::Target`] makes the files.

mod fill;

pub use fill::Order;
pub(crate) use fill::fill;

use crate::error::HostError;
use lowtide_core::Bytes;
use std::path::PathBuf;

/// The bytes under test: `files.len() × size_each`, file after file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestData {
    files: Vec<PathBuf>,
    size_each: Bytes,
    /// Whether the data is on a claimed block device. Without a claim, devices are only read.
    claimed: bool,
}

impl TestData {
    /// The first `size_each` bytes of each of `files`.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if there is no file, or the size is zero.
    pub fn new(files: Vec<PathBuf>, size_each: Bytes) -> Result<Self, HostError> {
        if files.is_empty() || size_each == Bytes::ZERO {
            return Err(HostError::invalid(
                "the data under test",
                format_args!("{} files of {size_each}", files.len()),
                "at least one file of at least one block is needed",
            ));
        }
        Ok(TestData { files, size_each, claimed: false })
    }

    /// The first `size` bytes of a block device that is held for overwriting.
    ///
    /// # Errors
    /// As [`TestData::new`].
    pub(crate) fn of_claim(node: PathBuf, size: Bytes) -> Result<Self, HostError> {
        TestData::new(vec![node], size).map(|data| TestData { claimed: true, ..data })
    }

    /// The same files with another number of bytes under test.
    ///
    /// # Errors
    /// As [`TestData::new`].
    pub fn with_size_each(&self, size_each: Bytes) -> Result<Self, HostError> {
        let data = TestData::new(self.files.clone(), size_each)?;
        Ok(TestData { claimed: self.claimed, ..data })
    }

    /// Returns whether a block device among the files may be written.
    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed
    }

    /// The files, in the order of their bytes.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Bytes under test in each file.
    pub fn size_each(&self) -> Bytes {
        self.size_each
    }

    /// Bytes under test in all files.
    pub fn size(&self) -> Bytes {
        self.size_each * self.files.len() as u64
    }

    /// The index of the file that holds byte `offset` of the data, and the offset in that file.
    #[inline]
    pub fn locate(&self, offset: u64) -> (usize, u64) {
        if self.files.len() == 1 {
            return (0, offset);
        }
        let size = self.size_each.get();
        ((offset / size) as usize, offset % size)
    }
}

/// Progress of a fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes written.
    pub done: Bytes,
    /// Bytes to write in total.
    pub total: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_maps_to_a_file_and_its_offset() {
        let data = TestData::new(vec!["a".into(), "b".into(), "c".into()], Bytes::kib(8)).expect("valid");
        assert_eq!(data.size(), Bytes::kib(24));
        assert_eq!(data.locate(0), (0, 0));
        assert_eq!(data.locate(8192), (1, 0));
        assert_eq!(data.locate(24_575), (2, 8191));
        assert!(TestData::new(Vec::new(), Bytes::kib(8)).is_err());
    }
}
