//! [`Filesystem`]: the filesystems that lowtide makes and models.
//!
//! Leaves out making them (`host`) and where they put files (`device`).

use std::fmt;

/// A filesystem of Linux.
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
    /// All filesystems, with the name that mount(8) and the command line use.
    pub const NAMES: [(&str, Filesystem); 3] =
        [("ext4", Filesystem::Ext4), ("xfs", Filesystem::Xfs), ("btrfs", Filesystem::Btrfs)];

    /// The name that mount(8) uses.
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
