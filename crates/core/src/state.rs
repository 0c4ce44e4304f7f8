//! Why the state of a device cannot be saved or restored ([`StateError`]).
//!
//! Leaves out the format, which is the device crate's.

use std::io;

/// Why the state of a device cannot be saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The device keeps no state that could be saved, or cannot now.
    #[error("this device cannot save its state: {why}")]
    Cannot {
        /// Why not.
        why: &'static str,
    },
    /// It could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It begins with something else.
    #[error("this is no saved state of a device: it does not begin with `{magic}`")]
    Foreign {
        /// What a saved state begins with.
        magic: &'static str,
    },
    /// Another lowtide wrote it.
    #[error("the state was saved in version {found} of the format; this lowtide reads version {known}")]
    Version {
        /// The version it has.
        found: u32,
        /// The version that can be read.
        known: u32,
    },
    /// It is of another device.
    #[error(
        "the state is of a device with another description: its digest is {found:016x}, that of this one {wanted:016x}"
    )]
    OtherDevice {
        /// The digest in the state.
        found: u64,
        /// The digest of the description it should have.
        wanted: u64,
    },
    /// It ends too early.
    #[error("the state is cut short: it ends after {at} bytes")]
    Short {
        /// Where it ends.
        at: u64,
    },
    /// It is not what was written.
    #[error("the state is damaged: what was read up to byte {at} does not have its checksum")]
    Damaged {
        /// How far it was read.
        at: u64,
    },
    /// Its checksums hold, and it makes no sense.
    #[error("the state makes no sense: {what}")]
    Nonsense {
        /// What does not.
        what: &'static str,
    },
}
