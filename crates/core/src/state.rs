//! Errors of saving and restoring device state ([`StateError`]). The device crate defines the format.

use std::io;

/// Why the state of a device cannot be saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The device has no state that can be saved, or none that can be saved now.
    #[error("this device cannot save its state: {why}")]
    Cannot {
        /// The reason.
        why: &'static str,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The input does not begin with the marker of a saved state.
    #[error("this is no saved state of a device: it does not begin with `{magic}`")]
    Foreign {
        /// The marker at the beginning of every saved state.
        magic: &'static str,
    },
    /// The state has another version of the format.
    #[error("the state was saved in version {found} of the format; this lowtide reads version {known}")]
    Version {
        /// Format version of the state.
        found: u32,
        /// Format version that this program reads.
        known: u32,
    },
    /// The state belongs to a device with another description.
    #[error(
        "the state is of a device with another description: its digest is {found:016x}, that of this one {wanted:016x}"
    )]
    OtherDevice {
        /// Digest stored in the state.
        found: u64,
        /// Digest of the expected description.
        wanted: u64,
    },
    /// The state is truncated.
    #[error("the state is cut short: it ends after {at} bytes")]
    Short {
        /// Bytes up to the end.
        at: u64,
    },
    /// A checksum does not match.
    #[error("the state is damaged: the checksum of the section that ends at byte {at} does not match")]
    Damaged {
        /// End of the damaged section, in bytes from the beginning.
        at: u64,
    },
    /// The checksums match, but the contents are inconsistent.
    #[error("the state makes no sense: {what}")]
    Nonsense {
        /// The inconsistency.
        what: &'static str,
    },
}

impl StateError {
    /// The device never has a state that can be saved.
    pub const NO_FORM: StateError = StateError::Cannot { why: "it has no saved form" };
}
