//! Block devices: identity, objections to overwriting, and holding a device while it is tested.
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
//! Safety invariant: data on a block device is destroyed only through a [`Claim`]. A claim exists only if the user
//! typed the serial and there is no objection to the device or its lower levels. A [`Guard`] holds the lower levels
//! while the claim exists. On-device formats of lowtide are created through a claim; [`keep`] opens them again
//! without a serial, if nothing else uses the device. Every check is repeated on the open descriptor, because between
//! plan and run a device may have been replaced, mounted or formatted.
//!
//! Signatures of filesystems and partition tables are recognised by `wipefs` of util-linux.

mod chain;
mod claim;
mod discard;
mod disk;
mod erase;
mod filesystem;
mod guard;
mod health;
mod journal;
mod keep;
mod kernel;
mod loops;
mod namespace;
mod overlay;
mod patience;
mod process;
pub(crate) mod scheduler;
mod signature;
pub(crate) mod tool;
mod usage;

pub use crate::objection::Objection;
pub use claim::{Claim, Consent};
pub use discard::Discard;
pub use disk::{Disk, Identity};
pub(crate) use disk::{line, numbers};
pub use erase::Erase;
pub(crate) use filesystem::new_uuid;
pub use filesystem::{Formatted, Mkfs};
pub use guard::Guard;
pub use health::Traffic;
pub(crate) use keep::check_loops;
pub use keep::{check_file, keep};

use crate::error::HostError;

/// All objections to overwriting a device, in the order of [`Objection`]'s variants. Changes nothing. If the device
/// is in use, its data is not examined.
///
/// # Errors
/// [`HostError`] if the device cannot be examined. It must not be written then.
pub fn examine(disk: &Disk) -> Result<Vec<Objection>, HostError> {
    examine_held(disk, None)
}

/// As [`examine`]. A `guard` means that this process holds the device and its lower levels.
fn examine_held(disk: &Disk, guard: Option<&Guard>) -> Result<Vec<Objection>, HostError> {
    let mut objections = usage::objections(disk, guard);
    if objections.iter().all(Objection::is_data) {
        objections.extend(signature::objections(disk)?);
    }
    objections.sort();
    objections.dedup();
    Ok(objections)
}
