//! `/run/lowtide`: where lowtide writes down what it has to undo, and mounts what it makes.
//!
//! It belongs to the user that runs lowtide, and nobody else may write to it: what stands there is acted upon. Others may go
//! through it, to what is mounted below and lets them in: servers of databases run as users of their own. `/run` is
//! empty after the machine was started anew. Not here: what is kept there.

use crate::error::{HostError, Operation};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// The folder.
pub(crate) const PATH: &str = "/run/lowtide";

/// Others may go through it, and see nothing.
const MODE: u32 = 0o711;

/// Makes the folder, or one below it, or makes sure that it is one's own.
///
/// # Errors
/// [`HostError::Io`] where it cannot be made; [`HostError::Invalid`] where others may write to it.
pub(crate) fn make(folder: &Path) -> Result<(), HostError> {
    let fail = |source: std::io::Error| HostError::io(Operation::Create, folder)(source);
    match DirBuilder::new().mode(MODE).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(fail(error)),
        _ => {}
    }
    let metadata = fs::symlink_metadata(folder).map_err(fail)?;
    let own = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.is_dir() && own && metadata.mode() & 0o022 == 0 {
        if metadata.mode() & MODE == MODE {
            return Ok(());
        }
        // An earlier version, or a narrower umask, made it.
        return fs::set_permissions(folder, fs::Permissions::from_mode(MODE)).map_err(fail);
    }
    Err(HostError::Invalid {
        what: "the folder of what is to be undone",
        value: folder.display().to_string(),
        accepted: "it must be a folder of the user that runs lowtide, to which nobody else may write"
            .to_owned(),
    })
}
