//! The granularity of torn writes ([`Tear`]).
//!
//! Module `fate` chooses the writes that tear.

/// The granularity of torn writes. Each piece of this size is written completely or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tear {
    /// Sectors of 512 bytes.
    Sector,
    /// Pages of 4 KiB.
    #[default]
    Page,
}

impl Tear {
    /// Size of a piece in bytes. Pieces are aligned to their size.
    pub const fn granule(self) -> u64 {
        match self {
            Tear::Sector => 512,
            Tear::Page => 4096,
        }
    }
}
