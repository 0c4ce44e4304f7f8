//! The interface of a database under test, and its outcomes and failures.
//!
//! Each engine implements the interface in its own module.

use crate::OltpError;
use lowtide_core::Seed;
use lowtide_engines::tpcc::{Scale, Transaction};
use std::sync::atomic::AtomicBool;

/// A running database.
pub trait Database: Send + Sync {
    /// Name and version, as in `MariaDB 10.11.6, InnoDB`.
    fn version(&self) -> &str;
    /// Opens a session and prepares its statements.
    ///
    /// # Errors
    /// [`OltpError`] if the database accepts no more sessions or does not answer.
    fn session(&self) -> Result<Box<dyn Session>, OltpError>;
    /// Maximum number of sessions; `None` if there is no limit.
    ///
    /// # Errors
    /// [`OltpError`] if the statement fails.
    fn most_sessions(&self) -> Result<Option<u32>, OltpError> {
        Ok(None)
    }
    /// Makes the tables and fills them for `scale`. Calls `progress` with the loaded share, 0 to 1, from any
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
    /// Returns the first column of a single-row query as an integer. The consistency conditions are such
    /// queries.
    ///
    /// # Errors
    /// [`OltpError`] if the statement fails.
    fn number(&self, query: &str) -> Result<i64, OltpError>;
    /// Returns all rows of a query with integer columns; NULL becomes 0.
    ///
    /// # Errors
    /// [`OltpError`] if the statement fails or a column is not an integer.
    fn numbers(&self, query: &str) -> Result<Vec<Vec<i64>>, OltpError>;
    /// Runs the engine's own check of tables and indexes, and returns the damage that it reports. The check is
    /// `PRAGMA integrity_check`, `CHECK TABLE … EXTENDED` or, for PostgreSQL, `bt_index_check` of the extension
    /// `amcheck`. Without that extension PostgreSQL is not checked.
    ///
    /// # Errors
    /// [`OltpError`] if the check cannot run.
    fn damage(&self) -> Result<Vec<String>, OltpError>;
    /// Runs a statement that returns no rows.
    ///
    /// # Errors
    /// [`OltpError`] if the statement fails.
    fn execute(&self, statement: &str) -> Result<(), OltpError>;
    /// Reads the counters of the database: waits, pages, bytes. They count from the start of the server; a
    /// report shows the difference between two calls.
    ///
    /// # Errors
    /// [`OltpError`] if the statement fails.
    fn counters(&self) -> Result<Vec<Counter>, OltpError>;
}

/// A counter of the database.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// View or table of the counter, such as `innodb_metrics` or `pg_stat_wal`.
    pub from: &'static str,
    /// Name within that view.
    pub name: String,
    /// Unit of the value.
    pub unit: CounterUnit,
    /// Current value.
    pub value: f64,
}

/// Unit of a [`Counter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterUnit {
    /// Number of events.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// A level at the time of reading, not a sum.
    Level,
}

/// A connection that runs the transactions of one terminal.
pub trait Session: Send {
    /// Runs a transaction until it commits or rolls back.
    ///
    /// # Errors
    /// [`Failure`] if the transaction did not complete. On engines with transactions it then has no effect,
    /// with one exception: if missing rows are noticed only after the commit, the result is
    /// [`Failure::Refused`] and the changes stay.
    fn run(&mut self, transaction: &Transaction) -> Result<Outcome, Failure>;
    /// Number of statements sent so far; a batch sent in one round trip counts once.
    fn statements(&self) -> u64;
}

/// Outcome of a completed transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The transaction committed.
    Committed,
    /// The benchmark required a rollback, because of an unused item number (clause 2.4.2.3).
    RolledBack,
    /// A delivery committed; districts without an undelivered order were skipped (clause 2.7.4.2).
    Delivered {
        /// Number of skipped districts.
        skipped: u32,
    },
}

/// Reason why a transaction did not complete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Conflict with another transaction: deadlock, lock timeout or serialization failure. The transaction is
    /// retried.
    #[error("{0}")]
    Conflict(String),
    /// The connection was lost.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// The database reported an error, such as a full disk or an invalid statement.
    #[error("{0}")]
    Refused(String),
}
