//! Sections of a saved state: serialised values, and tables of words that are too large for a value ([`Sink`],
//! [`Source`]).
//!
//! A corrupt length cannot cause a large allocation. Each device defines its sections in its own file `state`.

use lowtide_core::StateError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Read, Write};

/// Bytes of a table converted at a time.
const CHUNK: usize = 64 << 10;

/// The output of a device's sections.
pub(crate) struct Sink<'a>(pub(crate) &'a mut dyn Write);

impl Sink<'_> {
    /// Writes a value as its length and its bytes.
    pub(crate) fn value(&mut self, value: &impl Serialize) -> Result<(), StateError> {
        let bytes =
            postcard::to_stdvec(value).map_err(|_| StateError::Cannot { why: "it has no form in bytes" })?;
        self.0.write_all(&(bytes.len() as u64).to_le_bytes())?;
        Ok(self.0.write_all(&bytes)?)
    }

    /// Writes a table as its length in bytes and its words.
    pub(crate) fn words(&mut self, words: &[u32]) -> Result<(), StateError> {
        self.0.write_all(&(words.len() as u64 * 4).to_le_bytes())?;
        let mut bytes = Vec::with_capacity(CHUNK);
        for chunk in words.chunks(CHUNK / 4) {
            bytes.clear();
            bytes.extend(chunk.iter().flat_map(|word| word.to_le_bytes()));
            self.0.write_all(&bytes)?;
        }
        Ok(())
    }
}

/// The input of a device's sections.
pub(crate) struct Source<'a>(pub(crate) &'a mut dyn Read);

impl Source<'_> {
    /// Reads a value.
    pub(crate) fn value<T: DeserializeOwned>(&mut self) -> Result<T, StateError> {
        let (length, mut bytes) = (self.length()?, Vec::new());
        self.0.take(length).read_to_end(&mut bytes)?;
        match postcard::take_from_bytes(&bytes) {
            Ok((value, [])) if bytes.len() as u64 == length => Ok(value),
            _ => Err(StateError::Nonsense { what: "a part of it is not what this device would write" }),
        }
    }

    /// Reads a table with `words.len()` words.
    pub(crate) fn words(&mut self, words: &mut [u32]) -> Result<(), StateError> {
        if self.length()? != words.len() as u64 * 4 {
            return Err(StateError::Nonsense { what: "a table of it has another length" });
        }
        let mut bytes = vec![0; CHUNK];
        for chunk in words.chunks_mut(CHUNK / 4) {
            let bytes = &mut bytes[..chunk.len() * 4];
            self.0.read_exact(bytes)?;
            for (word, bytes) in chunk.iter_mut().zip(bytes.chunks_exact(4)) {
                *word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
            }
        }
        Ok(())
    }

    fn length(&mut self) -> Result<u64, StateError> {
        let mut length = [0; 8];
        self.0.read_exact(&mut length)?;
        Ok(u64::from_le_bytes(length))
    }
}

/// Returns [`StateError::Nonsense`] with `what` unless `holds`.
pub(crate) fn sense(holds: bool, what: &'static str) -> Result<(), StateError> {
    if holds { Ok(()) } else { Err(StateError::Nonsense { what }) }
}
