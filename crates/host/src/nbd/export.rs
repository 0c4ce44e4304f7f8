//! The properties of an export ([`Export`]), as the negotiation reports them.

use super::wire::transmission as flags;

/// An export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its name. The first export is also found by the empty name.
    pub name: String,
    /// A description for people.
    pub description: String,
    /// Size in bytes.
    pub size: u64,
    /// The unit of offsets and lengths in bytes, a power of two.
    pub minimum_block: u32,
    /// The preferred request size in bytes, a power of two.
    pub preferred_block: u32,
    /// Whether clients may only read.
    pub read_only: bool,
    /// Whether seeks take time.
    pub rotational: bool,
}

impl Export {
    /// The transmission flags; `structured` adds those of structured replies.
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
