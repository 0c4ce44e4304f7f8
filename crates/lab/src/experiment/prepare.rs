//! `[before-each-cell]`, and `precondition` of a step: the history of the target before a measurement.
//!
//! The stage `prepare` carries out the preparation. Module `plan` checks the limits of the target.

use super::length::Length;
use super::level::{FactorName, Level};
use super::load::{Load, Pattern};
use super::read::{Entry, Table};
use super::schema;
use super::words::words;
use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

words! {
    /// The method of erasing the device.
    #[derive(Default)]
    Purge, "purge";
    /// No purge: the device keeps its history.
    #[default]
    None = "none",
    /// Every address is trimmed.
    Trim = "trim",
    /// The erase of a model, which is then as new except for wear. A real drive needs one of the methods below.
    SecureErase = "secure-erase",
    /// Secure TRIM.
    SecureDiscard = "secure-discard",
    /// NVMe Format NVM.
    NvmeFormat = "nvme-format",
    /// NVMe Sanitize.
    NvmeSanitize = "nvme-sanitize",
    /// ATA Security Erase Unit.
    AtaSecureErase = "ata-secure-erase",
}

words! {
    /// The filesystem on the device.
    Filesystem, "filesystem";
    /// No filesystem.
    None = "none",
    /// XFS.
    Xfs = "xfs",
    /// ext4.
    Ext4 = "ext4",
    /// Btrfs.
    Btrfs = "btrfs",
}

impl Filesystem {
    /// The filesystem to make, or to lay out in a model; `None` for a device without a filesystem.
    pub(crate) fn made(self) -> Option<lowtide_core::Filesystem> {
        match self {
            Filesystem::None => None,
            Filesystem::Xfs => Some(lowtide_core::Filesystem::Xfs),
            Filesystem::Ext4 => Some(lowtide_core::Filesystem::Ext4),
            Filesystem::Btrfs => Some(lowtide_core::Filesystem::Btrfs),
        }
    }
}

words! {
    /// The method of writing the data before the measurement.
    #[derive(Default)]
    Fill, "fill";
    /// The data is not written.
    #[default]
    None = "none",
    /// From the first byte to the last.
    Sequential = "sequential",
    /// Every block once, in random order.
    Random = "random",
    /// From the first byte to the last, and then blocks of 16 KiB in random order until as many bytes were written as
    /// there is NAND, so that no free block is left over from the last purge.
    Aged = "aged",
}

impl Purge {
    /// Returns whether the drive is as new after the purge, except for wear.
    pub fn erases(self) -> bool {
        !matches!(self, Purge::None | Purge::Trim)
    }
}

/// The position of the data on the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The filesystem made before each cell.
    pub filesystem: Filesystem,
    /// The share of the capacity left unused, in [0, 1).
    pub reserve: f64,
    /// The size of the partition on the device; `None` for the entire device.
    pub partition: Option<Bytes>,
    /// Number of files of equal size that contain the data.
    pub files: u32,
    /// Whether mkfs trims the partition first.
    pub mkfs_trims: bool,
    /// Mount options of a real filesystem, as for `mount -o`; may be empty.
    pub mount_options: String,
}

impl Default for Layout {
    fn default() -> Self {
        Layout {
            filesystem: Filesystem::None,
            reserve: 0.0,
            partition: None,
            files: 1,
            mkfs_trims: false,
            mount_options: String::new(),
        }
    }
}

/// The preparation of the target before each cell.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Preparation {
    /// The method of erasing the device.
    pub purge: Purge,
    /// The position of the data.
    pub layout: Layout,
    /// The method of writing the data.
    pub fill: Fill,
    /// Idle time before the measurement.
    pub idle: Nanos,
    /// The I/O scheduler of a real device; `None` keeps the current one.
    pub scheduler: Option<String>,
}

/// Sequential writes over all the data before the first cell of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precondition {
    /// Number of passes over the data.
    pub times: u32,
    /// Bytes of a write.
    pub block: Bytes,
}

impl Precondition {
    /// The most passes. A larger number is probably a typing error.
    const MOST_TIMES: u32 = 1000;

    /// The load that writes `data`: one thread with 16 requests in flight.
    pub fn load(self, data: Bytes) -> Load {
        Load {
            pattern: Pattern::SequentialWrite,
            block: self.block,
            depth: 16,
            length: Length::Requests((data.get() / self.block.get()).max(1) * u64::from(self.times)),
            interval: Nanos::from_secs(1),
            ..Load::default()
        }
    }

    /// Reads `precondition`.
    pub(super) fn read(entry: &Entry<'_>) -> Option<Self> {
        let table = entry.table()?;
        table.only(&schema::PRECONDITION);
        let times = table.require("times", "2");
        let times = times.and_then(|entry| entry.count_up_to(Self::MOST_TIMES, "passes"));
        let block = table.value_or("block", Bytes::kib(128), FactorName::read_block);
        Some(Precondition { times: times?, block: block? })
    }
}

impl Preparation {
    /// Returns whether a cell with this preparation is independent of earlier cells, except for wear. Such a cell may
    /// run on a device of its own; other cells run in order on one device.
    pub fn forgets_history(&self) -> bool {
        self.purge.erases()
    }

    /// Replaces the fields whose keys are in `table`.
    pub(super) fn with(mut self, table: &Table<'_>) -> Self {
        table.update("purge", &mut self.purge, Entry::word);
        table.update("fill", &mut self.fill, Entry::word);
        table.update("idle", &mut self.idle, Entry::nanos);
        table.update("scheduler", &mut self.scheduler, |entry| entry.text("\"none\"").map(Some));
        if let Some(layout) = table.get("layout").and_then(|entry| entry.table()) {
            self.layout = self.layout.with(&layout);
        }
        self
    }
}

impl Layout {
    /// Replaces the fields whose keys are in `table`.
    fn with(mut self, table: &Table<'_>) -> Self {
        table.only(&schema::LAYOUT);
        table.update("filesystem", &mut self.filesystem, Entry::word);
        for (key, factor) in [("reserve", FactorName::Reserve), ("partition", FactorName::Partition)] {
            match table.get(key).and_then(|entry| factor.read(&entry)) {
                Some(Level::Reserve(share)) => self.reserve = share,
                Some(Level::Partition(size)) => self.partition = Some(size),
                _ => {}
            }
        }
        table.update("files", &mut self.files, Entry::count);
        table.update("mkfs-trims", &mut self.mkfs_trims, Entry::boolean);
        table.update("mount-options", &mut self.mount_options, |entry| entry.string("\"noatime\""));
        self
    }
}
