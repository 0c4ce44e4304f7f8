//! [`LoopFile`]: the file of a loop device.
//!
//! The kernel is asked for the numbers of the file, not for its name: a name belongs to the mount namespace
//! of whoever made the loop device, and files are removed. Where the name looks like a file of a server, the
//! kernel may wait for that server; one that does not answer in time is known by the mount that the name is
//! below. Not here: what uses the loop device.

use super::disk::{Number, line, numbers};
use super::kernel;
use super::patience::within;
use crate::mountinfo::{self, Mount};
use rustix::fs::{AtFlags, CWD, FileType, OFlags, Statx, StatxFlags, statx};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for the server of a file to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A file, by whatever name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FileId {
    /// The number of its filesystem, as stat(2) has it.
    pub device: Number,
    /// Its inode there.
    pub inode: u64,
}

/// Something that can be used: a device by whichever node, or a file by whichever name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Resource {
    /// A block device.
    Block(Number),
    /// A character device.
    Character(Number),
    /// A file.
    File(FileId),
}

impl Resource {
    /// The resource that a status of stat(2) describes; `None` for what holds no bytes: sockets, pipes,
    /// directories.
    pub(super) fn of(status: &Statx) -> Option<Resource> {
        let node = (status.stx_rdev_major, status.stx_rdev_minor);
        match FileType::from_raw_mode(status.stx_mode.into()) {
            FileType::BlockDevice => Some(Resource::Block(node)),
            FileType::CharacterDevice => Some(Resource::Character(node)),
            FileType::RegularFile => {
                let device = (status.stx_dev_major, status.stx_dev_minor);
                Some(Resource::File(FileId { device, inode: status.stx_ino }))
            }
            _ => None,
        }
    }

    /// The resource of an open file.
    pub(super) fn of_open(file: &File) -> Option<Resource> {
        let mask = StatxFlags::TYPE | StatxFlags::INO;
        Resource::of(&statx(file, "", AtFlags::STATX_DONT_SYNC | AtFlags::EMPTY_PATH, mask).ok()?)
    }

    /// The resource at a path, as far as the kernel knows without asking a server.
    pub(super) fn at(path: &Path) -> Option<Resource> {
        let mask = StatxFlags::TYPE | StatxFlags::INO;
        Resource::of(&statx(CWD, path, AtFlags::STATX_DONT_SYNC, mask).ok()?)
    }
}

/// The file of a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoopFile {
    /// The number of the loop device.
    pub number: Number,
    /// Its node: `/dev/loop0`.
    pub node: PathBuf,
    /// The file, as the kernel names it here.
    pub path: PathBuf,
    /// Whether the name looks like a file of a server, which may not answer.
    is_below_server: bool,
    /// The file itself.
    pub backing: Backing,
}

/// The file or device below a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Backing {
    /// A known one.
    Known(Resource),
    /// A file of a server that does not answer, or that has ended: nothing it holds can be used any more.
    Served,
    /// It cannot be determined, and why.
    Unknown(String),
}

impl LoopFile {
    /// The files of all loop devices. Waits without limit for a server only if the number of its filesystem is
    /// in `asked`.
    pub(super) fn all(mounts: &[Mount], asked: &[Number]) -> Vec<LoopFile> {
        let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let mut all: Vec<LoopFile> =
            entries.filter_map(|entry| LoopFile::of(&entry.path(), mounts, asked)).collect();
        all.sort_by_key(|found| found.number);
        all
    }

    /// The file of the loop device with this folder in sysfs; `None` if it is no loop device, or has no file.
    pub(super) fn of(folder: &Path, mounts: &[Mount], asked: &[Number]) -> Option<LoopFile> {
        let path = PathBuf::from(line(&folder.join("loop/backing_file"))?);
        let number = numbers(&line(&folder.join("dev"))?)?;
        let node = Path::new("/dev").join(folder.file_name()?);
        let served = mountinfo::above(mounts.to_vec(), &path).filter(Mount::is_served);
        let is_below_server = served.is_some();
        let backing = if served.is_some_and(|mount| !asked.contains(&mount.number)) {
            let (node, path) = (node.clone(), path.clone());
            within(PATIENCE, move || backing(&node, number, &path)).unwrap_or(Some(Backing::Served))?
        } else {
            backing(&node, number, &path)?
        };
        Some(LoopFile { number, node, path, is_below_server, backing })
    }

    /// A path at which the file can be looked at without waiting for a server; empty if there is none.
    pub(super) fn path_without_server(&self) -> &Path {
        if self.is_below_server { Path::new("") } else { &self.path }
    }
}

/// The backing of a loop device; `None` if it was detached meanwhile.
fn backing(node: &Path, number: Number, path: &Path) -> Option<Backing> {
    let status = open(node, number).and_then(|file| kernel::loop_status(&file));
    let status = match status {
        // The kernel refuses to open one that is being detached.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => return None,
        // ENOTCONN: the backing file is on a FUSE filesystem whose server has ended.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOTCONN) => return Some(Backing::Served),
        Err(error) => {
            // Without its node, or the right to open it, only the name is left; a removed file has none.
            let is_closed = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
            let there = Resource::at(path).filter(|_| is_closed);
            let why = || format!("the file of {} cannot be had: {error}", node.display());
            return Some(there.map_or_else(|| Backing::Unknown(why()), Backing::Known));
        }
        Ok(status) => status,
    };
    Some(Backing::Known(match status.node {
        (0, 0) => Resource::File(FileId { device: status.device, inode: status.inode }),
        node => Resource::Block(node),
    }))
}

/// Opens a node to ask its driver, if it is the node of that number.
pub(super) fn open(node: &Path, number: Number) -> std::io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(node)?;
    let device = file.metadata()?.rdev();
    if (rustix::fs::major(device), rustix::fs::minor(device)) == number {
        return Ok(file);
    }
    let why = format!("{} is another device's node", node.display());
    Err(std::io::Error::new(ErrorKind::NotFound, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_numbers_and_nodes_by_their_device() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        fs::write(&one, "x").expect("written");
        fs::hard_link(&one, &other).expect("linked");
        assert_eq!(Resource::at(&one), Resource::at(&other));
        assert!(matches!(Resource::at(&one), Some(Resource::File(_))));
        assert_eq!(Resource::at(Path::new("/dev/null")), Some(Resource::Character((1, 3))));
        assert_eq!(Resource::at(folder.path()), None);
        assert!(open(Path::new("/dev/null"), (1, 3)).is_ok());
        assert!(open(Path::new("/dev/null"), (7, 0)).is_err());
    }
}
