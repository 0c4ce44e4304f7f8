//! Filesystem layouts: the positions of files on a device, and the writes of mkfs.
//!
//! In virtual time a filesystem consists of extents for the files, a position for another directory, the writes of
//! mkfs and a journal. Sizes follow the defaults of mkfs.xfs, mke2fs and mkfs.btrfs, which are given at each
//! function.
//!
//! # Not modelled
//! * The writers of the journal.
//! * Fragmentation by age.
//! * Copy-on-write: files on btrfs are overwritten in place, as with `nodatacow`.

use lowtide_core::storage::Journal;
use lowtide_core::{Bytes, Extents, Filesystem};

/// A filesystem on a device: its own areas and the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Extents of the data files, which follow one another.
    pub files: Extents,
    /// Writes of mkfs, as offset and length in bytes.
    pub mkfs_writes: Vec<(u64, u64)>,
    /// The filesystem's journal.
    pub journal: Option<Journal>,
    /// The filesystem; `None` for the bare device.
    pub filesystem: Option<Filesystem>,
    size: u64,
    metadata: Vec<Area>,
}

/// The error of files that do not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{wanted} of files do not fit: the filesystem leaves {available} of {size} for data")]
pub struct DoesNotFit {
    /// Total size of the files.
    pub wanted: Bytes,
    /// Space available for data.
    pub available: Bytes,
    /// Size of the device or partition.
    pub size: Bytes,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Writes of a commit in ext4's journal (JBD2): a descriptor with the changed block and, when both are on the device,
/// a commit block (`jbd2_journal_commit_transaction`).
const JBD_COMMIT: &[u64] = &[8 << 10, 4 << 10];
/// Write of a commit in XFS's journal: one record.
const XFS_COMMIT: &[u64] = &[4 << 10];

/// Space for files on a device or partition of `size`.
pub fn room(filesystem: Option<Filesystem>, size: Bytes) -> Bytes {
    match lay_out(filesystem, size, Bytes::new(u64::MAX)) {
        Ok(_) => size,
        Err(DoesNotFit { available, .. }) => available,
    }
}

/// Lays out `data` bytes of files on a device or partition of `size`.
///
/// # Errors
/// [`DoesNotFit`] if the filesystem's own areas leave too little room.
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
    /// Offset of `bytes` contiguous bytes for files of another directory. `None` if there is no such space, and
    /// always for btrfs and the bare device.
    ///
    /// * XFS assigns directories to allocation groups in turn: the offset is in the first group after the data.
    /// * ext4 spreads directories: the offset is at 15/16 of the device, as observed once, or after the data if that
    ///   is later.
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
        // Skips the filesystem's own areas.
        let after = self.metadata.iter().fold(wanted, |at, area| {
            let there = (area.offset..area.offset + area.length).contains(&at);
            if there { area.offset + area.length } else { at }
        });
        (after + bytes <= until).then_some(after)
    }
}

/// An area that the filesystem reserves for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    offset: u64,
    length: u64,
    /// True if mkfs writes the area.
    written: bool,
    /// True for the journal.
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

/// Number of allocation groups of XFS on one disk, and the bytes of each.
fn xfs_groups(size: u64) -> (u64, u64) {
    let groups = if size < 128 * MIB { 1 } else { 4 };
    (groups, (size / groups / MIB * MIB).max(MIB))
}

/// Areas of mkfs.xfs: four allocation groups on one disk (one below 128 MiB), each with headers at its beginning. The
/// internal log of 1/2048 of the filesystem (10 MiB to 2 GiB) is in the middle group.
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

/// Areas of mke2fs: block groups of 128 MiB, sixteen of which share one metadata area (flex_bg). Each group has two
/// bitmaps and 2 MiB of inode table (one inode of 256 bytes per 16 KiB), which mkfs does not write
/// (lazy_itable_init). The journal of 1/64 of the filesystem (4 MiB to 1 GiB, mke2fs's steps smoothed) is in the
/// middle.
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

/// Areas of mkfs.btrfs: system chunks (8 MiB, twice) and a metadata chunk of 1 GiB (256 MiB on filesystems below 50
/// GiB), which is duplicated on one disk (DUP). Metadata chunks count as unwritten, since mkfs writes little of them.
fn btrfs(size: u64) -> Vec<Area> {
    let chunk = if size < 50 * GIB { (256 * MIB).min(size / 16 / MIB * MIB) } else { GIB };
    let system = 17 * MIB;
    vec![
        Area { offset: 0, length: system, written: true, journal: false },
        Area { offset: system, length: 2 * chunk, written: false, journal: false },
    ]
}

/// Ranges between the areas, as offset and length.
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
        // The length is a multiple of 1 MiB, so that requests stay aligned across extents.
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
        // The XFS journal is at the beginning of its group.
        let layout = lay_out(Some(Filesystem::Xfs), size, Bytes::gib(50)).expect("fits");
        let Journal { offset, length, .. } = layout.journal.expect("it has one");
        assert_eq!(layout.elsewhere(GIB), Some(offset + length));
        assert_eq!(layout.elsewhere(40 * GIB), None, "it reaches the next group");
        // Data that reaches the last group, also on a device larger than its four groups together.
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
