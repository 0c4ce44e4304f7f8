//! Bytes in memory that is aligned to a block, as `O_DIRECT` requires ([`Aligned`]).

use crate::format::BLOCK;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Memory of up to this many bytes is reused. New memory for each write would cost page faults, which take as long as
/// a checksum.
const KEPT_BYTES: usize = (256 << 10) + 2 * BLOCK;

/// Shorter memory is not reused.
const SHORT: usize = 64 << 10;

/// Maximum number of reusable pieces.
const KEPT: usize = 64;

static KEPT_MEMORY: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// An empty vector with room for `bytes`.
fn memory(bytes: usize) -> Vec<u8> {
    if !(SHORT..=KEPT_BYTES).contains(&bytes) {
        return Vec::with_capacity(bytes);
    }
    let kept = KEPT_MEMORY.lock().unwrap_or_else(PoisonError::into_inner).pop();
    kept.unwrap_or_else(|| Vec::with_capacity(KEPT_BYTES))
}

/// Bytes in memory that is aligned to a block.
pub struct Aligned {
    memory: Vec<u8>,
    skip: usize,
    length: usize,
}

impl Aligned {
    /// `length` zeroes.
    pub fn zeroes(length: usize) -> Aligned {
        // The capacity suffices, so the vector does not move.
        let mut memory = memory(length + BLOCK);
        let skip = memory.as_ptr().align_offset(BLOCK);
        memory.resize(skip + length, 0);
        Aligned { memory, skip, length }
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Aligned {
        // The capacity suffices, so the vector does not move.
        let mut memory = memory(bytes.len() + BLOCK);
        let skip = memory.as_ptr().align_offset(BLOCK);
        memory.resize(skip, 0);
        memory.extend_from_slice(bytes);
        Aligned { memory, skip, length: bytes.len() }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        let mut memory = std::mem::take(&mut self.memory);
        if memory.capacity() == KEPT_BYTES {
            memory.clear();
            let mut kept = KEPT_MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < KEPT {
                kept.push(memory);
            }
        }
    }
}

impl Deref for Aligned {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.memory[self.skip..self.skip + self.length]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.skip..self.skip + self.length]
    }
}

impl PartialEq for Aligned {
    fn eq(&self, other: &Aligned) -> bool {
        **self == **other
    }
}

impl Eq for Aligned {}

impl fmt::Debug for Aligned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_and_complete() {
        for length in [0, 1, BLOCK, 3 * BLOCK + 5, 100 << 10, 256 << 10, 1 << 20, 100 << 10] {
            let bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let copy = Aligned::copy_of(&bytes);
            assert_eq!((*copy).as_ptr().align_offset(BLOCK), 0);
            assert!(*copy == bytes[..]);
            let zeroes = Aligned::zeroes(length);
            assert_eq!((*zeroes).as_ptr().align_offset(BLOCK), 0);
            assert!(zeroes.len() == length && zeroes.iter().all(|&byte| byte == 0));
        }
    }
}
