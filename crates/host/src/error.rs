//! [`HostError`]: what can go wrong between lowtide and Linux, for programs to match and people to read.
//!
//! Every variant says what was done, where, and what would have been accepted. Not here: exit codes; the
//! command line maps variants to those.

use crate::objection::Objection;
use lowtide_core::Bytes;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What was being done when something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Opening a file.
    Open,
    /// Creating a file.
    Create,
    /// Finding out about a file or its filesystem.
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
    /// Telling a device that nothing on it is needed any more.
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
    /// Giving a device its settings.
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

/// One request that failed: which, where, and how. Kept apart from [`HostError`] because a measurement goes on
/// after it.
#[derive(Debug)]
pub struct IoFailure {
    /// [`Operation::Read`] or [`Operation::Write`]; of a trace also [`Operation::Sync`] and [`Operation::Discard`].
    pub operation: Operation,
    /// The file.
    pub path: PathBuf,
    /// First byte of the request, in the file.
    pub offset: u64,
    /// What the kernel said.
    pub source: io::Error,
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot {} {} at byte {}: {}",
            self.operation,
            self.path.display(),
            self.offset,
            self.source
        )
    }
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The kernel refused something.
    #[error("cannot {operation} {}{}: {source}", path.display(), at(*offset))]
    Io {
        /// What was being done.
        operation: Operation,
        /// To which file.
        path: PathBuf,
        /// At which byte of it, where that matters.
        offset: Option<u64>,
        /// What the kernel said.
        source: io::Error,
    },
    /// So many requests failed that going on makes no sense.
    #[error(
        "{failures} requests failed while hardly any succeeded, so the measurement was stopped; the first: {first}"
    )]
    TooManyErrors {
        /// Requests of one thread that failed, with hardly one between them that succeeded.
        failures: u32,
        /// The first failure of the measurement.
        first: IoFailure,
    },
    /// There is not enough room for the files.
    #[error(
        "{} needs {} free, but its filesystem has {} left: choose a smaller size or another filesystem",
        path.display(), for_people(*wanted), for_people(*available)
    )]
    NoSpace {
        /// The target.
        path: PathBuf,
        /// Bytes that the files need beyond what they already have.
        wanted: Bytes,
        /// Bytes that the filesystem would give to this user.
        available: Bytes,
    },
    /// A block device must not be overwritten.
    #[error("{} is not overwritten: {}", path.display(), list(objections))]
    Refused {
        /// The device, as it was named.
        path: PathBuf,
        /// Everything that speaks against it.
        objections: Vec<Objection>,
    },
    /// A block device is in use.
    #[error("{} is not opened: {}", path.display(), list(objections))]
    NotOpened {
        /// The device, as it was named.
        path: PathBuf,
        /// What uses it.
        objections: Vec<Objection>,
    },
    /// What was changed on a device could not be undone.
    #[error(
        "{} is not as it was: {source}; the next run on it tries again, or unmount what is mounted below \
         /run/lowtide, and wipe the device with wipefs",
        path.display()
    )]
    NotUndone {
        /// The device, as it was named.
        path: PathBuf,
        /// What failed.
        source: Box<HostError>,
    },
    /// A program that lowtide calls is missing, or failed.
    #[error("{program} ({what}) failed: {said}")]
    Tool {
        /// The program.
        program: &'static str,
        /// Where it comes from.
        what: &'static str,
        /// What it, or the kernel, said.
        said: String,
    },
    /// The path is a block device or a partition.
    #[error(
        "{} is a block device, not a file: write `block:PATH` to test it, or name a file or a directory on it",
        path.display()
    )]
    BlockDevice {
        /// The device node.
        path: PathBuf,
    },
    /// The path is something else than wanted.
    #[error("{} is {found}, but {wanted} is wanted here", path.display())]
    WrongKind {
        /// The path.
        path: PathBuf,
        /// What it is, with its article.
        found: &'static str,
        /// What would be accepted, with its article.
        wanted: &'static str,
    },
    /// A file is in the way that lowtide did not make.
    #[error(
        "{} exists and was not made by lowtide, so it is not overwritten: name a file that does not exist yet, or \
         remove it yourself; a workload that only reads may use it as it is",
        path.display()
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// Another lowtide holds the file.
    #[error("{} is in use by another lowtide: wait for it to end, or name another file", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// There is no way to a block device here.
    #[error(
        "{} cannot be used ({source}): a drive is attached by FUSE and a loop device, which need root and both in the \
         kernel",
        path.display()
    )]
    NoBlockDevice {
        /// What is missing.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A drive of that name is attached.
    #[error(
        "{name} is attached already: `lowtide drive detach {name}` first, or choose another name with --name"
    )]
    AlreadyAttached {
        /// The name.
        name: String,
    },
    /// No drive of that name is attached.
    #[error("{what} is not attached: {}{}", attached(attached_names), nearest(what, attached_names))]
    NotAttached {
        /// What was looked for.
        what: String,
        /// The names of those that are.
        attached_names: Vec<String>,
    },
    /// The server of an attached drive ended.
    #[error("the server of {name} ended: {said}")]
    ServerEnded {
        /// The drive's name.
        name: String,
        /// What it said at last.
        said: String,
    },
    /// Something that is to be undone is in use.
    #[error(
        "{} is in use by {}: end that first, or use --force, which takes it away from them",
        path.display(), by_whom(by)
    )]
    Busy {
        /// The mount point or device.
        path: PathBuf,
        /// Programs, mounts and devices; none where they are not seen from here.
        by: Vec<String>,
    },
    /// What was attached could not be taken apart.
    #[error("{name} is attached in part: {source}; `lowtide drive detach {name}` tries again")]
    NotDetached {
        /// The drive's name.
        name: String,
        /// What failed.
        source: Box<HostError>,
    },
    /// The kernel does not come back.
    #[error(
        "{name}: {what} does not end although the drive was cut off; what is left can be detached once more later, \
         or goes when the machine is started anew"
    )]
    Hangs {
        /// The drive's name.
        name: String,
        /// What was being done.
        what: &'static str,
    },
    /// A request or setting that cannot be honoured.
    #[error("{what} is {value}: {accepted}")]
    Invalid {
        /// The setting.
        what: &'static str,
        /// Its value.
        value: String,
        /// What would be accepted.
        accepted: String,
    },
    /// The chosen engine does not work here.
    #[error(
        "io_uring is not available here ({source}): choose the engine `sync`, or `auto` to use what there is"
    )]
    NoUring {
        /// What the kernel said.
        source: io::Error,
    },
    /// A certificate or a key cannot be used.
    #[error(
        "{} {what}; the folder for TLS holds server-cert.pem and server-key.pem, and ca-cert.pem where clients are verified",
        path.display()
    )]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, as the rest of the sentence.
        what: String,
    },
    /// Clients cannot be listened for.
    #[error("cannot listen on {address}: {what}")]
    Listen {
        /// Where: a path, a host with a port, a descriptor.
        address: String,
        /// What is wrong, and what would be accepted.
        what: String,
    },
    /// The interrupt flag was set while a file or device was being prepared.
    #[error("interrupted while {} was being prepared", path.display())]
    Interrupted {
        /// The file.
        path: PathBuf,
    },
}

impl HostError {
    /// For `map_err`: the kernel refused `operation` on `path`.
    pub fn io<E: Into<io::Error>>(operation: Operation, path: &Path) -> impl FnOnce(E) -> HostError {
        let path = path.to_owned();
        move |source| HostError::Io { operation, path, offset: None, source: source.into() }
    }

    /// A program that lowtide calls is missing, or failed.
    pub(crate) fn tool(program: &'static str, what: &'static str, said: String) -> HostError {
        HostError::Tool { program, what, said }
    }

    /// For `map_err`: the kernel refused `operation` on `path` at byte `offset`.
    pub(crate) fn io_at<E: Into<io::Error>>(
        operation: Operation,
        path: &Path,
        offset: u64,
    ) -> impl FnOnce(E) -> HostError {
        let path = path.to_owned();
        move |source| HostError::Io { operation, path, offset: Some(offset), source: source.into() }
    }
}

fn list(objections: &[Objection]) -> String {
    let texts: Vec<String> = objections.iter().map(Objection::to_string).collect();
    texts.join("; ")
}

pub(crate) fn by_whom(by: &[String]) -> String {
    match by {
        [] => "something that is not seen from here (another mount namespace?)".to_owned(),
        by => by.join(", "),
    }
}

fn attached(names: &[String]) -> String {
    match names {
        [] => "no drive is".to_owned(),
        names => format!("attached are {}", names.join(", ")),
    }
}

fn nearest(what: &str, names: &[String]) -> String {
    let near = lowtide_core::suggest::nearest(what, names.iter().map(String::as_str));
    near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn at(offset: Option<u64>) -> String {
    offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default()
}

/// A size in the largest binary unit with one decimal: exactness matters less here than reading it.
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
    fn errors_say_what_where_and_what_is_accepted() {
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
