//! [`LoopFile`]: the backing file of a loop device.
//!
//! The file is identified by device and inode number, not by name: the name belongs to the mount namespace of the
//! process that made the loop device, and the file may have been removed. The kernel may wait for a filesystem server
//! if the name is below a served filesystem, so the query has a time limit.

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

/// Time limit for the server of a file.
const PATIENCE: Duration = Duration::from_secs(1);

/// The identity of a file, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FileId {
    /// The device number of the filesystem, as in stat(2).
    pub device: Number,
    /// The inode number.
    pub inode: u64,
}

/// A device or file, independent of the node or name by which it was opened.
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
    /// The resource with this status; `None` for sockets, pipes and directories.
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

    /// The resource at a path. Uses cached attributes if the file comes from a server.
    pub(super) fn at(path: &Path) -> Option<Resource> {
        let mask = StatxFlags::TYPE | StatxFlags::INO;
        Resource::of(&statx(CWD, path, AtFlags::STATX_DONT_SYNC, mask).ok()?)
    }
}

/// The backing file of a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoopFile {
    /// The number of the loop device.
    pub number: Number,
    /// The node of the loop device: `/dev/loop0`.
    pub node: PathBuf,
    /// The path by which the kernel names the file in this mount namespace.
    pub path: PathBuf,
    /// Whether the path is below a served filesystem, whose server may not answer.
    is_below_server: bool,
    /// The identity of the file.
    pub backing: Backing,
}

/// The identity of the file or device below a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Backing {
    /// This file or device.
    Known(Resource),
    /// A file whose server has ended or does not answer, so nobody can use it.
    Served,
    /// Unknown, for this reason.
    Unknown(String),
}

impl LoopFile {
    /// The backing files of all loop devices. The time limit does not apply to servers of the filesystems in `asked`.
    pub(super) fn all(mounts: &[Mount], asked: &[Number]) -> Vec<LoopFile> {
        let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let mut all: Vec<LoopFile> =
            entries.filter_map(|entry| LoopFile::of(&entry.path(), mounts, asked)).collect();
        all.sort_by_key(|found| found.number);
        all
    }

    /// The backing file of the loop device with this folder in sysfs; `None` if the device is not a loop device or
    /// has no file.
    pub(super) fn of(folder: &Path, mounts: &[Mount], asked: &[Number]) -> Option<LoopFile> {
        let path = PathBuf::from(line(&folder.join("loop/backing_file"))?);
        let number = numbers(&line(&folder.join("dev"))?)?;
        let node = Path::new("/dev").join(folder.file_name()?);
        let served = mountinfo::above(mounts, &path).filter(|mount| mount.is_served());
        let is_below_server = served.is_some();
        let backing = if served.is_some_and(|mount| !asked.contains(&mount.number)) {
            let (node, path) = (node.clone(), path.clone());
            within(PATIENCE, move || backing(&node, number, &path)).unwrap_or(Some(Backing::Served))?
        } else {
            backing(&node, number, &path)?
        };
        Some(LoopFile { number, node, path, is_below_server, backing })
    }

    /// A path by which the file can be examined without waiting for a server; empty if there is none.
    pub(super) fn path_without_server(&self) -> &Path {
        if self.is_below_server { Path::new("") } else { &self.path }
    }
}

/// The backing of a loop device; `None` if it was detached in the meantime.
fn backing(node: &Path, number: Number, path: &Path) -> Option<Backing> {
    let status = open(node, number).and_then(|file| kernel::loop_status(&file));
    let status = match status {
        // The kernel refuses to open a loop device that is being detached.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => return None,
        // ENOTCONN: the backing file is on a FUSE filesystem whose server has ended.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOTCONN) => return Some(Backing::Served),
        Err(error) => {
            // If the node is missing or may not be opened, only the name identifies the file. A removed file has no
            // name.
            let is_closed = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
            let there = Resource::at(path).filter(|_| is_closed);
            let why = || format!("the backing file of {} cannot be determined: {error}", node.display());
            return Some(there.map_or_else(|| Backing::Unknown(why()), Backing::Known));
        }
        Ok(status) => status,
    };
    Some(Backing::Known(match status.node {
        (0, 0) => Resource::File(FileId { device: status.device, inode: status.inode }),
        node => Resource::Block(node),
    }))
}

/// Opens a node to query its driver, after checking that it is the node of that device.
pub(super) fn open(node: &Path, number: Number) -> std::io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(node)?;
    let device = file.metadata()?.rdev();
    if (rustix::fs::major(device), rustix::fs::minor(device)) == number {
        return Ok(file);
    }
    let why = format!("{} is the node of another device", node.display());
    Err(std::io::Error::new(ErrorKind::NotFound, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_identified_by_inode_and_nodes_by_device() {
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
