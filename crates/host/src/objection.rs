//! [`Objection`]: one thing that speaks against overwriting a device.
//!
//! Not here: finding them.

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
    /// A loop device has it for its file; another one, where it is the file of one.
    LoopBacking {
        /// The loop device.
        by: String,
    },
    /// Programs have it open.
    Open {
        /// Which.
        by: Vec<String>,
    },
    /// Programs have locked it.
    Locked {
        /// Which.
        by: Vec<String>,
    },
    /// The kernel refuses to give it to one user alone.
    Busy,
    /// What it lies on is in use: the file of a loop device, or a device below that.
    Below {
        /// The file or device.
        level: String,
        /// What speaks against that one.
        what: Box<Objection>,
    },
    /// Something is on its way between programs that may be the device.
    Passing {
        /// What.
        what: String,
    },
    /// Who uses it cannot be known.
    Unknown {
        /// Why.
        what: String,
    },
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

    /// Whether it may be gone in a moment: programs of the system (udev) look at devices that come, go or were written to.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Objection::Open { .. } | Objection::Busy | Objection::Passing { .. } => true,
            Objection::Below { what, .. } => what.is_passing(),
            _ => false,
        }
    }

    /// The objection as a sentence about `it`.
    fn sentence(&self, it: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Objection::NotTyped { serial, is } => {
                write!(
                    f,
                    "everything on {it} will be lost; if that is meant, add `--destroy '{serial}'` (this is {is})"
                )
            }
            Objection::WrongSerial { typed, is } => {
                write!(f, "`--destroy {typed}` was typed, but this is {is}")
            }
            Objection::Changed { planned, is } => {
                write!(f, "another device was planned for ({planned}); this is {is}")
            }
            Objection::Root { at } => write!(f, "the system runs from {it} (mounted at {at})"),
            Objection::Mounted { device, at } => write!(f, "{device} is mounted at {at}"),
            Objection::Swap { device } => write!(f, "the system swaps to {device}"),
            Objection::Held { device, by } => write!(f, "{device} is held by {}", by.join(", ")),
            Objection::LoopBacking { by } => write!(f, "{it} backs {by}"),
            Objection::Open { by } => write!(f, "{it} is open in {}", by.join(", ")),
            Objection::Locked { by } => write!(f, "{it} is locked by {}", by.join(", ")),
            Objection::Busy => write!(f, "{it} is in use by something that only the kernel knows"),
            Objection::Below { level, what } => what.sentence(&format!("{level}, which {it} lies on,"), f),
            Objection::Passing { what } => f.write_str(what),
            Objection::Unknown { what } => write!(f, "who uses {it} cannot be known: {what}"),
            Objection::ReadOnly => write!(f, "{it} is read-only"),
            Objection::PartitionTable { what } => write!(f, "{it} has a partition table ({what})"),
            Objection::Signature { kind, offset } => {
                write!(f, "{it} carries a signature of {kind} at byte {offset}")
            }
        }
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sentence("it", f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_lies_on_is_named() {
        let below = |level: &str, what| Objection::Below { level: level.to_owned(), what: Box::new(what) };
        let by = vec!["qemu (process 7)".to_owned()];
        let open = below("/vm/disk.img", Objection::Open { by });
        assert_eq!(open.to_string(), "/vm/disk.img, which it lies on, is open in qemu (process 7)");
        let backs = below("/vm/disk.img", Objection::LoopBacking { by: "/dev/loop3".to_owned() });
        assert_eq!(backs.to_string(), "/vm/disk.img, which it lies on, backs /dev/loop3");
        assert!(open.is_passing() && !backs.is_passing() && !open.is_data());
    }
}
