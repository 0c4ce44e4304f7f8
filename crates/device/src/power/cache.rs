//! What a device keeps acknowledged writes in ([`Cache`]), and in which pieces a write tears ([`Tear`]).
//!
//! Leaves out which device has which: [`crate::DeviceSpec::cache`] tells.

use lowtide_core::Bytes;

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
