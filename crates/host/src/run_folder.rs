//! `/run/lowtide`: mount points, and journals of changes that have to be undone.
//!
//! The folder belongs to the user that runs lowtide, and nobody else may write to it, because lowtide acts on its
//! contents. Other users may pass through the folder to the filesystems mounted below it, because database servers
//! run as users of their own. `/run` is empty after a reboot.

use crate::error::{HostError, Operation};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The folder.
pub(crate) const PATH: &str = "/run/lowtide";

/// Others may pass through the folder, but not list it.
const MODE: u32 = 0o711;

/// Makes the folder or one below it. If it exists, checks its owner and permissions.
///
/// # Errors
/// [`HostError::Io`] if it cannot be made; [`HostError::Invalid`] if others may write to it.
pub(crate) fn make(folder: &Path) -> Result<(), HostError> {
    let fail = |source: std::io::Error| HostError::io(Operation::Create, folder)(source);
    match DirBuilder::new().mode(MODE).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(fail(error)),
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
    Err(HostError::invalid(
        "the folder for journals",
        folder.display(),
        "it must be a folder of the user that runs lowtide, to which nobody else may write",
    ))
}

/// Opens a journal for appending and locks it, for up to `patience`.
///
/// # Errors
/// [`HostError::InUse`] if another process holds the lock; [`HostError::Io`] if it cannot be opened, or does not
/// exist and is not to be created.
pub(crate) fn open_locked(path: &Path, create: bool, patience: Duration) -> Result<File, HostError> {
    let begin = Instant::now();
    loop {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(create)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .mode(0o600)
            .open(path)
            .map_err(HostError::io(Operation::Create, path))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if begin.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            Err(Errno::WOULDBLOCK) => return Err(HostError::InUse(path.to_owned())),
            locked => locked.map_err(HostError::io(Operation::Open, path))?,
        }
        // Another process may have removed the file between opening and locking it.
        if file.metadata().is_ok_and(|metadata| metadata.nlink() > 0) {
            return Ok(file);
        }
    }
}

/// Appends a value as a line of JSON.
pub(crate) fn append(mut file: &File, path: &Path, value: &impl Serialize) -> Result<(), HostError> {
    // The line break at the start ends a line that was cut off.
    let text = format!("\n{}\n", serde_json::to_string(value).expect("a journal entry serialises"));
    file.write_all(text.as_bytes()).map_err(HostError::io(Operation::Write, path))
}
