//! [`Original`]: recognises a file that an overlay filesystem shows under other device and inode numbers.
//!
//! Paths are not compared. An overlay filesystem reports its layers by the paths that were given at mount time, which
//! may be relative, links, or renamed since. After a lazy unmount it reports none.
//!
//! Attributes are compared instead. An overlay filesystem passes through the creation time, the size and the inode
//! number of a file in a layer. A file that was copied up keeps the inode number of its original. Two files on
//! different filesystems are taken for the same file if these attributes agree and at least one of the filesystems is
//! an overlay filesystem or mounted nowhere.
//!
//! If no path reaches a file, only its inode number can be compared. In this case both filesystems must be mounted,
//! and one must be an overlay filesystem.
//!
//! Two files of the same size on different filesystems that were created in the same clock tick look the same, so a
//! device may be refused without need.
//!
//! # Not handled
//! - Other stacked filesystems (eCryptfs).
//! - A file that no path reaches, on an overlay filesystem that was unmounted lazily.

use super::disk::Number;
use super::loops::{FileId, Resource};
use super::namespace::Namespace;
use crate::mountinfo::{self, Mount};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, statx};
use rustix::path::Arg;
use std::collections::HashMap;
use std::path::Path;

/// The bits of an inode number that an overlay filesystem takes from the layer. The upper bits may hold the number of
/// the layer (`xino` of mount(8)).
const INODE_MASK: u64 = (1 << 48) - 1;

/// The attributes of a file that an overlay filesystem passes through.
#[derive(Debug, Clone, Copy)]
struct Attributes {
    inode: u64,
    /// `None` if the path does not reach the file.
    status: Option<Statx>,
}

impl Attributes {
    fn at(folder: impl AsFd, path: impl Arg, id: FileId) -> Attributes {
        let mask =
            StatxFlags::TYPE | StatxFlags::INO | StatxFlags::SIZE | StatxFlags::MTIME | StatxFlags::BTIME;
        let status = statx(folder, path, AtFlags::STATX_DONT_SYNC, mask).ok();
        let status = status.filter(|status| Resource::of(status) == Some(Resource::File(id)));
        Attributes { inode: id.inode, status }
    }

    /// Compares the attributes of two files.
    fn compare(&self, other: &Attributes) -> Agreement {
        let same_inode = (self.inode ^ other.inode) & INODE_MASK == 0;
        let (Some(one), Some(other)) = (self.status, other.status) else {
            return if same_inode { Agreement::InodeOnly } else { Agreement::None };
        };
        let same_size = one.stx_size == other.stx_size;
        let made = |it: &Statx| {
            let is_known = it.stx_mask & StatxFlags::BTIME.bits() != 0;
            is_known.then_some((it.stx_btime.tv_sec, it.stx_btime.tv_nsec))
        };
        let modified = |it: &Statx| (it.stx_mtime.tv_sec, it.stx_mtime.tv_nsec);
        let agrees = match (made(&one), made(&other)) {
            (Some(at), Some(other)) => at == other && (same_inode || same_size),
            _ => same_inode || (same_size && modified(&one) == modified(&other)),
        };
        if agrees { Agreement::Full } else { Agreement::None }
    }
}

/// The result of comparing the attributes of two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    None,
    /// The inode numbers agree, and no path reaches one of the files.
    InodeOnly,
    Full,
}

/// A file and the attributes that identify it.
#[derive(Debug, Clone)]
pub(super) struct Original {
    /// The identity of the file.
    pub id: FileId,
    attributes: Attributes,
    /// Whether the file itself is on an overlay filesystem, so that the file in the layer is another one. `None` if
    /// unknown.
    is_overlaid: Option<bool>,
}

impl Original {
    /// The file with this identity, which `path` is expected to reach.
    pub(super) fn new(id: FileId, path: &Path, overlays: &Overlays) -> Original {
        let attributes = Attributes::at(CWD, path, id);
        // The major number of an overlay filesystem is zero.
        let is_overlaid = if id.device.0 == 0 { overlays.have(id, path) } else { Some(false) };
        Original { id, attributes, is_overlaid }
    }

    /// Returns whether the file at `path` in `folder` is this one under other numbers. `is_overlay` returns whether
    /// that file is on an overlay filesystem, if known; it is called only if the attributes agree.
    pub(super) fn is_shown_as(
        &self,
        id: FileId,
        folder: impl AsFd,
        path: impl Arg,
        is_overlay: impl FnOnce() -> Option<bool>,
    ) -> bool {
        // A filesystem shows a file under one number only.
        if id.device == self.id.device || (self.is_overlaid == Some(false) && id.device.0 != 0) {
            return false;
        }
        match self.attributes.compare(&Attributes::at(folder, path, id)) {
            Agreement::None => false,
            Agreement::InodeOnly => match is_overlay() {
                None => false,
                Some(is_overlay) => is_overlay || self.is_overlaid == Some(true),
            },
            Agreement::Full => self.is_overlaid != Some(false) || is_overlay() != Some(false),
        }
    }
}

/// The known mounts and filesystems, each with a flag for overlay filesystems. An unknown filesystem may be an
/// overlay filesystem that was unmounted lazily.
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
            all.add(&namespace.mounts);
        }
        all.own = Namespace::own_mounts(namespaces).to_vec();
        all
    }

    /// The overlay filesystems that this process sees.
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

    /// Returns whether a mount is of an overlay filesystem; `None` if the mount is unknown.
    pub(super) fn have_mount(&self, id: Option<u64>) -> Option<bool> {
        self.mounts.get(&id?).copied()
    }

    /// Returns whether a filesystem is an overlay filesystem; `None` if it is mounted nowhere.
    pub(super) fn have_filesystem(&self, number: Number) -> Option<bool> {
        self.filesystems.get(&number).copied()
    }

    /// Returns whether a file is on an overlay filesystem; `None` if its filesystem is mounted nowhere. On Btrfs and
    /// some layers, no mount has the file's device number; the mount above its path is used instead.
    pub(super) fn have(&self, id: FileId, path: &Path) -> Option<bool> {
        if self.filesystems.contains_key(&id.device) || Resource::at(path) != Some(Resource::File(id)) {
            return self.have_filesystem(id.device);
        }
        mountinfo::above(&self.own, path).map(|mount| mount.filesystem == "overlay")
    }

    /// The device numbers of the known overlay filesystems.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Number> {
        self.filesystems.iter().filter(|(_, is_overlay)| **is_overlay).map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    fn attributes(path: &Path) -> Attributes {
        match Resource::at(path) {
            Some(Resource::File(id)) => Attributes::at(CWD, path, id),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_is_recognised_and_a_copy_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        fs::write(&one, "x").expect("written");
        std::thread::sleep(std::time::Duration::from_millis(50));
        fs::copy(&one, &other).expect("copied");
        let time = fs::metadata(&one).and_then(|it| it.modified()).expect("a time");
        let (original, copy) = (attributes(&one), attributes(&other));
        let is_same = |it: &Attributes| original.compare(it) == Agreement::Full;
        assert!(is_same(&original) && !is_same(&copy));
        // As shown by an overlay filesystem that numbers its layers, and by one that copied the file up.
        assert!(is_same(&Attributes { inode: original.inode | 1 << 63, ..original }));
        assert!(is_same(&Attributes { inode: original.inode + 1, ..original }));
        // After a write that changed the size.
        File::options().write(true).open(&one).and_then(|it| it.set_modified(time)).expect("set");
        fs::write(&one, "longer").expect("written");
        assert!(is_same(&attributes(&one)));
        // By its inode number alone, if nothing else is known.
        let unknown = Attributes { inode: original.inode, status: None };
        assert_eq!(unknown.compare(&original), Agreement::InodeOnly);
        assert_eq!(unknown.compare(&copy), Agreement::None);
        // Without the creation time, the inode number suffices: a file may grow between two examinations.
        let old = |it: &Attributes, size| {
            let mut status = it.status.expect("reachable");
            status.stx_mask &= !StatxFlags::BTIME.bits();
            status.stx_size = size;
            Attributes { inode: it.inode, status: Some(status) }
        };
        assert_eq!(old(&original, 6).compare(&old(&original, 7)), Agreement::Full);
        let numbered = Attributes { inode: original.inode + 1, ..old(&original, 6) };
        assert_eq!(numbered.compare(&old(&original, 6)), Agreement::Full);
        assert_eq!(numbered.compare(&old(&original, 7)), Agreement::None);
    }

    #[test]
    fn a_filesystem_shows_a_file_under_one_number_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "x").expect("written");
        let Some(Resource::File(id)) = Resource::at(&path) else { panic!("no file") };
        let attributes = attributes(&path);
        let original = |device, is_overlaid| {
            let id = FileId { device, inode: id.inode ^ 1 << 60 };
            Original { id, attributes, is_overlaid }
        };
        let is_shown = |original: Original, is_overlay| original.is_shown_as(id, CWD, &path, || is_overlay);
        for is_overlay in [None, Some(true), Some(false)] {
            // Created in the same tick of the clock, with the same size.
            assert!(!is_shown(original(id.device, Some(true)), is_overlay));
            // An overlay filesystem, or one that is mounted nowhere, may show a file of another filesystem.
            assert!(is_shown(original((0, 9999), Some(true)), is_overlay));
            assert!(is_shown(original((0, 9999), None), is_overlay));
        }
        assert!(!is_shown(original((0, 9999), Some(false)), Some(false)));
    }

    #[test]
    fn an_inode_number_alone_counts_only_on_a_known_overlay() {
        let id = FileId { device: (254, 0), inode: 77 };
        let nowhere = Path::new("/nowhere/deleted.img");
        let original =
            |is_overlaid| Original { is_overlaid, ..Original::new(id, nowhere, &Overlays::default()) };
        let memfd = FileId { device: (0, 1), ..id };
        let is_shown =
            |original: Original, is_overlay| original.is_shown_as(memfd, CWD, nowhere, || is_overlay);
        for (is_overlaid, is_overlay, expected) in [
            (Some(false), None, false),
            (Some(false), Some(false), false),
            (Some(false), Some(true), true),
            (Some(true), None, false),
            (Some(true), Some(false), true),
            (None, None, false),
            (None, Some(true), true),
        ] {
            assert_eq!(
                is_shown(original(is_overlaid), is_overlay),
                expected,
                "{is_overlaid:?} {is_overlay:?}"
            );
        }
    }

    #[test]
    fn a_filesystem_that_is_mounted_nowhere_is_unknown() {
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
        let expected = [Some(false), Some(true), Some(false), None];
        assert_eq!([1, 2, 3, 4].map(|id| all.have_mount(Some(id))), expected);
        assert_eq!([(254, 0), (0, 39), (0, 40), (0, 41)].map(|it| all.have_filesystem(it)), expected);
        assert_eq!(all.numbers().collect::<Vec<_>>(), [(0, 39)]);
    }
}
