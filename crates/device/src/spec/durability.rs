//! The memory that holds acknowledged writes ([`Cache`]): volatile or protected.
//!
//! [`crate::DeviceSpec::cache`] returns the cache of a device.

use lowtide_core::{Bytes, suggest};
use std::fmt;
use std::str::FromStr;

/// The memory that holds acknowledged writes until they are on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Acknowledged writes are durable: capacitors or a battery protect the memory, or the device has no such memory.
    Protected,
    /// A power cut loses the acknowledged writes in the memory.
    Volatile {
        /// Capacity in bytes, which bounds the loss. A write is on the medium once `size` bytes have been
        /// acknowledged, counted from the write itself.
        size: Bytes,
        /// True if a flush or a write with forced unit access waits for the medium. If false, neither has an effect.
        honours_flush: bool,
    },
}

impl Cache {
    /// The kind of the cache.
    pub const fn kind(self) -> CacheKind {
        match self {
            Cache::Protected => CacheKind::Protected,
            Cache::Volatile { honours_flush: true, .. } => CacheKind::Volatile,
            Cache::Volatile { honours_flush: false, .. } => CacheKind::Lying,
        }
    }

    /// The combined cache of two devices that hold different data. Sizes are added.
    pub(crate) fn beside(self, other: Cache) -> Cache {
        self.with(other, |one, other| Bytes::new(one.get().saturating_add(other.get())))
    }

    /// The combined cache of two devices that hold the same data, either of which may be read. The larger size
    /// counts.
    pub(crate) fn or(self, other: Cache) -> Cache {
        self.with(other, Bytes::max)
    }

    fn with(self, other: Cache, sizes: impl Fn(Bytes, Bytes) -> Bytes) -> Cache {
        match (self, other) {
            (Cache::Protected, cache) | (cache, Cache::Protected) => cache,
            (
                Cache::Volatile { size, honours_flush },
                Cache::Volatile { size: other, honours_flush: also },
            ) => Cache::Volatile { size: sizes(size, other), honours_flush: honours_flush && also },
        }
    }
}

/// A kind of cache. Parses from and prints as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// `protected`: acknowledged writes are durable.
    Protected,
    /// `volatile`: flushed writes are durable.
    Volatile,
    /// `lying`: flushes are acknowledged and have no effect.
    Lying,
}

impl CacheKind {
    const WORDS: [(&str, CacheKind); 3] =
        [("protected", CacheKind::Protected), ("volatile", CacheKind::Volatile), ("lying", CacheKind::Lying)];
}

impl fmt::Display for CacheKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(CacheKind::WORDS[*self as usize].0)
    }
}

/// The error of a word that is no kind of cache.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is no kind of cache: protected, volatile or lying{hint}")]
pub struct CacheKindError {
    /// The invalid word.
    pub value: String,
    /// The nearest valid word as a question, or empty.
    pub hint: String,
}

impl FromStr for CacheKind {
    type Err = CacheKindError;

    fn from_str(text: &str) -> Result<Self, CacheKindError> {
        let found = CacheKind::WORDS.iter().find(|(word, _)| *word == text);
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            let near = suggest::nearest(text, CacheKind::WORDS.map(|(word, _)| word));
            let hint = near.map_or(String::new(), |word| format!("; did you mean `{word}`?"));
            CacheKindError { value: text.to_owned(), hint }
        })
    }
}
