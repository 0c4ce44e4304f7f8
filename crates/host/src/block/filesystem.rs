//! [`Formatted`]: a claimed device with a filesystem of lowtide's on it, mounted; and how it comes and goes.
//!
//! While the filesystem is mounted, it holds the device. Before and after, for as long as `mkfs`, `mount` and `wipefs`
//! run, the claim is given up, because they want the device for themselves; they refuse one that somebody else has
//! taken meanwhile. Not here: files on it; see [`crate::target`].

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

/// How long to wait for programs that look at what was just closed (udev does).
const PATIENCE: Duration = Duration::from_secs(5);

/// A filesystem to make.
#[derive(Debug, Clone, Copy)]
pub struct Mkfs<'a> {
    /// Its kind.
    pub kind: Filesystem,
    /// Its size, from the first byte of the device; the whole device where absent.
    pub size: Option<Bytes>,
    /// Whether making it discards the device first.
    pub trims: bool,
    /// Mount options, as `mount -o` takes them; none where empty.
    pub options: &'a str,
}

/// The program that makes it, and the package that has it.
fn program(kind: Filesystem) -> Program {
    match kind {
        Filesystem::Ext4 => ("mkfs.ext4", "of e2fsprogs"),
        Filesystem::Xfs => ("mkfs.xfs", "of xfsprogs"),
        Filesystem::Btrfs => ("mkfs.btrfs", "of btrfs-progs"),
    }
}

impl Mkfs<'_> {
    /// Makes it on the device with that node, which nobody else uses; `path` is what the user calls it.
    ///
    /// # Errors
    /// [`HostError::Tool`] where that fails; [`HostError::Interrupted`] where the user does not want to wait.
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

    /// The command that makes it on `node`, without the program.
    fn arguments(&self, node: &str, uuid: &str) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let mut add = |words: &[&str]| all.extend(words.iter().map(|&word| word.to_owned()));
        let node = node.to_owned();
        match self.kind {
            Filesystem::Ext4 => {
                // What is left for later would be written while the load is measured; and nothing is kept for root.
                let lazy = "lazy_itable_init=0,lazy_journal_init=0";
                let discard = if self.trims { "discard" } else { "nodiscard" };
                add(&[
                    "-q",
                    "-F",
                    "-m",
                    "0",
                    "-U",
                    uuid,
                    "-L",
                    "lowtide",
                    "-E",
                    &format!("{lazy},{discard}"),
                    &node,
                ]);
                if let Some(size) = self.size {
                    add(&[&format!("{}k", size.get() / 1024)]);
                }
            }
            Filesystem::Xfs => {
                add(&["-q", "-f", "-m", &format!("uuid={uuid}"), "-L", "lowtide"]);
                add(if self.trims { &[] } else { &["-K"] });
                if let Some(size) = self.size {
                    add(&["-d", &format!("size={}", size.get())]);
                }
                add(&[&node]);
            }
            Filesystem::Btrfs => {
                add(&["-q", "-f", "-U", uuid, "-L", "lowtide"]);
                add(if self.trims { &[] } else { &["-K"] });
                if let Some(size) = self.size {
                    add(&["-b", &size.get().to_string()]);
                }
                add(&[&node]);
            }
        }
        all
    }
}

/// A device with a mounted filesystem. Dropping it unmounts and wipes it.
#[derive(Debug)]
pub struct Formatted {
    claim: Claim,
    directory: PathBuf,
    /// Changes of the claim before the filesystem was made.
    before: usize,
}

impl Formatted {
    /// Makes and mounts a filesystem on a claimed device.
    ///
    /// # Errors
    /// [`HostError`] where that fails, or the user does not want to wait; then the device is given up, as it would be
    /// by dropping the claim.
    pub(super) fn make(
        mut claim: Claim,
        how: &Mkfs<'_>,
        interrupt: &AtomicBool,
    ) -> Result<Formatted, HostError> {
        let disk = claim.disk().clone();
        let directory = mount_point(&disk);
        let node = disk.node.to_string_lossy().into_owned();
        let before = claim.journal()?.len();
        let uuid = new_uuid()?;
        claim.journal()?.will(Change::Filesystem { uuid: uuid.clone() })?;
        claim.let_go();
        how.write_to(&disk.node, &uuid, &disk.path, interrupt).map_err(|error| claim.explain(error))?;
        claim.journal()?.will(Change::Mount)?;
        make_mount_point(&directory)?;
        let at = directory.to_string_lossy().into_owned();
        let mut arguments = vec!["-t", how.kind.name()];
        if !how.options.is_empty() {
            arguments.extend(["-o", how.options]);
        }
        arguments.extend([node.as_str(), at.as_str()]);
        tool::run(("mount", "of util-linux"), &arguments).map_err(|error| claim.explain(error))?;
        let mounted = Formatted { claim, directory, before };
        mounted.check()?;
        Ok(mounted)
    }

    /// Refuses a mount that is not that of the device itself: options may put others between.
    fn check(&self) -> Result<(), HostError> {
        let disk = self.claim.disk();
        let mount = mountinfo::above(mountinfo::of("self"), &self.directory);
        // Btrfs has numbers that no device has; the source tells.
        let own =
            |mount: &mountinfo::Mount| mount.number == disk.number || Path::new(&mount.source) == disk.node;
        if mount.is_some_and(|mount| Path::new(&mount.point) == self.directory && own(&mount)) {
            return Ok(());
        }
        Err(HostError::Invalid {
            what: "the mount",
            value: self.directory.display().to_string(),
            accepted: format!("with these options it is not that of {}: leave them out", disk.path.display()),
        })
    }

    /// Where it is mounted.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The device, as the user named it.
    pub fn path(&self) -> &Path {
        &self.claim.disk().path
    }

    /// The kind of filesystem and the options that the kernel took: `xfs, rw,noatime`.
    pub fn mounted(&self) -> Option<String> {
        let mount = mountinfo::above(mountinfo::of("self"), &self.directory)?;
        Some(format!("{}, {}", mount.filesystem, mount.options))
    }

    /// Unmounts and wipes the filesystem, and takes the device again.
    ///
    /// # Errors
    /// [`HostError`] where it is in use, or the device cannot be taken again.
    pub fn release(mut self) -> Result<Claim, HostError> {
        self.claim.journal()?.undo(self.before)?;
        self.claim.hold_again()
    }
}

/// A UUID that nothing else has.
pub(crate) fn new_uuid() -> Result<String, HostError> {
    let path = Path::new("/proc/sys/kernel/random/uuid");
    let text = fs::read_to_string(path).map_err(HostError::io(Operation::Read, path))?;
    Ok(text.trim().to_owned())
}

/// Makes the folder to mount at; one that is there must be a folder and no link to one.
fn make_mount_point(at: &Path) -> Result<(), HostError> {
    match fs::create_dir(at) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(HostError::io(Operation::Create, at)),
    }
    let metadata = fs::symlink_metadata(at).map_err(HostError::io(Operation::Inspect, at))?;
    if metadata.is_dir() {
        return Ok(());
    }
    Err(HostError::WrongKind { path: at.to_owned(), found: "no folder", wanted: "a folder to mount at" })
}

/// Unmounts a filesystem, if it is mounted there, and removes its mount point.
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
    fn commands_leave_nothing_for_later_and_discard_only_where_asked() {
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
