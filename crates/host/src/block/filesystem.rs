//! [`Formatted`]: a claimed device with a mounted filesystem that lowtide made.
//!
//! The mounted filesystem holds the device. `mkfs`, `mount` and `wipefs` open the device exclusively, so the claim
//! closes it while they run. They fail if another program has opened it in between.

use super::claim::Claim;
use super::journal::{Change, mount_point};
use super::tool::{self, Program};
use crate::error::{HostError, Operation};
use crate::mountinfo;
use lowtide_core::{Bytes, Filesystem};
use rustix::mount::UnmountFlags;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Time limit for programs such as udev, which examine a device after it is closed.
const PATIENCE: Duration = Duration::from_secs(5);

/// A filesystem to make.
#[derive(Debug, Clone, Copy)]
pub struct Mkfs<'a> {
    /// The type.
    pub kind: Filesystem,
    /// The size from the first byte of the device; the whole device if absent.
    pub size: Option<Bytes>,
    /// Whether `mkfs` discards the device first.
    pub trims: bool,
    /// Mount options for `mount -o`; may be empty.
    pub options: &'a str,
}

/// The program that makes a filesystem of this type.
fn program(kind: Filesystem) -> Program {
    match kind {
        Filesystem::Ext4 => ("mkfs.ext4", "of e2fsprogs"),
        Filesystem::Xfs => ("mkfs.xfs", "of xfsprogs"),
        Filesystem::Btrfs => ("mkfs.btrfs", "of btrfs-progs"),
    }
}

impl Mkfs<'_> {
    /// Makes the filesystem on the device at `node`. `path` is the device as the user named it, for messages.
    ///
    /// # Errors
    /// [`HostError::Tool`] if `mkfs` fails; [`HostError::Interrupted`] once `interrupt` is set.
    pub(crate) fn write_to(
        &self,
        node: &Path,
        uuid: &str,
        path: &Path,
        interrupt: &AtomicBool,
    ) -> Result<(), HostError> {
        let arguments = self.arguments(&node.to_string_lossy(), uuid);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        tool::run_until(program(self.kind), &arguments, path, interrupt).map(drop)
    }

    /// The arguments of `mkfs`.
    fn arguments(&self, node: &str, uuid: &str) -> Vec<String> {
        let discard = |option: &str| if self.trims { String::new() } else { format!(" {option}") };
        let size =
            |option: &str| self.size.map_or_else(String::new, |size| format!(" {option}{}", size.get()));
        let text = match self.kind {
            Filesystem::Ext4 => {
                // Background initialisation is off, because it would write during the measurement. No blocks are
                // reserved for root.
                let lazy = "lazy_itable_init=0,lazy_journal_init=0";
                let discard = if self.trims { "discard" } else { "nodiscard" };
                let size = self.size.map_or_else(String::new, |size| format!(" {}k", size.get() / 1024));
                format!("-q -F -m 0 -U {uuid} -L lowtide -E {lazy},{discard} NODE{size}")
            }
            Filesystem::Xfs => {
                format!("-q -f -m uuid={uuid} -L lowtide{}{} NODE", discard("-K"), size("-d size="))
            }
            Filesystem::Btrfs => format!("-q -f -U {uuid} -L lowtide{}{} NODE", discard("-K"), size("-b ")),
        };
        text.split(' ').map(|word| if word == "NODE" { node } else { word }.to_owned()).collect()
    }
}

/// A device with a mounted filesystem. Dropping it unmounts and wipes it.
#[derive(Debug)]
pub struct Formatted {
    claim: Claim,
    directory: PathBuf,
    /// Number of changes in the journal before the filesystem was made.
    changes_before: usize,
}

impl Formatted {
    /// Makes and mounts a filesystem on a claimed device.
    ///
    /// # Errors
    /// [`HostError`] if that fails, or `interrupt` is set. The claim is then dropped.
    pub(super) fn make(
        mut claim: Claim,
        how: &Mkfs<'_>,
        interrupt: &AtomicBool,
    ) -> Result<Formatted, HostError> {
        let disk = claim.disk().clone();
        let directory = mount_point(&disk);
        let node = disk.node.to_string_lossy().into_owned();
        let changes_before = claim.journal()?.len();
        let uuid = new_uuid()?;
        claim.journal()?.will(Change::Filesystem { uuid: uuid.clone() })?;
        claim.close();
        how.write_to(&disk.node, &uuid, &disk.path, interrupt).map_err(|error| claim.explain(error))?;
        claim.journal()?.will(Change::Mount)?;
        make_mount_point(&directory)?;
        let at = directory.to_string_lossy().into_owned();
        let mut arguments = vec!["-t", how.kind.name()];
        if !how.options.is_empty() {
            arguments.extend(["-o", how.options]);
        }
        arguments.extend([node.as_str(), at.as_str()]);
        tool::run(tool::MOUNT, &arguments).map_err(|error| claim.explain(error))?;
        let mounted = Formatted { claim, directory, changes_before };
        mounted.check()?;
        Ok(mounted)
    }

    /// Rejects a mount whose source is not the device itself: mount options can insert another device.
    fn check(&self) -> Result<(), HostError> {
        let disk = self.claim.disk();
        let mounts = mountinfo::of("self");
        let mount = mountinfo::above(&mounts, &self.directory);
        if mount.is_some_and(|it| Path::new(&it.point) == self.directory && it.is_of(disk.number, &disk.node))
        {
            return Ok(());
        }
        let accepted =
            format!("with these options it is not that of {}: leave them out", disk.path.display());
        Err(HostError::invalid("the mount", self.directory.display(), accepted))
    }

    /// The mount point.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The device, as the user named it.
    pub fn path(&self) -> &Path {
        &self.claim.disk().path
    }

    /// The type of the filesystem and the effective mount options: `xfs, rw,noatime`.
    pub fn mounted(&self) -> Option<String> {
        let mounts = mountinfo::of("self");
        let mount = mountinfo::above(&mounts, &self.directory)?;
        Some(format!("{}, {}", mount.filesystem, mount.options))
    }

    /// Unmounts and wipes the filesystem, and opens the device exclusively again.
    ///
    /// # Errors
    /// [`HostError`] if the filesystem is in use, or the device cannot be opened again.
    pub fn release(mut self) -> Result<Claim, HostError> {
        self.claim.journal()?.undo(self.changes_before)?;
        self.claim.hold_again()
    }
}

/// A new random UUID.
pub(crate) fn new_uuid() -> Result<String, HostError> {
    let path = Path::new("/proc/sys/kernel/random/uuid");
    let text = fs::read_to_string(path).map_err(HostError::io(Operation::Read, path))?;
    Ok(text.trim().to_owned())
}

/// Makes the mount point. An existing one must be a folder, not a link to one.
fn make_mount_point(at: &Path) -> Result<(), HostError> {
    match fs::create_dir(at) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(HostError::io(Operation::Create, at)),
    }
    let metadata = fs::symlink_metadata(at).map_err(HostError::io(Operation::Inspect, at))?;
    if metadata.is_dir() {
        return Ok(());
    }
    Err(HostError::WrongKind { path: at.to_owned(), found: "not a folder", wanted: "a folder to mount at" })
}

/// Unmounts the filesystem at a mount point, if any, and removes the mount point.
pub(super) fn unmount(at: &Path) -> Result<(), HostError> {
    let mounted = || mountinfo::of("self").iter().any(|mount| Path::new(&mount.point) == at);
    let begin = Instant::now();
    while mounted() {
        match rustix::mount::unmount(at, UnmountFlags::NOFOLLOW) {
            Err(rustix::io::Errno::BUSY) if begin.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(50));
            }
            done => done.map_err(HostError::io(Operation::Unmount, at))?,
        }
    }
    match fs::remove_dir(at) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(HostError::io(Operation::Remove, at)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mkfs_initialises_everything_and_discards_only_on_request() {
        let how = Mkfs { kind: Filesystem::Ext4, size: None, trims: false, options: "" };
        assert_eq!(
            how.arguments("/dev/x", "U").join(" "),
            "-q -F -m 0 -U U -L lowtide -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/x"
        );
        let size = Some(Bytes::mib(512));
        let how = Mkfs { kind: Filesystem::Ext4, size, trims: true, options: "" };
        assert!(how.arguments("/dev/x", "U").join(" ").ends_with(",discard /dev/x 524288k"));
        let how = Mkfs { kind: Filesystem::Xfs, ..how };
        assert_eq!(
            how.arguments("/dev/x", "U").join(" "),
            "-q -f -m uuid=U -L lowtide -d size=536870912 /dev/x"
        );
        let how = Mkfs { kind: Filesystem::Btrfs, trims: false, ..how };
        assert_eq!(how.arguments("/dev/x", "U").join(" "), "-q -f -U U -L lowtide -K -b 536870912 /dev/x");
    }
}
