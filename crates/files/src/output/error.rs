//! Reasons why an output is not written.

use super::Role;
use super::destination::Unreachable;
use std::io;
use std::path::{Path, PathBuf};

/// An error of an output.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum OutputError {
    /// A store would be lost.
    #[error("{} is a store: {} would overwrite every number in it", path.display(), role.noun)]
    #[diagnostic(help("{}", role.another()))]
    Store {
        /// The path, as it was named.
        path: PathBuf,
        /// What would be written.
        role: Role,
    },
    /// A file that SQLite keeps beside a store would be lost, and with it what SQLite has not moved into the
    /// store yet.
    #[error("{} belongs to the store {}: {} would damage it", path.display(), store.display(), role.noun)]
    #[diagnostic(help("{}", role.another()))]
    BesideStore {
        /// The path, as it was named.
        path: PathBuf,
        /// The store.
        store: PathBuf,
        /// What would be written.
        role: Role,
    },
    /// A file that the command reads, or writes for another purpose, would be lost.
    #[error("{} is {}{what} of this command: {} would overwrite it", path.display(), also(path, other), role.noun)]
    #[diagnostic(help("{}", role.another()))]
    OfCommand {
        /// The path, as it was named.
        path: PathBuf,
        /// The path by which another part of the command line names the file.
        other: PathBuf,
        /// The purpose of the file there.
        what: &'static str,
        /// What would be written.
        role: Role,
    },
    /// The data on a device would be lost.
    #[error("{} is a {kind}{}: {} is not written to one", path.display(), through(path, to), role.noun)]
    #[diagnostic(help("{}", role.another()))]
    Device {
        /// The path, as it was named.
        path: PathBuf,
        /// Where it leads.
        to: PathBuf,
        /// The kind of device.
        kind: &'static str,
        /// What would be written.
        role: Role,
    },
    /// The resolved path names something else, so writing could overwrite a file other than the named one.
    #[error(
        "{} is not what its resolved path names (deleted, covered by a mount, or in another mount namespace): \
         {} could overwrite another file",
        path.display(),
        role.noun
    )]
    #[diagnostic(help("{}", role.another()))]
    Elsewhere {
        /// The path, as it was named.
        path: PathBuf,
        /// What would be written.
        role: Role,
    },
    /// The file cannot be read, so it may be a store.
    #[error("{} is there and cannot be read, so it may be a store: {source}", path.display())]
    #[diagnostic(help("make it readable, or {}", role.another()))]
    Unreadable {
        /// The path, as it was named.
        path: PathBuf,
        /// What the system said; part of the message.
        source: io::Error,
        /// What would be written.
        role: Role,
    },
    /// A file is wanted, and this is a directory.
    #[error("{} is a directory, but {} is a file", path.display(), role.noun)]
    #[diagnostic(help("{}", role.in_a_directory()))]
    Directory {
        /// The path, as it was named.
        path: PathBuf,
        /// What would be written.
        role: Role,
    },
    /// A directory is wanted, and this is something else.
    #[error("{} is no directory, which {} lie in", path.display(), role.noun)]
    #[diagnostic(help("name a directory{}", role.by()))]
    NotADirectory {
        /// The path, as it was named.
        path: PathBuf,
        /// What would be written.
        role: Role,
    },
    /// The directory of the file does not exist.
    #[error("there is no directory for {} {}", role.noun, path.display())]
    #[diagnostic(help("{}", role.in_a_directory()))]
    NoDirectory {
        /// The path, as it was named.
        path: PathBuf,
        /// What would be written.
        role: Role,
    },
    /// No file can be made in the directory.
    #[error("{} cannot be written: {}{source}", path.display(), within(path, folder))]
    #[diagnostic(help("{}", role.in_a_directory()))]
    NotWritable {
        /// The path, as it was named.
        path: PathBuf,
        /// The directory.
        folder: PathBuf,
        /// What the system said; part of the message.
        source: io::Error,
        /// What would be written.
        role: Role,
    },
    /// Neither a file nor a pipe: a socket, for example.
    #[error("{} is neither a file nor a pipe", path.display())]
    #[diagnostic(help("{}", role.another()))]
    Kind {
        /// The path, as it was named.
        path: PathBuf,
        /// What would be written.
        role: Role,
    },
    /// A new file is wanted, and there is one already.
    #[error("{} is there already", path.display())]
    #[diagnostic(help("name a new file{}", role.by()))]
    Exists {
        /// The path, as it was named.
        path: PathBuf,
        /// What would be written.
        role: Role,
    },
    /// Writing failed. The old file is unchanged.
    #[error("{} cannot be written: {source}", path.display())]
    #[diagnostic(help("{}", role.room()))]
    Write {
        /// The path, as it was named.
        path: PathBuf,
        /// What the system said; part of the message.
        source: io::Error,
        /// What would be written.
        role: Role,
    },
}

impl OutputError {
    /// The error of a path that has no destination.
    pub(super) fn unreachable(role: Role, path: &Path, why: Unreachable) -> OutputError {
        let (path, folder) = (path.to_owned(), path.to_owned());
        match why {
            Unreachable::NoFolder => OutputError::NoDirectory { path, role },
            Unreachable::Elsewhere => OutputError::Elsewhere { path, role },
            Unreachable::Io(source) => OutputError::NotWritable { path, folder, source, role },
        }
    }

    /// Whether the output is refused because something would be lost.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            OutputError::Store { .. }
                | OutputError::BesideStore { .. }
                | OutputError::OfCommand { .. }
                | OutputError::Device { .. }
                | OutputError::Elsewhere { .. }
                | OutputError::Unreadable { .. }
        )
    }

    /// Whether writing began, and failed.
    pub fn is_failure(&self) -> bool {
        matches!(self, OutputError::Write { .. })
    }
}

impl From<OutputError> for io::Error {
    fn from(error: OutputError) -> Self {
        match error {
            OutputError::Write { source, .. } | OutputError::NotWritable { source, .. } => source,
            other => io::Error::other(other),
        }
    }
}

/// The other name of a file, if it differs.
fn also(path: &Path, other: &Path) -> String {
    if is_same(path, other) { String::new() } else { format!("{}, ", other.display()) }
}

/// The directory that is the reason, if it is not the path itself.
fn within(path: &Path, folder: &Path) -> String {
    if is_same(path, folder) { String::new() } else { format!("{}: ", folder.display()) }
}

/// The end of a path, if it differs.
fn through(path: &Path, to: &Path) -> String {
    if is_same(path, to) { String::new() } else { format!(" ({})", to.display()) }
}

/// Whether two paths are the same text, apart from a leading `./`.
fn is_same(one: &Path, other: &Path) -> bool {
    let plain = |path: &Path| path.strip_prefix(".").unwrap_or(path).to_owned();
    plain(one) == plain(other)
}
