//! The memory that holds acknowledged writes ([`Cache`]): volatile or protected.
//!
//! Leaves out which device has which: [`crate::DeviceSpec::cache`] tells.

use lowtide_core::{Bytes, suggest};
use std::fmt;
use std::str::FromStr;

/// What a device keeps acknowledged writes in until they are on its medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// What is acknowledged is durable: capacitors or a battery stand for the memory, or there is none.
    Protected,
    /// What is acknowledged is lost with the power.
    Volatile {
        /// Bytes it holds. A write is on the medium once so many bytes, its own among them, were acknowledged since.
        size: Bytes,
        /// Whether a flush, or a write with forced unit access, waits for the medium. Where not, both change nothing.
        honours_flush: bool,
    },
}

impl Cache {
    /// Its kind.
    pub const fn kind(self) -> CacheKind {
        match self {
            Cache::Protected => CacheKind::Protected,
            Cache::Volatile { honours_flush: true, .. } => CacheKind::Volatile,
            Cache::Volatile { honours_flush: false, .. } => CacheKind::Lying,
        }
    }

    /// Two devices that hold different data.
    pub(crate) fn beside(self, other: Cache) -> Cache {
        self.with(other, |one, other| Bytes::new(one.get().saturating_add(other.get())))
    }

    /// Two devices of which either may be read.
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

/// A kind of cache, whatever its size. Parses from and prints as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// `protected`: what is acknowledged is durable.
    Protected,
    /// `volatile`: what is flushed is durable.
    Volatile,
    /// `lying`: flushes are answered, and change nothing.
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

/// A word that is no kind of cache.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is no kind of cache: protected, volatile or lying{hint}")]
pub struct CacheKindError {
    /// The word as given.
    pub value: String,
    /// The nearest valid word, as a question; or nothing.
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
