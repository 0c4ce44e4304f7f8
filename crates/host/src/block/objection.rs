//! [`Objection`]: one thing that speaks against overwriting a device.
//!
//! Leaves out finding them.

use std::fmt;

/// What speaks against overwriting a device. Those before [`Objection::PartitionTable`] mean that it is in use, and
/// nothing overrides them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Objection {
    /// Nobody said that it may be overwritten.
    NotTyped {
        /// What is to be typed.
        serial: String,
        /// What the device says.
        is: String,
    },
    /// The serial that was typed is another's.
    WrongSerial {
        /// What was typed.
        typed: String,
        /// What the device says.
        is: String,
    },
    /// The device is not the one that was planned for.
    Changed {
        /// What was planned for.
        planned: String,
        /// What is there now.
        is: String,
    },
    /// The system runs from it.
    Root {
        /// Where it is mounted.
        at: String,
    },
    /// It, or a part of it, is mounted.
    Mounted {
        /// The name of the kernel.
        device: String,
        /// Where.
        at: String,
    },
    /// The system swaps to it.
    Swap {
        /// The name of the kernel.
        device: String,
    },
    /// Another device is built on it: device mapper, LVM, RAID, bcache.
    Held {
        /// The name of the kernel.
        device: String,
        /// The devices above it.
        by: Vec<String>,
    },
    /// A loop device has it for its file.
    LoopBacking {
        /// The loop device.
        by: String,
    },
    /// Programs have it open.
    Open {
        /// Which.
        by: Vec<String>,
    },
    /// The kernel refuses to give it to one user alone.
    Busy,
    /// The kernel lets nobody write to it.
    ReadOnly,
    /// It is divided into partitions.
    PartitionTable {
        /// The kind of table, or the partitions that the kernel knows.
        what: String,
    },
    /// It carries a filesystem, RAID, LUKS, LVM or ZFS label.
    Signature {
        /// The kind, as util-linux calls it.
        kind: String,
        /// At which byte.
        offset: u64,
    },
}

impl Objection {
    /// Whether the user may say that the data is not needed any more (`--force-signature`).
    pub fn is_data(&self) -> bool {
        matches!(self, Objection::PartitionTable { .. } | Objection::Signature { .. })
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Objection::NotTyped { serial, is } => {
                write!(
                    f,
                    "everything on it will be lost; if that is meant, add `--destroy '{serial}'` (this is {is})"
                )
            }
            Objection::WrongSerial { typed, is } => {
                write!(f, "`--destroy {typed}` was typed, but this is {is}")
            }
            Objection::Changed { planned, is } => {
                write!(f, "another device was planned for ({planned}); this is {is}")
            }
            Objection::Root { at } => write!(f, "the system runs from it (mounted at {at})"),
            Objection::Mounted { device, at } => write!(f, "{device} is mounted at {at}"),
            Objection::Swap { device } => write!(f, "the system swaps to {device}"),
            Objection::Held { device, by } => write!(f, "{device} is held by {}", by.join(", ")),
            Objection::LoopBacking { by } => write!(f, "it backs {by}"),
            Objection::Open { by } => write!(f, "it is open in {}", by.join(", ")),
            Objection::Busy => f.write_str("the kernel says that something else uses it"),
            Objection::ReadOnly => f.write_str("it is read-only"),
            Objection::PartitionTable { what } => write!(f, "it has a partition table ({what})"),
            Objection::Signature { kind, offset } => {
                write!(f, "it carries a signature of {kind} at byte {offset}")
            }
        }
    }
}
