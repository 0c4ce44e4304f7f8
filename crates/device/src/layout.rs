//! Filesystem layouts: where files land on a device, and what making the filesystem writes.
//!
//! In virtual time a filesystem is this and no more: extents for the files, where others begin, a list of writes for mkfs, a journal, and
//! whether mkfs trims. Sizes follow the defaults of mkfs.xfs, mke2fs and mkfs.btrfs, and each function says
//! which. Leaves out who writes to the journal, fragmentation by age, and
//! copy-on-write (files on btrfs are taken as overwritten in place, as with `nodatacow`).

use lowtide_core::storage::Journal;
use lowtide_core::{Bytes, Extents, Filesystem};

/// A filesystem on a device: its own areas and the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Where the files' data lies, file after file.
    pub files: Extents,
    /// What mkfs writes: offset and length.
    pub mkfs_writes: Vec<(u64, u64)>,
    /// The filesystem's journal.
    pub journal: Option<Journal>,
    /// Which it is; `None` is the bare device.
    pub filesystem: Option<Filesystem>,
    size: u64,
    metadata: Vec<Area>,
}

/// Files that do not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{wanted} of files do not fit: the filesystem leaves {available} of {size} for data")]
pub struct DoesNotFit {
    /// Bytes of files.
    pub wanted: Bytes,
    /// Bytes that data may take.
    pub available: Bytes,
    /// Bytes of the device or partition.
    pub size: Bytes,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The journal of ext4, as that of ext3, writes a descriptor and the block that has changed, waits for them, and writes that they are
/// committed (`jbd2_journal_commit_transaction`).
const JBD_COMMIT: &[u64] = &[8 << 10, 4 << 10];
/// XFS writes one record.
const XFS_COMMIT: &[u64] = &[4 << 10];

/// Bytes of files that fit on a device (or partition) of `size`.
pub fn room(filesystem: Option<Filesystem>, size: Bytes) -> Bytes {
    match lay_out(filesystem, size, Bytes::new(u64::MAX)) {
        Ok(_) => size,
        Err(DoesNotFit { available, .. }) => available,
    }
}

/// Lays out `data` bytes of files on a device (or partition) of `size`.
///
/// # Errors
/// [`DoesNotFit`] where the filesystem's own areas leave too little room.
pub fn lay_out(filesystem: Option<Filesystem>, size: Bytes, data: Bytes) -> Result<Layout, DoesNotFit> {
    let metadata = metadata(filesystem, size.get());
    if metadata.iter().any(|area| area.offset + area.length > size.get()) {
        return Err(DoesNotFit { wanted: data, available: Bytes::ZERO, size });
    }
    let mut free = match filesystem {
        None => vec![(0, size.get())],
        _ => gaps(&metadata, size.get()),
    };
    let available: u64 = free.iter().map(|(_, length)| length).sum();
    if data.get() > available {
        return Err(DoesNotFit { wanted: data, available: Bytes::new(available), size });
    }
    let mut left = data.get();
    for (_, length) in &mut free {
        *length = (*length).min(left);
        left -= *length;
    }
    let mkfs_writes =
        metadata.iter().filter(|area| area.written).map(|area| (area.offset, area.length)).collect();
    let files = Extents::new(free);
    let commit = if filesystem == Some(Filesystem::Ext4) { JBD_COMMIT } else { XFS_COMMIT };
    let journal = metadata.iter().find(|area| area.journal);
    let journal = journal.map(|area| Journal { offset: area.offset, length: area.length, commit });
    Ok(Layout { files, mkfs_writes, journal, filesystem, size: size.get(), metadata })
}

impl Layout {
    /// Where `bytes` of files of another directory begin, in one piece; `None` where there is no such place. XFS gives directories its
    /// allocation groups in turn: it is the next group that the data do not reach. ext4 spreads directories: it is where one was seen, 15/16
    /// of the way.
    pub fn elsewhere(&self, bytes: u64) -> Option<u64> {
        let end = self.files.pieces().last().map_or(0, |piece| piece.device_offset + piece.length);
        let (wanted, until) = match self.filesystem {
            None | Some(Filesystem::Btrfs) => return None,
            Some(Filesystem::Xfs) => {
                let (groups, group) = xfs_groups(self.size);
                let next = end.div_ceil(group);
                (next * group, if next < groups { (next + 1) * group } else { 0 })
            }
            Some(Filesystem::Ext4) => ((self.size / 16 * 15 / MIB * MIB).max(end), self.size),
        };
        // The areas of the filesystem there come first.
        let after = self.metadata.iter().fold(wanted, |at, area| {
            let there = (area.offset..area.offset + area.length).contains(&at);
            if there { area.offset + area.length } else { at }
        });
        (after + bytes <= until).then_some(after)
    }
}

/// An area the filesystem keeps for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    offset: u64,
    length: u64,
    /// Whether mkfs writes it, or leaves it for later.
    written: bool,
    /// Whether it is the journal.
    journal: bool,
}

fn metadata(filesystem: Option<Filesystem>, size: u64) -> Vec<Area> {
    match filesystem {
        None => Vec::new(),
        Some(Filesystem::Xfs) => xfs(size),
        Some(Filesystem::Ext4) => ext4(size),
        Some(Filesystem::Btrfs) => btrfs(size),
    }
}

/// Allocation groups of XFS on one disk, and the bytes of each.
fn xfs_groups(size: u64) -> (u64, u64) {
    let groups = if size < 128 * MIB { 1 } else { 4 };
    (groups, (size / groups / MIB * MIB).max(MIB))
}

/// mkfs.xfs: four allocation groups on one disk, headers at the beginning of each, an internal log of 1/2048
/// of the filesystem (10 MiB to 2 GiB) in the middle group.
fn xfs(size: u64) -> Vec<Area> {
    let (groups, group) = xfs_groups(size);
    let log = (size / 2048).clamp(10 * MIB, 2 * GIB) / MIB * MIB;
    (0..groups)
        .flat_map(|n| {
            let header = Area { offset: n * group, length: MIB, written: true, journal: false };
            let log = (n == groups / 2).then_some(Area {
                offset: n * group + MIB,
                length: log,
                written: true,
                journal: true,
            });
            [Some(header), log].into_iter().flatten()
        })
        .collect()
}

/// mke2fs: block groups of 128 MiB gathered by sixteen (flex_bg); per group two bitmaps and 2 MiB of inode table
/// (one inode per 16 KiB, 256 bytes each), the tables left for later (lazy_itable_init); a journal of 1/64 of
/// the filesystem (4 MiB to 1 GiB, the steps of mke2fs rounded) in the middle.
fn ext4(size: u64) -> Vec<Area> {
    let flex = 16 * 128 * MIB;
    let mut areas: Vec<Area> = (0..size.div_ceil(flex))
        .flat_map(|n| {
            let offset = n * flex;
            let groups = (size - offset).div_ceil(128 * MIB).min(16);
            let bitmaps = Area { offset, length: MIB, written: true, journal: false };
            let tables =
                Area { offset: offset + MIB, length: groups * 2 * MIB, written: false, journal: false };
            [bitmaps, tables]
        })
        .filter(|area| area.offset + area.length <= size)
        .collect();
    let journal = (size / 64).clamp(4 * MIB, GIB) / MIB * MIB;
    let after_tables = size / 2 / flex * flex + 64 * MIB;
    if after_tables + journal < size {
        areas.push(Area { offset: after_tables, length: journal, written: true, journal: true });
        areas.sort_by_key(|area| area.offset);
    }
    areas
}

/// mkfs.btrfs: system chunks (8 MiB, twice) and a metadata chunk of 1 GiB (256 MiB on filesystems below 50 GiB),
/// twice on one disk (DUP), of which mkfs writes little.
fn btrfs(size: u64) -> Vec<Area> {
    let chunk = if size < 50 * GIB { (256 * MIB).min(size / 16 / MIB * MIB) } else { GIB };
    let system = 17 * MIB;
    vec![
        Area { offset: 0, length: system, written: true, journal: false },
        Area { offset: system, length: 2 * chunk, written: false, journal: false },
    ]
}

/// What lies between the areas.
fn gaps(areas: &[Area], size: u64) -> Vec<(u64, u64)> {
    let mut free = Vec::new();
    let mut at = 0;
    for area in areas {
        if area.offset > at {
            free.push((at, area.offset - at));
        }
        at = at.max(area.offset + area.length);
    }
    if size > at {
        // Data ends on a whole MiB, so that requests stay aligned at the seams.
        free.push((at, (size - at) / MIB * MIB));
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_avoid_the_filesystems_own_areas() {
        let size = Bytes::new(160_000_000_000);
        for filesystem in [Some(Filesystem::Xfs), Some(Filesystem::Ext4), Some(Filesystem::Btrfs)] {
            let layout = lay_out(filesystem, size, Bytes::gib(140)).expect("fits");
            assert_eq!(layout.files.length(), Bytes::gib(140).get());
            for extent in layout.files.pieces() {
                let end = extent.device_offset + extent.length;
                assert!(end <= size.get(), "{filesystem:?} stays on the device");
                for (offset, length) in &layout.mkfs_writes {
                    assert!(
                        end <= *offset || offset + length <= extent.device_offset,
                        "{filesystem:?} overlaps"
                    );
                }
            }
            assert!(layout.files.pieces().iter().all(|extent| extent.device_offset.is_multiple_of(MIB)));
        }
    }

    #[test]
    fn another_directory_lies_behind_the_data_and_the_journal_in_the_middle() {
        let size = Bytes::gib(160);
        let at = |filesystem| {
            let layout = lay_out(filesystem, size, Bytes::gib(11)).expect("fits");
            let elsewhere = layout.elsewhere(GIB).map(|offset| offset / GIB);
            (elsewhere, layout.journal.map(|journal| journal.offset / GIB))
        };
        assert_eq!(at(Some(Filesystem::Xfs)), (Some(40), Some(80)));
        assert_eq!(at(Some(Filesystem::Ext4)), (Some(150), Some(80)));
        assert_eq!(at(None), (None, None));
        // The journal of XFS lies at the beginning of its group.
        let layout = lay_out(Some(Filesystem::Xfs), size, Bytes::gib(50)).expect("fits");
        let Journal { offset, length, .. } = layout.journal.expect("it has one");
        assert_eq!(layout.elsewhere(GIB), Some(offset + length));
        assert_eq!(layout.elsewhere(40 * GIB), None, "it reaches the next group");
        // Data that reach the last group, also where four groups are less than the drive.
        for size in [size, Bytes::new(160_000_000_000), Bytes::new(32_000_001 * 512)] {
            for share in [76, 90, 99] {
                let data = Bytes::new(room(Some(Filesystem::Xfs), size).get() / 100 * share);
                let layout = lay_out(Some(Filesystem::Xfs), size, data).expect("fits");
                assert_eq!(layout.elsewhere(MIB), None, "{share} % of {size}");
                let layout =
                    lay_out(Some(Filesystem::Ext4), size, data.min(room(Some(Filesystem::Ext4), size)))
                        .expect("fits");
                assert!(layout.elsewhere(MIB).is_none_or(|at| at + MIB <= size.get()), "{share} % of {size}");
                assert_eq!(layout.elsewhere(size.get() / 8), None, "{share} % of {size}");
            }
        }
    }

    #[test]
    fn too_much_data_is_refused_with_what_would_fit() {
        let error =
            lay_out(Some(Filesystem::Ext4), Bytes::gib(10), Bytes::gib(10)).expect_err("metadata takes room");
        assert!(error.available < Bytes::gib(10) && error.available > Bytes::gib(9), "{error}");
        for whole in [Bytes::gib(10), Bytes::new(160_000_000_000)] {
            assert!(lay_out(None, whole, whole).is_ok(), "the bare device takes data to its last byte");
        }
        for filesystem in [Some(Filesystem::Xfs), Some(Filesystem::Btrfs)] {
            assert!(
                lay_out(filesystem, Bytes::mib(1), Bytes::ZERO).is_err(),
                "{filesystem:?} needs room for itself"
            );
        }
    }
}
