//! [`TestData`]: one logical range of bytes over one or several files of the same size.
//!
//! Not here: how the files came to be; see [`crate::target::Target`].

mod fill;

pub use fill::Order;
pub(crate) use fill::fill;

use crate::error::HostError;
use lowtide_core::Bytes;
use std::path::PathBuf;

/// The bytes under test: `files.len() × size_each` of them, file after file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestData {
    files: Vec<PathBuf>,
    size_each: Bytes,
    /// Whether a claim on a block device stands behind it: without one, devices are only read.
    claimed: bool,
}

impl TestData {
    /// The first `size_each` bytes of each of `files`.
    ///
    /// # Errors
    /// [`HostError::Invalid`] where there is no file, or no byte in it.
    pub fn new(files: Vec<PathBuf>, size_each: Bytes) -> Result<Self, HostError> {
        if files.is_empty() || size_each == Bytes::ZERO {
            return Err(HostError::Invalid {
                what: "the data under test",
                value: format!("{} files of {size_each}", files.len()),
                accepted: "at least one file of at least one block is needed".to_owned(),
            });
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

    /// The same files, of which fewer or more bytes belong to the data.
    ///
    /// # Errors
    /// As [`TestData::new`].
    pub fn with_size_each(&self, size_each: Bytes) -> Result<Self, HostError> {
        let data = TestData::new(self.files.clone(), size_each)?;
        Ok(TestData { claimed: self.claimed, ..data })
    }

    /// Whether a block device among the files may be written to.
    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed
    }

    /// The files, in the order of their bytes.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Bytes of each file that belong to the data.
    pub fn size_each(&self) -> Bytes {
        self.size_each
    }

    /// All bytes.
    pub fn size(&self) -> Bytes {
        self.size_each * self.files.len() as u64
    }

    /// The file that holds byte `offset` of the data, and where in it.
    #[inline]
    pub fn locate(&self, offset: u64) -> (usize, u64) {
        if self.files.len() == 1 {
            return (0, offset);
        }
        let size = self.size_each.get();
        ((offset / size) as usize, offset % size)
    }
}

/// How far filling is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes written.
    pub done: Bytes,
    /// Bytes to write in all.
    pub total: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_in_their_file() {
        let data = TestData::new(vec!["a".into(), "b".into(), "c".into()], Bytes::kib(8)).expect("valid");
        assert_eq!(data.size(), Bytes::kib(24));
        assert_eq!(data.locate(0), (0, 0));
        assert_eq!(data.locate(8192), (1, 0));
        assert_eq!(data.locate(24_575), (2, 8191));
        assert!(TestData::new(Vec::new(), Bytes::kib(8)).is_err());
    }
}
