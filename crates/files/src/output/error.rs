//! [`OutputError`]: the reasons why an output is not written.

use super::Role;
use super::destination::Unreachable;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why an output cannot be written or is refused.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum OutputError {
    /// The output would overwrite a store.
    #[error("{} is a store: {} would overwrite every number in it", path.display(), role.noun)]
    #[diagnostic(help("{}", role.another()))]
    Store {
        /// The path as the user gave it.
        path: PathBuf,
        /// The output.
        role: Role,
    },
    /// The output would overwrite a file that SQLite keeps with a store, and destroy changes that are only in this
    /// file.
    #[error("{} belongs to the store {}: {} would damage it", path.display(), store.display(), role.noun)]
    #[diagnostic(help("{}", role.another()))]
    BesideStore {
        /// The path as the user gave it.
        path: PathBuf,
        /// Path of the store.
        store: PathBuf,
        /// The output.
        role: Role,
    },
    /// The output would overwrite a file that the command reads, or writes for another purpose.
    #[error("{} is {}{what} of this command: {} would overwrite it", path.display(), also(path, other), role.noun)]
    #[diagnostic(help("{}", role.another()))]
    OfCommand {
        /// The path as the user gave it.
        path: PathBuf,
        /// The other path of the file on the command line.
        other: PathBuf,
        /// Noun for the file: "the experiment".
        what: &'static str,
        /// The output.
        role: Role,
    },
    /// The output would overwrite the data on a device.
    #[error("{} is a {kind}{}: {} is not written to one", path.display(), through(path, to), role.noun)]
    #[diagnostic(help("{}", role.another()))]
    Device {
        /// The path as the user gave it.
        path: PathBuf,
        /// The path with links resolved.
        to: PathBuf,
        /// "block device" or "character device".
        kind: &'static str,
        /// The output.
        role: Role,
    },
    /// The resolved path names another file, so writing could overwrite the wrong file.
    #[error(
        "{} is not what its resolved path names (deleted, covered by a mount, or in another mount namespace): \
         {} could overwrite another file",
        path.display(),
        role.noun
    )]
    #[diagnostic(help("{}", role.another()))]
    Elsewhere {
        /// The path as the user gave it.
        path: PathBuf,
        /// The output.
        role: Role,
    },
    /// An existing file cannot be read, so it may be a store.
    #[error("{} is there and cannot be read, so it may be a store: {source}", path.display())]
    #[diagnostic(help("make it readable, or {}", role.another()))]
    Unreadable {
        /// The path as the user gave it.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
        /// The output.
        role: Role,
    },
    /// The path of a file is a directory.
    #[error("{} is a directory, but {} is a file", path.display(), role.noun)]
    #[diagnostic(help("{}", role.in_a_directory()))]
    Directory {
        /// The path as the user gave it.
        path: PathBuf,
        /// The output.
        role: Role,
    },
    /// The path of a directory is not one.
    #[error("{} is no directory, which {} lie in", path.display(), role.noun)]
    #[diagnostic(help("name a directory{}", role.by()))]
    NotADirectory {
        /// The path as the user gave it.
        path: PathBuf,
        /// The output.
        role: Role,
    },
    /// The parent directory does not exist.
    #[error("there is no directory for {} {}", role.noun, path.display())]
    #[diagnostic(help("{}", role.in_a_directory()))]
    NoDirectory {
        /// The path as the user gave it.
        path: PathBuf,
        /// The output.
        role: Role,
    },
    /// The directory is not writable.
    #[error("{} cannot be written: {}{source}", path.display(), within(path, folder))]
    #[diagnostic(help("{}", role.in_a_directory()))]
    NotWritable {
        /// The path as the user gave it.
        path: PathBuf,
        /// The directory.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
        /// The output.
        role: Role,
    },
    /// The path is neither a file nor a pipe, but a socket, for example.
    #[error("{} is neither a file nor a pipe", path.display())]
    #[diagnostic(help("{}", role.another()))]
    Kind {
        /// The path as the user gave it.
        path: PathBuf,
        /// The output.
        role: Role,
    },
    /// The path of a new file already exists.
    #[error("{} is there already", path.display())]
    #[diagnostic(help("name a new file{}", role.by()))]
    Exists {
        /// The path as the user gave it.
        path: PathBuf,
        /// The output.
        role: Role,
    },
    /// Writing failed. The old file is unchanged.
    #[error("{} cannot be written: {source}", path.display())]
    #[diagnostic(help("{}", role.room()))]
    Write {
        /// The path as the user gave it.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
        /// The output.
        role: Role,
    },
}

impl OutputError {
    /// The error for a path without a destination.
    pub(super) fn unreachable(role: Role, path: &Path, why: Unreachable) -> OutputError {
        let (path, folder) = (path.to_owned(), path.to_owned());
        match why {
            Unreachable::NoFolder => OutputError::NoDirectory { path, role },
            Unreachable::Elsewhere => OutputError::Elsewhere { path, role },
            Unreachable::Io(source) => OutputError::NotWritable { path, folder, source, role },
        }
    }

    /// Whether the output was refused because it would destroy data.
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

    /// Whether the error occurred during writing.
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

/// The other path of a file, if it differs.
fn also(path: &Path, other: &Path) -> String {
    if is_same(path, other) { String::new() } else { format!("{}, ", other.display()) }
}

/// The directory at fault, if it is not the path itself.
fn within(path: &Path, folder: &Path) -> String {
    if is_same(path, folder) { String::new() } else { format!("{}: ", folder.display()) }
}

/// The resolved path, if it differs.
fn through(path: &Path, to: &Path) -> String {
    if is_same(path, to) { String::new() } else { format!(" ({})", to.display()) }
}

/// Whether two paths have the same text, apart from a leading `./`.
fn is_same(one: &Path, other: &Path) -> bool {
    let plain = |path: &Path| path.strip_prefix(".").unwrap_or(path).to_owned();
    plain(one) == plain(other)
}
