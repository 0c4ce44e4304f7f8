//! [`HostError`]: failures between lowtide and Linux, for programs to match and people to read.
//!
//! Each message names the operation, the object and the accepted values. The command line maps variants to exit
//! codes.

use crate::objection::Objection;
use lowtide_core::Bytes;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Opening a file.
    Open,
    /// Creating a file.
    Create,
    /// Examining a file or its filesystem.
    Inspect,
    /// Reserving space for a file.
    Allocate,
    /// Filling a file before a measurement.
    Fill,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Making writes durable.
    Sync,
    /// Discarding (TRIM).
    Discard,
    /// Marking a file as made by lowtide.
    Mark,
    /// Removing a file.
    Remove,
    /// Starting a program.
    Start,
    /// Mounting a filesystem.
    Mount,
    /// Unmounting a filesystem.
    Unmount,
    /// Changing the settings of a device.
    Configure,
    /// Setting up an engine: threads, rings, buffers.
    SetUp,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Open => "open",
            Operation::Create => "create",
            Operation::Inspect => "inspect",
            Operation::Allocate => "reserve space for",
            Operation::Fill => "fill",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Sync => "sync",
            Operation::Discard => "discard",
            Operation::Mark => "mark",
            Operation::Remove => "remove",
            Operation::Start => "start",
            Operation::Mount => "mount",
            Operation::Unmount => "unmount",
            Operation::Configure => "set up",
            Operation::SetUp => "set up the engine for",
        })
    }
}

/// One failed request. It is not a [`HostError`], because the measurement continues.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {} at byte {offset}: {source}", path.display())]
pub struct IoFailure {
    /// [`Operation::Read`] or [`Operation::Write`]; in a replayed trace also [`Operation::Sync`] and
    /// [`Operation::Discard`].
    pub operation: Operation,
    /// The file.
    pub path: PathBuf,
    /// First byte of the request in the file.
    pub offset: u64,
    /// The error of the system call.
    pub source: io::Error,
}

/// A failure of a file, a device, the kernel or another program.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A system call failed.
    #[error("cannot {operation} {}{}: {source}", path.display(), at(*offset))]
    Io {
        /// The operation.
        operation: Operation,
        /// The file or device.
        path: PathBuf,
        /// The byte in the file, if it matters.
        offset: Option<u64>,
        /// The error of the system call.
        source: io::Error,
    },
    /// Nearly all requests fail.
    #[error(
        "{failures} requests failed while hardly any succeeded, so the measurement was stopped; the first: {first}"
    )]
    TooManyErrors {
        /// Failed requests of one thread, with hardly any success among them.
        failures: u32,
        /// The first failure of the measurement.
        first: IoFailure,
    },
    /// The filesystem has too little room for the files.
    #[error(
        "{} needs {} free, but its filesystem has {} left: choose a smaller size or another filesystem",
        path.display(), for_people(*wanted), for_people(*available)
    )]
    NoSpace {
        /// The target.
        path: PathBuf,
        /// Bytes that the files need beyond those already allocated to them.
        wanted: Bytes,
        /// Bytes available to this user.
        available: Bytes,
    },
    /// A block device must not be overwritten.
    #[error("{} is not overwritten: {}", path.display(), list(objections))]
    Refused {
        /// The device, as the user named it.
        path: PathBuf,
        /// All reasons.
        objections: Vec<Objection>,
    },
    /// A block device or a file is in use.
    #[error("{} is not opened: {}", path.display(), list(objections))]
    NotOpened {
        /// The device or file, as the user named it.
        path: PathBuf,
        /// Its users.
        objections: Vec<Objection>,
    },
    /// Changes to a device could not be undone.
    #[error(
        "{} could not be restored: {source}; the next run on it tries again. To restore it by hand, unmount what \
         is mounted below /run/lowtide and run wipefs on the device",
        path.display()
    )]
    NotUndone {
        /// The device, as the user named it.
        path: PathBuf,
        /// The cause.
        source: Box<HostError>,
    },
    /// An external program is missing or failed.
    #[error("{program} ({package}) failed: {output}")]
    Tool {
        /// The program.
        program: &'static str,
        /// Its origin: `of util-linux`.
        package: &'static str,
        /// Its error output, or the error of the kernel.
        output: String,
    },
    /// A block device or partition was named as a file.
    #[error(
        "{} is a block device, not a file: write `block:PATH` to test it, or name a file or a directory on it",
        _0.display()
    )]
    BlockDevice(PathBuf),
    /// The path names another kind of file than required.
    #[error("{} is {found}, but {wanted} is wanted here", path.display())]
    WrongKind {
        /// The path.
        path: PathBuf,
        /// The kind of the file, with its article.
        found: &'static str,
        /// The accepted kind, with its article.
        wanted: &'static str,
    },
    /// A file with the name of a test file was not made by lowtide.
    #[error(
        "{} exists and was not made by lowtide, so it is not overwritten: name a file that does not exist yet, or \
         remove it yourself; a workload that only reads may use it as it is",
        _0.display()
    )]
    NotOurs(PathBuf),
    /// Another process of lowtide holds the file.
    #[error("{} is in use by another lowtide: wait for it to end, or name another file", _0.display())]
    InUse(PathBuf),
    /// Drives cannot be attached on this machine or by this user.
    #[error(
        "{} cannot be used ({source}): a drive is attached by FUSE and a loop device, which need root and both in the \
         kernel",
        path.display()
    )]
    NoBlockDevice {
        /// The missing device node or folder.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// A drive with this name is already attached.
    #[error("{0} is attached already: `lowtide drive detach {0}` first, or choose another name with --name")]
    AlreadyAttached(String),
    /// No drive with this name is attached.
    #[error("{wanted} is not attached: {}{}", attached(attached_names), nearest(wanted, attached_names))]
    NotAttached {
        /// The name, as the user wrote it.
        wanted: String,
        /// Names of the attached drives.
        attached_names: Vec<String>,
    },
    /// The server of an attached drive ended.
    #[error("the server of {name} ended: {output}")]
    ServerEnded {
        /// The drive's name.
        name: String,
        /// The last lines of its log.
        output: String,
    },
    /// A mount or device that has to be removed is in use.
    #[error(
        "{} is in use by {}: end that first, or use --force, which makes their requests fail",
        path.display(), by_whom(by)
    )]
    Busy {
        /// The mount point or device.
        path: PathBuf,
        /// Programs, mounts and devices that use it; empty if this process cannot see them.
        by: Vec<String>,
    },
    /// Detaching failed half-way.
    #[error("{name} is still partly attached: {source}; `lowtide drive detach {name}` tries again")]
    NotDetached {
        /// The drive's name.
        name: String,
        /// The cause.
        source: Box<HostError>,
    },
    /// A system call does not return.
    #[error(
        "{name}: {call} hangs although the connection to the drive was cut; detach the drive again later, or \
         restart the machine"
    )]
    Hangs {
        /// The drive's name.
        name: String,
        /// The call: `unmounting`.
        call: &'static str,
    },
    /// A request or setting is not accepted.
    #[error("{what} is {value}: {accepted}")]
    Invalid {
        /// The setting.
        what: &'static str,
        /// Its value.
        value: String,
        /// The accepted values.
        accepted: String,
    },
    /// The engine `uring` was asked for and does not work on this machine.
    #[error(
        "io_uring is not available here ({source}): choose the engine `sync`, or `auto` for the best available one"
    )]
    NoUring {
        /// The error of the system call.
        source: io::Error,
    },
    /// A certificate or a key cannot be used.
    #[error(
        "{} {what}; the folder for TLS holds server-cert.pem and server-key.pem, and ca-cert.pem if clients are verified",
        path.display()
    )]
    Certificates {
        /// The file.
        path: PathBuf,
        /// The fault, as the predicate of a sentence about the file.
        what: String,
    },
    /// Listening for clients failed.
    #[error("cannot listen on {address}: {what}")]
    Listen {
        /// A path, a host with a port, or a descriptor.
        address: String,
        /// The fault, and the accepted values.
        what: String,
    },
    /// The interrupt flag was set while a file or device was prepared.
    #[error("interrupted while {} was being prepared", _0.display())]
    Interrupted(PathBuf),
}

impl HostError {
    /// Makes the error of a failed system call for `operation` on `path`, for `map_err`.
    pub fn io<E: Into<io::Error>>(operation: Operation, path: &Path) -> impl FnOnce(E) -> HostError {
        let path = path.to_owned();
        move |source| HostError::Io { operation, path, offset: None, source: source.into() }
    }

    /// Makes the error of a failed system call for `operation` on `path` at byte `offset`, for `map_err`.
    pub(crate) fn io_at(
        operation: Operation,
        path: &Path,
        offset: u64,
    ) -> impl FnOnce(io::Error) -> HostError {
        let path = path.to_owned();
        move |source| HostError::Io { operation, path, offset: Some(offset), source }
    }

    /// Makes the error of a setting whose value is not accepted.
    pub(crate) fn invalid(
        what: &'static str,
        value: impl fmt::Display,
        accepted: impl Into<String>,
    ) -> HostError {
        HostError::Invalid { what, value: value.to_string(), accepted: accepted.into() }
    }
}

fn list(objections: &[Objection]) -> String {
    let texts: Vec<String> = objections.iter().map(Objection::to_string).collect();
    texts.join("; ")
}

pub(crate) fn by_whom(by: &[String]) -> String {
    match by {
        [] => "something that is not visible from here (another mount namespace?)".to_owned(),
        by => by.join(", "),
    }
}

fn attached(names: &[String]) -> String {
    match names {
        [] => "no drive is".to_owned(),
        names => format!("attached are {}", names.join(", ")),
    }
}

fn nearest(wanted: &str, names: &[String]) -> String {
    let near = lowtide_core::suggest::nearest(wanted, names.iter().map(String::as_str));
    near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn at(offset: Option<u64>) -> String {
    offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default()
}

/// A size in the largest binary unit, rounded to one decimal.
fn for_people(bytes: Bytes) -> String {
    let mut value = bytes.get() as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" { format!("{value} B") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_operation_the_file_and_the_remedy() {
        let error = HostError::NoSpace {
            path: "/data/x".into(),
            wanted: Bytes::gib(10),
            available: Bytes::new(1_234_567_890),
        };
        assert_eq!(
            error.to_string(),
            "/data/x needs 10.0 GiB free, but its filesystem has 1.1 GiB left: choose a smaller size or another filesystem"
        );
        let error =
            HostError::io_at(Operation::Fill, Path::new("/data/x"), 4096)(io::Error::from_raw_os_error(28));
        assert_eq!(
            error.to_string(),
            "cannot fill /data/x at byte 4096: No space left on device (os error 28)"
        );
    }
}
