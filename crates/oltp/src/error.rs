//! Errors between lowtide and a database, worded for users.
//!
//! Failures of single transactions are in [`crate::Failure`]: they are counted, and conflicts are retried.

use crate::Failure;
use lowtide_engines::SettingsError;
use lowtide_engines::tpcc::Kind;
use std::path::PathBuf;

/// The reason why a database cannot be prepared, started, loaded, queried or stopped.
#[derive(Debug, thiserror::Error)]
pub enum OltpError {
    /// A program of the server is not installed.
    #[error("`{program}` is not on this machine: {hint}")]
    Missing {
        /// Its name, or the path that the user gave.
        program: String,
        /// A hint for its installation, or the searched places.
        hint: String,
    },
    /// A server did not start, or ended by itself.
    #[error("{server} {what}: {line} ({log})", log = log.display())]
    Server {
        /// The server's program: `mariadbd`, `postgres`.
        server: String,
        /// The event: `did not start`, `ended with exit status 1`, `was killed by signal 9`.
        what: String,
        /// The most informative line of its log.
        line: String,
        /// Path of its log.
        log: PathBuf,
    },
    /// An operation failed on a server that still runs; the server's log holds more detail.
    #[error("{seen}; the log of the server says {line} ({log})", log = log.display())]
    Told {
        /// The failure on the client's side.
        seen: Box<OltpError>,
        /// The first line of the log that is marked as an error.
        line: String,
        /// Path of the log.
        log: PathBuf,
    },
    /// A statement failed.
    #[error("{what}: {message}")]
    Sql {
        /// The operation: `loading stock`.
        what: String,
        /// The database's message.
        message: String,
    },
    /// A transaction of a terminal failed and cannot be retried.
    #[error("terminal {terminal} (warehouse {warehouse}): {kind}: {failure}", kind = kind.name())]
    Transaction {
        /// The terminal's number, from 0.
        terminal: u32,
        /// The terminal's home warehouse.
        warehouse: u32,
        /// The kind of transaction.
        kind: Kind,
        /// The failure.
        failure: Failure,
    },
    /// A file or directory could not be used.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A request that cannot be fulfilled.
    #[error("{0}")]
    Invalid(String),
    /// The operation was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl From<SettingsError> for OltpError {
    fn from(error: SettingsError) -> Self {
        OltpError::Invalid(error.0)
    }
}
