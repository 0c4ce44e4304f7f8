//! [`Original`]: a file that is recognised when an overlay filesystem shows it under other numbers.
//!
//! An overlay filesystem names its layers as they were named when it was mounted: by relative paths, links, or
//! folders that were renamed since. Once it is unmounted lazily, it names nothing. So paths are not compared.
//! An overlay filesystem passes on what the filesystem of the layer reports of a file: when it was made, its
//! size, and its inode number, except that a file which was copied up keeps the inode number of its original.
//! Two files that agree in these are taken for the same, if at least one is on an overlay filesystem, or on
//! one that is mounted nowhere any more.
//!
//! Files of one size that were made in the same tick of the kernel's clock are not told apart: a device may be
//! refused without need. Leaves out other filesystems that lie on a filesystem (eCryptfs).

use super::disk::Number;
use super::loops::{FileId, Resource};
use super::namespace::Namespace;
use crate::mountinfo::{self, Mount};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, statx};
use rustix::path::Arg;
use std::collections::HashMap;
use std::path::Path;

/// The bits of an inode number in which an overlay filesystem keeps that of the layer; those above may be the
/// number of the layer (`xino` of mount(8)).
const INODE: u64 = (1 << 48) - 1;

/// The attributes of a file that an overlay filesystem passes through.
#[derive(Debug, Clone, Copy)]
struct Likeness {
    inode: u64,
    /// None where the file cannot be reached by its path.
    status: Option<Statx>,
}

impl Likeness {
    fn at(folder: impl AsFd, path: impl Arg, id: FileId) -> Likeness {
        let mask =
            StatxFlags::TYPE | StatxFlags::INO | StatxFlags::SIZE | StatxFlags::MTIME | StatxFlags::BTIME;
        let status = statx(folder, path, AtFlags::STATX_DONT_SYNC, mask).ok();
        let status = status.filter(|status| Resource::of(status) == Some(Resource::File(id)));
        Likeness { inode: id.inode, status }
    }

    fn is_like(&self, other: &Likeness) -> bool {
        let same_inode = (self.inode ^ other.inode) & INODE == 0;
        let (Some(one), Some(other)) = (self.status, other.status) else { return same_inode };
        let same_size = one.stx_size == other.stx_size;
        let made = |it: &Statx| {
            let is_known = it.stx_mask & StatxFlags::BTIME.bits() != 0;
            is_known.then_some((it.stx_btime.tv_sec, it.stx_btime.tv_nsec))
        };
        let modified = |it: &Statx| (it.stx_mtime.tv_sec, it.stx_mtime.tv_nsec);
        match (made(&one), made(&other)) {
            (Some(at), Some(other)) => at == other && (same_inode || same_size),
            _ => same_size && (same_inode || modified(&one) == modified(&other)),
        }
    }
}

/// A file, with what is needed to recognise it.
#[derive(Debug, Clone)]
pub(super) struct Original {
    /// The file itself.
    pub id: FileId,
    likeness: Likeness,
    /// Whether it is on an overlay filesystem itself, so that others may have the file of the layer.
    is_overlaid: bool,
}

impl Original {
    /// The file with these numbers; `path` reaches it, as far as is known.
    pub(super) fn new(id: FileId, path: &Path, overlays: &Overlays) -> Original {
        let likeness = Likeness::at(CWD, path, id);
        let is_overlaid = id.device.0 == 0 && overlays.have(id, path);
        Original { id, likeness, is_overlaid }
    }

    /// Whether a file in `folder` is this one under other numbers. `is_overlay` tells whether that file is on
    /// an overlay filesystem, and is only asked if all else agrees.
    pub(super) fn is_shown_as(
        &self,
        id: FileId,
        folder: impl AsFd,
        path: impl Arg,
        is_overlay: impl FnOnce() -> bool,
    ) -> bool {
        // An overlay filesystem is on no device of its own.
        (self.is_overlaid || id.device.0 == 0)
            && self.likeness.is_like(&Likeness::at(folder, path, id))
            && (self.is_overlaid || is_overlay())
    }
}

/// Which mounts and filesystems are overlay filesystems. Unknown ones count, since an overlay filesystem that
/// was unmounted lazily is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Overlays {
    own: Vec<Mount>,
    mounts: HashMap<u64, bool>,
    filesystems: HashMap<Number, bool>,
}

impl Overlays {
    /// The overlay filesystems of these mount namespaces.
    pub(super) fn of(namespaces: &[Namespace]) -> Overlays {
        let mut all = Overlays::default();
        for namespace in namespaces {
            if namespace.is_own() {
                all.own.clone_from(&namespace.mounts);
            }
            all.add(&namespace.mounts);
        }
        all
    }

    /// Those of the mount namespace of this process.
    pub(super) fn own() -> Overlays {
        let mut all = Overlays { own: mountinfo::of("self"), ..Overlays::default() };
        all.add(&all.own.clone());
        all
    }

    fn add(&mut self, mounts: &[Mount]) {
        for mount in mounts {
            let is_overlay = mount.filesystem == "overlay";
            self.mounts.insert(mount.id, is_overlay);
            self.filesystems.insert(mount.number, is_overlay);
        }
    }

    /// Whether a mount is one.
    pub(super) fn have_mount(&self, id: Option<u64>) -> bool {
        id.and_then(|id| self.mounts.get(&id)).is_none_or(|is_overlay| *is_overlay)
    }

    /// Whether a filesystem is one.
    pub(super) fn have_filesystem(&self, number: Number) -> bool {
        self.filesystems.get(&number).is_none_or(|is_overlay| *is_overlay)
    }

    /// Whether a file is on one. On Btrfs and some layers, no mount has the device number of the file; then the
    /// mount above its path decides.
    pub(super) fn have(&self, id: FileId, path: &Path) -> bool {
        if self.filesystems.contains_key(&id.device) || Resource::at(path) != Some(Resource::File(id)) {
            return self.have_filesystem(id.device);
        }
        mountinfo::above(self.own.clone(), path).is_none_or(|mount| mount.filesystem == "overlay")
    }

    /// The numbers of the overlay filesystems that are known.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Number> {
        self.filesystems.iter().filter(|(_, is_overlay)| **is_overlay).map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    fn likeness(path: &Path) -> Likeness {
        match Resource::at(path) {
            Some(Resource::File(id)) => Likeness::at(CWD, path, id),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_is_like_itself_and_its_copy_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        fs::write(&one, "x").expect("written");
        std::thread::sleep(std::time::Duration::from_millis(50));
        fs::copy(&one, &other).expect("copied");
        let time = fs::metadata(&one).and_then(|it| it.modified()).expect("a time");
        let (original, copy) = (likeness(&one), likeness(&other));
        assert!(original.is_like(&original) && !original.is_like(&copy));
        // As an overlay filesystem shows it that numbers layers, and one that copied it up.
        assert!(original.is_like(&Likeness { inode: original.inode | 1 << 63, ..original }));
        assert!(original.is_like(&Likeness { inode: original.inode + 1, ..original }));
        // As a writer leaves it.
        File::options().write(true).open(&one).and_then(|it| it.set_modified(time)).expect("set");
        fs::write(&one, "longer").expect("written");
        assert!(original.is_like(&likeness(&one)));
        // By its inode number alone, where nothing else is known.
        let unknown = Likeness { inode: original.inode, status: None };
        assert!(unknown.is_like(&original) && !unknown.is_like(&copy));
    }

    #[test]
    fn what_is_mounted_nowhere_may_be_an_overlay() {
        let mount = |id, number, filesystem: &str| Mount {
            id,
            number,
            root: "/".to_owned(),
            point: "/".to_owned(),
            options: String::new(),
            filesystem: filesystem.to_owned(),
            source: "none".to_owned(),
        };
        let mut all = Overlays::default();
        all.add(&[mount(1, (254, 0), "ext4"), mount(2, (0, 39), "overlay"), mount(3, (0, 40), "tmpfs")]);
        assert_eq!([1, 2, 3, 4].map(|id| all.have_mount(Some(id))), [false, true, false, true]);
        assert!(
            all.have_filesystem((0, 39)) && all.have_filesystem((0, 41)) && !all.have_filesystem((0, 40))
        );
        assert_eq!(all.numbers().collect::<Vec<_>>(), [(0, 39)]);
    }
}
