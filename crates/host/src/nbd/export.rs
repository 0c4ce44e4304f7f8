//! What a client is told of an export before it begins ([`Export`]).

use super::wire::transmission as flags;

/// An export as the negotiation shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its name; the default one has the empty name too.
    pub name: String,
    /// A line for people.
    pub description: String,
    /// Bytes.
    pub size: u64,
    /// Offsets and lengths are multiples of it; a power of two.
    pub minimum_block: u32,
    /// Requests of multiples of it are served best; a power of two.
    pub preferred_block: u32,
    /// Nothing may be changed.
    pub read_only: bool,
    /// Seeks cost time.
    pub rotational: bool,
}

impl Export {
    /// The transmission flags, with or without structured replies.
    pub fn flags(&self, structured: bool) -> u16 {
        let always = flags::HAS_FLAGS | flags::SEND_FLUSH | flags::CAN_MULTI_CONN | flags::SEND_CACHE;
        let changes = flags::SEND_FUA | flags::SEND_TRIM | flags::SEND_WRITE_ZEROES | flags::SEND_FAST_ZERO;
        let when = |condition: bool, flags: u16| if condition { flags } else { 0 };
        always
            | if self.read_only { flags::READ_ONLY } else { changes }
            | when(self.rotational, flags::ROTATIONAL)
            | when(structured, flags::SEND_DF)
    }
}
