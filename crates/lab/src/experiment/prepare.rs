//! `[before-each-cell]`, and `precondition` of a step: what happens to the target before it is measured, so that
//! history is explicit.
//!
//! Not here: doing it (the stage `prepare`) and whether the target can; a file has nothing to erase.

use super::error::Problems;
use super::length::Length;
use super::level::{FactorName, Level};
use super::load::{Load, Pattern};
use super::read::{Entry, Table};
use super::schema;
use super::words::words;
use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

words! {
    /// How what was written before is forgotten.
    Purge, "purge";
    /// Not at all: the device keeps its history.
    None = "none",
    /// Every address is trimmed.
    Trim = "trim",
    /// The drive's own erase: as new, but for wear. Of a model; of a real drive, say which of those below.
    SecureErase = "secure-erase",
    /// TRIM that the drive promises to have done.
    SecureDiscard = "secure-discard",
    /// NVMe Format NVM.
    NvmeFormat = "nvme-format",
    /// NVMe Sanitize.
    NvmeSanitize = "nvme-sanitize",
    /// ATA Security Erase Unit.
    AtaSecureErase = "ata-secure-erase",
}

words! {
    /// The file system whose layout and journal the data has.
    Filesystem, "filesystem";
    /// The data lies on the bare device.
    None = "none",
    /// XFS.
    Xfs = "xfs",
    /// ext4.
    Ext4 = "ext4",
    /// Btrfs.
    Btrfs = "btrfs",
}

impl Filesystem {
    /// The filesystem that is made, or that the model lays out; `None` on the bare device.
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
    /// How the data is written for the first time, before the measurement.
    Fill, "fill";
    /// Not at all.
    None = "none",
    /// From the first byte to the last.
    Sequential = "sequential",
    /// Every block once, in random order.
    Random = "random",
    /// From the first byte to the last, and then blocks of 16 KiB in random order until as much was written as there is NAND: no
    /// free block is left over from the last purge.
    Aged = "aged",
}

impl Purge {
    /// Whether the drive is as new afterwards, but for wear.
    pub fn erases(self) -> bool {
        !matches!(self, Purge::None | Purge::Trim)
    }
}

/// Where the data lies on the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The file system made before each cell.
    pub filesystem: Filesystem,
    /// The share of the capacity left unused, in [0, 1).
    pub reserve: f64,
    /// The partition made on the device; the whole device where absent.
    pub partition: Option<Bytes>,
    /// Files of equal size that the data is split over.
    pub files: u32,
    /// Whether making the file system trims the partition first.
    pub mkfs_trims: bool,
    /// Options that a real file system is mounted with, as `mount -o` takes them; empty for none.
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

/// What happens to the target before each cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    /// How history is forgotten.
    pub purge: Purge,
    /// Where the data lies.
    pub layout: Layout,
    /// How the data is first written.
    pub fill: Fill,
    /// How long the target is left alone before the measurement begins.
    pub idle: Nanos,
    /// The I/O scheduler of a real device; the one it has where absent.
    pub scheduler: Option<String>,
}

impl Default for Preparation {
    fn default() -> Self {
        Preparation {
            purge: Purge::None,
            layout: Layout::default(),
            fill: Fill::None,
            idle: Nanos::ZERO,
            scheduler: None,
        }
    }
}

/// Sequential writes over all the data, once before the first cell of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precondition {
    /// How often the data is written.
    pub times: u32,
    /// Bytes of a write.
    pub block: Bytes,
}

impl Precondition {
    /// More passes than these are a slip of the keyboard.
    const MOST_TIMES: u32 = 1000;

    /// The load that writes `data` so: one thread with some requests in flight.
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
    pub(super) fn read(entry: &Entry<'_>, problems: &mut Problems<'_>) -> Option<Self> {
        let table = entry.table(problems)?;
        table.only(&schema::PRECONDITION, problems);
        let times = table.require("times", "2", problems).and_then(|entry| match entry.count(problems)? {
            times if times > Self::MOST_TIMES => {
                entry.refuse(format!("{times} passes"), format!("from 1 to {}", Self::MOST_TIMES), problems)
            }
            times => Some(times),
        });
        let block = match table.get("block") {
            None => Some(Bytes::kib(128)),
            Some(entry) => match FactorName::Block.read(&entry, problems) {
                Some(Level::Block(block)) => Some(block),
                _ => None,
            },
        };
        Some(Precondition { times: times?, block: block? })
    }
}

impl Preparation {
    /// Whether a cell prepared like this owes nothing to the cells before it, but for wear: it may run on a
    /// device of its own. Other cells run in order on one device.
    pub fn forgets_history(&self) -> bool {
        self.purge.erases()
    }

    /// This preparation with the keys that `table` holds (`purge`, `layout`, `fill`, `idle`, `scheduler`) in place of its own.
    pub(super) fn with(mut self, table: &Table<'_>, problems: &mut Problems<'_>) -> Self {
        if let Some(purge) = table.get("purge").and_then(|entry| entry.word(problems)) {
            self.purge = purge;
        }
        if let Some(fill) = table.get("fill").and_then(|entry| entry.word(problems)) {
            self.fill = fill;
        }
        if let Some(idle) = table.get("idle").and_then(|entry| entry.nanos(problems)) {
            self.idle = idle;
        }
        if let Some(scheduler) = table.get("scheduler").and_then(|entry| entry.text("\"none\"", problems)) {
            self.scheduler = Some(scheduler);
        }
        if let Some(layout) = table.get("layout").and_then(|entry| entry.table(problems)) {
            self.layout = self.layout.with(&layout, problems);
        }
        self
    }
}

impl Layout {
    /// This layout with the keys that `table` holds in place of its own.
    fn with(mut self, table: &Table<'_>, problems: &mut Problems<'_>) -> Self {
        table.only(&schema::LAYOUT, problems);
        if let Some(filesystem) = table.get("filesystem").and_then(|entry| entry.word(problems)) {
            self.filesystem = filesystem;
        }
        let reserve = table.get("reserve").and_then(|entry| FactorName::Reserve.read(&entry, problems));
        if let Some(Level::Reserve(reserve)) = reserve {
            self.reserve = reserve;
        }
        if let Some(entry) = table.get("partition") {
            match entry.bytes(problems) {
                Some(Bytes::ZERO) => {
                    entry.refuse::<()>(
                        "a partition of no bytes",
                        "a size above 0, such as `\"120GB\"`",
                        problems,
                    );
                }
                partition => self.partition = partition,
            }
        }
        if let Some(files) = table.get("files").and_then(|entry| entry.count(problems)) {
            self.files = files;
        }
        if let Some(trims) = table.get("mkfs-trims").and_then(|entry| entry.boolean(problems)) {
            self.mkfs_trims = trims;
        }
        if let Some(options) =
            table.get("mount-options").and_then(|entry| entry.string("\"noatime\"", problems))
        {
            self.mount_options = options;
        }
        self
    }
}
