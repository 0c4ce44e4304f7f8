//! What can go wrong between lowtide and a database, for people.
//!
//! Not here: what a terminal meets while it runs ([`crate::Failure`]); those are counted, and some are tried again.

use crate::Failure;
use lowtide_engines::SettingsError;
use lowtide_engines::tpcc::Kind;
use std::path::PathBuf;

/// Why a database cannot be prepared, started, loaded, asked or stopped.
#[derive(Debug, thiserror::Error)]
pub enum OltpError {
    /// A program of the server is not on this machine.
    #[error("`{program}` is not on this machine: {hint}")]
    Missing {
        /// Its name, or the path that was given.
        program: String,
        /// How to get it, or where it was looked for.
        hint: String,
    },
    /// A server did not start, or ended by itself; its log says why.
    #[error("{server} {what}: {line} ({log})", log = log.display())]
    Server {
        /// Which server: `mariadbd`, `postgres`.
        server: String,
        /// What it did: `did not start`, `ended with exit status 1`, `was killed by signal 9`.
        what: String,
        /// The line of its log that says most.
        line: String,
        /// Its log.
        log: PathBuf,
    },
    /// Something failed on a server that lives on, and its log says more.
    #[error("{seen}; the log of the server says {line} ({log})", log = log.display())]
    Told {
        /// What failed.
        seen: Box<OltpError>,
        /// The first line of its log that is marked as an error.
        line: String,
        /// That log.
        log: PathBuf,
    },
    /// A statement failed.
    #[error("{what}: {message}")]
    Sql {
        /// What was being done: `loading stock`.
        what: String,
        /// What the database said.
        message: String,
    },
    /// A transaction of a terminal failed for good.
    #[error("terminal {terminal} (warehouse {warehouse}): {kind}: {failure}", kind = kind.name())]
    Transaction {
        /// The terminal's number, from 0.
        terminal: u32,
        /// Its home.
        warehouse: u32,
        /// What it asked for.
        kind: Kind,
        /// What came of it.
        failure: Failure,
    },
    /// A file or directory could not be used.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something asked for cannot be.
    #[error("{0}")]
    Invalid(String),
    /// It was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl From<SettingsError> for OltpError {
    fn from(error: SettingsError) -> Self {
        OltpError::Invalid(error.0)
    }
}
