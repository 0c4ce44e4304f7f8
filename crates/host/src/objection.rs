//! [`Objection`]: one reason not to overwrite a device, as a value and as text.

use std::fmt;

/// A reason not to overwrite a device. The variants before [`Objection::PartitionTable`] cannot be overridden: the
/// device is in use, or is not the intended one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Objection {
    /// The user did not permit overwriting the device.
    NotTyped {
        /// The serial that the user has to type.
        serial: String,
        /// The identity of the device.
        is: String,
    },
    /// The serial that the user typed is not that of the device.
    WrongSerial {
        /// The text that the user typed.
        typed: String,
        /// The identity of the device.
        is: String,
    },
    /// The device is not the one that the plan was made for.
    Changed {
        /// The identity of the device in the plan.
        planned: String,
        /// The identity of the device now.
        is: String,
    },
    /// The system runs from the device, which is mounted at this path.
    Root(String),
    /// The device or a partition of it is mounted.
    Mounted {
        /// The kernel's name of the device.
        device: String,
        /// The mount point.
        at: String,
    },
    /// The system swaps to the device, given by the kernel's name.
    Swap(String),
    /// Another device is built on it: device mapper, LVM, RAID, bcache.
    Held {
        /// The kernel's name of the device.
        device: String,
        /// The devices above it.
        by: Vec<String>,
    },
    /// The device or file backs this loop device.
    LoopBacking(String),
    /// These programs have it open.
    Open(Vec<String>),
    /// These programs hold locks on it.
    Locked(Vec<String>),
    /// The kernel refuses to open it exclusively.
    Busy,
    /// A lower level is in use: the file of a loop device, or a device below that file.
    Below {
        /// The file or device of that level.
        level: String,
        /// The objection to overwriting it.
        what: Box<Objection>,
    },
    /// Open files are in transit between programs, and the device may be among them. Holds the description.
    Passing(String),
    /// The users of the device cannot be determined. Holds the reason.
    Unknown(String),
    /// The kernel rejects all writes to it.
    ReadOnly,
    /// It has a partition table. Holds the kind of table, or the partitions that the kernel knows.
    PartitionTable(String),
    /// It carries a filesystem, RAID, LUKS, LVM or ZFS label.
    Signature {
        /// The kind, as util-linux calls it.
        kind: String,
        /// The offset in bytes.
        offset: u64,
    },
}

impl Objection {
    /// Returns whether the objection concerns only data, which the user may give up with `--force-signature`.
    pub fn is_data(&self) -> bool {
        matches!(self, Objection::PartitionTable(_) | Objection::Signature { .. })
    }

    /// Returns whether the objection may disappear within moments: system programs (udev) open devices that appear,
    /// disappear or were written to.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Objection::Open(_) | Objection::Busy | Objection::Passing(_) => true,
            Objection::Below { what, .. } => what.is_passing(),
            _ => false,
        }
    }

    /// Writes the objection as a sentence about `it`.
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
            Objection::Root(at) => write!(f, "the system runs from {it} (mounted at {at})"),
            Objection::Mounted { device, at } => write!(f, "{device} is mounted at {at}"),
            Objection::Swap(device) => write!(f, "the system swaps to {device}"),
            Objection::Held { device, by } => write!(f, "{device} is held by {}", by.join(", ")),
            Objection::LoopBacking(by) => write!(f, "{it} backs {by}"),
            Objection::Open(by) => write!(f, "{it} is open in {}", by.join(", ")),
            Objection::Locked(by) => write!(f, "{it} is locked by {}", by.join(", ")),
            Objection::Busy => write!(f, "{it} is in use by something that only the kernel knows"),
            Objection::Below { level, what } => what.sentence(&format!("{level}, which {it} lies on,"), f),
            Objection::Passing(what) => f.write_str(what),
            Objection::Unknown(why) => write!(f, "the users of {it} cannot be determined: {why}"),
            Objection::ReadOnly => write!(f, "{it} is read-only"),
            Objection::PartitionTable(what) => write!(f, "{it} has a partition table ({what})"),
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
    fn an_objection_to_a_lower_level_names_that_level() {
        let below = |what| Objection::Below { level: "/vm/disk.img".to_owned(), what: Box::new(what) };
        let open = below(Objection::Open(vec!["qemu (process 7)".to_owned()]));
        assert_eq!(open.to_string(), "/vm/disk.img, which it lies on, is open in qemu (process 7)");
        let backs = below(Objection::LoopBacking("/dev/loop3".to_owned()));
        assert_eq!(backs.to_string(), "/vm/disk.img, which it lies on, backs /dev/loop3");
        assert!(open.is_passing() && !backs.is_passing() && !open.is_data());
    }
}
