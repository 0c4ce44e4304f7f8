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
//! serial was typed and no objection is left, neither to the device nor to what it lies on, which a [`Guard`] holds meanwhile. What is lowtide's own on it, which such a claim put there, is written to by
//! [`keep`], where nothing else uses the device. Everything is examined again on the open descriptor, because between
//! plan and run a device may have been replaced, mounted or formatted.
//!
//! Not here: formats; which signatures there are is util-linux's knowledge (`wipefs`).

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
pub use erase::Erase;
pub(crate) use filesystem::new_uuid;
pub use filesystem::{Formatted, Mkfs};
pub use guard::Guard;
pub use health::Traffic;
pub(crate) use keep::check_loops;
pub use keep::{check_file, keep};

use crate::error::HostError;

/// Everything that speaks against overwriting a device, in the order of [`Objection`]'s variants. Changes nothing. What
/// lies on a device that is in use is not looked at: that it is in use is enough.
///
/// # Errors
/// [`HostError`] where the system does not tell: what cannot be examined is not written to.
pub fn examine(disk: &Disk) -> Result<Vec<Objection>, HostError> {
    examine_held(disk, None)
}

/// The same of a device that this process holds, with what is below it.
fn examine_held(disk: &Disk, guard: Option<&Guard>) -> Result<Vec<Objection>, HostError> {
    let mut objections = usage::objections(disk, guard);
    if objections.iter().all(Objection::is_data) {
        objections.extend(signature::objections(disk)?);
    }
    objections.sort();
    objections.dedup();
    Ok(objections)
}
