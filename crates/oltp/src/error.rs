//! The errors of this crate.
//!
//! Failures of single transactions are in [`crate::Failure`]. They are counted, and conflicts are retried.

use crate::Failure;
use lowtide_engines::SettingsError;
use lowtide_engines::tpcc::Kind;
use std::path::PathBuf;

/// Reason why a database cannot be prepared, started, loaded, queried or stopped.
#[derive(Debug, thiserror::Error)]
pub enum OltpError {
    /// A program of the server was not found on this machine.
    #[error("`{program}` is not on this machine: {hint}")]
    Missing {
        /// Name of the program, or the path that the user gave.
        program: String,
        /// How to install it, or where lowtide searched.
        hint: String,
    },
    /// A server did not start or ended unexpectedly.
    #[error("{server} {what}: {line} ({log})", log = log.display())]
    Server {
        /// Name of the server program: `mariadbd`, `postgres`.
        server: String,
        /// Failure, such as `did not start`, `ended with exit status 1` or `was killed by signal 9`.
        what: String,
        /// The most informative line of the server's log.
        line: String,
        /// Path of the log.
        log: PathBuf,
    },
    /// An operation failed on a server that still runs, and the server's log contains an error.
    #[error("{seen}; the log of the server says {line} ({log})", log = log.display())]
    Told {
        /// The failure of the operation.
        seen: Box<OltpError>,
        /// The first line of the log that is marked as an error.
        line: String,
        /// Path of the log.
        log: PathBuf,
    },
    /// A statement failed.
    #[error("{what}: {message}")]
    Sql {
        /// The operation, such as `loading stock`.
        what: String,
        /// Message of the database.
        message: String,
    },
    /// A terminal's transaction failed permanently.
    #[error("terminal {terminal} (warehouse {warehouse}): {kind}: {failure}", kind = kind.name())]
    Transaction {
        /// Number of the terminal, from 0.
        terminal: u32,
        /// Home warehouse of the terminal.
        warehouse: u32,
        /// Kind of the transaction.
        kind: Kind,
        /// Failure of the transaction.
        failure: Failure,
    },
    /// An operation on a file or directory failed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The user interrupted the operation.
    #[error("interrupted")]
    Interrupted,
}

impl From<SettingsError> for OltpError {
    fn from(error: SettingsError) -> Self {
        OltpError::Invalid(error.0)
    }
}
