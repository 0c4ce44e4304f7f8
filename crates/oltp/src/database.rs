//! The interface between the benchmark and a database, with its errors.
//!
//! Each engine implements it in a module of its own.

use crate::OltpError;
use lowtide_core::Seed;
use lowtide_engines::tpcc::{Scale, Transaction};
use std::sync::atomic::AtomicBool;

/// A running database.
pub trait Database: Send + Sync {
    /// Name and version: `MariaDB 10.11.6, InnoDB`.
    fn version(&self) -> &str;
    /// Opens a session and prepares its statements.
    ///
    /// # Errors
    /// [`OltpError`] if the database accepts no more sessions or does not answer.
    fn session(&self) -> Result<Box<dyn Session>, OltpError>;
    /// The maximum number of sessions; `None` if there is no limit.
    ///
    /// # Errors
    /// [`OltpError`] if the statement fails.
    fn most_sessions(&self) -> Result<Option<u32>, OltpError> {
        Ok(None)
    }
    /// Creates the tables and fills them for `scale`. Calls `progress` with the loaded share, 0 to 1, from any
    /// thread.
    ///
    /// # Errors
    /// [`OltpError`] if a statement fails or `interrupt` is set.
    fn load(
        &self,
        scale: &Scale,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<(), OltpError>;
    /// Returns the first column of a query's only row as an integer. The consistency conditions use it.
    ///
    /// # Errors
    /// [`OltpError`] if the statement fails.
    fn number(&self, query: &str) -> Result<i64, OltpError>;
    /// Returns all rows of a query whose columns are integers; null counts as 0.
    ///
    /// # Errors
    /// [`OltpError`] if the statement fails or a value is not an integer.
    fn numbers(&self, query: &str) -> Result<Vec<Vec<i64>>, OltpError>;
    /// Runs the engine's own check of all tables and indexes, and returns the damage in the engine's words. SQLite
    /// runs `PRAGMA integrity_check`, MariaDB `CHECK TABLE … EXTENDED`, PostgreSQL `bt_index_check` of `amcheck`.
    /// Without `amcheck`, PostgreSQL checks nothing.
    ///
    /// # Errors
    /// [`OltpError`] if the check cannot be run.
    fn damage(&self) -> Result<Vec<String>, OltpError>;
    /// Runs a statement and ignores its result.
    ///
    /// # Errors
    /// [`OltpError`] if the statement fails.
    fn execute(&self, statement: &str) -> Result<(), OltpError>;
    /// Returns the database's own counters since it started: waits in nanoseconds, pages, bytes. A report shows the
    /// difference between two calls.
    ///
    /// # Errors
    /// [`OltpError`] if the statement fails.
    fn counters(&self) -> Result<Vec<Counter>, OltpError>;
}

/// One counter of a database.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// The view or table of the counter: `innodb_metrics`, `pg_stat_wal`.
    pub from: &'static str,
    /// Its name in that view or table.
    pub name: String,
    /// Unit of `value`.
    pub unit: CounterUnit,
    /// The current value.
    pub value: f64,
}

/// The unit of a [`Counter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterUnit {
    /// A number of events.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// A level at the moment of reading, not a sum.
    Level,
}

/// A terminal's connection to the database.
pub trait Session: Send {
    /// Runs one transaction to its end.
    ///
    /// # Errors
    /// [`Failure`] if the transaction did not complete; engines with transactions then undo its changes. If rows of
    /// the load are missing, this may show only after the commit: the result is [`Failure::Refused`], but the changes
    /// stay.
    fn run(&mut self, transaction: &Transaction) -> Result<Outcome, Failure>;
    /// Number of statements sent so far. A batch that takes one round trip counts once.
    fn statements(&self) -> u64;
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Committed.
    Committed,
    /// Rolled back as the specification requires, because of an unused item number (clause 2.4.2.3).
    RolledBack,
    /// A committed delivery; some districts may have had nothing to deliver (clause 2.7.4.2).
    Delivered {
        /// Number of districts without an order to deliver.
        skipped: u32,
    },
}

/// The reason why a transaction did not complete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A conflict with another transaction: deadlock, lock timeout, serialization failure. The transaction is
    /// retried.
    #[error("{0}")]
    Conflict(String),
    /// The connection was lost.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// The database refused the transaction: disk full, or a statement failed.
    #[error("{0}")]
    Refused(String),
}
