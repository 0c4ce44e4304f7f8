//! [`Filesystem`]: the filesystems that lowtide can create and model.
//!
//! The host crate creates filesystems. The device crate models their file placement.

use std::fmt;

/// A Linux filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// XFS.
    Xfs,
    /// ext4.
    Ext4,
    /// Btrfs.
    Btrfs,
}

impl Filesystem {
    /// Every filesystem with its name in mount(8) and on the command line.
    pub const NAMES: [(&str, Filesystem); 3] =
        [("ext4", Filesystem::Ext4), ("xfs", Filesystem::Xfs), ("btrfs", Filesystem::Btrfs)];

    /// The name in mount(8).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Filesystem::Xfs => "xfs",
            Filesystem::Ext4 => "ext4",
            Filesystem::Btrfs => "btrfs",
        }
    }
}

impl fmt::Display for Filesystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
