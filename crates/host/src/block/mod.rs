//! Block devices: which one a path means, what it is, whether it may be destroyed, and holding it while it is tested.
//!
//! ```text
//!   path ──Disk::find──► Disk ──examine──► Vec<Objection>     (for `plan`)
//!                          │
//!                          └──Claim::take(serial typed)──► Claim: open with O_EXCL, checked again ──► engine
//!                                                           │ format ▲
//!                                                           ▼        │ release
//!                                                          Formatted: a filesystem, mounted ──► files, engine
//! ```
//!
//! Safety invariant: nothing on a block device is destroyed but through a [`Claim`], and a claim exists only where the
//! serial was typed and no objection is left. What is lowtide's own on it, which such a claim put there, is written to by
//! [`keep`], where nothing else uses the device. Everything is examined again on the open descriptor, because between
//! plan and run a device may have been replaced, mounted or formatted.
//!
//! Leaves out formats: which signatures there are is util-linux's knowledge (`wipefs`).

mod claim;
mod discard;
mod disk;
mod erase;
mod filesystem;
mod health;
mod journal;
mod keep;
mod objection;
pub(crate) mod scheduler;
mod signature;
pub(crate) mod tool;
mod usage;

pub use claim::{Claim, Consent};
pub use discard::Discard;
pub use disk::{Disk, Identity};
pub use erase::Erase;
pub(crate) use filesystem::new_uuid;
pub use filesystem::{Filesystem, FilesystemKind, Formatted};
pub use health::Traffic;
pub use keep::keep;
pub use objection::Objection;

use crate::error::HostError;

/// Everything that speaks against overwriting a device, in the order of [`Objection`]'s variants. Changes nothing. What
/// lies on a device that is in use is not looked at: that it is in use is enough.
///
/// # Errors
/// [`HostError`] where the system does not tell: what cannot be examined is not written to.
pub fn examine(disk: &Disk) -> Result<Vec<Objection>, HostError> {
    let mut objections = usage::objections(disk);
    if objections.iter().all(Objection::is_data) {
        objections.extend(signature::objections(disk)?);
    }
    objections.sort();
    objections.dedup();
    Ok(objections)
}
