//! The pieces in which a write tears ([`Tear`]).
//!
//! Module `fate` chooses the writes that tear.

/// The pieces that a write may tear into: each is written whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tear {
    /// Sectors of 512 bytes.
    Sector,
    /// Pages of 4 KiB.
    #[default]
    Page,
}

impl Tear {
    /// Bytes of a piece; pieces begin at multiples of it.
    pub const fn granule(self) -> u64 {
        match self {
            Tear::Sector => 512,
            Tear::Page => 4096,
        }
    }
}
